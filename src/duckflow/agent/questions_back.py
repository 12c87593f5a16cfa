"""Lets the model answer what the user asks about an open Gate (the question before risky actions)."""

import asyncio
from pathlib import Path

from duckflow.agent.questions import Questions
from duckflow.agent.session import Session
from duckflow.errors import DuckflowError
from duckflow.events.talking import AskedBack
from duckflow.events.types import Event, Noticed
from duckflow.i18n.template import note, quoted
from duckflow.i18n.words import Words
from duckflow.safety.secret_diffs import without_secret_lines
from duckflow.state.data import say
from duckflow.state.question import GateRequest
from duckflow.tools.plan.ports import Think

LONGEST_ACTION = LONGEST_WORK = 6000
LONGEST_PART = 2000


def told_action(gate: GateRequest, folder: Path) -> str:
    """Returns what a model is told of the actions of a Gate: the diff, but no lines of secret files."""
    return without_secret_lines(gate.diff, folder) or ", ".join(gate.operations)


class QuestionsBack:
    """Lets the model answer a question that the user asks about an open Gate. The Gate stays open. The model is asked
    for a text only, so its reply cannot act."""

    def __init__(self, session: Session, questions: Questions, think: Think) -> None:
        self._session = session
        self._questions = questions
        self._think = think
        self._answers: set[asyncio.Task[None]] = set()
        session.subscribe(self._hear, AskedBack)

    def _hear(self, event: Event) -> None:
        if not isinstance(event, AskedBack):
            return
        task = asyncio.create_task(self._answer(event))
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    def _work_before(self) -> str:
        """Returns the model's latest messages and results, shortened. The model needs them to explain an action to the
        user."""
        state, room_left, message_parts = self._session.state, LONGEST_WORK, list[str]()
        for message in reversed(state.messages):
            if message.role in ("assistant", "tool") and not message.job and message.text.strip() and room_left > 0:
                text = message.text.strip()[: min(LONGEST_PART, room_left)]
                message_parts.append(quoted(state.language, message.operation or message.role, text))
                room_left -= len(text)
        return "\n".join([note(state.language, "asked_back_work"), *message_parts]) if message_parts else ""

    async def _answer(self, asked: AskedBack) -> None:
        from duckflow.forms.schema import strict_schema
        from duckflow.tools.plan.drafting import conversation, drafted
        from duckflow.tools.plan.drafts import ExplanationDraft, read_draft

        gate, phrase = asked.question.gate, Words(self._session.state.language).phrase
        details = "\n".join(map(phrase, (asked.question.title, *asked.question.details)))
        values = {
            "question": asked.text,
            "intent": "; ".join(gate.intent) if gate else "",
            "action": (told_action(gate, Path(self._session.state.folder)) if gate else details)[:LONGEST_ACTION],
            "conversation": conversation(self._session.state),
            "work": self._work_before(),
        }
        schema = strict_schema(ExplanationDraft.model_json_schema())
        try:
            draft = await drafted(
                self._think, "asked_back", values, schema, lambda reply: read_draft(reply, ExplanationDraft)
            )
        except DuckflowError:
            self._session.emit(Noticed(what=say("gate.not_explained")))
        else:
            answer = draft.answer.strip()
            self._questions.keep_talk(asked.question.question_id, asked.text, answer)
            self._session.emit(Noticed(what=say("gate.explained", text=answer)))
