"""Rules read facts out of texts before an event is journaled; applying the event reads no text."""

from contextlib import closing
from pathlib import Path

from duckflow.agent.session import begin
from duckflow.events.apply import apply
from duckflow.events.types import ActionFinished, MessageAdded
from duckflow.state.action import ActionResult
from duckflow.state.agent import AgentState
from duckflow.state.data import say
from duckflow.state.message import Message
from duckflow.store.journal import Journal

ORDER = MessageAdded(message=Message(role="user", text="Write a parser. Do not touch the tests."))
BROUGHT = MessageAdded(message=Message(role="tool", operation="@docs/plan.md", text="the plan"))
QUESTION = ActionFinished(
    result=ActionResult(
        action_id="a",
        operation="response",
        ok=True,
        for_model="",
        for_user=say("talk.said", text="Done. Which next?"),
        effect="talk",
    )
)


def test_facts_read_out_of_texts_are_in_the_journal(tmp_path: Path) -> None:
    session = begin(tmp_path / "s.db", "s", tmp_path, "en")
    for event in (ORDER, BROUGHT, QUESTION):
        session.emit(event)
    session.close()
    with closing(Journal(tmp_path / "s.db")) as journal:
        _, order, brought, question = [event for _, event in journal.events()]
    assert isinstance(order, MessageAdded) and isinstance(brought, MessageAdded)
    assert (order.constraints, order.title) == (("Do not touch the tests",), ORDER.message.text)
    assert brought.file == "docs/plan.md"
    assert isinstance(question, ActionFinished) and question.asked == "Which next?"
    assert session.state.five.constraints == ["Do not touch the tests"]
    assert session.state.five.open_questions == ["Which next?"]


def test_applying_reads_no_text() -> None:
    state = AgentState()
    for event in (ORDER, BROUGHT, QUESTION):
        apply(state, event)
    assert (state.five.constraints, state.five.open_questions, state.title, state.context_refs) == ([], [], "", [])
    apply(state, ORDER.model_copy(update={"constraints": ("no network",), "title": "a parser"}))
    assert (state.five.constraints, state.title) == (["no network"], "a parser")
