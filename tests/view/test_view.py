"""Events become items: live, from the record, and from the middle of the record."""

from pathlib import Path

from duckflow.events.types import (
    ActionStarted,
    DecisionMade,
    Event,
    LoopBegan,
    OutputStreamed,
    QuestionAsked,
    ReplyRejected,
    StreamReset,
    TextStreamed,
    TurnBegan,
    TurnEnded,
)
from duckflow.state.action import Action, Decision
from duckflow.state.data import say
from duckflow.state.question import Answer, Question
from duckflow.view.items import ActionItem, Item, NoticeItem, OutputItem, QuestionItem, ReasonItem, TextItem, TurnItem
from duckflow.view.view import View, items_of
from tests.journeys.story import Story, act, decide, respond

SCRIPT = [
    decide(act("file_ops.write_file", path="a.txt", content="one\n"), next_step="continue"),
    decide(act("file_ops.delete_file", path="a.txt"), next_step="continue"),
    decide(respond("It is there.")),
]


async def tell(top: Path) -> tuple[Story, dict[str, Item]]:
    """Plays a turn with a yes and a no, and returns its items as they were seen while it happened."""
    story, view, seen = Story(top, SCRIPT, mode="ask"), View(), dict[str, Item]()

    def hear(number: int, event: Event) -> None:
        seen.update({item.id: item for item in view.hear(number, event)})

    story.chat.hear(hear, 0)
    story.answers = [Answer(choice="yes"), Answer(choice="no", text="keep it")]
    await story.tell("write it")
    return story, seen


async def test_the_record_gives_the_same_items_as_the_live_events(tmp_path: Path) -> None:
    story, seen = await tell(tmp_path)
    kinds = (ActionItem, QuestionItem, ReasonItem, TurnItem)
    read = {item.id: item for item in items_of(story.session.record())}
    assert {name: item for name, item in seen.items() if isinstance(item, kinds)} == {
        name: item for name, item in read.items() if isinstance(item, kinds)
    }
    texts = [[item.text for item in items.values() if isinstance(item, TextItem) and item.state == "whole"]
             for items in (seen, read)]  # fmt: skip
    assert texts == [["write it", "It is there."]] * 2


async def test_an_action_is_one_item_from_its_question_to_its_end(tmp_path: Path) -> None:
    story, _ = await tell(tmp_path)
    actions = [item for item in items_of(story.session.record()) if isinstance(item, ActionItem) and item.gate]
    questions = {item.id: item for item in items_of(story.session.record()) if isinstance(item, QuestionItem)}
    written, deleted = actions
    assert (written.state, deleted.state) == ("done", "failed")
    assert "+one" in written.diff and written.action and written.action.args["path"] == "a.txt"
    for action, choice in ((written, "yes"), (deleted, "no")):
        answer = questions[action.gate].answer
        assert action.answer == answer and answer and answer.choice == choice


async def test_a_record_can_be_read_from_any_event_on(tmp_path: Path) -> None:
    story, _ = await tell(tmp_path)
    record = list(story.session.record())
    for first in range(len(record)):
        outcomes = [item.outcome for item in items_of(record[first:]) if isinstance(item, TurnItem)]
        assert outcomes == [event.outcome for _, event in record[first:] if isinstance(event, TurnEnded)]
    finished = next(place for place, (_, event) in enumerate(record) if event.kind == "action_finished")
    (action, *_) = (item for item in items_of(record[finished:]) if isinstance(item, ActionItem))
    assert action.action is None and action.result and action.result.ok


def hear(*events: Event) -> list[Item]:
    view = View()
    return [item for number, event in enumerate(events, 1) for item in view.hear(number * event.journaled, event)]


def test_a_reply_that_is_written_again_is_announced_once() -> None:
    items = hear(LoopBegan(turn=1, loop=1, limit=9), TextStreamed(text="I"), ReplyRejected(reason="no", attempt=1),
                 StreamReset(), TextStreamed(text="You"), StreamReset(), StreamReset())  # fmt: skip
    assert [item.about for item in items if isinstance(item, NoticeItem)] == ["rejected", "again"]
    texts = [(item.state, item.text) for item in items if isinstance(item, TextItem)]
    assert texts == [("streaming", "I"), ("reset", ""), ("streaming", "You"), ("reset", "")]


def test_streamed_words_that_no_action_says_become_the_reason() -> None:
    look = Action(operation="file_ops.list_files", args={}, reasoning="to see")
    decision = Decision.model_validate(decide(next_step="continue") | {"rationale": "I look.", "actions": [look]})
    items = hear(LoopBegan(turn=1, loop=1, limit=9), TextStreamed(text="I look."), DecisionMade(decision=decision))
    (last,) = [item for item in items if isinstance(item, TextItem)][1:]
    (reason,) = [item for item in items if isinstance(item, ReasonItem)]
    assert (last.state, reason.rationale, reason.piece) == ("passed", "I look.", "")


def test_open_actions_and_questions_end_with_their_turn() -> None:
    run = Action(operation="shell.run", args={"command": "sleep 9"}, reasoning="to wait")
    question = Question(kind="duck_call", title=say("gate.yes"), on_record=True)
    own = Question(kind="text", title=say("gate.yes"))
    items = hear(
        TurnBegan(turn=1),
        ActionStarted(action=run, doing=say("wait.you"), effect="run"),
        OutputStreamed(text="one\n"),
        QuestionAsked(question=question),
        QuestionAsked(question=own),
        TurnEnded(turn=1, outcome="interrupted"),
    )
    last = {item.id: item for item in items}
    action, asked, other = last[run.action_id], last[question.question_id], last[own.question_id]
    assert isinstance(action, ActionItem) and action.state == "left"
    assert isinstance(asked, QuestionItem) and asked.closed and asked.answer is None
    assert isinstance(other, QuestionItem) and not other.closed
    (output,) = [item for item in last.values() if isinstance(item, OutputItem)]
    assert output.over and output.tail == "one\n"
