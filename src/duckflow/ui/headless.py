"""A conversation without a person: it prints answers on stdout and progress on stderr, and ends with an exit code."""

import json
import os
import re
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from duckflow.errors import Outcome, ended_well
from duckflow.events.ports import Conversation
from duckflow.events.talking import NowChanged
from duckflow.events.types import Event, QuestionAsked, QuestionClosed
from duckflow.events.views import Attachment
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.state.agent import AgentState
from duckflow.state.mode import Mode
from duckflow.state.question import NOBODY, Question
from duckflow.ui.headless_options import DuckPolicy, OutputFormat
from duckflow.ui.streams import print_err, print_out
from duckflow.ui.turn_report import TurnReport
from duckflow.view.items import PASSING, ActionItem, Item, NoticeItem, NowItem, QuestionItem, TurnItem, notice_line
from duckflow.view.view import View

if TYPE_CHECKING:
    from duckflow.ui.answer_shape import AnswerShape
    from duckflow.ui.stream_lines import StreamLines

FOR_PEOPLE = (NowChanged, QuestionAsked, QuestionClosed)
SHAPE_TRIES = 2
UNFINISHED = ("draft", "approved", "in_progress")
ON_DUCK_CALL = {"continue": "go_on", "replan": "replan"}
IsCommand = Callable[[str], Awaitable[bool]]
"""A function that says whether a prompt is a known slash command, not a path or plain text."""


class Headless:
    """Has one message answered and reports the result. Nobody answers questions: an action that needs a yes is left
    out, and the work goes on."""

    def __init__(
        self,
        conversation: Conversation,
        words: Words,
        output: OutputFormat,
        policy: DuckPolicy | None = None,
        shape: "AnswerShape | None" = None,
        require_proof: bool = False,
    ) -> None:
        self._shape = shape
        self._value: Any = None
        self._led = False
        """True while a program leads the conversation: questions wait for its answer, and each turn has a result."""
        self._conversation = conversation
        self._words = words
        self._output = output
        self._policy = policy or DuckPolicy()
        self._view = View(conversation.state)
        self._require_proof = require_proof
        self._report = TurnReport(conversation, words, self._view, require_proof=require_proof)
        self._code: int | None = None
        """The exit code of the latest turn whose result was reported."""
        self._work = ""

    @cached_property
    def lines(self) -> "StreamLines":
        from duckflow.ui.stream_lines import StreamLines

        return StreamLines(self._conversation, self._words)

    def _listen(self) -> None:
        if self._output is OutputFormat.STREAM_JSON:
            self.lines.session()
        self._conversation.hear(self.hear)

    async def run(self, prompt: str, attachments: Sequence[Attachment], is_command: IsCommand) -> int:
        """Runs the turn and its jobs to the end, and returns the exit code."""
        conversation = self._conversation
        self._listen()
        plan = conversation.state.plan
        answered_plan = plan.plan_id if plan and plan.status == "draft" else ""
        shape_wish = f"\n\n{self._words('headless.shape', schema=self._shape.schema)}" if self._shape else ""
        if problem := await self._take(prompt, attachments, is_command, shape_wish):
            return self.finish(conversation.state, fits=True, outcome=problem)
        await conversation.work.jobs_over(alone=True)
        if conversation.choices.mode in (Mode.FULL_AUTO, Mode.CONTAINED):
            await self.carry_through(answered_plan)
            if (plan := conversation.state.plan) and plan.under_way:
                values = {"done": plan.done(), "total": len(plan.steps)}
                self._report.left_undone = self._words("headless.plan_left", **values)
        fits_shape = await self._shaped() if self._shape else True
        return self.finish(conversation.state, fits_shape)

    async def take_led(self, text: str, attachments: Sequence[Attachment], is_command: IsCommand) -> None:
        """Carries out a line that the leading program has sent. A line that begins no turn has a result too."""
        problem = await self._take(text, attachments, is_command)
        if not self._conversation.in_turn and (problem or not self._report.empty):
            self._code = self.finish(self._conversation.state, fits=True, outcome=problem)
            self._next_report()

    async def _take(
        self, text: str, attachments: Sequence[Attachment], is_command: IsCommand, wish: str = ""
    ) -> Outcome | None:
        """Carries out a line: a slash command or a message. Returns the outcome if the line could not be carried out,
        else None. If the line begins no turn, the texts shown to the user are the answer."""
        conversation, report = self._conversation, self._report
        if not attachments and await is_command(text):
            reply = await conversation.run_command(text)
            if reply or (report is self._report and report.empty):
                self._report.said.append(reply)
        elif not attachments and _names_a_command(text):
            report.complaint = await conversation.run_command(text)
            return "usage"
        else:
            report.notices.clear()
            turn_outcome = await conversation.say(f"{text}{wish}", attachments)
            if not (report.ended or conversation.in_turn):
                if turn_outcome != "done":
                    return "failed"
                report.said += report.notices
        return None

    @contextmanager
    def led(self) -> Generator[None]:
        """Lets a program lead the conversation inside the context. Questions that are open at the end are answered as
        if nobody were there."""
        self._led = True
        self._next_report()
        self._listen()
        yield
        self._led = False
        for question in self._conversation.questions:
            self.answer(question)

    def _next_report(self) -> None:
        is_alone, requires_proof = not self._led, self._require_proof
        self._report = TurnReport(self._conversation, self._words, self._view, is_alone, requires_proof)

    async def _shaped(self) -> bool:
        """Says whether the answer has the wanted shape. If not, the model is told what is wrong and may try again."""
        from duckflow.ui.answer_shape import Unfit

        assert self._shape
        for try_number in range(SHAPE_TRIES + 1):
            report = self._report
            try:
                self._value = self._shape.read(report.said[-1] if report.said else "")
                return True
            except Unfit as problem:
                if try_number == SHAPE_TRIES or not report.ended or not ended_well(report.ended[0]):
                    return False
                correction_text = self._words("headless.shape_again", problem=str(problem), schema=self._shape.schema)
            await self._conversation.say(correction_text)
        return False

    async def carry_through(self, answered: str) -> None:
        """Approves the plan and continues it while it advances, since everything is allowed and nobody is there.
        `answered` is the id of a draft from an earlier run that the message replied to. If that plan is still a draft,
        the reply was no yes, and the plan stays a draft."""
        conversation, steps_done = self._conversation, -1
        while (plan := conversation.state.plan) and plan.status in UNFINISHED and plan.done() > steps_done:
            steps_done = plan.done()
            if plan.status == "draft" and plan.plan_id == answered:
                return
            if plan.status == "draft":
                await conversation.work.approve_plan(plan.fingerprint())
            else:
                await conversation.say(self._words("plan.go_on"))
            await conversation.work.jobs_over(alone=True)

    def answer(self, question: Question) -> None:
        """Answers a question in place of the user. A risky action (asked about in a Gate) is left out. A call for help
        (a Duck Call) gets the answer of the policy."""
        choice = NOBODY if question.takes_nobody else question.choices[-1].key
        if question.kind == "gate":
            self._report.stopped_at, choice = question, NOBODY if question.gate else "no"
        elif question.kind == "duck_call":
            may_continue = self._policy.name != "stop" and len(self._report.duck_calls) <= self._policy.times
            choice = ON_DUCK_CALL[self._policy.name] if may_continue else "stop"
        self._conversation.answer(question.question_id, choice=choice)

    def hear(self, number: int, event: Event) -> None:
        # Progress bars are for people, and a question that is not on record does not concern the reader.
        if self._output is OutputFormat.STREAM_JSON and (event.journaled or not isinstance(event, FOR_PEOPLE)):
            self.lines.event(event)
        items = self._report.hear(number, event)
        for item in items:
            self._draw(item)
        if self._led and any(isinstance(item, TurnItem) and item.outcome for item in items):
            self._code = self.finish(self._conversation.state, fits=True)
            self._next_report()

    def _draw(self, item: Item) -> None:
        match item:
            case QuestionItem(closed=False, question=question) if question:
                self._ask(question)
            case ActionItem(result=result) if result and result.said is None:
                job_prefix = f"⚙ {item.job_name}: " if item.job else ""
                self._progress(f"{job_prefix}{self._words.phrase(result.for_user)}")
            case NoticeItem(about=about) if about in PASSING and (line := notice_line(item, self._words)):
                self._progress(line)
            case NowItem(work=work) if work and work != self._work:
                self._work = work
                print_err(self._words("work", work=self._words(f"work.{work}")))
            case _:
                pass

    def finish(self, state: AgentState, fits: bool, outcome: Outcome | None = None) -> int:
        """Prints the result, and returns the exit code. Without an `outcome`, the outcome of the last turn counts."""
        if self._code is not None and self._report.empty and outcome is None:
            # The latest turn has been reported, and nothing came after it.
            return self._code
        turn_summary = self._report.result(state, fits, outcome)
        if self._shape:
            if turn_summary.left_out:
                self._progress(self._words("headless.left_out", what=", ".join(turn_summary.left_out)))
            answer = json.dumps(self._value, ensure_ascii=False) if fits else ""
            reason = turn_summary.why or ("" if fits else self._words("headless.no_shape"))
            turn_summary = turn_summary.model_copy(update={"result": answer, "why": reason})
        if self._output is OutputFormat.TEXT:
            if turn_summary.result:
                print_out(plain(turn_summary.result))
            if turn_summary.why and turn_summary.exit_code != 0:
                print_err(plain(turn_summary.why))
        else:
            from duckflow.ui.stream_lines import ResultLine

            self.lines.send(ResultLine(structured=self._value, **dict(turn_summary)))
        return turn_summary.exit_code

    def _ask(self, question: Question) -> None:
        if question.kind == "duck_call":
            for phrase in (question.title, *question.details):
                self._progress(self._words.phrase(phrase))
        if self._led:
            from duckflow.ui.stream_lines import QuestionLine

            self.lines.send(QuestionLine(question=question))
        else:
            self.answer(question)

    @staticmethod
    def _progress(line: str) -> None:
        print_err(plain(f"· {line}"))


def _names_a_command(prompt: str) -> bool:
    """Says whether the first word looks like a slash command and no file or folder has that name."""
    first_word = prompt.split(maxsplit=1)[0]
    return re.fullmatch(r"/[a-zA-Z][\w:-]*", first_word) is not None and not os.path.lexists(first_word)
