"""A working day in some minutes: does a chat grow, slow down or leak? Usage: python -m benchmarks.soak [TURNS]

The real chat in a pseudo terminal, a model server on 127.0.0.1, and a person who talks, has files written and edited,
runs commands, refuses some, undoes, interrupts, looks at /status, /cost and /diff, and every hundred turns has a plan
carried out in the background. Nothing waits longer than it must: two hours of talk fit into the time the work takes.
Prints memory after the warm-up and at the end, time and CPU of a turn early and late, open files, children, threads.
"""

import json
import os
import re
import select
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.talker import Talker
from tests.journeys.story import act, decide, respond
from tests.ui.console.terminal import Terminal

WARM_UP = 100
AROUND = 100
READING_SECONDS = 0.35
PATIENCE_SECONDS = 20.0
ANSI = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|\x1b[=>]|\r")
SETTLE_SECONDS = 3.0
TURN_ENDED = b"[DUCK_PACEMAKER] end "
BOTTOM = b"\x1b[38;1R"
PLAN: dict[str, Any] = {
    "name": "Figures",
    "steps": [{"name": "Count", "description": "a file", "success": "it is there", "depends_on": []}],
    "risks": [],
}
TASKS: dict[str, Any] = {"tasks": [act("file_ops.write_file", path="counted.txt")]}
LONG = "\n".join(["# A heading", *(f"- point {n} with `code` and **weight**" for n in range(40)), "```py\nx = 1\n```"])


class Person:
    """Types, waits for what should come, and knows the ways to use a chat."""

    def __init__(self, terminal: Terminal, model: Talker, log: Path) -> None:
        self._file: int = terminal.process.child_fd
        self._log = log.open("rb")
        self._model = model
        self._turn = 0
        self._value = 0
        self._ways = (
            self.talks, self.has_a_file_written, self.has_it_edited, self.runs_a_command, self.refuses,
            self.undoes, self.leaves_something_running, self.looks_around, self.reads_a_lot, self.interrupts,
        )  # fmt: skip

    def take_a_turn(self, number: int) -> str:
        """Takes a turn, and returns its kind."""
        self._turn = number
        way = self.has_a_plan_carried_out if number % 100 == 50 else self._ways[number % len(self._ways)]
        way()
        return way.__name__

    def talks(self) -> None:
        self._say([decide(respond(self._end()), step="PLANNING")])

    def has_a_file_written(self) -> None:
        self._value = self._turn
        write = act("file_ops.write_file", path="a.py", content=f"value = {self._value}\n" + "# line\n" * 8)
        self._say([decide(write, respond(self._end()))], "1. yes", "1")

    def has_it_edited(self) -> None:
        old, self._value = self._value, self._value + 1
        read = decide(act("file_ops.read_file", path="a.py"), next_step="continue")
        edit = act("file_ops.edit_file", path="a.py", old=f"value = {old}\n", new=f"value = {self._value}\n")
        self._say([read, decide(edit, respond(self._end()))], "1. yes", "1")

    def runs_a_command(self) -> None:
        command = act("shell.run", command=f"echo {self._turn} >> log.txt; seq 200")
        self._say([decide(command, next_step="continue"), decide(respond(self._end()))], "1. yes", "1")

    def refuses(self) -> None:
        delete = act("file_ops.delete_file", path="a.py")
        self._say([decide(delete), decide(respond(self._end()))], "1. yes", "no, other files import it")

    def undoes(self) -> None:
        write = act("file_ops.write_file", path="b.py", content=f"{self._turn}\n")
        self._say([decide(write, respond(self._end()))], "1. yes", "1")
        self._type("/undo turn")
        self._wait("1. yes")
        self._answer("1")
        self._wait("was undone")

    def leaves_something_running(self) -> None:
        command = act("shell.run", command="sleep 2", background=True)
        self._say([decide(command, next_step="continue"), decide(respond(self._end()))])

    def looks_around(self) -> None:
        for command, shown in (("/status", "Session"), ("/cost", "tokens sent"), ("/diff", "Turn"), ("/tasks", "")):
            self._type(command)
            self._wait(shown or "/tasks")
        self.talks()

    def reads_a_lot(self) -> None:
        self._say([decide(respond(f"{LONG}\n\n{self._end()}"), step="PLANNING")])

    def interrupts(self) -> None:
        self._model.slow(json.dumps(decide(respond("slowly " * 500), step="PLANNING")))
        self._type(f"turn {self._turn}: take your time")
        self._wait("slowly")
        os.write(self._file, b"\x1b")
        self._wait("Interrupted.")
        self._wait_for_the_turn()

    def has_a_plan_carried_out(self) -> None:
        self._model.expect("plan", PLAN)
        self._model.expect("tasks", TASKS)
        self._model.decisions([decide(act("plan_tool.propose", goal="figures"), step="PLANNING")])
        self._type(f"turn {self._turn}: make a plan")
        self._wait("Should I carry out this plan?")
        self._wait_for_the_turn()
        run = decide(act("task_tool.generate_list"), act("task_loop.run", step_id="1"), next_step="defer")
        self._model.decisions([run])
        self._model.expect("report", {"summary": self._end(), "causes": [], "next_action": "rest"})
        self._type("yes")
        self._wait("1. yes")
        self._wait_for_the_turn()
        self._answer("1")
        self._wait(self._end())

    def _end(self) -> str:
        return f"mark-{self._turn}."

    def _say(self, decisions: list[dict[str, Any]], question: str = "", answer: str = "") -> None:
        self._model.decisions(decisions)
        self._type(f"turn {self._turn}: {'please go on with this ' * 5}")
        if question:
            self._wait(question)
            self._answer(answer)
        self._wait(self._end())
        self._wait_for_the_turn()

    def _answer(self, text: str) -> None:
        """Answers after the moment that a person takes to read a question."""
        time.sleep(READING_SECONDS)
        self._type(text)

    def _type(self, text: str) -> None:
        os.write(self._file, text.encode() + b"\r")

    def _wait(self, wanted: str) -> None:
        end, data = time.monotonic() + PATIENCE_SECONDS, b""
        while time.monotonic() < end:
            data += self._read(0.5)
            if wanted.encode() in ANSI.sub(b"", data):
                self._read(0.0)
                return
        shown = ANSI.sub(b"", data)[-3000:].decode("utf-8", "replace")
        raise TimeoutError(f"turn {self._turn}: {wanted!r} never came; the terminal got\n{shown}")

    def _wait_for_the_turn(self) -> None:
        """The reply stands on the screen before the turn is over; its end is in the log."""
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            self._read(0.01)
            if TURN_ENDED in self._log.read():
                return
        raise TimeoutError(f"turn {self._turn} never ended")

    def _read(self, seconds: float) -> bytes:
        if not select.select([self._file], [], [], seconds)[0]:
            return b""
        data = os.read(self._file, 1 << 16)
        for _ in range(data.count(b"\x1b[6n")):
            os.write(self._file, BOTTOM)
        return data


class Vitals:
    """The system's figures about a process."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")
        self._pid = pid

    def memory(self) -> float:
        """Returns the resident memory in MB."""
        found = re.search(r"VmRSS:\s+(\d+)", self._folder.joinpath("status").read_text())
        return int(found[1]) / 1024 if found else 0.0

    def seconds(self) -> float:
        fields = self._folder.joinpath("stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def counts(self) -> dict[str, int]:
        children = self._folder.joinpath(f"task/{self._pid}/children").read_text().split()
        return {
            "open_files": len(list(self._folder.joinpath("fd").iterdir())),
            "children": len(children),
            "threads": len(list(self._folder.joinpath("task").iterdir())),
        }


def soak(turns: int, told: Callable[[str], None]) -> dict[str, Any]:
    with TemporaryDirectory() as top:
        model = Talker()
        terminal = Terminal(Path(top), None, "-m", "openai:soak", OPENAI_BASE_URL=model.url, OPENAI_API_KEY="soak")
        try:
            terminal.wait_for("Say what you would like")
            log = Path(top) / "home/data/duckflow.log"
            person, vitals = Person(terminal, model, log), Vitals(terminal.process.pid)
            walls: list[float] = []
            cpus: list[float] = []
            before: dict[str, Any] = {}
            for number in range(1, turns + 1):
                start, cpu = time.perf_counter(), vitals.seconds()
                person.take_a_turn(number)
                walls.append(time.perf_counter() - start)
                cpus.append(vitals.seconds() - cpu)
                if number == WARM_UP:
                    before = {"memory_mb": round(vitals.memory(), 1)} | settled(vitals)
                if number % AROUND == 0:
                    cpu = statistics.median(cpus[-AROUND:]) * 1e3
                    told(f"{number}: {vitals.memory():.1f} MB, {cpu:.0f} ms CPU, {vitals.counts()}")
            after = {"memory_mb": round(vitals.memory(), 1)} | settled(vitals)
            journal = sum(path.stat().st_size for path in Path(top).joinpath("home/data/sessions").rglob("*.db*"))
        finally:
            terminal.process.close(force=True)
            model.close()
    early, late = slice(WARM_UP, WARM_UP + AROUND), slice(-AROUND, None)
    return {
        "turns": turns,
        "after_warm_up": before,
        "at_the_end": after,
        "growth_mb": round(after["memory_mb"] - before.get("memory_mb", 0), 1),
        "turn_ms": [round(statistics.fmean(walls[part]) * 1e3) for part in (early, late)],
        "turn_cpu_ms": [round(statistics.fmean(cpus[part]) * 1e3) for part in (early, late)],
        "cpu_ratio": round(statistics.fmean(cpus[late]) / statistics.fmean(cpus[early]), 2),
        "journal_mb": round(journal / 1e6, 1),
    }


def settled(vitals: Vitals) -> dict[str, int]:
    """Waits until everything that was left running has ended, and returns the counts."""
    time.sleep(SETTLE_SECONDS)
    return vitals.counts()


if __name__ == "__main__":
    given = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print(json.dumps(soak(given, lambda line: print(line, file=sys.stderr)), indent=1))
