"""A conversation without a person: answers on stdout, progress on stderr, an exit code."""

import json
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from duckflow.events.ports import Conversation
from duckflow.events.talking import NowChanged
from duckflow.events.types import Event, QuestionAsked, QuestionClosed
from duckflow.events.views import Attachment
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.outcome import Outcome, ended_well, exit_code_of
from duckflow.state.action import ActionResult
from duckflow.state.agent import AgentState
from duckflow.state.checks import state_of
from duckflow.state.mode import Mode
from duckflow.state.phrase import LEFT_OUT, Phrase
from duckflow.state.question import NOBODY, Question
from duckflow.ui.headless_options import DuckPolicy, OutputFormat
from duckflow.ui.streams import print_err, print_out
from duckflow.view.items import (
    ActionItem,
    Item,
    NoticeItem,
    NowItem,
    PlanItem,
    QuestionItem,
    ReportItem,
    TextItem,
    TurnItem,
)
from duckflow.view.view import View
from duckflow.view.wording import PASSING, notice_line

if TYPE_CHECKING:
    from duckflow.ui.answer_shape import AnswerShape

FOR_PEOPLE = (NowChanged, QuestionAsked, QuestionClosed)
UNVERIFIED = "review.unverified"
SHAPE_TRIES = 2
UNFINISHED = ("draft", "approved", "in_progress")
ON_DUCK_CALL = {"continue": "go_on", "replan": "replan"}
IsCommand = Callable[[str], Awaitable[bool]]
"""Whether a prompt is a slash command that there is, and no path or plain text."""


class Headless:
    """Has one message answered and reports it. Questions find nobody: the work goes on without what they were about."""

    def __init__(
        self,
        conversation: Conversation,
        words: Words,
        output: OutputFormat,
        policy: DuckPolicy | None = None,
        shape: "AnswerShape | None" = None,
    ) -> None:
        self._shape = shape
        self._value: Any = None
        self.led = False
        """Somebody leads the conversation: questions wait for an answer."""
        self._conversation = conversation
        self._words = words
        self._output = output
        self._policy = policy or DuckPolicy()
        self._calls: list[Question] = []
        self._said: list[str] = []
        self._actions: list[dict[str, Any]] = []
        self._gate: Question | None = None
        self._left_out: list[str] = []
        """The actions that were not done because nobody could be asked."""
        self._acted = self._lacks_deeds = False
        """Something was done, and something that would have changed things was left out."""
        self._job_failed = False
        self._stopped: set[str] = set()
        """The jobs that were paused and then ended, since nobody is there who could resume them."""
        self._work = self._doubt = self._complaint = ""
        self._waits = False
        """The latest turn has ended with a question without whose answer the work cannot go on."""
        self._ended: tuple[Outcome, Phrase | None] | None = None
        """How the latest turn has ended, and why."""
        self._view = View(conversation.state)

    async def run(self, prompt: str, attachments: Sequence[Attachment], is_command: IsCommand) -> int:
        """To the end of the turn and of its jobs; the exit code."""
        conversation = self._conversation
        conversation.hear(self.hear)
        plan = conversation.state.plan
        answered = plan.plan_id if plan and plan.status == "draft" else ""
        if not attachments and await is_command(prompt):
            if told := await conversation.run_command(prompt):
                self._said.append(told)
        elif not attachments and _names_a_command(prompt):
            self._complaint = await conversation.run_command(prompt)
            return self.finish(conversation.state, fits=True, outcome="usage")
        else:
            shape = f"\n\n{self._words('headless.shape', schema=self._shape.schema)}" if self._shape else ""
            await conversation.say(f"{prompt}{shape}", attachments)
        await conversation.work.jobs_over(alone=True)
        if conversation.choices.mode == Mode.FULL_AUTO:
            await self._carry_through(answered)
        fits = await self._shaped() if self._shape else True
        return self.finish(conversation.state, fits)

    async def _shaped(self) -> bool:
        """Whether the answer has the wished shape; it is told what is wrong, and may try again."""
        from duckflow.ui.answer_shape import Unfit

        assert self._shape
        for again in range(SHAPE_TRIES + 1):
            try:
                self._value = self._shape.read(self._said[-1] if self._said else "")
                return True
            except Unfit as problem:
                if again == SHAPE_TRIES or not self._ended or not ended_well(self._ended[0]):
                    return False
                wish = self._words("headless.shape_again", problem=str(problem), schema=self._shape.schema)
            await self._conversation.say(wish)
        return False

    async def _carry_through(self, answered: str) -> None:
        """Nobody is there, and everything may be done: the plan is approved, and gone through while it advances. What
        was said now `answered` a draft of an earlier run: where that was no yes, it stays a draft."""
        conversation, reached = self._conversation, -1
        while (plan := conversation.state.plan) and plan.status in UNFINISHED and plan.done() > reached:
            reached = plan.done()
            if plan.status == "draft" and plan.plan_id == answered:
                return
            if plan.status == "draft":
                await conversation.work.approve_plan()
            else:
                await conversation.say(self._words("plan.go_on"))
            await conversation.work.jobs_over(alone=True)

    def answer(self, question: Question) -> None:
        """Nobody is there: what needs a yes is left out, and a Duck Call gets what the policy says."""
        choice = NOBODY if question.takes_nobody else question.choices[-1].key
        if question.kind == "gate":
            self._gate, choice = question, NOBODY if question.gate else "no"
        elif question.kind == "duck_call":
            goes_on = self._policy.name != "stop" and len(self._calls) <= self._policy.times
            choice = ON_DUCK_CALL[self._policy.name] if goes_on else "stop"
        self._conversation.answer(question.question_id, choice=choice)

    def hear(self, number: int, event: Event) -> None:
        # A bar is for people, and a question that is not on record is nobody else's business.
        if self._output is OutputFormat.STREAM_JSON and (event.journaled or not isinstance(event, FOR_PEOPLE)):
            print_json({"type": event.kind, **event.model_dump(mode="json")})
        for item in self._view.hear(number, event):
            self._draw(item)

    def _draw(self, item: Item) -> None:
        match item:
            case QuestionItem(closed=False, question=question) if question:
                self._ask(question)
            case ActionItem(result=result) if result:
                self._note_result(item, result)
            case TextItem(by="model", state="whole", text=text) if text:
                self._said.append(text)
            case NoticeItem():
                self._note(item)
            case NowItem(work=work) if work and work != self._work:
                self._work = work
                print_err(self._words("work", work=self._words(f"work.{work}")))
            case PlanItem(active=True, plan=plan) if plan.status == "draft":
                from duckflow.commands.plan_tree import plan_tree

                self._said.append(plan_tree(plan, self._words))
            case ReportItem():
                from duckflow.commands.plan_tree import job_summary

                self._said.append(job_summary(item.job_name, item.status, item.report, self._words))
                self._job_failed = item.status == "failed"
                if item.status == "cancelled" and not self.led and not self._conversation.in_turn:
                    self._stopped.add(item.job)
            case TurnItem(outcome=outcome) if outcome:
                self._ended = outcome, item.why
                self._waits = item.waits
            case _:
                pass

    def _note(self, item: NoticeItem) -> None:
        if item.about == "job":
            self._job_failed = item.subject == "interrupted"
        elif item.about in PASSING and (line := notice_line(item, self._words)):
            self._doubt = line if item.what and item.what.key == UNVERIFIED else self._doubt
            print_err(plain(f"· {line}"))

    def finish(self, state: AgentState, fits: bool, outcome: Outcome | None = None) -> int:
        """Prints what is left to print and gives the exit code. Without an `outcome` the last turn tells it."""
        outcome, cause = outcome or self._outcome(state, fits), self._ended[1] if self._ended else None
        why = self._words.phrase(cause) if cause else self._complaint
        if self._gate and outcome == "gate":
            why = _stopped_at(self._gate, self._conversation.choices.mode, self._words)
        offers = outcome == "pending_user" and not self._waits
        code = exit_code_of("done" if offers else outcome)
        left_out = self._words("headless.left_out", what=", ".join(self._left_out)) if self._left_out else ""
        answer = "\n\n".join(filter(None, (*self._said, left_out)))
        if self._shape:
            answer = json.dumps(self._value, ensure_ascii=False) if fits else ""
            why = why or ("" if fits else self._words("headless.no_shape"))
        if self._output is OutputFormat.TEXT:
            if answer or (why and code == 0):
                print_out(plain(answer or why))
            if why and code != 0:
                print_err(plain(why))
        else:
            result = {
                "type": "result",
                "session_id": state.session_id,
                "model": state.model,
                "result": answer or (why if code == 0 else ""),
                "outcome": outcome,
                "exit_code": code,
                "why": why or self._doubt,
                "question": state.asked if outcome == "pending_user" else "",
                "duck_calls": [self._verdict(call) for call in self._calls],
                "vitals": state.vitals.model_dump(),
                "plan": state.plan.outline() if state.plan else None,
                "turn": state.turn,
                "loops": state.loop,
                "actions": self._actions,
                "checks": "failing" if (stand := state_of(state.check_runs)) == "failing_before" else stand,
                "check_runs": [
                    {**run.report.model_dump(), "outdated": run.outdated, "as_before": run.as_before}
                    for run in state.check_runs
                ],
                "left_out": self._left_out,
                "files_changed": list(dict.fromkeys(path for one in self._actions for path in one["changed"])),
                "usage": state.usage.model_dump(),
            } | ({"structured": self._value} if self._shape else {})
            print_json(result)
        return code

    def _outcome(self, state: AgentState, fits: bool) -> Outcome:
        """A turn that ended well is worth no more than its jobs, the shape of its answer, and the checks of what it has
        changed."""
        outcome = self._ended[0] if self._ended else "done" if self._said else "failed"
        if not ended_well(outcome):
            return outcome
        if self._stopped:
            return "pacemaker" if any(call.job in self._stopped for call in self._calls) else "failed"
        if self._left_out and (self._waits or (self._lacks_deeds and not self._acted)):
            # What was asked for could not be done without it.
            return "gate"
        if state_of(state.check_runs) == "failing" and state.changed_in_turn:
            return "failed"
        return "failed" if self._job_failed or not fits else outcome

    def _ask(self, question: Question) -> None:
        if question.kind == "duck_call":
            self._calls.append(question)
            for phrase in (question.title, *question.details):
                self._progress(phrase)
        if self.led:
            print_json({"type": "question", "question": question.model_dump(mode="json")})
        else:
            self.answer(question)

    def _verdict(self, call: Question) -> dict[str, Any]:
        details = [self._words.phrase(phrase) for phrase in call.details]
        return {
            "reason": call.reason,
            "severity": call.severity,
            "situation": self._words.phrase(call.title),
            "findings": details,
        }

    def _note_result(self, item: ActionItem, result: ActionResult) -> None:
        self._actions.append(
            {"operation": result.operation, "ok": result.ok, "changed": result.changed, "for_model": result.for_model}
        )
        deed = result.effect not in ("read", "talk")
        if result.for_user.key == LEFT_OUT:
            self._left_out.append(str(result.for_user.values["what"]))
            self._lacks_deeds |= deed
        self._acted |= result.ok and deed
        if result.said is None:
            whose = f"⚙ {item.job_name}: " if item.job else ""
            print_err(plain(f"· {whose}{self._words.phrase(result.for_user)}"))

    def _progress(self, phrase: Phrase) -> None:
        print_err(plain(f"· {self._words.phrase(phrase)}"))


def _names_a_command(prompt: str) -> bool:
    """The first word looks like a slash command, and there is no file or folder of that name."""
    first = prompt.split(maxsplit=1)[0]
    return re.fullmatch(r"/[a-zA-Z][\w:-]*", first) is not None and not os.path.lexists(first)


def _stopped_at(question: Question, mode: str, words: Words) -> str:
    """What needs a yes, and what would let it through."""
    files = ", ".join(_what(question, words))
    if question.gate and all(one.startswith("mcp__") for one in question.gate.operations):
        return words("headless.gate_outside", files=files)
    if mode == Mode.FULL_AUTO or (question.gate and question.gate.always):
        return words("headless.gate_always", files=files)
    edits = mode == Mode.ASK and question.gate and not question.gate.commands
    return words("headless.gate", files=files, mode=Mode.AUTO_EDIT if edits else Mode.FULL_AUTO)


def _what(question: Question, words: Words) -> list[str]:
    """The commands whole, and the files; where there are none, what is to be done and why it is risky."""
    gate = question.gate
    if gate is None:
        return []
    reasons = [words.phrase(reason) for reason in gate.reasons]
    return [*gate.commands, *(impact.path for impact in gate.impacts)] or [*gate.operations, *reasons]


def print_json(value: dict[str, Any]) -> None:
    print_out(json.dumps(value, ensure_ascii=False))
