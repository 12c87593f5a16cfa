"""The way out: whatever it is doing, a signal ends the program within three seconds, and nothing is lost."""

import json
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
SLOW = {"json": DONE, "chunk": 1, "delay": 0.2}


class Program:
    """The program in the middle of a story; `nap` stands in the command line of everything that it starts."""

    def __init__(self, top: Path) -> None:
        self.shell = Shell(top)
        self.nap = f"sleep {random.randint(10**6, 10**7)}"
        self.first_line = ""
        self.arguments = ["--mode", "full-auto", "--trust", "--output-format", "stream-json"]
        self.open: list[socket.socket] = []

    def begin(self, *replies: Any, message: str = "do it") -> None:
        self.arguments += ["-m", self.shell.script(*replies), "-p", message]

    def start(self) -> None:
        self.process = subprocess.Popen(
            ["env", "--default-signal=HUP,INT,QUIT", sys.executable, "-m", "duckflow", *self.arguments],
            cwd=self.shell.work,
            env=self.shell.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdin and self.process.stdout
        if self.first_line:
            self.process.stdin.write(self.first_line)
            self.process.stdin.flush()
        else:
            self.process.stdin.close()
            self.process.stdin = None
        # Before it listens to signals a program has done nothing yet, and just dies.
        assert self.process.stdout.readline()

    def end(self, numbers: tuple[signal.Signals, ...]) -> float:
        """Gives the seconds that it took."""
        began = time.monotonic()
        for number in numbers:
            self.process.send_signal(number)
            time.sleep(0.05)
        told = self.process.communicate(timeout=30)[1]
        assert "Traceback" not in told, told
        return time.monotonic() - began

    def check_kept(self) -> None:
        """What ran is gone, and the session can be opened up to its last event."""
        for _ in range(20):
            if not processes(self.nap):
                break
            time.sleep(0.05)
        assert not processes(self.nap)
        for journal in (self.shell.home / "data/sessions").glob("*/*.db"):
            opened = reopen(journal)
            assert opened.salvaged is None
            opened.session.close()


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
    program.arguments = ["--input-format", "stream-json", "--output-format", "stream-json"]
    model = program.shell.script(decide(act("file_ops.write_file", path="a.txt", content="a\n")), DONE)
    program.arguments += ["-m", model]
    program.first_line = json.dumps({"type": "user", "text": "write a.txt"}) + "\n"


def has_agents(program: Program) -> None:
    agents = [act("agent.run", kind="work", task=f"part {n}") for n in range(2)]
    sleeping = decide(act("shell.run", command=program.nap))
    program.begin(decide(*agents, next_step="continue"), *[{"json": sleeping, "when": "part"}] * 2, SLOW)


def has_a_hook(program: Program) -> None:
    _hook(program, "UserPromptSubmit")
    program.begin(SLOW)


def has_a_silent_server(program: Program) -> None:
    program.shell.write_config(
        f'[mcp.servers.silent]\ncommand = "bash"\nargs = ["-c", "trap : TERM; {program.nap}; {program.nap}"]\n'
    )
    program.begin(SLOW)


def has_a_silent_provider(program: Program) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    program.open.append(listening)
    program.shell.environment |= {
        "OPENAI_API_KEY": "x",
        "OPENAI_BASE_URL": f"http://127.0.0.1:{listening.getsockname()[1]}/v1",
    }
    program.arguments += ["-m", "openai:gpt-5-mini", "-p", "hello"]


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


def play(top: Path, story: Callable[[Program], None], numbers: tuple[signal.Signals, ...], moment: float) -> None:
    """A moment of -1 is the middle of the story: what it sleeps in is running."""
    program = Program(top)
    story(program)
    program.start()
    try:
        if moment < 0 and story not in WITHOUT_NAP:
            wait_until_running(program.nap)
        time.sleep(abs(moment))
        seconds = program.end(numbers)
        # While it leaves, its turn has ended already, as well as it could.
        code = program.process.returncode
        assert code == 130 or (code == 0 and story is is_leaving), code
        assert seconds < SECONDS, f"{seconds:.1f} s after {moment:.2f} s of {story.__name__}"
        program.check_kept()
    finally:
        program.process.kill()
        for listening in program.open:
            listening.close()


@pytest.mark.parametrize(("number", "story"), list(enumerate(STORIES)), ids=[story.__name__ for story in STORIES])
def test_a_signal_in_the_middle_of_a_story_ends_the_program(
    tmp_path: Path, number: int, story: Callable[[Program], None]
) -> None:
    play(tmp_path, story, list(SIGNALS.values())[number % len(SIGNALS)], -1)


@pytest.mark.slow
@pytest.mark.parametrize("numbers", list(SIGNALS.values()), ids=list(SIGNALS))
@pytest.mark.parametrize("story", STORIES, ids=[story.__name__ for story in STORIES])
def test_every_signal_at_any_moment_ends_the_program(
    tmp_path: Path, story: Callable[[Program], None], numbers: tuple[signal.Signals, ...]
) -> None:
    for attempt in range(10):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        play(folder, story, numbers, random.uniform(0, LONGEST))


def test_what_a_command_did_before_the_signal_can_be_undone(tmp_path: Path) -> None:
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
