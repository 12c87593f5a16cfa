"""Tells what a typed line is: an answer, a command, a wish about running jobs, or a message."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, get_args

from duckflow.events.views import CommandInfo, Meaning
from duckflow.i18n.answer_words import agrees_somewhere, begins_as_answer, yes_or_no
from duckflow.i18n.answers import DASH, means_always, read_answer, read_whole, without_own_doing, without_reference
from duckflow.i18n.asking import asks
from duckflow.i18n.words import begins, fullmatch, patterns, search
from duckflow.state.agent import AgentState, JobStatus
from duckflow.state.question import Question

Wish = Literal["progress", "pause", "resume", "cancel"]

WISHES: tuple[Wish, ...] = get_args(Wish)
LONGEST = 80
UNDO, REDO, DROP_PLAN = "/undo last", "/redo", "/plan drop"
"""The commands for a wish in words to undo or redo the last changes, or to drop the plan."""
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


class PauseWithMore(NamedTuple):
    """A line that begins with words to pause running work, and then says something else."""

    pause: str
    rest: str


SENTENCE_END = r"[。！]+|[.!]+(?=\s|$|[^\x00-\x7f])|\n"
PAUSE_END = rf"{SENTENCE_END}|[,;，；、—–]+|\s-\s"


def split_pause(text: str, state: AgentState) -> PauseWithMore | None:
    """Splits a line into the words that pause the running jobs and what it says after them; None for any other line. A
    bare verb before a comma may also be the first of a list of words."""
    if not state.at_work or means_pause(text, state.language):
        return None
    line, language = text.strip(), state.language
    ends = [*re.finditer(PAUSE_END, line)]
    joints = [joint for rule in patterns("wishes.joint", line, language) for joint in rule.finditer(line)]
    for end in sorted((*ends, *joints), key=lambda mark: mark.end(), reverse=True):
        head, rest = line[: end.start()], line[end.end() :].lstrip(JOINT)
        is_list = not re.fullmatch(SENTENCE_END, end[0]) and begins("wishes.listing", rest.casefold(), language)
        is_pause = _is(head, "halt", language) and end in ends and not is_list
        if rest and (is_pause or _is(head, "halt_sure", language)):
            return PauseWithMore(head, _without_joint(rest, language))
    return None


def restoring(text: str, state: AgentState) -> str:
    """Returns the command for a line that only wants to take back the last changes or the last undo, or to drop the
    plan, if there are any; an empty text for any other line."""
    is_plan_open = state.plan is not None and not state.plan.is_over and not state.live_jobs()
    if is_plan_open and _is(text, "drop_plan", state.language):
        return DROP_PLAN
    if state.undone_last and _is(text, "redo", state.language):
        return REDO
    return UNDO if state.files_changed and _is(text, "undo", state.language) else ""


def _wishes(text: str, language: str) -> list[Wish]:
    return [wish for wish in WISHES if _is(text, wish, language)]


def _is(text: str, wish: str, language: str) -> bool:
    wish_text = without_own_doing(text, language) if wish == "pause" else text
    plain_text = " ".join(re.sub(SIGNS, " ", unicodedata.normalize("NFKC", wish_text).casefold()).split())
    return len(plain_text) <= LONGEST and fullmatch(f"wishes.{wish}", plain_text, language) is not None


class SplitAnswer(NamedTuple):
    """An answer at the Gate of a job (the question before a risky action) of which a part is for the conversation."""

    verdict: Literal["", "no"]
    """Empty if the answer neither allows nor refuses anything, so that the Gate stays open."""
    rest: str
    """The part that may be for the conversation, in the user's own words."""
    certain: bool
    """True if the rest is surely not for the job."""


DOUBT = 2
"""The most words of a question that only doubts ("really?"), so that what stands before it is no firm answer."""
JOINT = " \t,.;:!、。！"
CLAUSE_END = r"[,;:!、。！]+|[.]+(?=\s|$)"
FIRST_PARTS = ("scopes.parts", "answers.part", "answers.plain_no")
"""Patterns of the end of an answer's first part, the surest first; the last one is the first part itself."""


def split_answer(text: str, language: str) -> SplitAnswer | None:
    """Splits an answer at the Gate of a job into its no and the rest, if the rest asks the conversation for something:
    to take back what was done, to tell something, or to do work of its own. Returns None for any other answer. A yes
    is never split, because its rest may be a condition."""
    line = re.sub(DASH, ", ", unicodedata.normalize("NFKC", text).strip())
    splits = [split for sign in FIRST_PARTS if (split := _split_at(sign, line, language))]
    answers = [(head, rest) for head, rest in splits if rest and (_refuses(head, language) or _waits(head, language))]
    if _goes_elsewhere(line, language):
        answers = [(head, rest) for head, rest in answers if _goes_elsewhere(rest, language)] or [("", line)]
    if not answers:
        return None
    head, rest = answers[0]
    verdict: Literal["", "no"] = "no" if _refuses(head, language) and not _waits(head, language) else ""
    sorts = {sort for clause in re.split(CLAUSE_END, rest) for sort in _sorts_in(clause.strip(), language)}
    whole = read_whole(line, language)
    says_nothing_more = "chat" not in sorts and whole.verdict == "no" and not whole.reason
    is_doubt = rest.isascii() and asks(rest, language) and len(rest.split()) <= DOUBT
    if says_nothing_more or sorts.isdisjoint(("chat", "either")) or (sorts == {"either"} and is_doubt):
        return None
    return SplitAnswer(verdict, rest, sorts == {"chat"}) if verdict or sorts == {"chat"} else None


def _refuses(head: str, language: str) -> bool:
    return yes_or_no(head, language) == "no"


def _waits(head: str, language: str) -> bool:
    return search("scopes.wait", head, language) is not None


def _split_at(name: str, line: str, language: str) -> tuple[str, str] | None:
    """Splits a line at the sign that ends its first part, or after the plain no that it begins with."""
    sign = begins(name, line, language) if name == FIRST_PARTS[-1] else search(name, line, language)
    if sign is None:
        return None
    head = line[: sign.start()] or sign[0]
    rest = line[len(head) :].lstrip(JOINT)
    return head, _without_joint(rest, language)


def _without_joint(rest: str, language: str) -> str:
    joint = begins("requests.clause_joint", rest, language)
    return rest[joint.end() :].lstrip(JOINT) if joint else rest


def _goes_elsewhere(text: str, language: str) -> bool:
    """Says whether a text surely is about something else than the action that a job asks about: it wants to take back
    what was done, or to steer a job that it names."""
    wants_back = _is(text, "undo", language) or _is(text, "redo", language)
    return wants_back or (_is(text, "cancel", language) and search("wishes.job", text, language) is not None)


def _sorts_in(clause: str, language: str) -> Iterator[Literal["chat", "either", "job"]]:
    """Says whom the orders and questions of a clause are for. A job can only do its action in another way; so words
    that take back what was done, or ask to be told something, are for the conversation."""
    orders = [order for rule in patterns("requests.part", clause, language) for order in rule.finditer(clause)]
    if _goes_elsewhere(clause, language) or begins("answers.asked", clause, language):
        yield "chat"
        return
    if not orders and asks(clause, language):
        yield "either"
    ends = [*(order.start() for order in orders), len(clause)][1:]
    for order, end in zip(orders, ends, strict=True):
        objects = clause[order.end() : end].strip()
        points_at_action = objects and begins("answers.object", objects, language)
        if search("requests.to_me", clause[order.start() : end], language):
            yield "chat"
        else:
            yield "job" if points_at_action or order.lastgroup in ("write", "read") else "either"


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
    split = split_answer(text, state.language)
    if split and split.certain and not split.verdict and split.rest == text:
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
