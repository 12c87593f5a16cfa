"""Every slash command, given in a real conversation."""

import json
import time
from pathlib import Path

import pytest

from duckflow.commands.sessions import SessionCommands
from duckflow.commands.status import recap
from duckflow.commands.table import Commands
from duckflow.events.types import LanguageChosen, ModeChosen, ModelChosen
from duckflow.i18n.words import Words
from duckflow.llm.scripted import ScriptedReply
from duckflow.state.message import Usage
from duckflow.state.mode import OFFERED, Mode
from duckflow.state.question import Answer, Question
from duckflow.view.items import TextItem
from tests.journeys.story import Story, act, decide, respond


class Desk:
    """A conversation with the commands that a chat has."""

    def __init__(self, story: Story, language: str = "en") -> None:
        self.story = story
        self.words = Words(language)
        self.commands = Commands(self.words, SessionCommands(None).group())

    async def give(self, line: str) -> str:
        return await self.commands.run(self.story.chat, self._yes, line)

    async def _yes(self, question: Question) -> Answer:
        return Answer(choice="yes")


@pytest.fixture
async def desk(tmp_path: Path) -> Desk:
    """Makes a conversation with one turn, in which a file was written."""
    write = decide(act("file_ops.write_file", path="a.txt", content="one\n"), respond("Written."))
    usage = Usage(prompt_tokens=1200, completion_tokens=30, cached_tokens=1000, cost_usd=0.0125, calls=1)
    story = Story(tmp_path, [ScriptedReply(json.dumps(write), usage=usage)], settings={"agent": {"max_budget_usd": 2}})
    await story.tell("write a.txt")
    return Desk(story)


async def test_help_names_every_command_in_both_languages(desk: Desk) -> None:
    english = await desk.give("/help")
    desk.words.language = "ja"
    japanese = await desk.give("/help")
    for command in desk.commands:
        assert f"/{command.name} " in english and f"/{command.name} " in japanese
        assert Words("en").phrase(command.help) in english and Words("ja").phrase(command.help) in japanese
    assert not set(english.splitlines()) & set(japanese.splitlines()) - {""}


async def test_an_unknown_command_names_the_nearest_one(desk: Desk) -> None:
    assert await desk.give("/statsu") == "There is no /statsu. Did you mean /status?"
    assert await desk.give("/xyzzy") == "There is no /xyzzy. See /help."


async def test_the_recap_of_a_resumed_session_names_every_changed_file(tmp_path: Path) -> None:
    paths = [f"part{number}.txt" for number in range(12)]
    writes = [act("file_ops.write_file", path=path, content="one\n") for path in paths]
    story = Story(tmp_path, [decide(*writes, respond("Written."))])
    await story.tell("write them")
    again = story.restart([])
    told = recap(again.session.state, "ask", time.time(), Words("en"))
    assert f"Files changed: {', '.join(paths)}" in told


async def test_the_recap_shows_the_last_reply_as_it_was_shown(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(respond("Committed as `app: one`."), step="PLANNING")])
    await story.tell("commit it")
    told = recap(story.restart([]).session.state, "ask", time.time(), Words("en"))
    [reply] = [item for item in told if isinstance(item, TextItem)]
    assert reply.piece == "Committed as `app: one`." and reply.by == "model", "front ends print it as Markdown"


async def test_a_long_reply_in_the_recap_keeps_its_lines_and_ends_with_a_whole_one(tmp_path: Path) -> None:
    lines = [f"- `part{number}.txt` is there, with {'a word ' * 9}in it" for number in range(12)]
    story = Story(tmp_path, [decide(respond("\n".join(lines)), step="PLANNING")])
    await story.tell("list them")
    told = recap(story.restart([]).session.state, "ask", time.time(), Words("en"))
    [reply] = [item for item in told if isinstance(item, TextItem)]
    shown = reply.piece.removesuffix(" …").split("\n")
    assert shown == lines[: len(shown)] and len(shown) > 3


async def test_status_why_and_audit_tell_of_the_turn(desk: Desk) -> None:
    status = await desk.give("/status")
    assert "Session s, 1 turn" in status and "Files changed: a.txt" in status
    assert "8" in await desk.give("/why")
    audit = await desk.give("/audit")
    assert "✓" in audit and "file_ops.write_file a.txt" in audit


async def test_without_a_plan_or_a_job_plan_and_tasks_say_so(desk: Desk) -> None:
    assert await desk.give("/plan") == desk.words("plan.none")
    assert await desk.give("/tasks") == desk.words("job.none")
    assert await desk.give("/tasks dance") == desk.words("job.usage")


async def test_a_mode_is_chosen_by_name_and_kept_on_record(desk: Desk) -> None:
    assert "ask, auto-edit, auto, plan, full-auto" in await desk.give("/mode wild")
    told = await desk.give("/mode")
    assert "Mode: full-auto" in told and all(f"  {mode}: " in told for mode in OFFERED) and "and misses " in told
    assert await desk.give("/mode plan") == "Mode: plan"
    assert desk.story.chat.choices.mode is Mode.PLAN
    assert [event.mode for event in desk.story.all(ModeChosen)] == ["plan"]


async def test_a_language_is_chosen_at_once_and_sticks(desk: Desk) -> None:
    assert "en, ja" in await desk.give("/lang fr")
    assert await desk.give("/lang ja") == "これからは日本語で話します。"
    assert await desk.give("/mode ask") == Words("ja")("mode.now", mode="ask")
    assert [event.language for event in desk.story.all(LanguageChosen)] == ["ja"]
    assert desk.story.restart([]).session.state.language == "ja"


async def test_another_model_answers_from_the_next_turn_on(desk: Desk) -> None:
    other = desk.story.folder.parent / "other.jsonl"
    other.write_text(json.dumps({"json": decide(respond("It is me now."), step="PLANNING")}))
    assert "Model: scripted" in await desk.give("/model")
    assert await desk.give(f"/model scripted:{other}") == ""
    assert desk.story.all(ModelChosen)[-1].model == "scripted:other.jsonl"
    await desk.story.tell("who are you?")
    assert desk.story.said()[-1] == "It is me now."
    assert "scripted:other.jsonl" in await desk.give("/cost")


@pytest.mark.parametrize("name", ["nowhere:gpt-9", "scripted:/not/there.jsonl", "local:no-such-model", "local"])
async def test_a_model_that_cannot_be_had_leaves_the_old_one(desk: Desk, name: str) -> None:
    before = desk.story.session.state.model
    shown = await desk.give(f"/model {name}")
    assert shown.endswith(f"The model stays {before}.") and len(shown.splitlines()) <= 3
    assert desk.story.session.state.model == before and len(desk.story.all(ModelChosen)) == 1


async def test_cost_tells_of_turn_session_models_and_budget(desk: Desk) -> None:
    lines = (await desk.give("/cost")).splitlines()
    figures = "1 call to the model · 1,200 tokens sent (1,000 from cache, 200 new) · 30 tokens received · $0.0125"
    assert lines == [
        f"This turn: {figures}",
        f"Session: {figures}",
        f"  scripted: {figures}",
        "Budget: $2.00, $1.99 left",
    ]


async def test_a_price_that_is_not_known_is_said(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(respond("hi"), step="PLANNING")] * 2)
    desk = Desk(story)
    assert await desk.give("/cost") == "No model has been called yet."
    await story.tell("hello")
    assert "free, because the model runs on this machine" in await desk.give("/cost")
    story.session.state.usage_by_model["openai:new"] = Usage(prompt_tokens=5, calls=1)
    figures = "1 call to the model · 5 tokens sent (0 from cache, 5 new) · 0 tokens received"
    assert f"openai:new: {figures} · price not known" in (await desk.give("/cost"))


async def test_diff_undo_and_redo(desk: Desk) -> None:
    file = desk.story.folder / "a.txt"
    assert "+one" in await desk.give("/diff")
    await desk.give("/undo")
    assert not file.exists()
    await desk.give("/redo")
    assert file.read_text() == "one\n"


async def test_resume_lists_and_leaves_for_the_chosen_session(desk: Desk) -> None:
    listed = await desk.give("/resume")
    assert "1. write a.txt" in listed and listed.endswith("/resume NUMBER")
    assert await desk.give("/resume 1") == "You are already in that session."
    assert "There is no session 77" in await desk.give("/resume 77")


async def test_fork_leaves_for_a_branch_of_this_session(desk: Desk) -> None:
    assert await desk.give("/fork") == ""
    leaving = await desk.story.chat.sessions.over()
    assert leaving and leaving.fork and leaving.journal.name == "s.db"


async def test_quit_leaves(desk: Desk) -> None:
    assert await desk.give("/quit") == ""
    assert await desk.story.chat.sessions.over() is None


async def test_without_permissions_the_command_says_so(desk: Desk) -> None:
    assert await desk.give("/permissions") == desk.words("permission.none")
    assert await desk.give("/permissions rm 3") != desk.words("permission.none")
