"""One message from an MCP client: sends the message to a conversation, reports progress, asks the conversation's
questions, and makes the result."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple, cast

from duckflow.errors import OUTCOMES, Outcome, ended_well
from duckflow.events.ports import InnerConversation
from duckflow.events.types import Event
from duckflow.i18n.plain import one_line, plain, readable
from duckflow.i18n.words import Words
from duckflow.state.action import ActionResult, evidence_of
from duckflow.state.data import LEFT_OUT, Phrase
from duckflow.state.question import NOBODY, GateRequest, Question
from duckflow.view.items import ActionItem, Item, NoticeItem, QuestionItem, TextItem, TurnItem
from duckflow.view.view import View

LONGEST_SHOWN = 20_000
"""The length of the longest question that can be read in a form. A longer question is refused."""
LONGEST_WORDS = 300
NOT_IN_FORMS = ("edit",)


class GivenAnswer(NamedTuple):
    """A choice, with the person's words about it. If the choice is empty, the words are read like typed input."""

    choice: str = ""
    text: str = ""


def message_of(question: Question, words: Words) -> str:
    """Returns the whole question: first the commands that would run, in full, then the computed facts, then the model's
    words."""
    return readable("\n".join(_lines(question, words)), words)


def _lines(question: Question, words: Words) -> Iterator[str]:
    yield words.phrase(question.title)
    yield from (words.phrase(detail) for detail in question.details)
    if question.gate:
        yield from _gate_lines(question.gate, words)


def _gate_lines(gate: GateRequest, words: Words) -> Iterator[str]:
    yield from gate.commands
    for impact in gate.impacts:
        yield f"{words(f'gate.{impact.change}')}: {impact.path} (+{impact.added} −{impact.removed})"
    yield words("gate.risk", level=words(f"gate.risk.{gate.risk}"))
    yield from (f"⚠ {words.phrase(reason)}" for reason in (*gate.reasons, *gate.lasting))
    for intent_text in gate.intent:
        yield f"{words('gate.intent')}: {words('quote', text=one_line(plain(intent_text), words, LONGEST_WORDS))}"
    if gate.rationale:
        yield f"{words('gate.rationale')}: {words('quote', text=one_line(plain(gate.rationale), words, LONGEST_WORDS))}"
    if gate.file_diff:
        yield gate.file_diff


def can_be_shown(question: Question, words: Words) -> bool:
    return len(message_of(question, words)) <= LONGEST_SHOWN


def form_of(question: Question, words: Words) -> dict[str, Any]:
    """Returns the fields of the form: the answer, and the reason for it. A very risky action needs a typed answer."""
    choices = [choice for choice in question.choices if choice.key not in NOT_IN_FORMS]
    labels = [readable(words.phrase(choice.label), words) for choice in choices]
    answer: dict[str, Any] = {"type": "string", "title": words("serve.answer")}
    needs_typed_answer = question.kind == "text" or (question.gate is not None and question.gate.risk == "forbidden")
    if needs_typed_answer:
        answer["description"] = " / ".join(labels)
    else:
        answer["enum"] = [choice.key for choice in choices]
        answer["enumNames"] = labels
    reason = {"type": "string", "title": words("serve.reason")}
    properties = {"answer": answer} if needs_typed_answer else {"answer": answer, "reason": reason}
    return {"type": "object", "properties": properties, "required": ["answer"]}


def read_form(question: Question, result: dict[str, Any]) -> GivenAnswer:
    """Reads the filled form. An answer that is not clear counts as a no."""
    content: Any = result.get("content")
    if result.get("action") != "accept" or not isinstance(content, dict):
        return refusal(question)
    fields = {key: str(value) for key, value in cast("dict[str, Any]", content).items()}
    answer = fields.get("answer", "").strip()
    selected = next((choice for choice in question.choices if choice.key == answer), None)
    if question.kind == "text" or (question.gate and question.gate.risk == "forbidden"):
        return GivenAnswer(text=answer) if answer else refusal(question)
    if selected is None or selected.key in NOT_IN_FORMS or (selected.wants_text and not fields.get("reason")):
        return refusal(question)
    return GivenAnswer(selected.key, fields.get("reason", ""))


def unasked(question: Question) -> GivenAnswer:
    """Returns the answer that is given if the person behind the client cannot be asked."""
    return GivenAnswer(NOBODY) if question.takes_nobody else refusal(question)


def refusal(question: Question) -> GivenAnswer:
    """Returns the answer that does nothing: no to a risky action (a Gate), stop to a call for help (a Duck Call), else
    the last choice, which says no."""
    if question.kind == "gate":
        return GivenAnswer("no")
    return GivenAnswer("stop" if question.kind == "duck_call" else question.choices[-1].key)


Table = dict[str, Any]
Elicit = Callable[[Table], Awaitable[Table]]


class McpTurn:
    """One turn for an MCP client. `elicit` shows a form to the person behind the client; it is None if the client has
    no forms."""

    def __init__(
        self, conversation: InnerConversation, words: Words, elicit: Elicit | None, progress: Callable[[str], None]
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
        """The actions that were left out because nobody could be asked."""
        self._acted = False
        self._why = ""
        self._asking: set[asyncio.Task[None]] = set()

    async def run(self, prompt: str) -> Table:
        """Runs the turn and returns the result of the tool call. If the task is cancelled, the turn is interrupted."""
        stop_hearing = self._conversation.hear(self._hear)
        try:
            # The caller is a program: nothing in its message is the user's own word.
            turn_outcome = await self._conversation.say(prompt, wish="")
            await self._conversation.work.jobs_over()
        except asyncio.CancelledError:
            self._conversation.interrupt()
            raise
        finally:
            stop_hearing()
            for task in self._asking:
                task.cancel()
        # A job that a Duck Call paused can be resumed with the next message.
        return self._result("pacemaker" if self._conversation.state.live_jobs() else turn_outcome)

    def _result(self, outcome: Outcome) -> Table:
        if self._refused and ended_well(outcome) and not self._acted:
            outcome = "gate"
        texts = [*self._said, *self._refused]
        content = "\n\n".join(texts) or self._why
        structured_content = {
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
            "structuredContent": structured_content,
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
                # Whatever went wrong at the client, nobody has said yes.
                answer = refusal(question)
        elif question.gate:
            key = "serve.too_long" if self._elicit else "serve.nobody"
            subjects_text = "; ".join((*question.gate.operations, *(impact.path for impact in question.gate.impacts)))
            self._refused.append(plain(self._words(key, what=subjects_text)))
        answer_result = await self._conversation.answer(question.question_id, answer.text, answer.choice)
        if answer_result.meaning == "unclear":
            await self._conversation.answer(question.question_id, choice=refusal(question).choice)
