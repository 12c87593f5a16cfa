"""How results leave the machine: a branch pushed to the remote, a pull request, or the user's branch pushed."""

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from duckflow.errors import DuckflowError, UsageError
from duckflow.fleet.task import AttemptReport, Delivery
from duckflow.fleet.worktree import files_with, message_of
from duckflow.i18n.words import Words
from duckflow.programs.find import find_program
from duckflow.programs.launch import Launch
from duckflow.programs.run import collect
from duckflow.safety.git import Git
from duckflow.state.phrase import Phrase, said

ORIGIN = "origin"
PUSH = ("push", "--quiet", "--no-follow-tags", "--no-mirror", "--no-prune", "--recurse-submodules=no")
"""Settings may add tags and submodules to what is pushed, and those were not shown."""
LONGEST_REASON = 400
CREATORS = {
    "gh": ("pr", "create", "--head", "{branch}", "--base", "{onto}", "--title", "{title}", "--body-file", "-"),
    "glab": ("mr", "create", "--yes", "--source-branch", "{branch}", "--target-branch", "{onto}", "--title", "{title}")
    + ("--description", "{body}"),
}
"""Programs that open pull requests, the first that is installed."""


READERS = {
    "gh": ("pr", "view", "{branch}", "--json", "state,statusCheckRollup"),
    "glab": ("mr", "view", "{branch}", "--output", "json"),
}
"""The same programs, asked how the checks of a pull request are."""
BAD = {"FAILURE", "ERROR", "CANCELLED", "TIMED_OUT", "ACTION_REQUIRED", "STARTUP_FAILURE", "FAILED", "CANCELED"}
GOOD = {"SUCCESS", "NEUTRAL", "SKIPPED"}

CheckState = Literal["passed", "failed", "pending", "none"]


class Delivered(NamedTuple):
    """Where a result is now, or why it is not there."""

    where: str = ""
    why: Phrase | None = None


async def deliver(
    report: AttemptReport, how: Delivery, creator: str, words: Words, secrets: Sequence[str] = ()
) -> Delivered:
    """By the user's own git and its credentials. `creator`: a command of the user's that opens pull requests.
    `secrets`: what must not leave the machine."""
    task = report.order.task
    git = Git(Path(task.repository))
    try:
        remote = await push_address(git)
        if not remote:
            raise UsageError("fleet.deliver.no_remote", repository=task.repository)
        if how == "merge":
            await _push(git, await git.commit_of(f"refs/heads/{task.onto}"), task.onto, secrets)
            return Delivered(f"{remote} {task.onto}")
        await _push(git, report.commit, report.branch, secrets)
        if how == "push":
            return Delivered(f"{remote} {report.branch}")
        return Delivered(await _open_request(report, creator, words))
    except DuckflowError as problem:
        return Delivered(why=said(problem))


async def _push(git: Git, commit: str, branch: str, secrets: Sequence[str]) -> None:
    """This commit and nothing else. What the remote does not have yet is searched for secrets before."""
    if files := await files_with(git, secrets, "--not", f"--remotes={ORIGIN}", "--not", values=[commit]):
        raise UsageError("fleet.secret_written", files=", ".join(files))
    await git(*PUSH, values=[ORIGIN, f"{commit}:refs/heads/{branch}"])


async def push_address(git: Git) -> str:
    """Every place that a push goes to: the settings may name others than where things come from."""
    return ", ".join((await git.ends("remote", "get-url", "--push", "--all", values=[ORIGIN])).output.split())


async def _open_request(report: AttemptReport, creator: str, words: Words) -> str:
    folder = Path(report.order.task.repository)
    told = {
        "branch": report.branch,
        "onto": report.order.task.onto,
        "title": message_of(report.order).partition("\n")[0],
        "body": request_body(report, words),
    }
    argv = ("/bin/sh", "-c", creator) if creator else _command(CREATORS, folder, told)
    environment = {**os.environ, **{f"DUCKFLOW_{name.upper()}": value for name, value in told.items()}}
    return (await _run(argv, folder, environment, told["body"])).strip().rpartition("\n")[2]


async def _run(argv: Sequence[str], folder: Path, environment: Mapping[str, str], given: str = "") -> str:
    printed = await collect(Launch(argv, folder, environment), given.encode())
    if printed.code:
        reason = (printed.err or printed.out).decode(errors="replace").strip()[-LONGEST_REASON:]
        raise DuckflowError("fleet.deliver.failed", command=argv[0], reason=reason)
    return printed.out.decode(errors="replace")


def _command(calls: Mapping[str, Sequence[str]], folder: Path, told: dict[str, str]) -> tuple[str, ...]:
    for name, words in calls.items():
        if program := find_program(name, folder):
            return (program, *(word.format(**told) if word.startswith("{") else word for word in words))
    raise UsageError("fleet.deliver.no_creator", known=", ".join(map(shlex.quote, calls)))


async def check_state(report: AttemptReport) -> CheckState:
    """How the checks of the pull request of an attempt are, as gh or glab tells it."""
    folder = Path(report.order.task.repository)
    argv = _command(READERS, folder, {"branch": report.branch})
    printed = await _run(argv, folder, os.environ)
    try:
        told: Any = json.loads(printed)
        checks = told.get("statusCheckRollup") or ([told["head_pipeline"]] if told.get("head_pipeline") else [])
        states = {str(one.get("conclusion") or one.get("state") or one.get("status")).upper() for one in checks}
    except (ValueError, AttributeError, TypeError) as problem:
        raise DuckflowError("fleet.deliver.failed", command=argv[0], reason=str(problem)) from None
    if not states:
        return "none"
    return "failed" if states & BAD else "passed" if states <= GOOD else "pending"


def request_body(report: AttemptReport, words: Words) -> str:
    """What was asked for, and what shows that it is done: from the record, not from a model."""
    task = report.order.task
    lines = [task.prompt.strip(), ""]
    lines += [f"- `{check.command}`: {words('fleet.deliver.check', code=check.code)}" for check in report.checks]
    lines += [f"- {words(f'fleet.deliver.proof_{report.proof}')}"] if report.proof else []
    lines += [f"- {shown}" for shown in report.evidence]
    lines += [f"- {file.path} (+{file.added} −{file.removed})" for file in report.files]
    return "\n".join(lines)
