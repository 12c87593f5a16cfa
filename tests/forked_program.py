"""`duckflow` as a process of its own that need not load itself: a server has loaded it, and forks for every start.

Three quarters of a short run are Python's start and the imports. A test of the start itself, or one that needs other
flags or another locale, runs `python -m duckflow` instead.
"""

import faulthandler
import fcntl
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import termios
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel

TOP = Path(__file__).parents[1]
LOCALE = "C.UTF-8"
PACKET = 60_000
LOADED = (
    *("cli.acp", "cli.build", "cli.config", "cli.detached", "cli.first_run", "cli.fleet", "cli.prompt", "cli.run"),
    *("cli.session_list", "cli.start", "cli.talk", "code.store", "fleet.database_engine", "fleet.running"),
    *("forms.json_form", "llm.connect", "llm.scripted", "memory.archive_hit", "memory.gravel", "programs.run"),
    *("safety.sandbox.choose", "ui.console.chat", "ui.console.plain_line", "ui.headless"),
)


class ForkedProgram:
    """A running one, with what tests ask of `subprocess.Popen`."""

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        streams: tuple[int, int, int],
        terminal: bool = False,
    ) -> None:
        """`streams` are its input, output and errors; with `terminal` it leads a session of its own on the first."""
        self._server, answering = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with answering:
            socket.send_fds(_server().orders, [b"+"], [*streams, answering.fileno()])
        order = {"arguments": arguments, "folder": str(folder), "environment": environment, "terminal": terminal}
        text = json.dumps(order).encode()
        for start in range(0, len(text), PACKET):
            self._server.sendall(text[start : start + PACKET])
        self._server.shutdown(socket.SHUT_WR)
        self.pid = int(self._server.recv(PACKET))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._server.settimeout(timeout)
            try:
                self.returncode = int(self._server.recv(PACKET))
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired("duckflow", timeout or 0) from None
            self._server.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def can_fork(environment: Mapping[str, str]) -> bool:
    """An interpreter reads some variables only at its start; the server has these values."""
    own = {name: value for name, value in environment.items() if name.startswith(("LC_", "PYTHON")) or name == "LANG"}
    own.pop("PYTHONFAULTHANDLER", None)
    return own == {"LC_ALL": LOCALE} | {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}


def run_forked(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    stdin: str | None = None,
    seconds: float = 60,
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run` does it with texts."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    (read_input, write_input), (output, write_output), (errors, write_errors) = (os.pipe() for _ in range(3))
    program_ends = (nothing if stdin is None else read_input, write_output, write_errors)
    program = ForkedProgram(arguments, folder, environment, program_ends)
    for handle in (nothing, read_input, write_output, write_errors):
        os.close(handle)
    with ThreadPoolExecutor(3) as threads:
        threads.submit(_write, write_input, stdin or "")
        texts = [threads.submit(_read, handle) for handle in (output, errors)]
        try:
            code = program.wait(seconds)
        except subprocess.TimeoutExpired:
            program.kill()
            raise
    return subprocess.CompletedProcess(list(arguments), code, *(text.result() for text in texts))


def _read(handle: int) -> str:
    with open(handle, errors="replace") as stream:
        return stream.read()


def _write(handle: int, text: str) -> None:
    with suppress(BrokenPipeError), open(handle, "w") as stream:
        stream.write(text)


class _Server:
    def __init__(self) -> None:
        self.orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-m", "tests.forked_program", str(theirs.fileno())]
            environment = {**os.environ, "LC_ALL": LOCALE}
            self.process = subprocess.Popen(command, cwd=TOP, env=environment, pass_fds=[theirs.fileno()])


@cache
def _server() -> _Server:
    """The one for all tests of this process."""
    return _Server()


def end_server() -> None:
    if _server.cache_info().currsize:
        _server().orders.close()
        _server().process.wait()


def _wait_for_an_order(orders: socket.socket) -> dict[str, Any] | None:
    """Forks for every order, and returns it in the new process; nothing in the server, when there are no more."""
    running: dict[int, socket.socket] = {}

    def report_ended(*_: object) -> None:
        while running:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            with running.pop(pid) as client, suppress(OSError):
                client.send(b"%d" % os.waitstatus_to_exitcode(status))

    signal.signal(signal.SIGCHLD, report_ended)
    while True:
        byte, handles, *_ = socket.recv_fds(orders, 1, 4)
        if not byte:
            return None
        client = socket.socket(fileno=handles.pop())
        order = json.loads(b"".join(iter(partial(client.recv, PACKET), b"")))
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        if not (pid := os.fork()):
            for other in (*running.values(), client, orders):
                other.close()
            return order | {"streams": handles}
        running[pid] = client
        client.send(b"%d" % pid)
        for handle in handles:
            os.close(handle)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])


def _become(order: dict[str, Any]) -> None:
    """Everything that a new interpreter would have found is made so."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    for place, handle in enumerate(order["streams"]):
        os.dup2(handle, place)
        os.close(handle)
    if order["terminal"]:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    tempfile.tempdir = None
    sys.argv = ["duckflow", *order["arguments"]]
    sys.stdin = os.fdopen(0, errors="surrogateescape", closefd=False)
    sys.stdout = os.fdopen(1, "w", errors="surrogateescape", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    if "PYTHONFAULTHANDLER" in os.environ:
        faulthandler.enable()


def _complete(kind: type[BaseModel]) -> None:
    """Builds what pydantic would build in every process when it makes the first object of a kind."""
    for inner in kind.__subclasses__():
        if inner.__module__.startswith("duckflow."):
            inner.model_rebuild()
        _complete(inner)


def main() -> None:
    for name in LOADED:
        import_module(f"duckflow.{name}")
    _complete(BaseModel)
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as orders:
        order = _wait_for_an_order(orders)
    if order:
        _become(order)
        runpy.run_module("duckflow", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
