"""It keeps the thread: what left the context is found again, lessons last, and summaries never stand in the way."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from duckflow.errors import ProviderUnreachable
from duckflow.events.types import ContextPruned, Noticed, PastSummarised
from duckflow.llm.scripted import Line, ScriptedReply
from duckflow.state.phrase import Phrase
from duckflow.state.question import Answer, Question
from duckflow.ui.commands import run_command
from duckflow.ui.counter import Counter
from duckflow.ui.i18n.words import Words
from tests.journeys.story import Story, act, decide, respond

SMALL: dict[str, Any] = {"memory": {"budget_tokens": 2500, "summaries": False}}
SUMMING_UP: dict[str, Any] = {"memory": {"budget_tokens": 2500, "summaries": True}}
SUMMARY = "Sum up this part"


def chatter(number: int) -> str:
    """Something long with much that is new, so that older things must go."""
    figures = " ".join(f"figure{number}x{place}" for place in range(20))
    return f"remark {number}: we look at part {number} of the report: {figures}"


def answer(text: str) -> dict[str, Any]:
    return decide(respond(text), step="PLANNING")


async def nobody(question: Question) -> Answer:
    """None of these commands asks back."""
    return Answer(choice="no")


async def talk(story: Story, turns: int) -> None:
    for number in range(turns):
        assert await story.tell(chatter(number)) == "done"


async def test_something_said_300_turns_ago_is_found_by_the_model(tmp_path: Path) -> None:
    replies: list[Line] = [answer("noted"), *[answer(f"seen {number}") for number in range(300)]]
    recall = decide(act("memory.recall", text="staging database port"), step="PLANNING", next_step="continue")
    story = Story(tmp_path, [*replies, recall, answer("It is 54329.")], settings=SMALL)
    await story.tell("Hello, let us begin.")
    await story.tell("By the way, the staging database listens on port 54329.")
    await talk(story, 299)
    assert "54329" not in story.prompt()
    await story.tell("Open the connection settings, please.")
    assert "54329" in story.prompt()
    assert story.said()[-1] == "It is 54329."


async def test_what_the_user_refers_to_comes_back_by_itself_as_a_quotation(tmp_path: Path) -> None:
    replies = [answer("はい")] * 42
    story = Story(tmp_path, replies, language="ja", settings=SMALL)
    await story.tell("始めましょう。")
    await story.tell("本番の配備は毎週木曜の深夜に行うと決めました。")
    await talk(story, 39)
    assert "木曜" not in story.prompt()
    await story.tell("前に決めた本番の配備はいつでしたっけ？")
    assert "> [user," in story.prompt() and "毎週木曜の深夜" in story.prompt()


async def test_first_instruction_constraints_and_project_rules_are_in_every_prompt(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "AGENTS.md").write_text("Always use tabs.\n", encoding="utf-8")
    first = decide(respond("ok"), step="PLANNING", state_delta={"constraints": ["no new dependencies"]})
    story = Story(tmp_path, [first, *[answer("seen")] * 40], settings=SMALL)
    await story.tell("Port the parser to the new grammar.")
    await talk(story, 40)
    for number in range(1, 41):
        prompt = story.prompt(number)
        assert "Port the parser to the new grammar." in prompt
        assert "no new dependencies" in prompt and "Always use tabs." in prompt


async def test_a_pruning_leaves_a_receipt_that_survives_a_restart(tmp_path: Path) -> None:
    story = Story(tmp_path, [answer("seen")] * 30, settings=SMALL)
    await talk(story, 30)
    pruned = story.all(ContextPruned)
    assert pruned and any(event.what.key == "memory.receipt" for event in story.all(Noticed))
    before = story.session.state.context
    again = story.restart([answer("seen")])
    assert again.session.state.context == before
    await again.tell("Go on.")
    assert "earlier messages are left out" in again.prompt()


async def test_a_lesson_of_one_session_is_used_in_the_next(tmp_path: Path) -> None:
    lesson = "failure: the tests need TZ=UTC, else test_dates fails"
    story = Story(tmp_path, [decide(act("memory.remember", text=lesson), respond("Noted."), step="PLANNING")])
    await story.tell("Remember why test_dates failed.")
    story.session.close()
    file = story.folder / ".duckflow" / "lessons.md"
    assert "- [failure] the tests need TZ=UTC" in file.read_text(encoding="utf-8")
    file.write_text(file.read_text(encoding="utf-8") + "- written by hand: use make check\n", encoding="utf-8")
    (tmp_path / "home" / "s.db").unlink()
    later = Story(tmp_path, [answer("ok")])
    await later.tell("Run the tests.")
    assert "TZ=UTC" in later.prompt() and "use make check" in later.prompt()


FAILURES: list[ScriptedReply] = [
    ScriptedReply(error=ProviderUnreachable("model.scripted_error", kind="unreachable"), when=SUMMARY),
    ScriptedReply("", when=SUMMARY),
    ScriptedReply("long " * 5000, when=SUMMARY),
    ScriptedReply("I cannot help with that.", when=SUMMARY),
    ScriptedReply("no", finish="refusal", when=SUMMARY),
    ScriptedReply("a late summary", delay=30, when=SUMMARY),
]


@pytest.mark.parametrize("failing", FAILURES, ids=["down", "empty", "too long", "refusing", "refused", "late"])
async def test_a_summary_that_fails_changes_nothing_for_the_user(tmp_path: Path, failing: ScriptedReply) -> None:
    story = Story(tmp_path, [*[answer("seen")] * 30, *[failing] * 20], settings=SUMMING_UP)
    await talk(story, 30)
    assert story.said() == ["seen"] * 30
    assert story.all(ContextPruned) and not story.all(PastSummarised)
    assert "earlier messages are left out" in story.prompt()


async def test_a_summary_stands_in_the_prompt_and_says_what_it_stands_for(tmp_path: Path) -> None:
    sums = [ScriptedReply(f"The report was read, piece {number}.", when=SUMMARY) for number in range(30)]
    story = Story(tmp_path, [*[answer("seen")] * 60, *sums], settings=SUMMING_UP)
    for number in range(60):
        await story.tell(chatter(number))
        await asyncio.sleep(0)
    written = story.all(PastSummarised)
    assert len(written) > 6
    kept = story.session.state.context.summaries
    assert len(kept) <= 6 and kept[0].first == written[0].summary.first, "bounded, and nothing is left unnamed"
    assert f"messages {kept[-1].first}–{kept[-1].last}: The report was read" in story.prompt()


async def test_the_commands_show_search_shrink_and_forget(tmp_path: Path) -> None:
    story = Story(tmp_path, [answer("seen")] * 30, settings=SMALL)
    await story.tell("The secret word is xylophone.")
    await talk(story, 25)
    counter = Counter(story.chat, Words("en"), nobody)
    told = await run_command(counter, "/memory")
    assert "of 2500 tokens" in told and "Context pruned" in told
    assert "xylophone" in await run_command(counter, "/recall which word is secret") or "xylophone" in story.prompt()
    assert "Context pruned" in await run_command(counter, "/compact the figures of part 24")
    assert "Say what to forget" in await run_command(counter, "/forget")
    assert "1 messages" in await run_command(counter, "/forget part 7 of the report")
    assert "part 7 of" not in await run_command(counter, "/recall part 7 of the report")


async def test_an_archive_that_cannot_be_used_changes_nothing_for_the_user(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "archives").write_text("in the way", encoding="utf-8")
    story = Story(tmp_path, [answer("seen")] * 30, settings=SMALL)
    await talk(story, 30)
    assert story.said() == ["seen"] * 30


def test_a_receipt_is_worded_in_both_languages() -> None:
    receipt = Phrase(key="memory.receipt", values={"dropped": 3, "kept": 9, "before": 2400, "after": 1700})
    assert "3" in Words("ja").phrase(receipt) and "1700" in Words("en").phrase(receipt)
