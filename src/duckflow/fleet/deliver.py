"""Delivers results: pushes the attempt's branch, opens a pull request, or pushes the user's branch."""

import asyncio
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
from duckflow.safety.files import read_plain
from duckflow.safety.git import Git
from duckflow.safety.repository import find_repository
from duckflow.safety.settings_files import INCLUDES, Stamp, settings_stamps
from duckflow.state.data import Phrase, said

ORIGIN = "origin"
PUSH = ("push", "--quiet", "--no-follow-tags", "--no-mirror", "--no-prune", "--recurse-submodules=no")
"""Options for a push of one branch only. Git's settings could add tags and submodules that the user was not shown."""
REMOTES = r"^remote\..*\.(url|pushurl|gh-resolved)$"
OWN_SCOPES = ("system", "global", "command")
"""The scopes of git's settings that are the user's own and not the repository's."""
LARGEST_SHALLOW = 1024 * 1024
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


class PushPlace(NamedTuple):
    """Where a push goes, and stamps of the settings that decide what git starts in the repository."""

    remote: str
    settings: dict[str, Stamp]


async def push_place(git: Git) -> PushPlace:
    stamps = await asyncio.to_thread(lambda: settings_stamps(find_repository(git.folder)))
    return PushPlace(await push_address(git), stamps)


async def require_unmoved(git: Git, agreed: PushPlace | None) -> None:
    """Raises a UsageError if the place of a push, or git's settings, have changed since the user was asked."""
    if agreed and (place := await push_place(git)) != agreed:
        raise UsageError("fleet.deliver.moved", remote=place.remote or "–", repository=str(git.folder))


async def deliver(
    report: AttemptReport,
    how: Delivery,
    creator: str,
    words: Words,
    secrets: Sequence[str] = (),
    agreed: PushPlace | None = None,
) -> Delivered:
    """Delivers a result with the user's git and credentials. `creator` is the user's own command that opens pull
    requests; `secrets` are texts that must not leave the machine. `agreed` is the place as the user was shown it."""
    task = report.order.task
    git = Git(Path(task.repository))
    try:
        remote = await push_address(git)
        if not remote:
            raise UsageError("fleet.deliver.no_remote", repository=task.repository)
        await require_unmoved(git, agreed)
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
    async with _apart(git.folder) as place:
        await place(*PUSH, values=[ORIGIN, f"{commit}:refs/heads/{branch}"])
    # A push from the repository itself would note this, too.
    await git.ends("update-ref", "-m", "duckflow fleet", values=[f"refs/remotes/{ORIGIN}/{branch}", commit])


async def push_address(git: Git) -> str:
    """Returns all addresses that a push goes to; git's settings may name other addresses for fetching."""
    async with _apart(git.folder) as place:
        addresses = (await place.ends("remote", "get-url", "--push", "--all", values=[ORIGIN])).output.split("\n")
        return ", ".join(filter(None, addresses))


def _leads_into(address: str, folder: Path) -> bool:
    """Says whether the address of a remote is a path in this folder."""
    path = _local_path(address)
    places = (os.path.realpath(folder / path), os.path.normpath(folder / path)) if path else ()
    return any(Path(place).is_relative_to(top) for place in places for top in (folder, folder.resolve()))


def _local_path(address: str) -> str:
    """Returns the path on this machine that an address names, or an empty text where it names another machine."""
    scheme, separator, rest = address.partition("://")
    if separator:
        return unquote(rest[rest.find("/") :]) if scheme.lower() == "file" else ""
    return "" if ":" in address.partition("/")[0] else address


@asynccontextmanager
async def _apart(folder: Path) -> AsyncGenerator[Git]:
    """Yields git in an empty repository with the objects and the remotes of the one in `folder`. Git, gh and glab read
    settings in the place where they start, and in what those include. Commands can write them, and they name
    programs."""
    source = Git(folder)
    with tempfile.TemporaryDirectory(prefix="duckflow-deliver-") as top:
        git = Git(Path(top), {MAIN_REPOSITORY: str(folder), **await _users_variables(source)})
        hash_name = await source("rev-parse", "--show-object-format")
        await git("init", "--quiet", "--template=", f"--object-format={hash_name}")
        for row in await source.names("config", "--local", "-z", "--get-regexp", REMOTES):
            name, _, value = row.partition("\n")
            is_path = name.endswith("url") and "://" not in value and _local_path(value)
            await git("config", "--local", "--add", values=[name, str(folder / value) if is_path else value])
        objects = await source("rev-parse", "--path-format=absolute", "--git-path", "objects")
        Path(top, ".git/objects/info/alternates").write_bytes(os.fsencode(f"{objects}\n"))
        shallow = Path(await source("rev-parse", "--path-format=absolute", "--git-path", "shallow"))
        if shallow.is_file():
            Path(top, ".git/shallow").write_bytes(read_plain(shallow, LARGEST_SHALLOW))
        yield git


async def _users_variables(source: Git) -> dict[str, str]:
    """Returns variables that give git the user's own settings, as they count in this repository, without those from
    files of the folder."""
    fields = (await source("config", "--list", "--show-scope", "--show-origin", "-z")).split("\0")
    settings: list[tuple[str, str]] = []
    for scope, origin, row in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
        name, _, value = row.partition("\n")
        file = source.folder / origin.removeprefix("file:")
        lies_within = origin.startswith("file:") and _leads_into(str(file), source.folder)
        if scope in OWN_SCOPES and not lies_within and not INCLUDES.fullmatch(name):
            settings.append((name, value))
    variables = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_COUNT": str(len(settings))}
    for number, (name, value) in enumerate(settings):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


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
            output = await _run(argv, place.folder, {**environment, **place.marks}, request_values["body"])
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
        output = await _run(argv, place.folder, {**environment_outside(folder), **place.marks})
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
