"""The things that attempts need from this machine: a Duckflow process, the sandbox, a review, a place for worktrees."""

import asyncio
import importlib.util
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.agent.trust import FolderTrust
from duckflow.allowance import ADDRESS
from duckflow.cli.parser import Options
from duckflow.config.load import load
from duckflow.errors import DuckflowError, UsageError
from duckflow.fleet.attempt import Workshop, marks_of
from duckflow.fleet.container import Container, container_engine, container_name
from duckflow.fleet.host import HostCall
from duckflow.fleet.ranking import AttemptReview, review_prompt, run_review
from duckflow.fleet.task import AttemptOrder, AttemptReport, CheckResult, FleetTask
from duckflow.i18n.template import note
from duckflow.i18n.words import Words
from duckflow.llm.endpoints import catalogue
from duckflow.programs.find import environment_outside
from duckflow.programs.launch import Launch
from duckflow.remote.protocol import SUFFIX
from duckflow.safety.repository import find_repository, own_folders
from duckflow.safety.secrets import mask, secret_parts
from duckflow.state.mode import Mode
from duckflow.store.paths import Paths
from duckflow.store.sessions import Sessions, new_session_id
from duckflow.whole_file import private_folder

if TYPE_CHECKING:
    from duckflow.fleet.database_engine import Engine
    from duckflow.fleet.engine import Happening


DATABASE = "DUCKFLOW_FLEET_DATABASE"
HOOK = "DUCKFLOW_FLEET_HOOK"
"""Name of the variable with the user's command for events. A file of tasks cannot set it, because that file may come
from a repository."""
FILE = "fleet.db"
PART = "sqlalchemy"


def folder_of(name: str) -> str:
    return str(Path(name).expanduser().resolve()) if name else ""


def clones_of(paths: Paths) -> Path:
    """Returns the folder for clones of repositories that tasks name by address. The folder lies outside Duckflow's own
    data, which commands must not see."""
    return paths.worktrees.with_name(f"{paths.data.name}-clones")


def call_hook(words: Words, happening: "Happening") -> None:
    """Starts the user's own command for an event, and does not wait for its end."""
    if not (command := os.environ.get(HOOK)):
        return
    fields = happening._asdict() | {"said": words.phrase(happening.said) if happening.said else ""}
    variables = {f"DUCKFLOW_{name.upper()}": str(value) for name, value in fields.items()}
    null_stream = subprocess.DEVNULL
    subprocess.Popen(
        ("/bin/sh", "-c", command),
        env={**environment_outside(Path.cwd()), **variables},
        stdin=null_stream,
        stdout=null_stream,
        stderr=null_stream,
        start_new_session=True,
    )


def open_engine(options: Options, words: Words, paths: Paths) -> "Engine":
    if not importlib.util.find_spec(PART):
        raise UsageError("fleet.not_installed", module=PART)
    from sqlalchemy.exc import DBAPIError, SQLAlchemyError

    from duckflow.fleet.attempt import carry_out
    from duckflow.fleet.database_engine import Engine
    from duckflow.fleet.ranking import choose
    from duckflow.fleet.worker import Workplace

    private_folder(paths.data)
    database = options.database or os.environ.get(DATABASE, "")
    address = database.removeprefix("sqlite:///") or str(paths.data / FILE)
    repositories_folder = folder_of(options.repositories or "")
    workplace = Workplace(
        options.place or platform.node(), options.at_once, options.lease, repositories_folder, str(clones_of(paths))
    )
    try:
        work, notify = partial(carry_out, make_workshop(words, paths)), partial(call_hook, words)
        return Engine(address, work, choose, workplace, notify)
    except (SQLAlchemyError, ValueError) as problem:
        reason = str(problem.orig if isinstance(problem, DBAPIError) else problem).strip()
        raise DuckflowError("fleet.database_away", reason=reason.split("\n")[0]) from problem


PROGRAM = (sys.executable, "-P", "-m", "duckflow")
"""The command that starts the installed Duckflow, not a package of that name in the current folder."""
PROGRAM_INSIDE = "duckflow"
"""The command that starts Duckflow inside the image of a container."""
KEPT = 4000
"""The number of characters of a command's output that are kept."""
TOO_LONG = 124
"""The exit code of a command that took too long, as the program `timeout` returns it."""
KILLED = 137


def make_workshop(words: Words, paths: Paths) -> Workshop:
    call, run, review = partial(_call, words, paths), partial(_run, words, paths), partial(_review, words)
    admit_repository, secrets = partial(require_harmless, paths), partial(secrets_of, paths)
    return Workshop(paths.worktrees, admit_repository, secrets, call, run, review, words)


def provider_keys(paths: Paths, repository: Path) -> frozenset[str]:
    """Returns the names of variables that hold keys of models. No task may pass these variables to a command."""
    endpoints = load(paths.user_config, repository, {}).settings.llm.endpoints
    return frozenset(name for endpoint in catalogue(endpoints, os.environ).values() for name in endpoint.key_names)


def secrets_of(paths: Paths, task: FleetTask) -> dict[str, str]:
    if missing_names := [name for name in task.secrets if name not in os.environ]:
        raise UsageError("fleet.no_secret", names=", ".join(missing_names))
    values = {name: os.environ[name] for name in task.secrets}
    keys = provider_keys(paths, Path(task.repository)) if values else frozenset[str]()
    key_values = {os.environ[name] for name in keys if name in os.environ}
    if forbidden_names := [name for name, value in values.items() if name in keys or value in key_values]:
        raise UsageError("fleet.provider_key", names=", ".join(forbidden_names))
    if plain_names := [name for name, value in values.items() if not secret_parts([value])]:
        raise UsageError("fleet.plain_secret", names=", ".join(plain_names))
    return values


def require_harmless(paths: Paths, repository: Path) -> None:
    """Refuses a repository that could do harm, unless the user trusts it: git would run the programs that its filters
    and drivers name, outside the sandbox; or its `.git` leads elsewhere and would show the data of others."""
    git_repository = find_repository(repository)
    if git_repository is None or FolderTrust(repository, Path.home(), paths.trusted).trusted:
        return
    if git_repository.runs_programs():
        raise UsageError("fleet.untrusted", repository=str(repository))
    if not own_folders(git_repository):
        raise UsageError("fleet.led_elsewhere", repository=str(repository), place=str(git_repository.folder))


def _call(words: Words, paths: Paths, task: FleetTask, folder: Path, marks: Mapping[str, str]) -> HostCall:
    session = new_session_id()
    mode = Mode.CONTAINED if task.container else task.mode
    words_of_call = ("attach", "--host", "led", *_flags(task, words), "--mode", mode, session)
    socket = Sessions(paths.sessions_of(folder)).path(session).with_suffix(SUFFIX)
    if not task.container:
        return HostCall((*PROGRAM, *words_of_call), socket, session)
    keys = [name for name in provider_keys(paths, Path(task.repository)) if name in os.environ]
    container = _container(paths, task, folder, marks, keys)
    return HostCall(container.running((PROGRAM_INSIDE, *words_of_call)), socket, session, container.removing())


def _container(
    paths: Paths, task: FleetTask, folder: Path, marks: Mapping[str, str], keys: Iterable[str] = ()
) -> Container:
    """Describes the container of an attempt. The container sees the worktree, its session, the user's settings and the
    repository's history. It cannot change the settings and the history."""
    sessions = paths.sessions_of(folder)
    private_folder(sessions)
    variables = [*marks, *task.secrets, *keys]
    folder_variables = (f"XDG_DATA_HOME={paths.data.parent}", f"XDG_CONFIG_HOME={paths.config.parent}")
    variables += ["DUCKFLOW_HOME"] if "DUCKFLOW_HOME" in os.environ else folder_variables
    granted_folders = [Path(marks[ADDRESS]).parent] if ADDRESS in marks else []
    readable_folders = [Path(task.repository, ".git"), *([paths.config] if paths.config.exists() else [])]
    return Container(
        container_engine(),
        task.container,
        container_name(folder),
        folder,
        (folder, sessions, *granted_folders),
        readable_folders,
        variables,
    )


async def _review(
    words: Words, report: AttemptReport, folder: Path, diff: str, marks: Mapping[str, str]
) -> AttemptReview | None:
    prompt = review_prompt(report, note(words.language, "agent_is_review"), words)
    command = (*PROGRAM, *_flags(report.order.task, words), "--mode", Mode.PLAN, "-p", prompt)
    return await run_review(command, diff, folder, marks)


def _flags(task: FleetTask, words: Words) -> tuple[str, ...]:
    return (*(("-m", task.model) if task.model else ()), "--lang", words.language)


async def _run(
    words: Words, paths: Paths, order: AttemptOrder, folder: Path, command: str, network: bool
) -> CheckResult:
    """Runs a command in the sandbox of the repository's own settings, not of those that the attempt may have changed.
    Without a sandbox the command runs only if the user has turned the sandbox off, as nobody can be asked."""
    from duckflow.programs.run import OverrunError, run
    from duckflow.safety.sandbox.choose import choose
    from duckflow.tools.shell.output import CommandOutput
    from duckflow.tools.shell.run import overrun_phrase, shell_launch

    settings = load(paths.user_config, Path(order.task.repository), {}).settings
    secrets = secrets_of(paths, order.task)
    sandbox = await asyncio.to_thread(choose, settings.sandbox, folder, paths.private)
    output = CommandOutput(0, KEPT, 0, lambda text, left_out: None)
    try:
        lacks_sandbox = sandbox.kind == "none" != settings.sandbox.kind and order.task.mode is not Mode.CONTAINED
        if lacks_sandbox and not order.task.container:
            raise UsageError("fleet.no_sandbox", command=command)
        launch = shell_launch(sandbox, settings.shell, command, network)
        launch.environment = {**launch.environment, **marks_of(order), **secrets}
        if order.task.container:
            container = _container(paths, order.task, folder, marks_of(order))
            confined_launch = Launch(
                container.running(("sh", "-c", command)),
                folder,
                {**launch.environment, **environment_outside(folder, order.task.repository)},
            )
        else:
            # Secret files are in the worktree only where the task names them, so the task's commands may read them.
            confined_launch = sandbox.confine(launch, network, secrets="write")
        code = await run(confined_launch, output.take, seconds=settings.shell.longest_seconds)
    except TimeoutError:
        code = TOO_LONG
    except OverrunError as problem:
        code = KILLED
        output.take(f"\n{words.phrase(overrun_phrase(problem.overrun, command))}\n".encode())
    finally:
        sandbox.close()
    text = mask(output.text(failed=bool(code)), values=secret_parts(secrets.values())).text
    return CheckResult(command=command, code=code, output=text.strip()[-KEPT:])
