"""Delivers results: pushes the attempt's branch, opens a pull request, or pushes the user's branch."""

import json
import os
import shlex
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote

from duckflow.errors import DuckflowError, UsageError
from duckflow.fleet.task import AttemptReport, Delivery
from duckflow.fleet.worktree import files_with, message_of
from duckflow.i18n.words import Words
from duckflow.programs.find import MAIN_REPOSITORY, environment_outside, find_program
from duckflow.programs.launch import Launch
from duckflow.programs.run import collect
from duckflow.safety.git import Git
from duckflow.state.data import Phrase, said

ORIGIN = "origin"
PUSH = ("push", "--quiet", "--no-follow-tags", "--no-mirror", "--no-prune", "--recurse-submodules=no")
"""Options for a push of one branch only. Git's settings could add tags and submodules that the user was not shown."""
REMOTES = r"^remote\..*\.(url|pushurl|gh-resolved)$"
LONGEST_REASON = 400
CREATORS = {
    "gh": ("pr", "create", "--head", "{branch}", "--base", "{onto}", "--title", "{title}", "--body-file", "-"),
    "glab": ("mr", "create", "--yes", "--source-branch", "{branch}", "--target-branch", "{onto}", "--title", "{title}")
    + ("--description", "{body}"),
}
"""Programs that open pull requests; the first one that is installed is used."""


READERS = {
    "gh": ("pr", "view", "{branch}", "--json", "state,statusCheckRollup"),
    "glab": ("mr", "view", "{branch}", "--output", "json"),
}
"""Commands of the programs in `CREATORS` that show the checks of a pull request."""
BAD = {"FAILURE", "ERROR", "CANCELLED", "TIMED_OUT", "ACTION_REQUIRED", "STARTUP_FAILURE", "FAILED", "CANCELED"}
GOOD = {"SUCCESS", "NEUTRAL", "SKIPPED"}

CheckState = Literal["passed", "failed", "pending", "none"]


class Delivered(NamedTuple):
    """The place to which a result was delivered, or the reason why it was not delivered."""

    where: str = ""
    why: Phrase | None = None


async def deliver(
    report: AttemptReport, how: Delivery, creator: str, words: Words, secrets: Sequence[str] = ()
) -> Delivered:
    """Delivers a result with the user's git and credentials. `creator` is the user's own command that opens pull
    requests; `secrets` are texts that must not leave the machine."""
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
    """Pushes this commit and nothing else. New commits are first searched for secrets. A repository of the folder is no
    place to push to: git would start its hooks, which a command may have put there."""
    for address in (await push_address(git)).split(", "):
        if _leads_into(address, git.folder):
            raise UsageError("fleet.deliver.own_remote", remote=address, repository=str(git.folder))
    if files := await files_with(git, secrets, "--not", f"--remotes={ORIGIN}", "--not", values=[commit]):
        raise UsageError("fleet.secret_written", files=", ".join(files))
    await git(*PUSH, values=[ORIGIN, f"{commit}:refs/heads/{branch}"])


async def push_address(git: Git) -> str:
    """Returns all addresses that a push goes to; git's settings may name other addresses for fetching."""
    return ", ".join((await git.ends("remote", "get-url", "--push", "--all", values=[ORIGIN])).output.split())


def _leads_into(address: str, folder: Path) -> bool:
    """Says whether the address of a remote is a path in this folder."""
    scheme, separator, rest = address.partition("://")
    if scheme.lower() != "file" if separator else ":" in address.partition("/")[0]:
        return False
    path = unquote(rest[rest.find("/") :]) if separator else address
    places = (os.path.realpath(folder / path), os.path.normpath(folder / path))
    return any(Path(place).is_relative_to(top) for place in places for top in (folder, folder.resolve()))


@asynccontextmanager
async def _apart(folder: Path) -> AsyncGenerator[Path]:
    """Yields an empty repository with the remotes of the one in `folder`. gh and glab read settings in the git folder
    of the place where they start, which commands can write, and call git there, which starts programs."""
    with tempfile.TemporaryDirectory(prefix="duckflow-deliver-") as top:
        git = Git(Path(top), {MAIN_REPOSITORY: str(folder)})
        await git("init", "--quiet")
        for row in await Git(folder).names("config", "--local", "-z", "--get-regexp", REMOTES):
            name, _, value = row.partition("\n")
            await git("config", "--local", "--add", values=[name, value])
        yield Path(top)


async def _open_request(report: AttemptReport, creator: str, words: Words) -> str:
    folder = Path(report.order.task.repository)
    request_values = {
        "branch": report.branch,
        "onto": report.order.task.onto,
        "title": message_of(report.order).partition("\n")[0],
        "body": request_body(report, words),
    }
    argv = ("/bin/sh", "-c", creator) if creator else _command(CREATORS, folder, request_values)
    environment = {
        **environment_outside(folder),
        **{f"DUCKFLOW_{name.upper()}": value for name, value in request_values.items()},
    }
    if creator:
        output = await _run(argv, folder, environment, request_values["body"])
    else:
        async with _apart(folder) as place:
            output = await _run(argv, place, environment, request_values["body"])
    return output.strip().rpartition("\n")[2]


async def _run(argv: Sequence[str], folder: Path, environment: Mapping[str, str], stdin: str = "") -> str:
    run_result = await collect(Launch(argv, folder, environment), stdin.encode())
    if run_result.code:
        reason = (run_result.err or run_result.out).decode(errors="replace").strip()[-LONGEST_REASON:]
        raise DuckflowError("fleet.deliver.failed", command=argv[0], reason=reason)
    return run_result.out.decode(errors="replace")


def _command(calls: Mapping[str, Sequence[str]], folder: Path, values: dict[str, str]) -> tuple[str, ...]:
    for name, words in calls.items():
        if program := find_program(name, folder):
            return (program, *(word.format(**values) if word.startswith("{") else word for word in words))
    raise UsageError("fleet.deliver.no_creator", known=", ".join(map(shlex.quote, calls)))


async def check_state(report: AttemptReport) -> CheckState:
    """Returns the state of the checks of an attempt's pull request, as gh or glab shows it."""
    folder = Path(report.order.task.repository)
    argv = _command(READERS, folder, {"branch": report.branch})
    async with _apart(folder) as place:
        output = await _run(argv, place, environment_outside(folder))
    try:
        answer: Any = json.loads(output)
        checks = answer.get("statusCheckRollup") or ([answer["head_pipeline"]] if answer.get("head_pipeline") else [])
        states = {str(check.get("conclusion") or check.get("state") or check.get("status")).upper() for check in checks}
    except (ValueError, AttributeError, TypeError):
        answer_text = output.strip()[:LONGEST_REASON] or "–"
        raise DuckflowError("fleet.deliver.unreadable", command=argv[0], answer=answer_text) from None
    if not states:
        return "none"
    return "failed" if states & BAD else "passed" if states <= GOOD else "pending"


def request_body(report: AttemptReport, words: Words) -> str:
    """Returns the text of a pull request: the task, and the report's evidence that it is done. No model writes it."""
    task = report.order.task
    lines = [task.prompt.strip(), ""]
    lines += [words("fleet.deliver.builds_on", tasks=", ".join(task.after)), ""] if task.after else []
    lines += [f"- `{check.command}`: {words('fleet.deliver.check', code=check.code)}" for check in report.checks]
    lines += [f"- {words(f'fleet.deliver.proof_{report.proof}')}"] if report.proof else []
    lines += [f"- {evidence}" for evidence in report.evidence]
    lines += [f"- {file.path} (+{file.added} −{file.removed})" for file in report.files]
    return "\n".join(lines)
