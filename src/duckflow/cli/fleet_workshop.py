"""What attempts need of this machine: a Duckflow process, commands in the sandbox, a review, a place for worktrees."""

import asyncio
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from duckflow.agent.trust import FolderTrust
from duckflow.config.load import load
from duckflow.errors import UsageError
from duckflow.fleet.attempt import Workshop, marks_of
from duckflow.fleet.host import HostCall
from duckflow.fleet.review import AttemptReview, review_prompt, run_review
from duckflow.fleet.task import AttemptOrder, AttemptReport, CheckResult, FleetTask
from duckflow.i18n.template import note
from duckflow.i18n.words import Words
from duckflow.remote.protocol import SUFFIX
from duckflow.safety.repository import find_repository, own_folders
from duckflow.state.mode import Mode
from duckflow.store.paths import Paths
from duckflow.store.sessions import Sessions, new_session_id

PROGRAM = (sys.executable, "-P", "-m", "duckflow")
"""Not what lies in the folder that it works in."""
KEPT = 4000
"""Characters of a command's output."""
TOO_LONG = 124
"""The exit code of a command that was ended, as `timeout` gives it."""
KILLED = 137


def make_workshop(words: Words, paths: Paths) -> Workshop:
    call, run, review = partial(_call, words, paths), partial(_run, words, paths), partial(_review, words)
    return Workshop(paths.worktrees, partial(require_harmless, paths), call, run, review, words)


def require_harmless(paths: Paths, repository: Path) -> None:
    """Git runs what filters, drivers and the like name, and not in the sandbox; and a `.git` that leads elsewhere shows
    what others keep there. As in a chat, only where the user trusts the folder."""
    found = find_repository(repository)
    if found is None or FolderTrust(repository, Path.home(), paths.trusted).trusted:
        return
    if found.runs_programs():
        raise UsageError("fleet.untrusted", repository=str(repository))
    if not own_folders(found):
        raise UsageError("fleet.led_elsewhere", repository=str(repository), place=str(found.folder))


def _call(words: Words, paths: Paths, task: FleetTask, folder: Path) -> HostCall:
    session = new_session_id()
    command = (*PROGRAM, "attach", "--host", "led", *_flags(task, words), "--mode", task.mode, session)
    return HostCall(command, Sessions(paths.sessions_of(folder)).path(session).with_suffix(SUFFIX), session)


async def _review(
    words: Words, report: AttemptReport, folder: Path, diff: str, marks: Mapping[str, str]
) -> AttemptReview | None:
    prompt = review_prompt(report, note(words.language, "agent_is_review"), words)
    command = (*PROGRAM, *_flags(report.order.task, words), "--mode", Mode.PLAN, "-p", prompt)
    return await run_review(command, diff, folder, marks)


def _flags(task: FleetTask, words: Words) -> tuple[str, ...]:
    limit = ("--max-budget-usd", str(task.budget_usd)) if task.budget_usd else ()
    return (*(("-m", task.model) if task.model else ()), *limit, "--lang", words.language)


async def _run(
    words: Words, paths: Paths, order: AttemptOrder, folder: Path, command: str, network: bool
) -> CheckResult:
    """In the sandbox of the repository's own settings, not of those that the attempt may have changed. Where there is
    none, nobody would be asked: only who has turned it off wants that."""
    from duckflow.programs.run import OverrunError, run
    from duckflow.safety.sandbox.choose import choose
    from duckflow.tools.shell.output import CommandOutput
    from duckflow.tools.shell.run import overrun_phrase, shell_launch

    settings = load(paths.user_config, Path(order.task.repository), {}).settings
    sandbox = await asyncio.to_thread(choose, settings.sandbox, folder, [paths.data, paths.config])
    output = CommandOutput(0, KEPT, 0, lambda text, left_out: None)
    try:
        if sandbox.kind == "none" != settings.sandbox.kind and order.task.mode is not Mode.CONTAINED:
            raise UsageError("fleet.no_sandbox", command=command)
        launch = shell_launch(sandbox, settings.shell, command, network)
        launch.environment = {**launch.environment, **marks_of(order)}
        # Secret files are here only where the task names them, so its commands may read them.
        confined = sandbox.confine(launch, network, secrets=True)
        code = await run(confined, output.take, seconds=settings.shell.longest_seconds)
    except TimeoutError:
        code = TOO_LONG
    except OverrunError as problem:
        code = KILLED
        output.take(f"\n{words.phrase(overrun_phrase(problem.overrun, command))}\n".encode())
    finally:
        sandbox.close()
    return CheckResult(command=command, code=code, output=output.text(failed=bool(code)).strip()[-KEPT:])
