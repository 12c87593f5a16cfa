"""How results, plans and jobs read in a request."""

import json
import time
from collections.abc import Callable, Collection, Iterable, Sequence

from duckflow.forms.form import GIVEN_BY_USER
from duckflow.i18n.quoted import one_line
from duckflow.i18n.template import note
from duckflow.state.agent import AgentState
from duckflow.state.job import Job
from duckflow.state.message import Message, PromptMessage
from duckflow.state.noun import shorten
from duckflow.state.progress import progress

A_WHILE = 3600


def last_update(history: Sequence[Message], turn: int) -> str:
    """When the conversation was last heard of before this turn, if that is a while ago."""
    before = next((one.at for one in reversed(history) if one.turn < turn and one.at), 0.0)
    now = next((one.at for one in history if one.turn == turn and one.at), before)
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(before)) if before and now - before > A_WHILE else ""


def done_so_far(history: Sequence[Message], turn: int) -> str:
    """The results of a turn, each in one short line."""
    results = (one for one in history if one.role == "tool" and one.turn == turn)
    return "; ".join(gist(one) for one in results if not one.operation.startswith(GIVEN_BY_USER))


def gist(message: Message) -> str:
    """A result in one short line; what it says stands in quotes that it cannot close."""
    first = shorten(message.text.partition("\n")[0], 100)
    return f"{one_line(message.operation)}: {json.dumps(first, ensure_ascii=False)}"


def without_pictures(message: PromptMessage, language: str, key: str, left_out: Collection[str]) -> PromptMessage:
    """The message without those of these digests; a note says that they are not shown."""
    gone = [one for one in message.pictures if one.digest in left_out]
    if not gone:
        return message
    told = note(language, key, names=one_line(", ".join(one.name for one in gone)))
    kept = tuple(one for one in message.pictures if one.digest not in left_out)
    return message._replace(text=f"{message.text}\n\n[duckflow]\n{told}", pictures=kept)


def alternate(messages: Iterable[PromptMessage]) -> tuple[PromptMessage, ...]:
    """Join neighbours of the same role: endpoints want user and assistant to take turns."""
    joined: list[PromptMessage] = []
    for message in messages:
        if joined and joined[-1].role == message.role and not (joined[-1].calls or message.calls or message.answers):
            last = joined[-1]
            pictures = (*last.pictures, *message.pictures)
            joined[-1] = PromptMessage(message.role, f"{last.text}\n\n{message.text}", pictures=pictures)
        else:
            joined.append(message)
    return tuple(joined)


def plan_line(state: AgentState) -> dict[str, str]:
    """The one line of progress in every prompt, as values of its template."""
    plan = state.plan
    if plan is None or plan.status == "completed":
        return {"plan_name": "", "plan_done": "", "plan_total": "", "plan_now": ""}
    step = plan.next_step()
    if plan.status == "draft":
        now = note(state.language, "plan_drafted")
    else:
        now = f"{step.name} ({step.step_id}, {step.status})" if step else "-"
    return {"plan_name": plan.name, "plan_done": str(plan.done()), "plan_total": str(len(plan.steps)), "plan_now": now}


def job_line(state: AgentState, job: Job) -> str:
    """A job in one line."""
    now = progress(state, job)
    return note(
        state.language,
        "job_line_asking" if job.question else "job_line",
        job=f"{job.job_id} {job.name!r}: {job.status}",
        done=str(now.done),
        total=str(now.total),
        doing=now.doing or "-",
    )


def record_line(state: AgentState, most: int, there: Callable[[str], bool]) -> str:
    """What is on the record since the last change, in one line."""
    files, language = state.files_changed[-most:], state.language
    present = [path for path in files if there(path)]
    gone = [path for path in files if path not in present]
    lines = [one.text for one in state.evidence] or [note(language, "record_empty")]
    lines += [note(language, "record_there", files=", ".join(present))] if present else []
    lines += [note(language, "record_gone", files=", ".join(gone))] if gone else []
    return "; ".join(lines)
