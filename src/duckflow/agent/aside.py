"""What is said about running work, answered at once from the state: no model is asked."""

import re
import unicodedata
from typing import Literal

from duckflow.state.agent import AgentState
from duckflow.state.job import JobStatus
from duckflow.state.phrase import Phrase
from duckflow.state.progress import job_progress

Wish = Literal["progress", "pause", "resume", "cancel"]

LONGEST = 40
IT = r"(?: (?:it|that|the (?:job|work|tasks?|background job)))?"
PLEASE = r"(?: please)?"
KUDASAI = r"(?:ください|下さい)?"
WISHES: dict[Wish, re.Pattern[str]] = {
    "progress": re.compile(
        r"(?:so )?how far(?: .{0,20})?|how(?:'s| is)(?: it| that| the \w+) (?:going|coming)(?: along)?"
        r"|(?:what(?:'s| is) the )?(?:progress|status)|(?:is it|are you) (?:done|finished|ready)(?: yet)?"
        r"|(?:今)?どこまで(?:進|でき|行|い|やっ|終).{0,12}|進捗.{0,12}|進み具合.{0,8}|(?:もう)?終わった|(?:今の)?状況.{0,8}"
    ),
    "pause": re.compile(
        rf"pause{IT}{PLEASE}|hold on|一時停止(?:して)?{KUDASAI}"
        rf"|(?:ちょっと|いったん|一旦|それを?|作業を?)?(?:止めて|待って|停止して){KUDASAI}"
    ),
    "resume": re.compile(
        rf"resume{IT}{PLEASE}|(?:go on|continue)(?: with it)?{PLEASE}|再開(?:して)?{KUDASAI}|続けて{KUDASAI}"
    ),
    "cancel": re.compile(
        rf"(?:cancel|abort|stop){IT}{PLEASE}|(?:(?:ジョブ|作業|実行)を?)?(?:中止|キャンセル)(?:して)?{KUDASAI}"
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
    plain = unicodedata.normalize("NFKC", text).casefold().strip(" ?？!！。.、,")
    if len(plain) > LONGEST:
        return None
    statuses = {job.status for job in state.jobs.values()}
    for wish, words in WISHES.items():
        if words.fullmatch(plain) and not statuses.isdisjoint(FITTING[wish]):
            return wish
    return None


def progress_report(state: AgentState) -> tuple[Phrase, ...]:
    """Of every job: how far, and what it is doing or waiting for."""
    return tuple(line for job in state.live_jobs() for line in job_progress(state, job))
