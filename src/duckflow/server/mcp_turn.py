"""One message from an MCP client: said to a conversation, its progress told, its questions put, its result made."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from duckflow.events.ports import Conversation
from duckflow.events.types import Event
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.outcome import OUTCOMES, Outcome, ended_well
from duckflow.server.mcp_questions import can_be_shown, form_of, message_of, read_form, refusal, unasked
from duckflow.state.action import ActionResult, evidence_of
from duckflow.state.phrase import LEFT_OUT, Phrase
from duckflow.state.question import Question
from duckflow.view.items import ActionItem, Item, NoticeItem, QuestionItem, TextItem, TurnItem
from duckflow.view.view import View

Table = dict[str, Any]
Elicit = Callable[[Table], Awaitable[Table]]


class McpTurn:
    """`elicit` puts a form to the person behind the client; none: the client cannot do that."""

    def __init__(
        self, conversation: Conversation, words: Words, elicit: Elicit | None, progress: Callable[[str], None]
    ) -> None:
        self._conversation = conversation
        self._words = words
        self._elicit = elicit
        self._progress = progress
        self._view = View(conversation.state)
        self._said: list[str] = []
        self._changed: dict[str, None] = {}
        self._evidence: list[Table] = []
        self._refused: list[str] = []
        self._left_out: list[str] = []
        """The actions that were not done because nobody could be asked."""
        self._acted = False
        self._why = ""
        self._asking: set[asyncio.Task[None]] = set()

    async def run(self, prompt: str) -> Table:
        """The result of the tool call. Cancelled, the turn is interrupted."""
        unhear = self._conversation.hear(self._hear)
        try:
            outcome = await self._conversation.say(prompt)
            await self._conversation.work.jobs_over()
        except asyncio.CancelledError:
            self._conversation.interrupt()
            raise
        finally:
            unhear()
            for task in self._asking:
                task.cancel()
        # A job that was paused by a Duck Call can be resumed with the next message.
        return self._result("pacemaker" if self._conversation.state.live_jobs() else outcome)

    def _result(self, outcome: Outcome) -> Table:
        if self._refused and ended_well(outcome) and not self._acted:
            outcome = "gate"
        texts = [*self._said, *self._refused]
        content = "\n\n".join(texts) or self._why
        structured = {
            "sessionId": self._conversation.state.session_id,
            "content": content,
            "files_changed": list(self._changed),
            "evidence": self._evidence,
            "outcome": outcome,
            "left_out": self._left_out,
        }
        text = content if ended_well(outcome) or not self._why else f"{content}\n{self._why}".strip()
        return {
            "content": [{"type": "text", "text": text or self._words(OUTCOMES[outcome].key)}],
            "structuredContent": structured,
            "isError": not ended_well(outcome),
        }

    def _hear(self, number: int, event: Event) -> None:
        for item in self._view.hear(number, event):
            self._draw(item)

    def _draw(self, item: Item) -> None:
        match item:
            case QuestionItem(closed=False, question=question) if question:
                task = asyncio.create_task(self._ask(question))
                self._asking.add(task)
                task.add_done_callback(self._asking.discard)
            case ActionItem(state="running", doing=doing) if doing:
                self._tell(doing)
            case ActionItem(result=result) if result:
                self._note(result)
            case TextItem(by="model", state="whole", text=text) if text:
                self._said.append(plain(text))
            case NoticeItem(about="noticed", what=what) if what:
                self._tell(what)
            case TurnItem(outcome=outcome) if outcome:
                self._why = plain(self._words.phrase(item.why)) if item.why else ""
            case _:
                pass

    def _note(self, result: ActionResult) -> None:
        self._changed |= dict.fromkeys(result.changed)
        self._acted |= result.ok and result.effect not in ("read", "talk")
        if result.for_user.key == LEFT_OUT:
            self._left_out.append(str(result.for_user.values["what"]))
        if evidence := evidence_of(result):
            self._evidence.append({"command": evidence.command, "exit_code": evidence.code, "output": evidence.output})
        if result.said is None:
            self._tell(result.for_user)

    def _tell(self, phrase: Phrase) -> None:
        self._progress(plain(self._words.phrase(phrase)))

    async def _ask(self, question: Question) -> None:
        answer = unasked(question)
        if self._elicit and can_be_shown(question, self._words):
            form = {"message": message_of(question, self._words), "requestedSchema": form_of(question, self._words)}
            try:
                answer = read_form(question, await self._elicit(form))
            except Exception:
                # Whatever went wrong at the other side: nobody has said yes.
                answer = refusal(question)
        elif question.gate:
            key = "serve.too_long" if self._elicit else "serve.nobody"
            what = "; ".join((*question.gate.operations, *(impact.path for impact in question.gate.impacts)))
            self._refused.append(plain(self._words(key, what=what)))
        taken = await self._conversation.answer(question.question_id, answer.text, answer.choice)
        if taken.meaning == "unclear":
            await self._conversation.answer(question.question_id, choice=refusal(question).choice)
