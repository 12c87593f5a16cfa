"""The fleets of this machine on the page: their questions, their attempts, and the user's actions on them."""

import asyncio
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from duckflow.cli.fleet_workshop import DATABASE, FILE, PART, open_engine
from duckflow.errors import DuckflowError, UsageError
from duckflow.i18n.words import Words
from duckflow.store.paths import Paths

if TYPE_CHECKING:
    from duckflow.fleet.database_engine import Engine
    from duckflow.fleet.engine import AttemptState, FleetState

SHOWN = 5
"""The number of fleets that the page lists."""
MOST_LINES = 300
"""The number of lines of a task's log that the page gets."""
LONGEST_DIFF, LONGEST_PROMPT = 400_000, 300
HEADERS = ("diff --git ", "index ", "new file mode ", "deleted file mode ")
"""Header lines of each file in a diff that the page leaves out; the file's name stays."""
PROGRAM = (sys.executable, "-P", "-m", "duckflow", "fleet")


class PageFleet:
    """The fleets of this machine, for the page. The engine is opened when there is a fleet. Long work is done by
    `duckflow fleet` in a process that outlives the page's server. The output of a merge is shown with its task, or with
    the whole fleet."""

    def __init__(self, has_fleet: Callable[[], bool], make: "Callable[[], Engine]", words: Words) -> None:
        self._has_fleet = has_fleet
        self._make = make
        self._words = words
        self._made: Engine | None = None
        self._alone, self._merging = asyncio.Lock(), asyncio.Lock()
        self._doing: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._told: dict[tuple[str, str], dict[str, Any]] = {}

    async def inbox(self) -> Sequence[Mapping[str, Any]]:
        engine = await self._engine()
        open_questions = await asyncio.to_thread(engine.inbox) if engine else ()
        return [question.model_dump(mode="json") for question in open_questions]

    async def to_pick(self) -> int:
        engine = await self._engine()
        return await asyncio.to_thread(_to_pick, engine) if engine else 0

    async def fleets(self) -> Sequence[Mapping[str, Any]]:
        engine = await self._engine()
        fleet_rows = await asyncio.to_thread(_listed, engine) if engine else []
        for fleet in fleet_rows:
            for task in (fleet, *fleet["tasks"]):
                task |= self._told.get((fleet["fleet"], task.get("name", "")), {})
        return fleet_rows

    async def workers(self) -> Sequence[Mapping[str, Any]]:
        engine = await self._engine()
        workers = await asyncio.to_thread(engine.workers) if engine else ()
        return [worker.model_dump(mode="json") for worker in workers if worker.lives or worker.running]

    async def start(self, folder: str, tasks: str, flags: Mapping[str, Sequence[str]]) -> str:
        """Starts a fleet. `duckflow fleet run` reads and checks the tasks, as in a terminal; its complaints become an
        error."""
        start_folder = Path(folder).expanduser()
        if not folder or not await asyncio.to_thread(start_folder.is_dir):
            raise UsageError("editor.no_folder", folder=folder)
        arguments = [f"{flag}={value}" if value else flag for flag, values in flags.items() for value in values]
        command = [*PROGRAM, "run", "-", "--no-work", "--json", f"--lang={self._words.language}", *arguments]
        code, output, problems = await asyncio.to_thread(_run, command, tasks, start_folder)
        if code:
            raise DuckflowError("talk.quoted", text=problems)
        fleet = str(json.loads(output)["fleet"])
        self._begin_work(fleet)
        return fleet

    def _begin_work(self, fleet: str) -> None:
        """Starts a worker as a separate process, which works until the fleet has ended."""
        null_stream = subprocess.DEVNULL
        command = [*PROGRAM, "worker", fleet]
        subprocess.Popen(command, stdin=null_stream, stdout=null_stream, stderr=null_stream, start_new_session=True)

    async def answer(self, asked_id: str, text: str, choice: str, for_all_same: bool) -> bool:
        from duckflow.fleet.task import Answered

        fleet_answer = Answered(asked_id=asked_id, text=text, choice=choice, for_all_same=for_all_same)
        engine = await self._engine()
        return bool(engine and await asyncio.to_thread(engine.answer, fleet_answer))

    async def task(self, fleet: str, task: str) -> Mapping[str, Any]:
        from duckflow.fleet.ranking import side_by_side

        attempts = await self._attempts(fleet, task)
        engine = await self._known(fleet, task)
        lines = await asyncio.to_thread(engine.logs, fleet, task)
        reports = [attempt.report for attempt in attempts if attempt.report]
        return {
            "rows": side_by_side(reports, self._words),
            "attempts": [report.model_dump(mode="json", exclude={"order"}) for report in reports],
            "numbers": [report.order.number for report in reports],
            "lines": [line.model_dump(mode="json") for line in lines[-MOST_LINES:]],
        }

    async def diff(self, fleet: str, task: str, attempt: int) -> str:
        from duckflow.safety.git import Git

        for candidate in await self._attempts(fleet, task):
            if candidate.number == attempt and candidate.report and candidate.report.commit:
                attempt_order = candidate.report.order
                git = Git(Path(attempt_order.task.repository))
                text = await git.diff(f"{attempt_order.task.base}...{candidate.report.commit}")
                return "\n".join(line for line in text[:LONGEST_DIFF].split("\n") if not line.startswith(HEADERS))
        return ""

    async def pick(self, fleet: str, task: str, attempt: int) -> None:
        engine = await self._known(fleet, task)
        states = await asyncio.to_thread(engine.tasks, fleet)
        is_open = any(state.task.name == task and state.state in ("choose", "done") for state in states)
        attempts = await self._attempts(fleet, task)
        has_passed = any(
            candidate.number == attempt and candidate.report and candidate.report.passed for candidate in attempts
        )
        if not is_open or not has_passed:
            raise UsageError("fleet.merge.unfit", attempt=attempt, task=task)
        await asyncio.to_thread(engine.pick, fleet, task, attempt)

    async def carry_out(self, what: str, fleet: str, task: str, attempt: int) -> None:
        engine = await self._known(fleet, task)
        key = (fleet, task)
        if what != "cancel" and self._told.get(key, {}).get("doing"):
            raise UsageError("fleet.busy", what=task or fleet)
        if what == "cancel":
            await asyncio.to_thread(engine.cancel, fleet, task, attempt)
        elif what == "retry":
            await asyncio.to_thread(engine.retry, fleet, task, attempt)
        else:
            picks = {(state.task.name, state.picked) for state in await asyncio.to_thread(engine.tasks, fleet)}
            if attempt and (task, attempt) not in picks:
                raise UsageError("fleet.merge.unfit", attempt=attempt, task=task)
            self._told[key] = {"doing": what, "told": ""}
            self._doing[key] = asyncio.create_task(self._merge(fleet, task))

    async def work(self, fleet: str) -> None:
        await self._known(fleet, "")
        self._begin_work(fleet)

    async def _merge(self, fleet: str, task: str) -> None:
        """Merges the task, or without a task the whole fleet, once the previous merge is over."""
        words, key, output = ([task] if task else []), (fleet, task), ""
        try:
            async with self._merging:
                output = await _ends([*PROGRAM, "merge", fleet, *words, "--json", f"--lang={self._words.language}"])
        finally:
            del self._doing[key]
            self._told[key] = {"doing": "", "told": output}

    async def _attempts(self, fleet: str, task: str) -> "Sequence[AttemptState]":
        engine = await self._known(fleet, task)
        return await asyncio.to_thread(engine.attempts, fleet, task)

    async def _known(self, fleet: str, task: str) -> "Engine":
        engine = await self._engine()
        names = {state.task.name for state in await asyncio.to_thread(engine.tasks, fleet)} if engine else set[str]()
        if not engine or not names or (task and task not in names):
            raise UsageError("fleet.unknown", fleet=fleet, task=task or fleet)
        return engine

    async def _engine(self) -> "Engine | None":
        async with self._alone:
            if self._made is None and self._has_fleet():
                self._made = await asyncio.to_thread(self._make)
            return self._made


async def _ends(command: list[str]) -> str:
    """Runs the command in a thread and returns its output. The command goes on even if the caller stops waiting."""
    loop = asyncio.get_running_loop()
    output: asyncio.Future[str] = loop.create_future()

    def run() -> None:
        text = _output_of(command)
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: output.done() or output.set_result(text))

    threading.Thread(target=run, daemon=True).start()
    return await output


def _run(command: list[str], text: str = "", folder: Path | None = None) -> tuple[int, str, str]:
    """Runs a command. Returns its exit code, its output and its errors."""
    # The output goes into files, since a pipe would break when the server ends.
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        stdin.write(text.encode())
        stdin.seek(0)
        command_run = subprocess.run(
            command, stdin=stdin, stdout=output, stderr=errors, cwd=folder, start_new_session=True, check=False
        )
        return command_run.returncode, _read(output), _read(errors)


def _output_of(command: list[str]) -> str:
    _, output, problems = _run(command)
    with contextlib.suppress(ValueError):
        output = "\n".join(text_block["text"] for text_block in json.loads(output))
    return "\n".join(filter(None, (problems, output)))


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace").strip()


def _latest(engine: "Engine") -> "list[FleetState]":
    return sorted(engine.fleets(), key=lambda fleet: fleet.started)[: -SHOWN - 1 : -1]


def _to_pick(engine: "Engine") -> int:
    return sum(task.state == "choose" for fleet in _latest(engine) for task in engine.tasks(fleet.fleet))


def _listed(engine: "Engine") -> list[dict[str, Any]]:
    return [
        fleet.model_dump(mode="json") | {"ended": fleet.ended, "tasks": _tasks(engine, fleet.fleet)}
        for fleet in _latest(engine)
    ]


def _tasks(engine: "Engine", fleet: str) -> list[dict[str, Any]]:
    attempts: dict[str, list[dict[str, Any]]] = {}
    for attempt in engine.attempts(fleet):
        attempts.setdefault(attempt.task, []).append(_attempt(attempt))
    return [
        state.model_dump(mode="json", include={"state", "picked", "merged"})
        | state.task.model_dump(mode="json", include={"name", "repository", "onto"})
        | {"prompt": state.task.prompt[:LONGEST_PROMPT], "attempts": attempts.get(state.task.name, [])}
        for state in engine.tasks(fleet)
    ]


def _attempt(attempt: "AttemptState") -> dict[str, Any]:
    """Returns an attempt without its long parts, which are read when the page opens it."""
    fields = attempt.model_dump(mode="json", exclude={"fleet", "task", "worker", "ended", "report"})
    if not (report := attempt.report):
        return fields
    fields |= {} if attempt.live else {"seconds": report.seconds}
    facts = report.model_dump(mode="json", include={"branch", "session_id", "open", "rating"})
    check_fields = [{"command": check.command, "code": check.code} for check in report.checks]
    size = {line_kind: sum(getattr(file, line_kind) for file in report.files) for line_kind in ("added", "removed")}
    return fields | facts | size | {"checks": check_fields, "files": len(report.files), "fit": report.passed}


def page_fleet(words: Words, paths: Paths) -> PageFleet | None:
    """Returns the fleets of this machine, or None where the packages for fleets are not installed."""
    if not importlib.util.find_spec(PART):
        return None

    def has_fleet() -> bool:
        return bool(os.environ.get(DATABASE)) or (paths.data / FILE).exists()

    def make() -> "Engine":
        from duckflow.cli.arguments import make_parser

        return open_engine(make_parser("fleet", words).read([]), words, paths)

    return PageFleet(has_fleet, make, words)
