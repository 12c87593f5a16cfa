"""A question of the user about an open Gate: the model answers it in words, and the Gate stays open meanwhile."""

import asyncio

from duckflow.agent.session import Session
from duckflow.errors import DuckflowError
from duckflow.events.talking import AskedBack
from duckflow.events.types import Event, Noticed
from duckflow.state.noun import shorten
from duckflow.state.phrase import say
from duckflow.tools.plan.ports import Think

LONGEST_ACTION = 6000


class QuestionsBack:
    """Has the model answer. It is asked for words only, so nothing can be done by them."""

    def __init__(self, session: Session, think: Think) -> None:
        self._session = session
        self._think = think
        self._answers: set[asyncio.Task[None]] = set()
        session.subscribe(self._hear, AskedBack)

    def _hear(self, event: Event) -> None:
        if not isinstance(event, AskedBack):
            return
        task = asyncio.create_task(self._answer(event))
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _answer(self, asked: AskedBack) -> None:
        from duckflow.forms.schema import strict_schema
        from duckflow.tools.plan.drafting import conversation, drafted
        from duckflow.tools.plan.drafts import ExplanationDraft, read_draft

        gate = asked.question.gate
        values = {
            "question": asked.text,
            "intent": "; ".join(gate.intent) if gate else "",
            "action": shorten(gate.diff or ", ".join(gate.operations), LONGEST_ACTION) if gate else "",
            "conversation": conversation(self._session.state),
        }
        schema = strict_schema(ExplanationDraft.model_json_schema())
        try:
            read = await drafted(
                self._think, "asked_back", values, schema, lambda reply: read_draft(reply, ExplanationDraft)
            )
        except DuckflowError:
            self._session.emit(Noticed(what=say("gate.not_explained")))
        else:
            self._session.emit(Noticed(what=say("gate.explained", text=read.answer.strip())))
