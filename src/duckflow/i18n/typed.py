"""What a line as people type it is: an answer, a command, a word about running work, or a message."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal

from duckflow.events.views import CommandInfo, Meaning
from duckflow.i18n.answers import means_always, read_answer, read_wish
from duckflow.state.agent import AgentState
from duckflow.state.job import JobStatus
from duckflow.state.question import Question

Wish = Literal["progress", "pause", "resume", "cancel"]

LONGEST = 40
IT = r"(?: (?:it|that|the (?:job|work|tasks?|background job)))?"
PLEASE = r"(?: please)?"
KUDASAI = r"(?:ください|下さい)?"
WISHES: dict[Wish, str] = {
    "progress": (
        r"(?:so )?how far(?: .{0,20})?|how(?:'s| is)(?: it| that| the \w+) (?:going|coming)(?: along)?"
        r"|(?:what(?:'s| is) the )?(?:progress|status)|(?:is it|are you) (?:done|finished|ready)(?: yet)?"
        r"|(?:今)?どこまで(?:進|でき|行|い|やっ|終).{0,12}|進捗.{0,12}|進み具合.{0,8}|(?:もう)?終わった|(?:今の)?状況.{0,8}"
    ),
    "pause": (
        rf"pause{IT}{PLEASE}|hold on|wait{PLEASE}|一時停止(?:して)?{KUDASAI}"
        rf"|(?:ちょっと|いったん|一旦|それを?|作業を?)?(?:止めて|待って|停止して){KUDASAI}"
    ),
    "resume": rf"resume{IT}{PLEASE}|(?:go on|continue)(?: with it)?{PLEASE}|再開(?:して)?{KUDASAI}|続けて{KUDASAI}",
    "cancel": (
        rf"(?:cancel|abort|stop|halt){IT}{PLEASE}|(?:(?:ジョブ|作業|実行)を?)?(?:中止|キャンセル)(?:して)?{KUDASAI}"
        rf"|(?:もう|それは?)?やめて{KUDASAI}|ストップ"
    ),
}
FITTING: dict[Wish, tuple[JobStatus, ...]] = {
    "progress": ("running", "paused"),
    "pause": ("running",),
    "resume": ("paused", "interrupted"),
    "cancel": ("running", "paused", "interrupted"),
}


def wish_in(text: str, state: AgentState) -> Wish | None:
    """What a short message wants of the jobs; nothing when none is there for it."""
    if not state.jobs:
        return None
    statuses = {job.status for job in state.jobs.values()}
    return next((wish for wish in _wishes(text) if not statuses.isdisjoint(FITTING[wish])), None)


def means_stop(text: str) -> bool:
    """Whether a line is nothing but a word for stopping or waiting."""
    return any(wish in ("pause", "cancel") for wish in _wishes(text))


def _wishes(text: str) -> list[Wish]:
    plain = unicodedata.normalize("NFKC", text).casefold().strip(" ?？!！。.、,")
    return [wish for wish, words in WISHES.items() if len(plain) <= LONGEST and re.fullmatch(words, plain)]


SLASH, BANG = ("/", "／"), ("!", "！")


def read_line(line: str, state: AgentState, questions: Sequence[Question], commands: Iterable[CommandInfo]) -> Meaning:
    """By what is open, known and running."""
    text = line.strip()
    if not text:
        return "nothing"
    if questions and not _goes_past(questions[0], text, commands):
        return "answer"
    if text.startswith(SLASH) and not _begins_with_path(text, commands):
        return "command"
    if text.startswith(BANG) and text[1:].strip():
        return "own_command"
    return "message" if wish_in(text, state) is None else "aside"


def _begins_with_path(text: str, commands: Iterable[CommandInfo]) -> bool:
    """Whether the first word is a path ("/etc/hosts says what?") and not the name of a command."""
    name = unicodedata.normalize("NFKC", text).split()[0].removeprefix("/")
    return "/" in name and all(name != command.name for command in commands)


def _goes_past(question: Question, text: str, commands: Iterable[CommandInfo]) -> bool:
    """Whether a line goes past an open question. One can always look around first; and a job's question does not stand
    in the way of the conversation."""
    name = unicodedata.normalize("NFKC", text).split()[0]
    if name.startswith("!") or any(name == f"/{command.name}" for command in commands):
        return True
    offered = tuple(choice.key for choice in question.choices)
    answers = read_answer(text, offered) is not None or means_always(text, offered) or bool(read_wish(text))
    return bool(question.job) and question.kind == "gate" and not answers
