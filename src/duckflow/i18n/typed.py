"""Tells what a typed line is: an answer, a command, a wish about running jobs, or a message."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from duckflow.events.views import CommandInfo, Meaning
from duckflow.i18n.answer_words import agrees_somewhere, begins_as_answer
from duckflow.i18n.answers import means_always, read_answer, read_whole, without_own_doing, without_reference
from duckflow.i18n.words import fullmatch
from duckflow.state.agent import AgentState, JobStatus
from duckflow.state.question import Question

Wish = Literal["progress", "pause", "resume", "cancel"]

WISHES: tuple[Wish, ...] = get_args(Wish)
LONGEST = 80
UNDO, REDO = "/undo last", "/redo"
"""The commands for a wish in words to undo or redo the last changes."""
SIGNS = r"[?!,;:…、。]+|[.](?=\s|$)"
FITTING: dict[Wish, tuple[JobStatus, ...]] = {
    "progress": ("running", "paused"),
    "pause": ("running",),
    "resume": ("paused", "interrupted"),
    "cancel": ("running", "paused", "interrupted"),
}


def wish_in(text: str, state: AgentState) -> Wish | None:
    """Returns the wish of a short message about the jobs, or None if no job fits. If the model has asked something,
    words for going on answer the question instead."""
    if not state.jobs:
        return None
    statuses = {job.status for job in state.jobs.values()}
    wishes = _wishes(text, state.language)
    if "progress" in wishes and state.just_ended():
        return "progress"
    wish: Wish | None = next((wish for wish in wishes if not statuses.isdisjoint(FITTING[wish])), None)
    return None if wish == "resume" and state.asked else wish


def means_stop(text: str, language: str) -> bool:
    """Says whether a line consists only of words for stopping or waiting."""
    return any(wish in ("pause", "cancel") for wish in _wishes(text, language))


def means_pause(text: str, language: str) -> bool:
    """Says whether a line says only that the jobs are to pause."""
    return _is(text, "pause", language)


def restoring(text: str, state: AgentState) -> str:
    """Returns the command for a line that only wants to take back the last changes or the last undo, if there are any;
    an empty text for any other line."""
    if state.undone_last and _is(text, "redo", state.language):
        return REDO
    return UNDO if state.files_changed and _is(text, "undo", state.language) else ""


def _wishes(text: str, language: str) -> list[Wish]:
    return [wish for wish in WISHES if _is(text, wish, language)]


def _is(text: str, wish: str, language: str) -> bool:
    wish_text = without_own_doing(text, language) if wish == "pause" else text
    plain_text = " ".join(re.sub(SIGNS, " ", unicodedata.normalize("NFKC", wish_text).casefold()).split())
    return len(plain_text) <= LONGEST and fullmatch(f"wishes.{wish}", plain_text, language) is not None


SLASH, BANG = ("/", "／"), ("!", "！")


def read_line(line: str, state: AgentState, questions: Sequence[Question], commands: Iterable[CommandInfo]) -> Meaning:
    """Tells what a typed line is, judging by the open questions, the known commands and the running jobs."""
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
    """Says whether a line does not answer an open question. The user may always use a command first. A question of a
    job does not stop other messages or a pause, unless the line begins like an answer to it."""
    name = unicodedata.normalize("NFKC", text).split()[0]
    if name.startswith("!") or any(name == f"/{command.name}" for command in commands):
        return True
    if not question.job or question.kind != "gate":
        return False
    wish = wish_in(text, state)
    if wish in ("progress", "resume") or (wish == "pause" and not read_whole(text, state.language).waits):
        return True
    offered_keys, language = tuple(choice.key for choice in question.choices), state.language
    # "In that case ok", or a yes in the middle that says how far it goes, is about the open question, too.
    gives_leave = read_whole(text, language).reaches and agrees_somewhere(text, language, ["yes"])
    return not (
        gives_leave
        or begins_as_answer(without_reference(text, language), language)
        or read_answer(text, offered_keys, language)
        or means_always(text, offered_keys)
    )
