"""Tells what a typed line is: an answer, a command, a word about running work, or a message."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from duckflow.events.views import CommandInfo, Meaning
from duckflow.i18n.answer_words import begins_as_answer
from duckflow.i18n.answers import means_always, read_answer, read_whole
from duckflow.i18n.language import fullmatch
from duckflow.state.agent import AgentState
from duckflow.state.job import JobStatus
from duckflow.state.question import Question

Wish = Literal["progress", "pause", "resume", "cancel"]

WISHES: tuple[Wish, ...] = get_args(Wish)
LONGEST = 80
UNDO, REDO = "/undo last", "/redo"
"""The commands that an undo or redo in words stands for: it means what was done last."""
SIGNS = r"[?!,;:…、。]+|[.](?=\s|$)"
FITTING: dict[Wish, tuple[JobStatus, ...]] = {
    "progress": ("running", "paused"),
    "pause": ("running",),
    "resume": ("paused", "interrupted"),
    "cancel": ("running", "paused", "interrupted"),
}


def wish_in(text: str, state: AgentState) -> Wish | None:
    """Returns what a short message wants of the jobs, or nothing when none is there for it. Where the model has asked
    something, words for going on answer that."""
    if not state.jobs:
        return None
    statuses = {job.status for job in state.jobs.values()}
    wishes = _wishes(text, state.language)
    wish: Wish | None = next((wish for wish in wishes if not statuses.isdisjoint(FITTING[wish])), None)
    return None if wish == "resume" and state.asked else wish


def means_stop(text: str, language: str) -> bool:
    """Says whether a line is nothing but a word for stopping or waiting."""
    return any(wish in ("pause", "cancel") for wish in _wishes(text, language))


def means_pause(text: str, language: str) -> bool:
    """Says whether a line only says that nothing is to go on for now."""
    return _is(text, "pause", language)


def restoring(text: str, state: AgentState) -> str:
    """Returns the command for a line that only wants the last changes or the last undo taken back, where there are any.
    Returns nothing where the line says anything else."""
    if state.undone_last and _is(text, "redo", state.language):
        return REDO
    return UNDO if state.files_changed and _is(text, "undo", state.language) else ""


def _wishes(text: str, language: str) -> list[Wish]:
    return [wish for wish in WISHES if _is(text, wish, language)]


def _is(text: str, wish: str, language: str) -> bool:
    plain_text = " ".join(re.sub(SIGNS, " ", unicodedata.normalize("NFKC", text).casefold()).split())
    return len(plain_text) <= LONGEST and fullmatch(f"wishes.{wish}", plain_text, language) is not None


SLASH, BANG = ("/", "／"), ("!", "！")


def read_line(line: str, state: AgentState, questions: Sequence[Question], commands: Iterable[CommandInfo]) -> Meaning:
    """Tells what a line is, by what is open, known and running."""
    text = line.strip()
    if not text:
        return "nothing"
    if questions and not _goes_past(questions[0], text, state, commands):
        return "answer"
    if text.startswith(SLASH) and not _begins_with_path(text, commands):
        return "command"
    if text.startswith(BANG) and text[1:].strip():
        return "own_command"
    return "message" if wish_in(text, state) is None else "aside"


def _begins_with_path(text: str, commands: Iterable[CommandInfo]) -> bool:
    """Says whether the first word is a path ("/etc/hosts says what?") and not the name of a command."""
    name = unicodedata.normalize("NFKC", text).split()[0].removeprefix("/")
    return "/" in name and all(name != command.name for command in commands)


def _goes_past(question: Question, text: str, state: AgentState, commands: Iterable[CommandInfo]) -> bool:
    """Says whether a line goes past an open question. The user can always look around first; and a job's question does
    not stand in the way of the conversation or of a pause, unless the line begins like an answer to it."""
    name = unicodedata.normalize("NFKC", text).split()[0]
    if name.startswith("!") or any(name == f"/{command.name}" for command in commands):
        return True
    if not question.job or question.kind != "gate":
        return False
    wish = wish_in(text, state)
    if wish in ("progress", "resume") or (wish == "pause" and not read_whole(text, state.language).waits):
        return True
    offered_keys, language = tuple(choice.key for choice in question.choices), state.language
    return not (
        begins_as_answer(text, language)
        or read_answer(text, offered_keys, language)
        or means_always(text, offered_keys)
    )
