"""Starts a server and ends with Duckflow, however that ends; nothing that the server started is left.

Run by its path as `python -I -S launch.py HANDLE PROGRAM ARGUMENT...`. HANDLE is the reading end of a pipe whose other
end only Duckflow holds: when it is closed, Duckflow has gone.
"""

import contextlib
import os
import select
import signal
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
PATIENCE_SECONDS = 1.0
NOT_FOUND = 127


def main() -> None:
    handle, argv = int(sys.argv[1]), sys.argv[2:]
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    ended: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda got, _: ended.append(got))
    signal.signal(signal.SIGCHLD, lambda got, _: None)
    server = os.fork()
    if server == 0:
        _become(argv, handle)
    _let_go_of_streams()
    code = None
    while code is None and not ended:
        ready, _, _ = select.select([handle, woken], [], [])
        if woken in ready:
            os.read(woken, 512)
        code = _reap(server)
        if handle in ready:
            break
    _end_all(server)
    os._exit(0 if code is None else code)


def _become(argv: list[str], handle: int) -> None:
    """In the child: a group of its own, and no longer life than its parent's."""
    os.setsid()
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.close(handle)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)
    except OSError as problem:
        os.write(2, f"{argv[0]}: {problem.strerror}\n".encode("utf-8", "surrogateescape"))
        os._exit(NOT_FOUND)


def _let_go_of_streams() -> None:
    """The streams are the server's: its end must show at their other ends."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)


def _reap(server: int) -> int | None:
    """The server's exit code, if it has ended; what else has ended is cleared away."""
    code = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == server:
                code = os.waitstatus_to_exitcode(status)
    return None if code is None else 128 - code if code < 0 else code


def _end_all(server: int) -> None:
    """First with a word, then without."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    _signal(server, signal.SIGTERM)
    while _reap(server) is None and _below() and time.monotonic() < deadline:
        time.sleep(0.01)
    for _ in range(200):
        _signal(server, signal.SIGKILL)
        _reap(server)
        if not _below():
            return
        time.sleep(0.01)


def _signal(server: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(server, number)
    for pid in _below():
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def _below() -> list[int]:
    """All descendants: who has left the group, or lost its parent, is still below this process."""
    parents: dict[int, int] = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
                    parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    found, look = list[int](), [os.getpid()]
    while look:
        above = look.pop()
        children = [pid for pid, parent in parents.items() if parent == above]
        found += children
        look += children
    return found


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main()
