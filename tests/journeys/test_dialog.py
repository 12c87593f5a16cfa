"""The dialog policy where code can check it."""

import json
from pathlib import Path

from duckflow.events.types import TextStreamed
from duckflow.llm.scripted import ScriptedReply
from tests.journeys.story import Story, act, decide, respond

SMALL = {"prompts": {"profile": "compact"}}
THREE = "I can do that. Which name? Which folder? And tests too?"


async def test_three_questions_become_one_on_the_screen_and_in_the_conversation(tmp_path: Path) -> None:
    asks = ScriptedReply(json.dumps(decide(respond(THREE), step="PLANNING", next_step="pending_user")), chunk=5)
    story = Story(tmp_path, [asks, decide(respond("ok"), step="PLANNING")])
    assert await story.tell("Make a file") == "pending_user"
    kept = "I can do that. Which name?"
    assert story.said() == [kept]
    assert "".join(event.text for event in story.all(TextStreamed)) == kept
    await story.tell("a.py")
    assert "Which folder" not in story.prompt()


async def test_a_choice_needs_two_that_differ(tmp_path: Path) -> None:
    one = act("duck_call", text="Go on with this?", choices=["Yes", "yes "])
    two = act("duck_call", question="Which way?", choices=["A", "B"])
    story = Story(tmp_path, [decide(one, step="PLANNING"), decide(two, step="PLANNING")])
    await story.tell("help")
    await story.tell("more")
    assert story.said() == ["Go on with this?", "Which way?\n1. A\n2. B"]


async def test_a_question_is_not_overtaken_by_what_is_owed(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(respond("Which greeting should it print?"), step="PLANNING")])
    assert await story.tell("Create hello.py that prints a greeting") == "pending_user"
    assert len(story.model.requests) == 1, "it is not told to write before the user has answered"


async def test_a_japanese_session_speaks_japanese_to_the_model(tmp_path: Path) -> None:
    replies = [decide(respond("完了しました。")), decide(respond("不要でした。"))]
    story = Story(tmp_path, replies, language="ja", settings=SMALL)
    assert await story.tell("hello.py を作成して") == "done"
    assert "hello.py はまだ書かれていません" in story.prompt()
