"""`duckflow fleet`: starts many tasks over many repositories, shows them, answers their questions, and merges them."""

import asyncio
import contextlib
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckflow.cli.fleet_clean import FleetClean
from duckflow.cli.fleet_merge import deliver_fleet, merge_fleet, tell_checks
from duckflow.cli.fleet_show import (
    answer,
    as_json,
    export,
    go_through,
    require_few,
    show,
    show_inbox,
    show_workers,
    tell_or_json,
    wanted_fleet,
    wanted_task,
    write_report,
)
from duckflow.cli.fleet_table import FleetWatch, agreed, tell
from duckflow.cli.fleet_workshop import (
    clones_of,
    folder_of,
    make_workshop,
    open_engine,
    provider_keys,
    require_harmless,
)
from duckflow.cli.parser import Options
from duckflow.cli.signals import ended_by_signals
from duckflow.config.load import load
from duckflow.errors import LeaseLost, UsageError, exit_code_of
from duckflow.fleet.engine import FleetOrder, Limit, TaskState
from duckflow.fleet.task import FleetTask
from duckflow.fleet.task_file import ListedTasks, read_lines, read_tasks, settle_bases
from duckflow.fleet.worktree import repository_in
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.safety.git import Git
from duckflow.store.paths import Paths
from duckflow.ui.streams import print_err, print_out

if TYPE_CHECKING:
    from duckflow.fleet.database_engine import Engine

NAMES_TOLD = 5


def run_fleet(options: Options, words: Words, paths: Paths) -> int:
    tasks = _read(options) if options.what == "run" else None
    with contextlib.closing(open_engine(options, words, paths)) as engine:
        match options.what:
            case "run":
                assert tasks
                _require_harmless(tasks, options, paths)
                _ask_about_secrets(tasks, options, words, paths)
                tasks = _with_spelled_models(tasks, options, paths)
                return asyncio.run(_run(engine, tasks, options, words, clones_of(paths)))
            case "worker":
                fleet = wanted_fleet(engine, options)
                _require_repositories(engine, fleet, options)
                return asyncio.run(_work(engine, fleet, words))
            case "inbox":
                return show_inbox(engine, wanted_fleet(engine, options), options, words)
            case "answer":
                return answer(engine, options, words)
            case "merge" | "deliver" | "ci":
                fleet, task = wanted_task(engine, options.words)
                work = partial(work_and_watch, engine, fleet, options, words)
                ways = {"merge": partial(merge_fleet, work=work), "deliver": deliver_fleet, "ci": tell_checks}
                return asyncio.run(ways[options.what](engine, fleet, task, options, make_workshop(words, paths)))
            case "clean":
                fleet = wanted_fleet(engine, options)
                return asyncio.run(
                    FleetClean(engine, options, make_workshop(words, paths), clones_of(paths)).run(fleet)
                )
            case "export":
                return asyncio.run(export(engine, options, words))
            case "report":
                return write_report(engine, options, words)
            case "workers":
                return show_workers(engine, options, words)
            case "cancel" | "retry":
                return _change(engine, options, words)
            case _:
                return show(engine, options, words)


def _read(options: Options) -> ListedTasks:
    """Reads the tasks from a TOML file, from SWE-bench instances, or from a list with one task a line: a file or
    stdin."""
    names = "model mode budget_usd budget_tokens attempts minutes setup base pick repository"
    flags: dict[str, Any] = {name: value for name in names.split() if (value := getattr(options, name))}
    lists = {"checks": options.check, "include": options.include, "may_touch": options.may_touch}
    flags |= {name: value for name, value in lists.items() if value}
    flags |= {"cancel_losers": True} if options.cancel_losers else {}
    file = options.issues or options.source or (options.words or ["-"])[0]
    require_few(options, 0 if options.issues or options.source else 1)
    text, path = _text_of(file), Path(file).expanduser()
    source = "stdin" if file == "-" else file
    if options.source:
        from duckflow.fleet.task_file import read_instances

        clones = Path.cwd() / Path(flags.pop("repository", ".")).expanduser()
        return read_instances(text, source, flags, clones)
    if options.issues or not (options.toml or path.suffix.lower() == ".toml"):
        return read_lines(text, source, flags, Path() if options.repositories else Path.cwd())
    # A file may name repositories relative to itself; a path on the command line is relative to the current folder.
    flags |= {"repository": str(Path.cwd() / options.repository)} if options.repository else {}
    # Where every machine has the repositories in a folder of its own, their names are left as they are.
    folder = Path() if options.repositories else path.resolve().parent
    return read_tasks(text, source, flags, folder, dict(map(_read_variable, options.matrix)))


def _text_of(file: str) -> str:
    if file == "-" and sys.stdin.isatty():
        raise UsageError("fleet.run_what")
    try:
        return sys.stdin.read() if file == "-" else Path(file).expanduser().read_text("utf-8-sig")
    except (OSError, UnicodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else str(problem)
        raise UsageError("fleet.file.unreadable", source=file, reason=reason or "") from None


def _read_variable(text: str) -> tuple[str, list[str]]:
    """Reads `NAME=FILE`: the name of a variable of the matrix, and a file with its values, one a line."""
    name, _, file = text.partition("=")
    if not name or not file:
        raise UsageError("fleet.matrix", text=text)
    return name, [line.strip() for line in _text_of(file).splitlines() if line.strip()]


def _require_harmless(listed: ListedTasks, options: Options, paths: Paths) -> None:
    repositories_folder = folder_of(options.repositories)
    for repository in {task.repository for task in listed.tasks if not task.remote}:
        require_harmless(paths, repository_in(repositories_folder, repository).resolve())


def _ask_about_secrets(listed: ListedTasks, options: Options, words: Words, paths: Paths) -> None:
    """Shows which of the user's variables, and which ignored files, go to which commands, and asks once whether they
    may. The user may not know them, since the file of tasks may come from a repository."""
    secret_tasks = [task for task in listed.tasks if task.secrets]
    keys = provider_keys(paths, Path.cwd()) if secret_tasks else frozenset[str]()
    if forbidden_names := sorted({name for task in secret_tasks for name in task.secrets} & keys):
        raise UsageError("fleet.provider_key", names=", ".join(forbidden_names))
    # The set-up and the container have the network, so they could send ignored files such as `.env` anywhere.
    typed = (tuple(options.include), options.setup or "", "")
    given = Counter(
        ((*task.secrets, *task.include), task.setup, task.container)
        for task in listed.tasks
        if task.secrets
        or (task.include and (task.setup or task.container) and (task.include, task.setup, task.container) != typed)
    )
    if not given or options.yes:
        return
    for (names, setup, image), count in given.items():
        line = words("fleet.secrets.to", names=", ".join(names), count=count)
        line += words("fleet.secrets.setup", setup=setup) if setup else ""
        print_err(plain(line + (words("fleet.secrets.image", image=image) if image else "")))
    if not sys.stdin.isatty():
        raise UsageError("fleet.secrets.unasked")
    if not agreed("fleet.secrets.sure", words):
        raise UsageError("fleet.secrets.not")


def _with_spelled_models(listed: ListedTasks, options: Options, paths: Paths) -> ListedTasks:
    """Gives each model's name its one usual spelling, so that a limit on the use of a model counts for all its tasks.
    Tasks for other machines keep their spelling, since those machines may have endpoints that this one does not
    have."""
    from duckflow.llm.discover import Discovery

    names = {task.model for task in listed.tasks if task.model}
    if options.repositories or not names:
        return listed
    model_discovery = Discovery(load(paths.user_config, Path.cwd(), {}).settings.llm, os.environ)
    spelled_names = {name: model_discovery.spelled(name) for name in names}
    tasks = (task.model_copy(update={"model": spelled_names.get(task.model, "")}) for task in listed.tasks)
    return listed._replace(tasks=tuple(tasks))


async def _run(engine: "Engine", listed: ListedTasks, options: Options, words: Words, clones: Path) -> int:
    repositories_folder = Path(folder_of(options.repositories)) if options.repositories else None
    tasks = await settle_bases(listed.tasks, repositories_folder, clones)
    budget, token_budget = (
        options.fleet_budget_usd or listed.budget_usd,
        options.fleet_budget_tokens or listed.budget_tokens,
    )
    fleet = engine.start(FleetOrder(tasks, budget, options.places, [*map(Limit.read, options.limit)], token_budget))
    print_err(words("fleet.started", fleet=fleet, tasks=len(tasks)))
    _tell_names(listed, engine.tasks(fleet), words)
    for repository in sorted({task.repository for task in tasks if not task.remote}):
        if await Git((repositories_folder or Path()) / repository)("status", "--porcelain", "--untracked-files=no"):
            print_err(plain(words("fleet.dirty", repository=repository)))
    if options.no_work:
        print_out(json.dumps({"fleet": fleet}) if options.json else fleet)
        return 0
    return await _work_to_the_end(engine, fleet, "", options, words)


async def _work_to_the_end(engine: "Engine", fleet: str, task: str, options: Options, words: Words) -> int:
    """Works until the fleet has ended. Then tells why tasks have failed, and returns 1 if any has. If `task` names one
    task, only that task counts."""
    if not await work_and_watch(engine, fleet, options, words):
        return exit_code_of("interrupted")
    states, attempts = engine.tasks(fleet, task), engine.attempts(fleet, task)
    done_rounds = {(attempt.task, attempt.round) for attempt in attempts if attempt.state == "done"}
    failed_tasks = [state.task.name for state in states if (state.task.name, state.round) not in done_rounds]
    code = 1 if failed_tasks else 0
    if options.json and not task:
        print_out(json.dumps(as_json(engine, fleet), ensure_ascii=False))
    if options.json:
        return code
    for name in failed_tasks[:NAMES_TOLD]:
        reports = [attempt.report for attempt in attempts if attempt.report and attempt.task == name]
        if reason := next((report.open for report in reversed(reports) if report.open), None):
            tell(f"{name}: {words.phrase(reason)}")
    if any(state.state in ("choose", "done") for state in states):
        tell(words("fleet.merge_hint", fleet=fleet))
    return code


def _tell_names(listed: ListedTasks, states: Sequence[TaskState], words: Words) -> None:
    """Prints the tasks whose names differ from those in the list."""
    pairs = zip((task.name for task in listed.tasks), (state.task.name for state in states), strict=True)
    renamed_lines = [words("fleet.renamed", name=name, new=new_name) for name, new_name in pairs if new_name != name]
    omitted_lines = (
        [words("fleet.more", count=len(renamed_lines) - NAMES_TOLD)] if len(renamed_lines) > NAMES_TOLD else []
    )
    for line in (*renamed_lines[:NAMES_TOLD], *omitted_lines):
        print_err(plain(line))


async def work_and_watch(engine: "Engine", fleet: str, options: Options, words: Words) -> bool:
    """Works until the fleet has ended, and shows its progress. Returns False after a signal, or when other workers have
    taken this one for dead; the fleet then stays as it is."""

    async def answer_here() -> None:
        await asyncio.to_thread(go_through, engine, fleet, words)

    work_coroutine = engine.work(fleet)
    try:
        with _ended_by_signals():
            await (
                work_coroutine if options.json else FleetWatch(engine, fleet, words, answer_here).watch(work_coroutine)
            )
        return True
    except LeaseLost as problem:
        print_err(plain(words.error(problem)))
    except asyncio.CancelledError:
        pass
    print_err(words("fleet.left", fleet=fleet))
    return False


def _ended_by_signals() -> AbstractContextManager[object]:
    """Cancels the current task at a signal. Running attempts end with all their processes, and other workers can go on
    with them."""
    task = asyncio.current_task()
    assert task
    return ended_by_signals(task.cancel)


async def _work(engine: "Engine", fleet: str, words: Words) -> int:
    """Works until the fleet has ended or a signal comes; if no fleet is named, until a signal comes. If other workers
    took this worker for dead, it starts anew as another worker."""
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


def _change(engine: "Engine", options: Options, words: Words) -> int:
    fleet, task = wanted_task(engine, options.words)
    if options.attempt and not task:
        raise UsageError("fleet.attempt_usage", what=options.what)
    if options.what == "cancel":
        count, number = engine.cancel(fleet, task, options.attempt or 0), options.attempt
        live_attempts = [
            attempt
            for attempt in engine.attempts(fleet, task)
            if attempt.number == (number or attempt.number) and attempt.live
        ]
        key = "fleet.cancelling" if live_attempts else "fleet.cancelled" if count else "fleet.over"
        fields = {"fleet": fleet, "task": task, "cancelled": count, "running": len(live_attempts)}
        tell_or_json(options, fields, words(key, what=task or fleet))
    else:
        if not task:
            raise UsageError("fleet.retry_usage")
        (state,) = [state for state in engine.tasks(fleet) if state.task.name == task]
        has_worker = any(worker.lives and worker.place == state.place for worker in engine.workers())
        if not (has_worker or options.no_work):
            _require_repositories(engine, fleet, options)
        newest_base = "" if options.attempt else asyncio.run(_newest_base(state.task, options))
        engine.retry(fleet, task, options.attempt or 0, base=newest_base)
        fields = {"fleet": fleet, "task": task, "by_worker": has_worker}
        tell_or_json(options, fields, words("fleet.again_worker" if has_worker else "fleet.again", task=task))
        if has_worker or options.no_work:
            return 0
        return asyncio.run(_work_to_the_end(engine, fleet, task, options, words))
    return 0


def _require_repositories(engine: "Engine", fleet: str, options: Options) -> None:
    """Raises an error if a task names its repository by its place in the folder of repositories, and that folder is not
    known."""
    fleets = [state.fleet for state in engine.fleets() if state.fleet == fleet or (not fleet and not state.ended)]
    tasks = [task for known_fleet in fleets for task in engine.tasks(known_fleet) if engine.is_here(task)]
    for task in () if options.repositories else tasks:
        repository_in("", task.task.origin)


async def _newest_base(task: FleetTask, options: Options) -> str:
    """Returns the newest commit of the branch to merge onto, since work on the old base may conflict with it. Returns
    an empty text if the clone is on another machine."""
    folder = Path(folder_of(options.repositories), task.repository)
    return await Git(folder).commit_of(f"refs/heads/{task.onto}") if task.onto and folder.is_dir() else ""
