"""A front end without a person: leads the conversation of an attempt, and passes its questions on to people."""

import asyncio
import hashlib
import json
import re
from typing import NamedTuple

from duckflow.clock import PausableTimeout
from duckflow.commands.plan_tree import plan_tree
from duckflow.errors import DuckflowError, Outcome, ended_well
from duckflow.events.ports import Conversation
from duckflow.events.types import Event
from duckflow.fleet.task import Answered, Asked, AttemptOrder, AttemptPort
from duckflow.i18n.words import Words
from duckflow.state.data import SAID, Phrase, say
from duckflow.state.mode import Mode
from duckflow.state.question import Choice, Question
from duckflow.view.items import ActionItem, Item, NoticeItem, QuestionItem, TextItem, TurnItem
from duckflow.view.view import View

UNFINISHED = ("draft", "approved", "in_progress")


class TurnResult(NamedTuple):
    """The outcome of a message, after its turn and everything that the turn started have ended."""

    outcome: Outcome
    why: Phrase | None = None
    question: str = ""
    """The model's question that waits for an answer."""

    @property
    def fine(self) -> bool:
        return ended_well(self.outcome)


class AttemptTalk:
    """Talks to the model of an attempt. The attempt's clock stands still while its questions wait for a person."""

    def __init__(
        self, conversation: Conversation, order: AttemptOrder, link: AttemptPort, words: Words, clock: PausableTimeout
    ) -> None:
        self._conversation = conversation
        self._order = order
        self._link = link
        self._words = words
        self._clock = clock
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._inbox: dict[str, Asked] = {}
        self._asked = 0
        """Number of questions that wait for a person."""
        self._view = View(conversation.state)
        self._why: Phrase | None = None
        """The reason why the latest turn ended."""
        self.said = ""
        conversation.hear(self._hear)

    async def say(self, text: str) -> TurnResult:
        """Sends a message, and waits for the end of the turn, of its jobs and of the plan that the turn makes."""
        self._tell_progress()
        outcome = await self._conversation.say(text)
        await self._conversation.work.jobs_over()
        steps_done, turn_result = -1, self._result(outcome)
        state = self._conversation.state
        while turn_result.fine and (plan := state.plan) and plan.status in UNFINISHED and plan.done() > steps_done:
            steps_done = plan.done()
            if plan.status != "draft":
                outcome = await self._conversation.say(self._words("plan.go_on"))
            elif self._conversation.choices.mode in (Mode.FULL_AUTO, Mode.CONTAINED) or await self._approved():
                outcome = await self._conversation.work.approve_plan(plan.fingerprint())
            else:
                return TurnResult("gate", say("fleet.plan_refused"))
            await self._conversation.work.jobs_over()
            turn_result = self._result(outcome)
        return turn_result

    async def ask(self, text: str) -> str:
        """Puts a question of the model to a person, and returns the answer."""
        question = Question(kind="text", title=say("fleet.model_asks"), details=(say(SAID, text=text),))
        return (await self._put(question)).text

    async def close(self) -> None:
        ask_tasks = list(self._asking.values())
        for task in ask_tasks:
            task.cancel()
        await asyncio.gather(*ask_tasks, return_exceptions=True)

    def _result(self, outcome: Outcome) -> TurnResult:
        if self._conversation.state.live_jobs():
            # The turn is over but a job is not: a Duck Call has paused the job.
            outcome = "pacemaker"
        asked_text = self._conversation.state.asked if outcome == "pending_user" else ""
        return TurnResult(outcome, self._why, (asked_text and self.said) or asked_text)

    async def _approved(self) -> bool:
        plan = self._conversation.state.plan
        assert plan
        question = Question(
            kind="choice",
            title=say("plan.ask"),
            details=(say(SAID, text=plan_tree(plan, self._words)),),
            choices=(Choice(key="yes", label=say("gate.yes")), Choice(key="no", label=say("gate.no"))),
        )
        return (await self._put(question)).choice == "yes"

    def _hear(self, number: int, event: Event) -> None:
        for item in self._view.hear(number, event):
            self._draw(item)

    def _draw(self, item: Item) -> None:
        match item:
            case QuestionItem(closed=False, question=question) if question:
                self._asking[item.id] = asyncio.create_task(self._settle(question))
            case QuestionItem(closed=True):
                # A user who is attached to the conversation may have answered the question.
                if task := self._asking.pop(item.id, None):
                    task.cancel()
                    if open_question := self._inbox.get(item.id):
                        self._link.withdraw(open_question)
            case ActionItem(result=result) if result:
                self._link.note(self._words.phrase(result.for_user))
            case TextItem(by="model", state="whole"):
                self.said = item.text
            case NoticeItem(about="noticed" | "ended", what=what) if what:
                text = self._words.phrase(what)
                # Notices of a turn are about the model's own commands. The checks of the fleet come later.
                is_about_checks = what.key.startswith("checks.")
                self._link.note(self._words("fleet.note.turn", text=text) if is_about_checks else text)
            case TurnItem(outcome=outcome) if outcome:
                self._why = item.why
            case _:
                pass

    def _tell_progress(self) -> None:
        self._link.progress("waiting" if self._asked else "working")

    async def _settle(self, question: Question) -> None:
        """Asks a person until an answer fits the question."""
        while True:
            answer = await self._put(question)
            # From here on this answer closes the question, so this task must not be cancelled.
            self._asking.pop(question.question_id, None)
            try:
                answer_result = await self._conversation.answer(question.question_id, answer.text, answer.choice)
            except DuckflowError:
                return
            if answer_result.meaning in ("answer", "closed"):
                return
            remarks = answer_result.told
            if answer_result.meaning == "edit" and question.gate:
                if "\n" not in (text := question.gate.editable):
                    details = (say(SAID, text=text),)
                    edited_answer = await self._put(
                        Question(kind="edit", title=say("fleet.edit"), details=details, text=text)
                    )
                    await self._conversation.answer(question.question_id, edited_answer.text, "edit")
                    return
                remarks = (say("fleet.edit_attached", session=self._conversation.state.session_id),)
            question = question.model_copy(update={"details": (*question.details, *remarks)})

    async def _put(self, question: Question) -> Answered:
        order = self._order
        asked_question = Asked(
            fleet=order.fleet, task=order.task.name, attempt=order.number, question=question, same=self._same(question)
        )
        self._inbox[question.question_id] = asked_question
        self._asked += 1
        try:
            with self._clock.standing_still():
                self._tell_progress()
                return await self._link.ask(asked_question)
        finally:
            self._asked -= 1
            self._tell_progress()

    def _same(self, question: Question) -> str:
        """Returns a key that is equal for equal questions, even in different folders and languages."""
        gate = question.gate
        identifying_texts = [
            question.kind,
            *(phrase.model_dump_json() for phrase in (question.title, *question.details)),
        ]
        identifying_texts += (
            [gate.risk, *gate.operations, gate.diff, *(impact.path for impact in gate.impacts)] if gate else []
        )
        folder = rf"{re.escape(self._conversation.state.folder)}(?![\w.-])"
        # The folder becomes a mark that no command contains. It must not become “.”, which changes after a `cd`.
        text = json.dumps([re.sub(folder, "\0", identifying_text) for identifying_text in identifying_texts])
        return hashlib.sha256(text.encode()).hexdigest()
