"""`/commit` makes a message from the record and its proof. After a yes the user's own git commits, including its
hooks."""

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from duckflow.commands.command import Command, CommandContext
from duckflow.errors import UsageError
from duckflow.i18n.answer_words import may_be_goal
from duckflow.i18n.answers import read_whole
from duckflow.i18n.words import Words
from duckflow.safety.git import Git
from duckflow.safety.path_names import shown
from duckflow.safety.repository import find_repository, git_runs_programs
from duckflow.state.agent import AgentState
from duckflow.state.data import shorten
from duckflow.state.phrase import Phrase, say
from duckflow.state.question import Answer, Choice, Question

SUBJECT, LISTED = 72, 20
QUOTED = r"[“\"「『]([^”\"」』]+)[”\"」』]"
AFTER_COLON = r"[:：]\s+(\S.*)|：(\S.*)"
LITERAL = ":(literal)"
"""A prefix for file names: a name could look like a pattern of git, which would match files that nobody was shown."""


async def commit(context: CommandContext, own_subject: str) -> str:
    """Commits what the session has changed and git has not. `own_subject` is the subject, if the user gives one."""
    words, state = context.words, context.conversation.state
    if state.turn_open:
        return words("undo.busy")
    paths = await _uncommitted(Path(state.folder), state.files_changed)
    if not paths:
        raise UsageError("commit.nothing")
    message = commit_message(state, paths, own_subject or await _asked_for(context), words)
    programs = _programs(Path(state.folder))
    answer = await context.ask(_question(message, paths, programs))
    while answer.choice == "edit" and answer.text:
        if subject := _own_subject(answer.text, words.language):
            message = commit_message(state, paths, subject, words)
        agreed = subject and read_whole(answer.text, words.language).agreed
        hint = () if subject else (say("commit.how"),)
        answer = Answer(choice="yes") if agreed else await context.ask(_question(message, paths, programs, hint))
    if answer.choice == "edit":
        edited = await context.ask(Question(kind="edit", title=say("commit.title"), text=message, for_person=True))
        message = edited.text.strip()
    elif answer.choice != "yes":
        return words("commit.left")
    if not message:
        return words("commit.left")
    files = shlex.join(f"{LITERAL}{path}" for path in paths)
    # The repository's hooks run, as if the user had typed the command: it is the user's own act now.
    command = f"git add -- {files} && git commit -m {shlex.quote(message)} -- {files}"
    code = await context.conversation.run_own(command)
    return words("commit.failed", code=code) if code else words("commit.done", count=len(paths))


def _own_subject(text: str, language: str) -> str:
    """Returns the subject in the user's words: the part that they quote or say after a colon, or everything if it is no
    answer."""
    named = re.search(QUOTED, text) or re.search(AFTER_COLON, text)
    if named:
        return next(filter(None, named.groups())).strip()
    read = read_whole(text, language)
    return "" if read.agreed or read.asks or read.verdict != "other" else text.strip()


async def _asked_for(context: CommandContext) -> str:
    """Returns the latest message that asked for changes and got some."""
    state = context.conversation.state
    turns = {author.turn for author in await context.conversation.undo.authors()}
    asked = (
        message
        for message in reversed(state.messages)
        if message.role == "user" and message.turn in turns and not message.job
    )
    return next((message.text for message in asked if may_be_goal(message.text, state.language)), "")


def commit_message(state: AgentState, paths: Sequence[str], subject: str, words: Words) -> str:
    """Makes the message: what was asked for, the checks that were run, and what the proof says. A command is a check if
    it is a test run, or if a plan names it as one."""
    subject = subject or _plan_of(state, paths) or state.five.goal or state.heading or ", ".join(paths)
    lines = [shorten(subject, SUBJECT)]
    named = "\n".join(step.success for plan in state.plans.values() for step in plan.steps)
    ran = (
        evidence for evidence in state.evidence if evidence.check or (evidence.command and evidence.command in named)
    )
    checks = [words("commit.check", check=shorten(evidence.text, 120)) for evidence in ran]
    proof = state.proof
    tests = [*proof.red, *proof.noticing] if proof else []
    checks += [words("commit.proof", tests=", ".join(tests[:LISTED]))] if tests else []
    return "\n".join([*lines, *([""] if checks else []), *dict.fromkeys(checks)]).strip()


def _plan_of(state: AgentState, paths: Sequence[str]) -> str:
    """Gives the goal of the latest plan that has made or names all of these files, not a remark on a part of it."""
    for plan in reversed(state.plans.values()):
        made = {path for step in plan.steps for task in step.tasks for path in task.makes}
        text = "\n".join(step.text for step in plan.steps)
        if plan.status not in ("draft", "failed") and all(path in made or path in text for path in paths):
            return plan.goal
    return ""


def _programs(folder: Path) -> list[str]:
    """Names the programs that git starts when it commits here, with the user's rights: hooks, and those that settings
    name."""
    repository = find_repository(folder)
    if repository is None:
        return []
    hooks = sorted(path for path in (repository.common / "hooks").glob("*") if path.suffix != ".sample")
    named = [path.name for path in hooks if os.access(path, os.X_OK)]
    return [*named, *([".git/config"] if repository.runs_programs() else [])]


def _question(message: str, paths: Sequence[str], programs: Sequence[str], hint: tuple[Phrase, ...] = ()) -> Question:
    """Shows the message, and the files beside it. The message does not list them, since git does."""
    keys = ("yes", "edit", "no")
    choices = tuple(Choice(key=key, label=say(f"commit.{key}"), takes_text=key == "edit") for key in keys)
    named = ", ".join([*map(shown, paths[:LISTED]), *(["…"] if len(paths) > LISTED else [])])
    lines = [say("talk.quoted", text=line or " ") for line in (*message.split("\n"), "")]
    runs = [say("commit.runs", programs=shown(", ".join(programs)))] if programs else []
    details = (*hint, *lines, *runs, say("commit.files", count=len(paths), files=named))
    return Question(kind="choice", title=say("commit.title"), details=details, choices=choices, for_person=True)


async def _uncommitted(folder: Path, changed: Sequence[str]) -> list[str]:
    git = Git(folder)
    if not changed or (await git.ends("rev-parse", "--is-inside-work-tree")).code:
        return []
    if git_runs_programs(folder):
        # Comparing files would start programs of the repository, and not in the sandbox.
        return list(changed)
    named = [f"{LITERAL}{path}" for path in changed]
    rows = await git.names("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", *named)
    return [row[3:] for row in rows]


GROUP = (Command("commit", commit),)
