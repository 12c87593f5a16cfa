"""`/commit`: a message from the record and its proof; after a yes the user's own git commits, hooks and all."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from duckflow.commands.command import Command, CommandContext
from duckflow.errors import UsageError
from duckflow.i18n.words import Words
from duckflow.safety.git import Git
from duckflow.safety.path_names import shown
from duckflow.safety.repository import find_repository, git_runs_programs
from duckflow.state.agent import AgentState
from duckflow.state.noun import shorten
from duckflow.state.phrase import say
from duckflow.state.question import Choice, Question

SUBJECT, LISTED = 72, 20
LITERAL = ":(literal)"
"""A file may be called like a pattern of git, which would stand for files that nobody was shown."""


async def commit(context: CommandContext, rest: str) -> str:
    """Commits what the session has changed and git has not; `rest` is the subject, where the user has one."""
    words, state = context.words, context.conversation.state
    if state.turn_open:
        return words("undo.busy")
    paths = await _uncommitted(Path(state.folder), state.files_changed)
    if not paths:
        raise UsageError("commit.nothing")
    message = commit_message(state, paths, rest, words)
    programs = _programs(Path(state.folder))
    answer = await context.ask(_question(message, paths, programs))
    if answer.choice == "edit":
        edited = await context.ask(Question(kind="edit", title=say("commit.title"), text=message, for_person=True))
        message = edited.text.strip()
    elif answer.choice != "yes":
        return words("commit.left")
    if not message:
        return words("commit.left")
    files = shlex.join(f"{LITERAL}{path}" for path in paths)
    # The hooks of the repository run, as when the user types it: it is the user's own act now.
    command = f"git add -- {files} && git commit -m {shlex.quote(message)} -- {files}"
    code = await context.conversation.run_own(command)
    return words("commit.failed", code=code) if code else words("commit.done", count=len(paths))


def commit_message(state: AgentState, paths: Sequence[str], subject: str, words: Words) -> str:
    """What was asked for, what was run to check it, and what the proof says."""
    asked = next((one.text for one in reversed(state.messages) if one.role == "user"), "")
    lines = [shorten(subject or state.five.goal or asked or state.heading or ", ".join(paths), SUBJECT)]
    checks = [words("commit.check", check=shorten(evidence.text, 120)) for evidence in state.evidence]
    proof = state.proof
    tests = [*proof.red, *proof.noticing] if proof else []
    checks += [words("commit.proof", tests=", ".join(tests[:LISTED]))] if tests else []
    return "\n".join([*lines, *([""] if checks else []), *dict.fromkeys(checks)]).strip()


def _programs(folder: Path) -> list[str]:
    """What git starts when it commits here, with the user's rights: hooks, and what settings name."""
    repository = find_repository(folder)
    if repository is None:
        return []
    hooks = sorted(path for path in (repository.common / "hooks").glob("*") if path.suffix != ".sample")
    named = [path.name for path in hooks if os.access(path, os.X_OK)]
    return [*named, *([".git/config"] if repository.runs_programs() else [])]


def _question(message: str, paths: Sequence[str], programs: Sequence[str]) -> Question:
    """Shows the message, and beside it the files: git tells of those itself, so the message does not."""
    choices = tuple(Choice(key=key, label=say(f"commit.{key}")) for key in ("yes", "edit", "no"))
    named = ", ".join([*map(shown, paths[:LISTED]), *(["…"] if len(paths) > LISTED else [])])
    lines = [say("talk.quoted", text=line or " ") for line in (*message.split("\n"), "")]
    runs = [say("commit.runs", programs=shown(", ".join(programs)))] if programs else []
    details = (*lines, *runs, say("commit.files", count=len(paths), files=named))
    return Question(kind="choice", title=say("commit.title"), details=details, choices=choices, for_person=True)


async def _uncommitted(folder: Path, changed: Sequence[str]) -> list[str]:
    git = Git(folder)
    if not changed or (await git.ends("rev-parse", "--is-inside-work-tree")).code:
        return []
    if git_runs_programs(folder):
        # Comparing files would start them, and not in the sandbox.
        return list(changed)
    named = [f"{LITERAL}{path}" for path in changed]
    rows = await git.names("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", *named)
    return [row[3:] for row in rows]


GROUP = (Command("commit", commit),)
