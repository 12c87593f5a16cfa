"""It keeps the thread: what left the context is found again, lessons last, and summaries never stand in the way."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from duckflow.commands.table import Commands
from duckflow.errors import ProviderUnreachable
from duckflow.events.types import ContextPruned, Noticed, PastSummarised
from duckflow.i18n.words import Words
from duckflow.llm.scripted import Line, ScriptedReply
from duckflow.memory.tokens import count
from duckflow.state.data import Phrase
from duckflow.state.question import Answer, Question
from tests.journeys.plans import PROPOSE, SNAKE, job_ended, report, run_step, when, write_tasks
from tests.journeys.story import Story, act, decide, respond

SMALL: dict[str, Any] = {"memory": {"budget_tokens": 2500, "summaries": False}}
TINY: dict[str, Any] = {"memory": {"budget_tokens": 1200, "summaries": False}}
SUMMING_UP: dict[str, Any] = {"memory": {"budget_tokens": 2500, "summaries": True}}
SUMMARY = "Sum up this part"


def chatter(number: int) -> str:
    """Something long with much that is new, so that older things must go."""
    figures = " ".join(f"figure{number}x{place}" for place in range(20))
    return f"remark {number}: we look at part {number} of the report: {figures}"


def answer(text: str) -> dict[str, Any]:
    return decide(respond(text), step="PLANNING")


async def command(story: Story, line: str, language: str = "en", answer: str = "no") -> str:
    async def ask(question: Question) -> Answer:
        return Answer(choice=answer)

    return await Commands(Words(language)).run(story.chat, ask, line)


async def talk(story: Story, turns: int) -> None:
    for number in range(turns):
        assert await story.tell(chatter(number)) == "done"


@pytest.mark.slow
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
    story = Story(tmp_path, replies, language="ja", settings=TINY)
    await story.tell("始めましょう。")
    await story.tell("本番の配備は毎週木曜の深夜に行うと決めました。")
    await talk(story, 39)
    assert "木曜" not in story.prompt()
    await story.tell("前に決めた本番の配備はいつでしたっけ？")
    assert "> [user," in story.prompt() and "毎週木曜の深夜" in story.prompt()


@pytest.mark.parametrize(
    ("earlier", "now"),
    [("The tests are slow on Mondays.", "Run the tests."), ("テストは月曜に遅い。", "テストを実行して。")],
)
async def test_a_word_in_common_is_no_reference(tmp_path: Path, earlier: str, now: str) -> None:
    before = Story(tmp_path, [answer("ok")], settings=SMALL)
    await before.tell(earlier)
    await before.close()
    (tmp_path / "home/s.db").rename(tmp_path / "home/other.db")
    story = Story(tmp_path, [answer("ok")], settings=SMALL)
    await story.tell(now)
    assert "From earlier" not in story.prompt() and earlier not in story.prompt()


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


async def test_after_a_pruning_all_that_is_pinned_stands_word_for_word(tmp_path: Path) -> None:
    """In the middle of long work: the task, what was added to it, the five items, the rules, an open approval."""
    delta = {
        "goal": "the parser speaks the new grammar",
        "why_now": "the old one is retired in May",
        "constraints": ["no new dependencies"],
        "plan_brief": ["port the tokens", "port the rules"],
        "open_questions": ["which Python is the oldest?"],
    }
    reads = [act("file_ops.read_file", path=f"part{number}.py") for number in range(4)]
    looks = [decide(*reads[:count], next_step="continue", step="PLANNING", state_delta=delta) for count in (4, 3, 2)]
    script = [answer("ok"), PROPOSE, SNAKE, *looks, answer("That is all.")]
    story = Story(tmp_path, script, settings={"memory": {"budget_tokens": 6000, "summaries": False}})
    (story.folder / "AGENTS.md").write_text("Always use tabs.\n", encoding="utf-8")
    for number in range(4):
        lines = "".join(f"rule{number}x{line} = token({line})\n" for line in range(80))
        (story.folder / f"part{number}.py").write_text(lines, encoding="utf-8")
    first, current = (
        "Port the parser to the new grammar, and keep its speed.",
        "Before that: what is in the four parts?",
    )
    await story.tell(first)
    await story.tell("make a plan for it")
    await story.tell(current)
    assert story.all(ContextPruned) and story.said()[-1] == "That is all."
    for number in (-3, -2, -1):
        pinned = [first, current, "Always use tabs.", *(text for value in delta.values() for text in texts(value))]
        assert [text for text in (*pinned, "waiting for the user's yes") if text not in story.prompt(number)] == []


def texts(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


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
    story = Story(tmp_path, [decide(act("memory.remember", text=lesson), respond("Noted."))])
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


@pytest.mark.one_in(2)
@pytest.mark.parametrize("failing", FAILURES, ids=["down", "empty", "too long", "refusing", "refused", "late"])
async def test_a_summary_that_fails_changes_nothing_for_the_user(tmp_path: Path, failing: ScriptedReply) -> None:
    story = Story(tmp_path, [*[answer("seen")] * 30, *[failing] * 20], settings=SUMMING_UP)
    await talk(story, 30)
    assert story.said() == ["seen"] * 30
    assert story.all(ContextPruned) and not story.all(PastSummarised)
    assert "earlier messages are left out" in story.prompt()


async def test_a_summary_stands_in_the_prompt_and_says_what_it_stands_for(tmp_path: Path) -> None:
    sums = [ScriptedReply(f"The report was read, piece {number}.", when=SUMMARY) for number in range(30)]
    story = Story(tmp_path, [*[answer("seen")] * 91, *sums], settings=SUMMING_UP)
    for number in range(90):
        await story.tell(chatter(number))
        await asyncio.sleep(0)
    asked = sum(SUMMARY in story.prompt(number) for number in range(len(story.model.requests)))
    for _ in range(500):
        if len(story.all(PastSummarised)) < asked:
            await asyncio.sleep(0.01)
    await story.tell("Go on.")
    written = story.all(PastSummarised)
    assert len(written) > 6
    kept = story.session.state.context.summaries
    assert len(kept) <= 6 and kept[0].first == written[0].summary.first, "bounded, and nothing is left unnamed"
    prompts = [story.prompt(number) for number in range(len(story.model.requests))]
    prompt = [one for one in prompts if SUMMARY not in one][-1]
    assert f"messages {kept[-1].first}–{kept[-1].last}: The report was read" in prompt


async def test_a_lesson_is_a_change_asked_for_recorded_and_undone(tmp_path: Path) -> None:
    remember = decide(act("memory.remember", why="it cost an hour", text="tests need TZ=UTC"), respond("Noted."))
    story = Story(tmp_path, [remember, remember, answer("ok")], mode="ask")
    file = story.folder / ".duckflow" / "lessons.md"
    assert await story.tell("Remember that.") == "gate"
    gate = story.questions[0].gate
    assert gate and "+- [recipe] tests need TZ=UTC" in gate.diff and gate.impacts[0].path == ".duckflow/lessons.md"
    assert not file.exists()
    story.answers = [Answer(choice="yes")]
    await story.tell("Do remember it.")
    assert "tests need TZ=UTC" in file.read_text(encoding="utf-8")
    record = await command(story, "/audit")
    assert "memory.remember" in record and "Remembered: tests need TZ=UTC" in record
    await story.chat.undo.restore(back=True)
    assert not file.exists()
    await story.tell("Go on.")
    assert "- [recipe] tests need TZ=UTC" not in story.prompt(), "what was undone is not known any more"


async def test_a_known_lesson_is_not_asked_for_again(tmp_path: Path) -> None:
    remember = decide(act("memory.remember", text="tests need TZ=UTC"), respond("Noted."))
    story = Story(tmp_path, [remember, remember], mode="ask")
    story.answers = [Answer(choice="yes")]
    await story.tell("Remember that.")
    assert await story.tell("Again.") == "done" and len(story.questions) == 1


@pytest.mark.parametrize("target", ["../outside.md", "main.py"])
async def test_a_lesson_is_not_written_through_a_link(tmp_path: Path, target: str) -> None:
    story = Story(tmp_path, [decide(act("memory.remember", text="harm"), respond("ok")), answer("It is a link.")])
    (story.folder / "main.py").write_text("- print(1)\n", encoding="utf-8")
    (tmp_path / "outside.md").write_text("- not ours\n", encoding="utf-8")
    (story.folder / ".duckflow").mkdir()
    (story.folder / ".duckflow" / "lessons.md").symlink_to(Path("..") / target)
    await story.tell("Remember that.")
    assert (story.folder / "main.py").read_text(encoding="utf-8") == "- print(1)\n"
    assert (tmp_path / "outside.md").read_text(encoding="utf-8") == "- not ours\n"
    assert "not ours" not in story.prompt() and "Lessons of this project" not in story.prompt()


async def test_what_a_plan_taught_is_told_and_kept_only_if_the_user_wants_that(tmp_path: Path) -> None:
    told = report("Done.") | {"lesson": "decision: the board is 20 by 20"}
    one_step = SNAKE | {"steps": SNAKE["steps"][:1]}
    script = [PROPOSE, one_step, run_step(1), write_tasks("game.py"), when("content of game.py", "x = 1\n")]
    remember = decide(act("memory.remember", text="decision: the board is 20 by 20"), respond("Kept."))
    story = Story(tmp_path, [*script, when("A background job has ended", told), remember], mode="auto-edit")
    await story.tell("make a snake game")
    await story.tell("yes")
    await story.chat.work.jobs_over()
    assert not story.questions and not (story.folder / ".duckflow").exists()
    [lesson] = [event.what.values["lesson"] for event in story.all(Noticed) if event.what.key == "job.lesson"]
    assert lesson == "decision: the board is 20 by 20"
    await story.tell("remember that")
    assert "Learned: decision: the board is 20 by 20" in story.prompt()
    lessons = (story.folder / ".duckflow" / "lessons.md").read_text(encoding="utf-8")
    assert "- [decision] the board is 20 by 20" in lessons


async def test_a_plan_is_made_knowing_the_lessons_and_a_job_leaves_its_results_in_the_archive(tmp_path: Path) -> None:
    (tmp_path / "work" / ".duckflow").mkdir(parents=True)
    (tmp_path / "work" / ".duckflow" / "lessons.md").write_text("- the board is 20 by 20\n", encoding="utf-8")
    (tmp_path / "work" / "rules.txt").write_text("the snake is called Monty\n", encoding="utf-8")
    tasks = {"tasks": [act("file_ops.read_file", path="rules.txt"), act("file_ops.make_folder", path="made")]}
    script = [PROPOSE, SNAKE, run_step(1), tasks, when("A background job has ended", report())]
    story = Story(tmp_path, script)
    await story.tell("make a snake game")
    assert "Make a plan for this goal" in story.prompt() and "the board is 20 by 20" in story.prompt()
    await story.tell("yes")
    await job_ended(story)
    assert "Monty" in await command(story, "/recall what is the snake called")


async def test_a_small_model_is_told_of_no_recall_but_gets_what_it_refers_to(tmp_path: Path) -> None:
    story = Story(tmp_path, [answer("seen")] * 82, settings=TINY, window=8192)
    await story.tell("Hello, let us begin.")
    await story.tell("By the way, the staging database listens on port 54329.")
    await talk(story, 79)
    assert "54329" not in story.prompt()
    await story.tell("On which port did I say earlier the staging database listens?")
    assert "54329" in story.prompt() and "memory." not in story.prompt()
    assert "earlier messages are left out" in story.prompt()


async def test_the_commands_show_search_and_shrink(tmp_path: Path) -> None:
    story = Story(tmp_path, [answer("seen")] * 30, settings=SMALL)
    await story.tell("The secret word is xylophone.")
    await talk(story, 25)
    told = await command(story, "/memory")
    assert "of 2500 tokens" in told and "Context pruned" in told
    assert "figure3x3" in await command(story, "/recall figure3x3")
    assert "figure24x3" in await command(story, "/recall figure24x3"), "also what is in the context"
    assert "Nothing was found" in await command(story, "/recall zzzyx")
    assert "/recall WORDS" in await command(story, "/recall")
    assert "Context pruned" in await command(story, "/compact the figures of part 24")


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_what_was_forgotten_does_not_come_back(tmp_path: Path, language: str) -> None:
    sums = [ScriptedReply(f"They spoke of the Ｘylophone and piece {number}.", when=SUMMARY) for number in range(30)]
    naming = decide(respond("I wrote it down: XYLOPHONE"), step="PLANNING", state_delta={"goal": "Use the xylophone"})
    remember = decide(act("memory.remember", text="the word is xylophone"), respond("ok"))
    script = [naming, remember, *[answer("seen")] * 40, *sums]
    story = Story(tmp_path, script, language="en", settings=SUMMING_UP)
    await story.tell("The secret word is xylophone.")
    await story.tell("Keep that.")
    for number in range(30):
        await story.tell(chatter(number))
        await asyncio.sleep(0)
    assert "xylophone" in story.prompt() and "Ｘylophone" in story.prompt()
    assert Words(language)("memory.forget_none", words="zzzyx") == await command(story, "/forget zzzyx", language)
    assert Words(language)("memory.forget_not") == await command(story, "/forget xylophone", language)
    assert Words(language)("memory.forget_what") == await command(story, "/forget", language)
    assert "xylophone" in (await command(story, "/recall xylophone", language)).lower()
    told = await command(story, "/forget xylophone", language, "yes")
    assert "xylophone" in told and Words(language)("memory.forget_not") != told
    await story.tell("What was the secret word again?")
    nowhere(story)
    assert "xylophone" not in (await command(story, "/recall the secret word I wrote down", language)).lower()
    assert "xylophone" not in (story.folder / ".duckflow" / "lessons.md").read_text(encoding="utf-8")
    again = story.restart([answer("I do not know.")])
    await again.tell("And which word was secret?")
    nowhere(again)


async def test_what_another_session_forgot_is_gone_from_this_one_too(tmp_path: Path) -> None:
    story = Story(tmp_path, [answer("noted")])
    await story.tell("The secret word is xylophone.")
    story.session.close()
    (tmp_path / "home" / "s.db").rename(tmp_path / "home" / "kept.db")
    other = Story(tmp_path, [answer("ok")])
    await other.tell("Hello.")
    await command(other, "/forget xylophone", answer="yes")
    other.session.close()
    (tmp_path / "home" / "kept.db").replace(tmp_path / "home" / "s.db")
    (tmp_path / "home" / "s.db-wal").unlink(missing_ok=True)
    again = Story(tmp_path, [answer("I do not know.")])
    await again.tell("Which word was secret?")
    nowhere(again)


def nowhere(story: Story) -> None:
    prompt = story.prompt().lower().replace("ｘ", "x")
    assert "xylophone" not in prompt


async def test_an_archive_that_cannot_be_used_changes_nothing_for_the_user(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "archives").write_text("in the way", encoding="utf-8")
    story = Story(tmp_path, [answer("seen")] * 30, settings=SMALL)
    await talk(story, 30)
    assert story.said() == ["seen"] * 30


def test_a_receipt_is_worded_in_both_languages() -> None:
    receipt = Phrase(key="memory.receipt", values={"dropped": 3, "kept": 9, "cut": 2, "before": 2400, "after": 1700})
    assert "3" in Words("ja").phrase(receipt) and "1700" in Words("en").phrase(receipt)


@pytest.mark.parametrize("native", [True, False])
async def test_what_a_request_weighs_is_told_with_its_tools(tmp_path: Path, native: bool) -> None:
    story = Story(tmp_path, [answer("ok"), answer("ok")], native=native)
    await story.tell(chatter(1))
    told = sum(layer.tokens for layer in await story.chat.context())
    await story.tell("go on")
    tools = json.dumps([tool._asdict() for tool in story.model.requests[-1].tools])
    sent = count(story.prompt()) + (count(tools) if native else 0)
    assert abs(told - sent) < sent / 5, (told, sent)
