"""`duckflow fleet`: many tasks over many repositories; start them, look at them, answer them, merge them."""

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from duckflow.cli.fleet_clean import FleetClean
from duckflow.cli.fleet_deliver import deliver_fleet
from duckflow.cli.fleet_engine import clones_of, folder_of, open_engine
from duckflow.cli.fleet_inbox import answer, go_through, show_inbox
from duckflow.cli.fleet_merge import merge_fleet
from duckflow.cli.fleet_table import FleetWatch, aligned, as_csv, as_markdown, fleet_line, table_lines, tell
from duckflow.cli.fleet_workshop import make_workshop, require_harmless
from duckflow.cli.parser import Options
from duckflow.cli.signals import ended_by_signals
from duckflow.config.load import load
from duckflow.errors import LeaseLost, UsageError
from duckflow.fleet.engine import AttemptState, Engine, FleetOrder, Limit, TaskState
from duckflow.fleet.ranking import side_by_side
from duckflow.fleet.task import FleetTask
from duckflow.fleet.task_file import ListedTasks, read_lines, read_tasks, settle_bases
from duckflow.i18n.figures import age
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.outcome import exit_code_of
from duckflow.safety.git import Git
from duckflow.store.paths import Paths
from duckflow.ui.streams import print_err, print_out

FOLLOW_SECONDS = 0.5
NAMES_TOLD = 5
NO_LIMIT = 1_000_000


def run_fleet(options: Options, words: Words, paths: Paths) -> int:
    tasks = _read(options) if options.what == "run" else None
    with contextlib.closing(open_engine(options, words, paths)) as engine:
        match options.what:
            case "run":
                assert tasks
                _require_harmless(tasks, options, paths)
                tasks = _with_spelled_models(tasks, options, paths)
                return asyncio.run(_run(engine, tasks, options, words, clones_of(paths)))
            case "worker":
                return asyncio.run(_work(engine, _wanted_fleet(engine, options), words))
            case "inbox":
                return show_inbox(engine, _wanted_fleet(engine, options), options, words)
            case "answer":
                return answer(engine, options, words)
            case "merge":
                fleet, task = wanted_task(engine, options.words)
                work = partial(work_and_watch, engine, fleet, options, words)
                return asyncio.run(merge_fleet(engine, fleet, task, options, make_workshop(words, paths), work))
            case "deliver":
                fleet, task = wanted_task(engine, options.words)
                return asyncio.run(deliver_fleet(engine, fleet, task, options, make_workshop(words, paths)))
            case "clean":
                fleet = _wanted_fleet(engine, options)
                return asyncio.run(FleetClean(engine, options, make_workshop(words, paths)).run(fleet))
            case "export":
                return asyncio.run(_export(engine, options, words))
            case "report":
                return _report(engine, options, words)
            case "workers":
                return _workers(engine, options, words)
            case "cancel" | "retry":
                return _change(engine, options, words)
            case _:
                return _show(engine, options, words)


def _read(options: Options) -> ListedTasks:
    """From the named file, the list of issues, or what is piped in."""
    names = ("model", "mode", "budget_usd", "attempts", "minutes", "setup", "base", "pick", "repository")
    given: dict[str, Any] = {name: value for name in names if (value := getattr(options, name))}
    lists = {"checks": options.check, "include": options.include, "may_touch": options.may_touch}
    given |= {name: value for name, value in lists.items() if value}
    given |= {"cancel_losers": True} if options.cancel_losers else {}
    file = options.issues or options.source or (options.words or [""])[0]
    _require_few(options, 0 if options.issues or options.source else 1)
    if file in ("", "-"):
        if sys.stdin.isatty():
            raise UsageError("fleet.run_what")
        return read_tasks(sys.stdin.read(), "stdin", given, Path() if options.repositories else Path.cwd())
    path = Path(file).expanduser()
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else str(problem)
        raise UsageError("fleet.file.unreadable", source=file, reason=reason or "") from None
    if options.source:
        from duckflow.fleet.swebench import read_instances

        clones = Path.cwd() / Path(given.pop("repository", ".")).expanduser()
        return read_instances(text, file, given, clones)
    if options.issues:
        return read_lines(text, file, given, Path() if options.repositories else Path.cwd())
    # A file may lie with the repositories that it names; what was typed was typed here.
    given |= {"repository": str(Path.cwd() / options.repository)} if options.repository else {}
    # Where every machine has them in a folder of its own, their names are kept as they are.
    return read_tasks(text, file, given, Path() if options.repositories else path.resolve().parent)


def _require_few(options: Options, most: int) -> None:
    if strange := options.words[most:]:
        raise UsageError("fleet.too_many", words=" ".join(strange))


def _require_harmless(listed: ListedTasks, options: Options, paths: Paths) -> None:
    below = Path(folder_of(options.repositories or ""))
    for repository in {task.repository for task in listed.tasks if not task.remote}:
        require_harmless(paths, (below / repository).resolve())


def _with_spelled_models(listed: ListedTasks, options: Options, paths: Paths) -> ListedTasks:
    """One spelling of a model's name, which limits are for too. Other machines may have endpoints that this one has
    not."""
    from duckflow.llm.discover import Discovery

    names = {task.model for task in listed.tasks if task.model}
    if options.repositories or not names:
        return listed
    discovery = Discovery(load(paths.user_config, Path.cwd(), {}).settings.llm, os.environ)
    spelled = {name: discovery.spelled(name) for name in names}
    tasks = (task.model_copy(update={"model": spelled.get(task.model, "")}) for task in listed.tasks)
    return listed._replace(tasks=tuple(tasks))


async def _run(engine: Engine, listed: ListedTasks, options: Options, words: Words, clones: Path) -> int:
    below = Path(folder_of(options.repositories)) if options.repositories else None
    tasks = await settle_bases(listed.tasks, below, clones)
    budget, limits = options.fleet_budget_usd or listed.budget_usd, [*map(Limit.read, options.limit)]
    fleet = engine.start(FleetOrder(tasks, budget, options.places, limits))
    print_err(words("fleet.started", fleet=fleet, tasks=len(tasks)))
    _tell_names(listed, engine.tasks(fleet), words)
    for repository in sorted({task.repository for task in tasks if not task.remote}):
        if await Git((below or Path()) / repository)("status", "--porcelain", "--untracked-files=no"):
            print_err(plain(words("fleet.dirty", repository=repository)))
    if options.no_work:
        print_out(json.dumps({"fleet": fleet}) if options.json else fleet)
        return 0
    if not await work_and_watch(engine, fleet, options, words):
        return exit_code_of("interrupted")
    states = engine.tasks(fleet)
    if options.json:
        print_out(json.dumps(_as_json(engine, fleet), ensure_ascii=False))
    elif any(state.state in ("choose", "done") for state in states):
        tell(words("fleet.merge_hint", fleet=fleet))
    return 0 if all(state.state in ("choose", "done", "merged") for state in states) else 1


def _tell_names(listed: ListedTasks, states: Sequence[TaskState], words: Words) -> None:
    """Where they are others than those that were written."""
    pairs = zip((task.name for task in listed.tasks), (state.task.name for state in states), strict=True)
    told = [words("fleet.renamed", name=name, new=new) for name, new in pairs if new != name]
    more = [words("fleet.more", count=len(told) - NAMES_TOLD)] if len(told) > NAMES_TOLD else []
    for line in (*told[:NAMES_TOLD], *more):
        print_err(plain(line))


async def work_and_watch(engine: Engine, fleet: str, options: Options, words: Words) -> bool:
    """Be a worker until the fleet has ended; people see how it goes. Whether it has: a signal, or a lease that is lost,
    leaves it where it is."""

    async def answer_here() -> None:
        await asyncio.to_thread(go_through, engine, fleet, words)

    work = engine.work(fleet)
    try:
        with _ended_by_signals():
            await (work if options.json else FleetWatch(engine, fleet, words, answer_here).watch(work))
        return True
    except LeaseLost as problem:
        print_err(plain(words.error(problem)))
    except asyncio.CancelledError:
        pass
    print_err(words("fleet.left", fleet=fleet))
    return False


def _ended_by_signals() -> AbstractContextManager[None]:
    """What runs is ended with all its processes, and others can go on with it."""
    task = asyncio.current_task()
    assert task
    return ended_by_signals(task.cancel)


async def _work(engine: Engine, fleet: str, words: Words) -> int:
    """Until that fleet has ended, or for ever, or until a signal. One that is taken for dead begins anew, as another
    one."""
    print_err(words("fleet.worker"))
    try:
        with _ended_by_signals():
            await engine.work(fleet)
    except asyncio.CancelledError:
        return 0
    except LeaseLost as problem:
        print_err(plain(words.error(problem)))
        os.execv(sys.executable, [sys.executable, "-P", "-m", "duckflow", *sys.argv[1:]])
    return 0


def wanted_task(engine: Engine, wanted: Sequence[str]) -> tuple[str, str]:
    """The fleet (the latest where none is named) and the task, or nothing for all of them."""
    fleets = [fleet.fleet for fleet in engine.fleets()]
    if not fleets:
        raise UsageError("fleet.none")
    if len(wanted) == 1 and wanted[0] in [state.task.name for state in engine.tasks(fleets[0])]:
        return fleets[0], wanted[0]
    first, *rest = wanted or [""]
    fitting = [fleet for fleet in fleets if first and fleet.startswith(first)]
    fleet, rest = (fitting[0], rest) if len(fitting) == 1 else (fleets[0], [*wanted])
    if not rest:
        return fleet, ""
    names = [state.task.name for state in engine.tasks(fleet)]
    if len(rest) > 1:
        raise UsageError("fleet.too_many", words=" ".join(rest[1:]))
    if rest[0] not in names:
        raise UsageError("fleet.no_task", task=rest[0], fleet=fleet)
    return fleet, rest[0]


def _wanted_fleet(engine: Engine, options: Options) -> str:
    """Nothing for all of them."""
    _require_few(options, 1)
    fitting = [one.fleet for one in engine.fleets() if options.words and one.fleet.startswith(options.words[0])]
    if options.words and len(fitting) != 1:
        raise UsageError("fleet.no_fleet", fleet=options.words[0])
    return fitting[0] if fitting else ""


def _change(engine: Engine, options: Options, words: Words) -> int:
    fleet, task = wanted_task(engine, options.words)
    if options.attempt and not task:
        raise UsageError("fleet.attempt_usage", what=options.what)
    if options.what == "cancel":
        count, number = engine.cancel(fleet, task, options.attempt or 0), options.attempt
        left = [one for one in engine.attempts(fleet, task) if one.number == (number or one.number) and one.live]
        key = "fleet.cancelling" if left else "fleet.cancelled" if count else "fleet.over"
        tell(words(key, what=task or fleet))
    else:
        if not task:
            raise UsageError("fleet.retry_usage")
        (state,) = [state for state in engine.tasks(fleet) if state.task.name == task]
        base = "" if options.attempt else asyncio.run(_newest_base(state.task, options))
        engine.retry(fleet, task, options.attempt or 0, base=base)
        worked_on = any(worker.lives and worker.place == state.place for worker in engine.workers())
        tell(words("fleet.again_worker" if worked_on else "fleet.again", task=task))
        if worked_on or options.no_work:
            return 0
        if not asyncio.run(work_and_watch(engine, fleet, options, words)):
            return exit_code_of("interrupted")
    return 0


async def _newest_base(task: FleetTask, options: Options) -> str:
    """What the branch to merge onto holds by now: the old base may conflict with it. Nothing where the clone is on
    another machine."""
    folder = Path(folder_of(options.repositories or "")) / task.repository
    return await Git(folder).commit_of(f"refs/heads/{task.onto}") if task.onto and folder.is_dir() else ""


def _workers(engine: Engine, options: Options, words: Words) -> int:
    workers = engine.workers()
    if options.json:
        print_out(json.dumps([worker.model_dump(mode="json") for worker in workers]))
        return 0
    for worker in workers:
        key = "fleet.workers.line" if worker.lives else "fleet.workers.dead"
        told = worker.model_dump(include={"worker", "place", "running"})
        tell(words(key, **told, age=age(worker.seen, time.time(), words)))
    if not any(worker.lives for worker in workers):
        tell(words("fleet.workers.none"))
    return 0


def _report(engine: Engine, options: Options, words: Words) -> int:
    """Markdown for people, CSV for tables; of a fleet that was cleaned away, too, by its whole name."""
    _require_few(options, 1)
    fleet = (
        options.words[0]
        if options.words and engine.figures(options.words[0])
        else wanted_task(engine, options.words)[0]
    )
    rows = engine.figures(fleet)
    _write(as_csv(rows) if options.format == "csv" else as_markdown(fleet, rows, words), options)
    return 0


def _write(text: str, options: Options) -> bool:
    """To a file or to standard output. Says whether it was a file."""
    if not options.output or options.output == "-":
        print_out(text)
        return False
    try:
        Path(options.output).expanduser().write_text(f"{text}\n", encoding="utf-8")
    except OSError as problem:
        raise UsageError("export.unwritable", path=options.output, reason=problem.strerror or "") from None
    return True


async def _export(engine: Engine, options: Options, words: Words) -> int:
    """Predictions as SWE-bench wants them: a line each, to a file or to standard output."""
    from duckflow.fleet.swebench import predictions

    fleet, task = wanted_task(engine, options.words)
    states = [state for state in engine.tasks(fleet) if task in ("", state.task.name)]
    rows = await predictions(states, engine.attempts(fleet, task))
    text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    if _write(text, options):
        print_err(plain(words("fleet.predictions", count=len(rows), path=options.output)))
    return 0


def _show(engine: Engine, options: Options, words: Words) -> int:
    """`list`, `show` and `logs`."""
    if options.what == "list":
        _require_few(options, 0)
        fleets = engine.fleets()
        if options.json:
            print_out(json.dumps([fleet.model_dump(mode="json") for fleet in fleets], ensure_ascii=False))
        for fleet in () if options.json else fleets:
            tell(f"{fleet_line(fleet, words)}  {age(fleet.started, time.time(), words)}")
        if not fleets and not options.json:
            tell(words("fleet.none"))
        return 0
    fleet, task = wanted_task(engine, options.words)
    if options.what == "logs":
        return _logs(engine, fleet, task, options, words)
    if options.json:
        print_out(json.dumps(_as_json(engine, fleet, task), ensure_ascii=False))
        return 0
    states = [state for state in engine.tasks(fleet) if task in ("", state.task.name)]
    attempts = engine.attempts(fleet, task)
    (whole,) = [state for state in engine.fleets() if state.fleet == fleet]
    if whole.forsaken:
        tell(fleet_line(whole, words))
    for line in table_lines(states, attempts, words, NO_LIMIT):
        tell(line)
    for attempt in attempts if task else ():
        for line in _report_lines(attempt, words):
            tell(line)
    reports = [attempt.report for attempt in attempts if attempt.report]
    if task and len(reports) > 1:
        for line in aligned(side_by_side(reports, words)):
            tell(line)
    return 0


def _report_lines(attempt: AttemptState, words: Words) -> list[str]:
    """What came of one attempt."""
    report = attempt.report
    if report is None:
        return []
    lines = ["", f"#{attempt.number} {report.branch} {report.commit[:12]}".rstrip()]
    lines += [f"  {words.phrase(report.open)}"] if report.open else []
    lines += [f"  $ {check.command}: {check.code}" for check in report.checks]
    lines += [f"    {line}" for check in report.checks if check.code for line in check.output.split("\n")]
    lines += [f"  {file.path} (+{file.added} −{file.removed})" for file in report.files]
    lines += [f"  {finding}" for finding in report.findings]
    return lines


def _logs(engine: Engine, fleet: str, task: str, options: Options, words: Words) -> int:
    after = 0
    while True:
        for line in engine.logs(fleet, task, options.attempt or 0, after):
            after, at = line.line, time.strftime("%H:%M:%S", time.localtime(line.at))
            if options.json:
                told = line.model_dump(mode="json") | {"said": words.phrase(line.said)}
                print_out(json.dumps(told, ensure_ascii=False))
                continue
            tell(f"{at} {line.task}#{line.attempt} {words.phrase(line.said)}")
        ended = all(state.ended for state in engine.fleets() if state.fleet == fleet)
        if not options.follow or ended:
            return 0
        time.sleep(FOLLOW_SECONDS)


def _as_json(engine: Engine, fleet: str, task: str = "") -> dict[str, Any]:
    """For scripts."""
    (state,) = [one for one in engine.fleets() if one.fleet == fleet]
    tasks = [one.model_dump(mode="json") for one in engine.tasks(fleet) if task in ("", one.task.name)]
    return {
        **state.model_dump(mode="json"),
        "tasks": tasks,
        "attempts": [one.model_dump(mode="json") for one in engine.attempts(fleet, task)],
    }
