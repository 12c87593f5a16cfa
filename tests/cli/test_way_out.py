"""The way out: whatever it is doing, a signal ends the program within three seconds, and nothing is lost."""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from duckflow.agent.session import reopen
from duckflow.store.sessions import read_headline
from tests.cli.shell import Shell
from tests.journeys.plans import PROPOSE, report
from tests.journeys.processes import processes, wait_until_running
from tests.journeys.story import act, decide, respond

SECONDS = 3.0
LONGEST = 2.0
SIGNALS = {
    "TERM": (signal.SIGTERM,),
    "HUP": (signal.SIGHUP,),
    "QUIT": (signal.SIGQUIT,),
    "INT": (signal.SIGINT,),
    "INT twice": (signal.SIGINT, signal.SIGINT),
}
DONE = decide(respond("Done."))
DEFAULT_SIGNALS = ("env", "--default-signal=HUP,INT,QUIT")
SLOW = {"json": DONE, "chunk": 1, "delay": 0.2}


class Program:
    """The program in the middle of a story; `nap` stands in the command line of everything that it starts."""

    def __init__(self, top: Path, front: str = "headless") -> None:
        self.shell = Shell(top)
        self.front = front
        self.nap = f"sleep {random.randint(10**6, 10**7)}"
        self.model, self.message, self.mode = "", "", "full-auto"
        self.config = ""
        self.open: list[socket.socket] = []

    def begin(self, *replies: Any, message: str = "do it") -> None:
        self.model, self.message = self.shell.script(*replies), message

    def start(self) -> None:
        """It returns when the program listens to signals: before that it has done nothing yet, and just dies."""
        self.shell.write_config(f'[safety]\nmode = "{self.mode}"\n{self.config}')
        arguments = ["-m", self.model, "--mode", self.mode, "--trust"]
        match self.front:
            case "headless" if self.mode == "full-auto":
                self._run(*arguments, "--output-format", "stream-json", "-p", self.message, reads=False)
                self._read()
            case "headless":
                self._run("-m", self.model, "--input-format", "stream-json", "--output-format", "stream-json")
                self._send({"type": "user", "text": self.message})
                self._read()
            case "chat":
                self._chat(*arguments)
            case "acp":
                self._run("acp", *arguments)
                self._ask(1, "initialize", protocolVersion=1, clientCapabilities={})
                session = self._ask(2, "session/new", cwd=str(self.shell.work), mcpServers=[])["sessionId"]
                prompt = [{"type": "text", "text": self.message}]
                self._send(_request(3, "session/prompt", sessionId=session, prompt=prompt))
            case _:
                self._run("mcp", "serve")
                self._ask(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t"})
                wish = {"prompt": self.message, "cwd": str(self.shell.work), "model": self.model}
                self._send(_request(2, "tools/call", name="duckflow", arguments=wish))

    def end(self, numbers: tuple[signal.Signals, ...]) -> float:
        """Gives the seconds that it took."""
        began = time.monotonic()
        for number in numbers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, number)
            time.sleep(0.05)
        told = self._read_screen() if self.front == "chat" else self.process.communicate(timeout=30)[1]
        self.code = self.process.wait()
        assert "Traceback" not in told, told
        return time.monotonic() - began

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for opened in self.open:
            opened.close()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                stream.close()

    def check_kept(self) -> None:
        """What ran is gone, and the session can be opened up to its last event."""
        for _ in range(20):
            if not processes(self.nap):
                break
            time.sleep(0.05)
        assert not processes(self.nap)
        for journal in (self.shell.home / "data/sessions").glob("*/*.db"):
            # A program that ended before its first event leaves a journal in which nothing was said: no list has it.
            if read_headline(journal) is None:
                continue
            opened = reopen(journal)
            assert opened.salvaged is None
            opened.session.close()

    def _run(self, *arguments: str, reads: bool = True) -> None:
        pipe, source = subprocess.PIPE, subprocess.PIPE if reads else subprocess.DEVNULL
        command = [*DEFAULT_SIGNALS, sys.executable, "-m", "duckflow", *arguments]
        self.process = subprocess.Popen(
            command, cwd=self.shell.work, env=self.shell.environment, stdin=source, stdout=pipe, stderr=pipe, text=True
        )

    def _chat(self, *arguments: str) -> None:
        """A pseudo-terminal of its own; the answer to where the cursor is comes from nobody, so it asks for none."""
        master, terminal = os.openpty()
        command = [*DEFAULT_SIGNALS, sys.executable, "-m", "duckflow", *arguments, self.message]
        environment = self.shell.environment | {"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1"}
        self.process = subprocess.Popen(
            command, cwd=self.shell.work, env=environment, stdin=terminal, stdout=terminal, stderr=terminal,
            start_new_session=True, text=True,
        )  # fmt: skip
        os.close(terminal)
        self._master, self._screen = master, b""
        while b"/help" not in self._screen:
            self._screen += os.read(master, 65536)

    def _read_screen(self) -> str:
        """Everything up to its end; the terminal says with an error that nobody writes any more."""
        with contextlib.suppress(OSError):
            while piece := os.read(self._master, 65536):
                self._screen += piece
        os.close(self._master)
        return self._screen.decode("utf-8", "replace")

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def _read(self) -> str:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line
        return line

    def _ask(self, number: int, method: str, **params: Any) -> Any:
        self._send(_request(number, method, **params))
        while (answer := json.loads(self._read())).get("id") != number:
            pass
        return answer["result"]


def _request(number: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def streams(program: Program) -> None:
    program.begin(SLOW)


def runs_a_command(program: Program) -> None:
    program.begin(decide(act("shell.run", command=f"echo x > begun; {program.nap}")), DONE)


def leaves_a_command(program: Program) -> None:
    program.begin(decide(act("shell.run", command=program.nap, background=True), next_step="continue"), SLOW)


def runs_a_job(program: Program) -> None:
    steps: list[Any] = [{"name": f"s{n}", "description": "", "success": "", "depends_on": []} for n in range(2)]
    tasks = {"tasks": [act("shell.run", command=program.nap)]}
    run = decide(act("task_loop.run"), next_step="defer")
    program.begin(
        PROPOSE,
        {"json": {"name": "Work", "steps": steps, "risks": []}},
        run,
        {"json": tasks, "when": "s0"},
        {"json": tasks, "when": "s1"},
        {"json": report(), "when": "background job has ended"},
    )


def waits_at_a_gate(program: Program) -> None:
    program.mode = "ask"
    program.begin(decide(act("file_ops.write_file", path="a.txt", content="a\n")), DONE, message="write a.txt")


def has_agents(program: Program) -> None:
    agents = [act("agent.run", kind="work", task=f"part {n}") for n in range(2)]
    sleeping = decide(act("shell.run", command=program.nap))
    program.begin(decide(*agents, next_step="continue"), *[{"json": sleeping, "when": "part"}] * 2, SLOW)


def has_a_hook(program: Program) -> None:
    _hook(program, "UserPromptSubmit")
    program.begin(SLOW)


def has_a_silent_server(program: Program) -> None:
    sleeping = f'["-c", "trap : TERM; {program.nap}; {program.nap}"]'
    program.config = f'[mcp.servers.silent]\ncommand = "bash"\nargs = {sleeping}\n'
    program.begin(SLOW)


def has_a_silent_provider(program: Program) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    program.open.append(listening)
    program.shell.environment |= {
        "OPENAI_API_KEY": "x",
        "OPENAI_BASE_URL": f"http://127.0.0.1:{listening.getsockname()[1]}/v1",
    }
    program.model, program.message = "openai:gpt-5-mini", "hello"


def is_leaving(program: Program) -> None:
    _hook(program, "SessionEnd")
    program.begin(DONE)


def _hook(program: Program, event: str) -> None:
    command = {"type": "command", "command": program.nap}
    settings = program.shell.home.parent / ".claude/settings.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps({"hooks": {event: [{"hooks": [command]}]}}))


STORIES: tuple[Callable[[Program], None], ...] = (
    *(streams, runs_a_command, leaves_a_command, runs_a_job, waits_at_a_gate),
    *(has_agents, has_a_hook, has_a_silent_server, has_a_silent_provider, is_leaving),
)


WITHOUT_NAP = (streams, waits_at_a_gate, has_a_silent_provider)


def play(
    top: Path, story: Callable[[Program], None], numbers: tuple[signal.Signals, ...], moment: float, front: str
) -> None:
    """A moment of -1 is the middle of the story: what it sleeps in is running."""
    program = Program(top, front)
    story(program)
    program.start()
    try:
        # Only a program that was given its one message leaves by itself.
        if moment < 0 and story not in WITHOUT_NAP and (front == "headless" or story is not is_leaving):
            wait_until_running(program.nap)
        time.sleep(abs(moment))
        seconds = program.end(numbers)
        # While it leaves, its turn has ended already, as well as it could; a server has no turn to tell of.
        calm = front not in ("headless", "chat") or story is is_leaving
        assert program.code == 130 or (program.code == 0 and calm), program.code
        assert seconds < SECONDS, f"{seconds:.1f} s after {moment:.2f} s of {story.__name__}"
        program.check_kept()
    finally:
        program.close()


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("number", "story"), list(enumerate(STORIES)), ids=[story.__name__ for story in STORIES])
def test_a_signal_in_the_middle_of_a_story_ends_the_program(
    tmp_path: Path, number: int, story: Callable[[Program], None]
) -> None:
    play(tmp_path, story, list(SIGNALS.values())[number % len(SIGNALS)], -1, "headless")


QUICK_CASES = [("chat", "INT twice"), ("chat", "INT"), ("chat", "HUP"), ("acp", "TERM"), ("mcp", "INT twice")]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("front", "name"), QUICK_CASES)
def test_a_signal_ends_every_front_end_while_a_command_runs(tmp_path: Path, front: str, name: str) -> None:
    play(tmp_path, runs_a_command, SIGNALS[name], -1, front)


@pytest.mark.slow
@pytest.mark.parametrize("front", ["headless", "chat", "acp", "mcp"])
@pytest.mark.parametrize("numbers", list(SIGNALS.values()), ids=list(SIGNALS))
@pytest.mark.parametrize("story", STORIES, ids=[story.__name__ for story in STORIES])
def test_every_signal_at_any_moment_ends_the_program(
    tmp_path: Path, story: Callable[[Program], None], numbers: tuple[signal.Signals, ...], front: str
) -> None:
    for attempt in range(10 if front == "headless" else 2):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        play(folder, story, numbers, random.uniform(0, LONGEST), front)


def test_changes_of_a_command_before_the_signal_can_be_undone(tmp_path: Path) -> None:
    program = Program(tmp_path)
    runs_a_command(program)
    program.start()
    begun = program.shell.work / "begun"
    for _ in range(200):
        if begun.exists():
            break
        time.sleep(0.05)
    assert begun.exists()
    assert program.end((signal.SIGTERM,)) < SECONDS
    shown = program.shell.run("-c", "-p", "/diff", "-m", program.shell.script())
    assert "begun" in shown.stdout and "+x" in shown.stdout, shown.stdout + shown.stderr
