"""An answer that is not surely understood costs one line and one key, no second Gate, and none of its words."""

import asyncio
from pathlib import Path

import pytest

from duckflow.events.types import PermissionGiven, PlanChanged
from duckflow.i18n.template import note
from duckflow.tools.plan.criterion import changed_files
from tests.journeys.plans import PROPOSE, SNAKE, Typing, until
from tests.journeys.story import act, decide, respond

WRITE = decide(act("file_ops.write_file", path="one.py", content="x = 1\n"), next_step="continue")
OK = decide(respond("ok"))
MORE_THAN_A_YES = [
    ("en", "alright, fine by me as long as it really is just the docstring"),
    ("en", "yep, and while we sit here you needn't come back to me for such trifles"),
    ("en", "that's it, yes. things like this are fine with me as long as the sun shines"),
    ("en", "yes, that one of course. and the other matter needs no further question from you"),
    ("en", "sure, same deal as the last time with the asking"),
    ("ja", "はい、前回と同じ扱いで、こちらへの確認はもう省いてもらえれば"),
]


@pytest.mark.parametrize(("language", "said"), MORE_THAN_A_YES)
async def test_a_yes_with_unclear_words_is_not_passed_to_the_model(tmp_path: Path, language: str, said: str) -> None:
    story = Typing(tmp_path, [WRITE, OK], mode="ask", language=language)
    turn = asyncio.create_task(story.tell("write it"))
    await story.asked()
    taken = await story.chat.take(said)
    if taken.meaning == "unclear":
        assert taken.told[0].key.startswith("gate.rest")
        assert not (story.folder / "one.py").exists() and len(story.model.requests) == 1
        assert (await story.chat.take("1")).meaning == "answer"
    await turn
    assert (story.folder / "one.py").exists() and len(story.gates()) == 1
    assert len(story.model.requests) == 2 and said in story.prompt(), "the words are not lost"


async def test_what_was_said_before_a_no_reaches_the_model_with_it(tmp_path: Path) -> None:
    story = Typing(tmp_path, [WRITE, OK], mode="ask")
    turn = asyncio.create_task(story.tell("write it"))
    await story.asked()
    await story.chat.take("hold on")
    correction = "don't use %r there, an f-string please, on one line. no need for the python -c bit, tests are enough"
    taken = await story.chat.take(correction)
    assert [line.key for line in taken.told] == ["gate.unclear"]
    assert (await story.chat.take("no — change it the way i said")).meaning == "answer"
    await turn
    assert note("en", "refused_why", reason=f"{correction}\nchange it the way i said") in story.prompt()


async def test_the_words_of_the_line_itself_choose_what_it_offers(tmp_path: Path) -> None:
    story = Typing(tmp_path, [WRITE, OK], mode="ask")
    turn = asyncio.create_task(story.tell("write it"))
    await story.asked()
    assert (await story.chat.take("right, all of that may be so. the docstring stays though")).meaning == "unclear"
    assert (await story.chat.take("just as shown, it leaves the docstring alone")).meaning == "answer"
    await turn
    assert (story.folder / "one.py").exists()


async def test_an_order_that_comes_first_is_still_heard_at_once(tmp_path: Path) -> None:
    story = Typing(tmp_path, [WRITE, OK], mode="ask")
    turn = asyncio.create_task(story.tell("write it"))
    await story.asked()
    assert (await story.chat.take("ok but rename it to uno.py first")).meaning == "answer"
    await turn
    assert not (story.folder / "one.py").exists() and "rename it to uno.py first" in story.prompt()


PLAN_YES = [
    ("en", "yep, do that, same deal as before: no need to ask me about its edits"),
    ("en", "sure, looks like the thing, same as the last one with the asking"),
    ("ja", "はい、前と同じ扱いで、確認はもう省いてもらえれば"),
]


@pytest.mark.parametrize("key", ["1", "2"])
@pytest.mark.parametrize(("language", "said"), PLAN_YES)
async def test_an_unclear_yes_to_a_plan_takes_one_key_and_no_request(
    tmp_path: Path, language: str, said: str, key: str
) -> None:
    story = Typing(tmp_path, [PROPOSE, SNAKE, OK], mode="ask", language=language)
    await story.tell("make a snake game")
    requests = len(story.model.requests)
    turn = asyncio.create_task(story.tell(said))
    await until(story, lambda: bool(story.chat.questions) or bool(statuses(story)[1:]))
    for question in story.chat.questions:
        assert question.title.key == "plan.start" and len(story.model.requests) == requests
        await story.chat.take(key if len(question.choices) > 2 else "1")
    await turn
    assert "approved" in statuses(story)


def statuses(story: Typing) -> list[str]:
    return [event.plan.status for event in story.all(PlanChanged)]


async def test_a_yes_that_a_model_passes_on_is_never_refused_for_its_wording(tmp_path: Path) -> None:
    said = "sorry, nothing wrong with it, off you go, you need no further leave for its files"
    passes_on = decide(act("plan_tool.approve", words=said), next_step="continue", step="PLANNING")
    story = Typing(tmp_path, [PROPOSE, SNAKE, passes_on, OK, OK], mode="ask")
    await story.tell("make a snake game")
    turn = asyncio.create_task(story.tell(said))
    await until(story, lambda: bool(story.chat.questions) or "approved" in statuses(story))
    for _ in story.chat.questions:
        await story.chat.take("1")
    await turn
    assert "approved" in statuses(story)


async def test_a_scope_that_names_two_things_sets_up_both_rules(tmp_path: Path) -> None:
    said = "Perfect. Yes, and no need to ask me about pytest or these source files again today"
    both = [act("file_ops.write_file", path=path, content="x = 1\n") for path in ("one.py", "two.py")]
    tests = act("shell.run", command="python -m pytest -q -p no:cacheprovider")
    replies = [decide(both[0], tests, next_step="continue"), decide(both[1], tests, next_step="continue"), OK]
    story = Typing(tmp_path, replies, mode="ask", native=True)
    turn = asyncio.create_task(story.tell("write it and test it"))
    await story.asked()
    assert (await story.chat.take(said)).meaning == "answer"
    await turn
    assert len(story.all(PermissionGiven)) == 2 and len(story.gates()) == 1


async def test_a_file_that_a_step_lists_is_its_own_whatever_the_step_says_stays(tmp_path: Path) -> None:
    step = {
        "name": "Docs",
        "description": "docs/index.rst: add a block after expire; not counted as an access, so the LRU order stays.",
        "success": '`grep -n "remaining" docs/index.rst` exits 0',
        "files": ["docs/index.rst"],
    }
    propose = decide(
        act("plan_tool.propose", text="document it", name="docs", steps=[step]), next_step="continue", step="PLANNING"
    )
    story = Typing(tmp_path, [propose, OK], mode="ask", native=True)
    await story.tell("make a plan for it")
    plan = story.session.state.plan
    assert plan and changed_files(plan) == ["docs/index.rst"]


@pytest.mark.parametrize("said", ["that's it, thanks", "this is it then", "ok that's it, many thanks"])
async def test_no_answer_without_a_word_of_editing_opens_an_editor(tmp_path: Path, said: str) -> None:
    story = Typing(tmp_path, [WRITE, OK], mode="ask")
    turn = asyncio.create_task(story.tell("write it"))
    await story.asked()
    assert (await story.chat.take(said)).meaning in ("unclear", "answer")
    if story.chat.questions:
        await story.chat.take("1")
    await turn
    assert (story.folder / "one.py").exists()


@pytest.mark.parametrize(
    "said", ["yes, and the same for the rest of the session", "yes, same for the rest of this session please"]
)
async def test_a_scope_that_names_only_the_session_takes_the_rule_that_is_offered(tmp_path: Path, said: str) -> None:
    more = decide(act("file_ops.write_file", path="two.py", content="x = 1\n"), next_step="continue")
    story = Typing(tmp_path, [WRITE, more, OK], mode="ask")
    turn = asyncio.create_task(story.tell("write it"))
    await story.asked()
    assert (await story.chat.take(said)).meaning == "answer"
    await turn
    assert len(story.gates()) == 1 and len(story.all(PermissionGiven)) == 1
