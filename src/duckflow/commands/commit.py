"""`/commit` makes a message from the record and its proof. After the user's yes, git commits as if the user had typed
the command, with all hooks."""

import re
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from duckflow.commands.command import Command, CommandContext, Group
from duckflow.errors import UsageError
from duckflow.i18n.answer_words import answers_only
from duckflow.i18n.answers import read_whole
from duckflow.i18n.words import Words
from duckflow.safety.git import Git
from duckflow.safety.path_names import shown
from duckflow.safety.repository import find_repository, git_runs_programs
from duckflow.safety.started_files import started_by_commit
from duckflow.state.action import Evidence
from duckflow.state.agent import AgentState
from duckflow.state.changes import UndoScope
from duckflow.state.data import Phrase, say, shorten
from duckflow.state.question import Answer, Choice, Question

SUBJECT, LISTED, LONGEST_CHECK = 72, 20, 120
LEAST_SUBJECT = 12
"""The fewest characters of a message that may become the subject: a shorter message ("go on then") says nothing of the
work."""
QUOTED = r"[“\"「『]([^”\"」』]+)[”\"」』]"
AFTER_COLON = r"[:：]\s+(\S.*)|：(\S.*)"
ASKED = frozenset({"commit"})
"""The action that the question is about: "good message, commit it" says yes to it."""
LITERAL = ":(literal)"
"""A prefix that makes git take a file's name literally. Without it a name could act as a pattern and match files that
nobody was shown."""

RunningCommands = Callable[[], Sequence[str]]


async def commit(running: RunningCommands, context: CommandContext, own_subject: str) -> str:
    """Commits the files that the session has changed and git has not yet committed. `own_subject` is the subject, if
    the user gives one."""
    words, state = context.words, context.conversation.state
    if state.turn_open:
        return words("undo.busy")
    _require_quiet(running, state)
    paths = await _uncommitted(Path(state.folder), state.files_changed)
    if not paths:
        raise UsageError("commit.nothing")
    message = commit_message(state, paths, own_subject or await _asked_for(context, paths), words)
    repository = find_repository(Path(state.folder))
    started = started_by_commit(repository) if repository else None
    programs = started.names if started else ()
    answer = await context.ask(_question(message, paths, programs))
    while answer.choice == "edit" and answer.text:
        if read_whole(answer.text, words.language, ASKED).plain_yes:
            answer = Answer(choice="yes")
            break
        if subject := _own_subject(answer.text, words.language):
            message = commit_message(state, paths, subject, words)
        is_agreed = subject and read_whole(answer.text, words.language).agreed
        hint = () if subject else (say("commit.how"),)
        answer = Answer(choice="yes") if is_agreed else await context.ask(_question(message, paths, programs, hint))
    if answer.choice == "edit":
        edited_answer = await context.ask(
            Question(kind="edit", title=say("commit.title"), text=message, for_person=True)
        )
        message = edited_answer.text.strip()
    elif answer.choice != "yes":
        return words("commit.left")
    if not message:
        return words("commit.left")
    _require_quiet(running, state)
    if (started_by_commit(repository) if repository else None) != started:
        raise UsageError("commit.programs_changed")
    path_arguments, new_path_arguments = _named(paths), _named(await _unknown_to_git(Path(state.folder), paths))
    # The repository's hooks run, as if the user had typed the command: the yes makes the commit the user's own act.
    add_command = f"git add --intent-to-add -- {new_path_arguments} && " if new_path_arguments else ""
    code = await context.conversation.run_own(f"{add_command}git commit -m {shlex.quote(message)} -- {path_arguments}")
    if code and new_path_arguments:
        await context.conversation.run_own(f"git reset -q -- {new_path_arguments}")
    return words("commit.failed", code=code) if code else words("commit.done", count=len(paths))


def _own_subject(text: str, language: str) -> str:
    """Returns the subject in the user's words: the part in quotes or after a colon; otherwise all words, unless they
    only answer the question."""
    subject_match = re.search(QUOTED, text) or re.search(AFTER_COLON, text)
    if subject_match:
        return next(filter(None, subject_match.groups())).strip()
    whole_answer = read_whole(text, language)
    return "" if whole_answer.agreed or whole_answer.asks or whole_answer.verdict != "other" else text.strip()


async def _asked_for(context: CommandContext, paths: Sequence[str]) -> str:
    """Returns the first sentence of the request or plan that led to most of these files. If several led to as many, the
    latest counts. A later remark on a part of the work does not describe the whole."""
    undo, state = context.conversation.undo, context.conversation.state
    file_counts: dict[UndoScope, int] = {}
    for scope in dict.fromkeys(author.whole for author in await undo.authors()):
        file_counts[scope] = len({impact.path for impact in (await undo.diff(scope)).impacts}.intersection(paths))
    scopes = sorted(file_counts, key=lambda scope: -file_counts[scope])
    return next(filter(None, (_first_sentence(_wish_behind(scope, state)) for scope in scopes)), "")


def _wish_behind(scope: UndoScope, state: AgentState) -> str:
    """Returns the goal of the plan that the work carried out, or the message that began the work; empty if that message
    is only an answer, or too short."""
    plans = (plan for plan in state.plans.values() if plan.since == scope.turn)
    job = state.jobs.get(scope.job)
    plan = state.plans.get(job.plan_id) if job else next(plans, None)
    if plan:
        return plan.goal
    texts = (message.text for message in state.messages if message.role == "user" and message.turn == scope.turn)
    text = "" if job else next(texts, "")
    return "" if len(text.strip()) < LEAST_SUBJECT or answers_only(text, state.language) else text


def _first_sentence(text: str) -> str:
    """Returns the first sentence of a request. Further sentences only say how, and would be cut in the middle."""
    first_line = text.strip().partition("\n")[0]
    return re.split(r"(?<=[.!?])\s|(?<=[。！？])", first_line, maxsplit=1)[0].rstrip(" .。")


def commit_message(state: AgentState, paths: Sequence[str], subject: str, words: Words) -> str:
    """Makes the message: the request, the checks that were run, and the tests of the proof. A command is a check if it
    is a test run, or if a plan names it."""
    subject = subject or _plan_of(state, paths) or state.five.goal or state.heading or ", ".join(paths)
    lines = [shorten(subject, SUBJECT)]
    criteria = "\n".join(step.success for plan in state.plans.values() for step in plan.steps)
    checks = [words("commit.check", check=text) for evidence in state.evidence if (text := _check(evidence, criteria))]
    proof = state.proof
    tests = [*proof.red, *proof.noticing] if proof else []
    checks += [words("commit.proof", tests=", ".join(tests[:LISTED]))] if tests else []
    return "\n".join([*lines, *([""] if checks else []), *dict.fromkeys(checks)]).strip()


def _check(evidence: Evidence, named: str) -> str:
    """Returns a check with its exit code, without other commands of the same line; an empty text if the command is no
    check. `named` holds the criteria of plans."""
    if evidence.check:
        return shorten(f"{evidence.check.check}: exit code {evidence.code}", LONGEST_CHECK)
    is_named = re.search(rf"(?<![\w-]){re.escape(evidence.command)}(?![\w-])", named) if evidence.command else None
    return evidence.text if is_named else ""


def _plan_of(state: AgentState, paths: Sequence[str]) -> str:
    """Returns the goal of the latest plan that has made or names all of these files. It describes the work better than
    a later remark on a part of it."""
    for plan in reversed(state.plans.values()):
        made_paths = {path for step in plan.steps for task in step.tasks for path in task.makes}
        text = "\n".join(step.text for step in plan.steps)
        if plan.status != "draft" and not plan.given_up and all(path in made_paths or path in text for path in paths):
            return plan.goal
    return ""


def _require_quiet(running: RunningCommands, state: AgentState) -> None:
    """Refuses while the model's work goes on, since it could change what git starts after the last look at it."""
    if commands := [*running(), *(job.name for job in state.jobs.values() if job.status == "running")]:
        raise UsageError("commit.background", commands=shown("; ".join(commands)))


def _question(message: str, paths: Sequence[str], programs: Sequence[str], hint: tuple[Phrase, ...] = ()) -> Question:
    """Makes the question that shows the message, and beside it the files. The message itself does not list the files,
    since git does."""
    keys = ("yes", "edit", "no")
    choices = tuple(Choice(key=key, label=say(f"commit.{key}"), takes_text=key == "edit") for key in keys)
    path_list = ", ".join([*map(shown, paths[:LISTED]), *(["…"] if len(paths) > LISTED else [])])
    lines = [say("talk.quoted", text=line or " ") for line in (*message.split("\n"), "")]
    runs = [say("commit.runs", programs=shown(", ".join(programs)))] if programs else []
    details = (*hint, *lines, *runs, say("commit.files", count=len(paths), files=path_list))
    return Question(kind="choice", title=say("commit.title"), details=details, choices=choices, for_person=True)


async def _uncommitted(folder: Path, changed: Sequence[str]) -> list[str]:
    git = Git(folder)
    if not changed or (await git.ends("rev-parse", "--is-inside-work-tree")).code:
        return []
    if git_runs_programs(folder):
        # Comparing files would start programs of the repository, and not in the sandbox.
        return list(changed)
    literal_paths = [f"{LITERAL}{path}" for path in changed]
    rows = await git.names("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", *literal_paths)
    return [row[3:] for row in rows]


def _named(paths: Sequence[str]) -> str:
    return shlex.join(f"{LITERAL}{path}" for path in paths)


async def _unknown_to_git(folder: Path, paths: Sequence[str]) -> list[str]:
    """Returns the files that git's index does not have yet. Only these must be made known to the index before a commit,
    and taken out of it again when the commit fails."""
    indexed_paths = await Git(folder).names("ls-files", "-z", "--", *(f"{LITERAL}{path}" for path in paths))
    return [path for path in paths if path not in indexed_paths]


def commit_group(running: RunningCommands) -> Group:
    """Makes `/commit`. `running` returns the commands that the session has in the background."""
    return (Command("commit", partial(commit, running)),)
