"""Tools of others: servers of the Model Context Protocol in a conversation."""

import asyncio
import json
import os
import shutil
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from duckflow.errors import PicturesRefused
from duckflow.events.types import ActionFinished, ActionStarted, Noticed, OutputStreamed
from duckflow.llm.scripted import ScriptedReply
from duckflow.state.message import PromptMessage
from duckflow.state.picture import Picture
from duckflow.state.question import Answer, Question
from tests.journeys.story import Story, act, decide, respond

SERVER = Path(__file__).parents[1] / "tools/outside/stdio_server.py"


def entry(*habits: str, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-I", "-S", str(SERVER), *habits], **more}


def bring_server(folder: Path, *habits: str) -> None:
    """A server that the folder itself brings."""
    folder.mkdir(exist_ok=True)
    shutil.copy(SERVER, folder / "server.py")
    theirs = {"type": "stdio", "command": "python3", "args": ["server.py", *habits]}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": theirs}}))


def settings(allow: tuple[str, ...] = (), **servers: dict[str, Any]) -> dict[str, Any]:
    return {"mcp": {"servers": servers, "allow": allow, "wait_seconds": 30}}


@asynccontextmanager
async def told(story: Story) -> AsyncGenerator[Story]:
    try:
        yield story
    finally:
        await story.close()


def calls(*actions: dict[str, Any], said: str = "Done.") -> list[dict[str, Any]]:
    return [decide(*actions, next_step="continue"), decide(respond(said))]


def operations(story: Story) -> tuple[str, ...]:
    """What the first Gate asks about."""
    gate = story.gates()[0].gate
    return gate.operations if gate else ()


def results(story: Story) -> list[Any]:
    return [one.result for one in story.all(ActionFinished) if one.result.operation != "response"]


async def test_a_tool_of_a_server_is_a_tool_like_ours(tmp_path: Path) -> None:
    story = Story(tmp_path, calls(act("mcp__math__add", a=2, b=3)), mode="ask", settings=settings(math=entry()))
    async with told(story):
        story.answers = [Answer(choice="yes")]
        await story.tell("add 2 and 3")
    (question,) = story.gates()
    assert question.gate and question.gate.commands == ("» math › add\n  a: 2\n  b: 3",)
    assert question.gate.risk == "high" and "network" in question.gate.lasting[0].key
    (result,) = results(story)
    assert result.ok and result.for_model == "5" and result.kind == "read"
    assert "mcp__math__add" in story.prompt(0) and "Adds two numbers" in story.prompt(0)
    assert [one.action.operation for one in story.all(ActionStarted)][:1] == ["mcp__math__add"]


async def test_what_a_server_says_of_itself_lowers_no_risk(tmp_path: Path) -> None:
    """`add` claims to only read; without a yes it is not called, in full-auto neither."""
    story = Story(tmp_path, calls(act("mcp__math__add", a=2, b=3)), mode="full-auto", settings=settings(math=entry()))
    async with told(story):
        assert await story.tell("add 2 and 3") == "gate"
    assert not results(story)[0].ok


async def test_a_rule_for_a_tool_is_asked_for_once(tmp_path: Path) -> None:
    twice = [decide(act("mcp__math__add", a=1, b=1), next_step="continue")] * 2
    story = Story(tmp_path, [*twice, decide(respond("Done."))], mode="ask", settings=settings(math=entry()))
    async with told(story):
        story.answers = [Answer(choice="session")]
        await story.tell("add twice")
    assert len(story.gates()) == 1 and [one.ok for one in results(story)] == [True, True]


async def test_the_settings_allow_by_server_and_tool(tmp_path: Path) -> None:
    given = settings(("math/add", "other/*"), math=entry(), other=entry())
    actions = [act("mcp__math__add", a=1, b=1), act("mcp__other__odd_name"), act("mcp__math__odd_name")]
    story = Story(tmp_path, calls(*actions), mode="ask", settings=given)
    async with told(story):
        await story.tell("call them")
    assert operations(story) == ("mcp__math__odd_name",)


async def test_a_secret_is_asked_for_whatever_the_rules_say(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4" * 5
    replies = calls(act("mcp__math__write", path=str(tmp_path / "file"), text=f"token = {secret}"))
    story = Story(tmp_path, replies, mode="full-auto", settings=settings(("*",), math=entry()))
    async with told(story):
        assert await story.tell("write") == "gate"
    assert [choice.key for choice in story.questions[0].choices] == ["yes", "no"]


async def test_what_is_denied_is_not_told_of(tmp_path: Path) -> None:
    given = settings(("*",), math=entry())
    given["mcp"]["deny"] = ["math/w*"]
    story = Story(tmp_path, calls(act("mcp__math__write", path="x", text="y")), settings=given)
    async with told(story):
        await story.tell("write")
    assert "mcp__math__write" not in story.prompt(0) and "unknown operation" in results(story)[0].for_model


async def test_plan_mode_asks_for_what_claims_to_read_and_refuses_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "file"
    actions = [act("mcp__math__add", a=1, b=1), act("mcp__math__write", path=str(file), text="x")]
    replies = [decide(one, next_step="continue", step="PLANNING") for one in actions]
    story = Story(tmp_path, [*replies, decide(respond("Done."))], mode="plan", settings=settings(math=entry()))
    async with told(story):
        story.answers = [Answer(choice="yes")]
        await story.tell("look")
    assert len(story.gates()) == 1 and not file.exists()


async def test_what_a_server_changes_in_the_folder_can_be_undone(tmp_path: Path) -> None:
    path = tmp_path / "work/new.txt"
    replies = calls(act("mcp__math__write", path=str(path), text="x"))
    story = Story(tmp_path, replies, settings=settings(("*",), math=entry()))
    async with told(story):
        await story.tell("write it")
        assert path.read_text() == "x"
        await story.chat.undo.restore(back=True)
    assert not path.exists()


async def test_it_gets_no_variables_but_its_own(tmp_path: Path) -> None:
    os.environ["SOME_KEY"] = "k"
    given = settings(("*",), one=entry(env={"TOLD": "${SOME_KEY}-${NO_SUCH:-else}"}), two=entry(cwd="."))
    replies = calls(act("mcp__one__environment"), act("mcp__two__environment"))
    story = Story(tmp_path, replies, settings=given)
    async with told(story):
        await story.tell("tell")
    seen, other = (json.loads(one.for_model) for one in results(story))
    assert seen["TOLD"] == "k-else" and "SOME_KEY" not in seen
    assert set(seen) <= {"HOME", "PATH", "TERM", "USER", "SHELL", "LOGNAME", "TOLD", "CWD", "LC_CTYPE"}
    assert seen["CWD"] == os.environ["HOME"] and other["CWD"] == str(story.folder.resolve())


async def test_results_of_every_kind(tmp_path: Path) -> None:
    names = ("picture", "table", "fails")
    replies = calls(*(act(f"mcp__math__{name}") for name in names))
    story = Story(tmp_path, replies, settings=settings(("*",), math=entry()))
    async with told(story):
        await story.tell("show")
    picture, table, failure = results(story)
    kept = Path(picture.for_model.partition("kept as ")[2].rstrip("]"))
    assert kept.read_bytes().startswith(b"\x89PNG") and kept.suffix == ".png"
    assert json.loads(table.for_model) == {"rows": [1, 2]}
    assert not failure.ok and failure.for_model == "it is broken"


@pytest.mark.parametrize("native", [False, True], ids=["json", "native"])
async def test_a_picture_in_a_result_is_seen(tmp_path: Path, native: bool) -> None:
    twice = calls(act("mcp__math__picture"), act("mcp__math__add", a=1, b=1))
    story = Story(tmp_path, twice, settings=settings(("*",), math=entry()), native=native)
    async with told(story):
        await story.tell("show")
    picture, _ = results(story)
    request = story.model.requests[-1]
    shown = [(message.role, one.name, request.pictures[one.digest]) for message, one in pictures_in(story)]
    kept = Path(picture.for_model.partition("kept as ")[2].rstrip("]"))
    assert shown == [("user", kept.name, kept.read_bytes())]
    roles = [message.role for message in request.messages]
    assert not native or roles[-3:] == ["tool", "tool", "user"]
    assert not story.all(Noticed)


async def test_a_picture_of_a_server_can_be_mentioned(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(respond("A dot."))], settings=settings(math=entry()))
    async with told(story):
        await story.tell("what is @math:memo://dot ?")
    assert len(pictures_in(story)) == 1


async def test_a_model_that_cannot_see_is_told_so_and_works_on(tmp_path: Path) -> None:
    story = Story(tmp_path, calls(act("mcp__math__picture")), settings=settings(("*",), math=entry()), native=True)
    story.model.takes_pictures = False
    async with told(story):
        assert await story.tell("show") == "done"
    assert not pictures_in(story) and "you cannot see pictures" in story.prompt()
    assert [one.what.key for one in story.all(Noticed)] == ["model.blind"]


async def test_a_picture_that_comes_up_in_the_work_and_is_refused_does_not_end_it(tmp_path: Path) -> None:
    refused = ScriptedReply(error=PicturesRefused("model.picture_refused", model="m", detail="could not process image"))
    first, last = calls(act("mcp__math__picture"))
    story = Story(tmp_path, [first, refused, last], settings=settings(("*",), math=entry()), native=True)
    async with told(story):
        assert await story.tell("show") == "done"
    assert not pictures_in(story) and "not shown any more" in story.prompt()
    assert [one.what.key for one in story.all(Noticed)] == ["model.picture_refused"]


def pictures_in(story: Story) -> list[tuple[PromptMessage, Picture]]:
    """Of the last request, with what was said with them."""
    return [(message, one) for message in story.model.requests[-1].messages for one in message.pictures]


async def test_a_long_result_is_cut_and_can_be_read_on(tmp_path: Path) -> None:
    story = Story(tmp_path, calls(act("mcp__math__long")), settings=settings(("*",), math=entry()))
    async with told(story):
        await story.tell("talk")
        (result,) = results(story)
        source = result.for_model.partition("source=")[2].partition(",")[0]
        tool = story.toolbox.find("mcp.read")
        read = await tool.run(story.toolbox.arguments(tool, {"source": source, "start": 20_000}))
    assert len(result.for_model) < 21_000 and "line 3000\n" in read.for_model


async def test_progress_is_shown(tmp_path: Path) -> None:
    story = Story(tmp_path, calls(act("mcp__math__steps")), settings=settings(("*",), math=entry()))
    async with told(story):
        await story.tell("go")
    assert [one.text for one in story.all(OutputStreamed)] == ["1/2 step 1\n", "2/2 step 2\n"]


async def test_an_interrupted_call_is_called_off(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    story = Story(tmp_path, calls(act("mcp__math__slow", mark=str(mark))), settings=settings(("*",), math=entry()))
    async with told(story):
        turn = asyncio.create_task(story.tell("wait"))
        await until(lambda: bool(story.all(OutputStreamed)))
        story.chat.interrupt()
        assert await turn == "interrupted"
        await until(mark.exists)


async def test_a_call_that_takes_too_long_is_a_result(tmp_path: Path) -> None:
    replies = calls(act("mcp__math__slow", mark=str(tmp_path / "mark")))
    story = Story(tmp_path, replies, settings=settings(("*",), math=entry(call_seconds=0.3)))
    async with told(story):
        await story.tell("wait")
    assert "no answer within 0.3 s" in results(story)[0].for_model


async def test_what_a_server_wants_to_know_is_asked_in_the_conversation(tmp_path: Path) -> None:
    given = settings(("*",), math=entry(call_seconds=5))
    story = Story(tmp_path, calls(act("mcp__math__ask")), settings=given)
    async with told(story):
        story.answers = [Answer(choice="text", text="Duck"), Answer(choice="true")]
        await story.tell("ask me")
    assert [one.kind for one in story.questions] == ["text", "choice"]
    assert json.loads(results(story)[0].for_model) == {"action": "accept", "content": {"name": "Duck", "sure": True}}


async def test_a_choice_that_a_question_does_not_have_leaves_it_open(tmp_path: Path) -> None:
    """A front end may send anything."""
    story = Story(tmp_path, calls(act("mcp__math__ask")), settings=settings(("*",), math=entry()))
    taken: list[str] = []

    def answer(question: Question) -> Answer:
        taken.append(story.chat.answer(question.question_id, "", "nonsense").result().meaning)
        return Answer(choice="text", text="Duck") if question.kind == "text" else Answer(choice="true")

    story.answer = answer
    async with told(story):
        await story.tell("ask me")
    assert taken == ["unclear", "unclear"] and "accept" in results(story)[0].for_model


async def test_who_does_not_want_to_say_declines(tmp_path: Path) -> None:
    story = Story(tmp_path, calls(act("mcp__math__ask")), settings=settings(("*",), math=entry()))
    async with told(story):
        await story.tell("ask me")
    assert json.loads(results(story)[0].for_model) == {"action": "decline"}


async def test_the_prompt_changes_between_turns_only(tmp_path: Path) -> None:
    """A list that changes in the middle of a turn is told with the next one."""
    replies = [
        decide(act("mcp__math__change"), next_step="continue"),
        decide(act("mcp__math__fresh"), next_step="continue"),
        decide(respond("Not there.")),
        *calls(act("mcp__math__fresh")),
    ]
    story = Story(tmp_path, replies, settings=settings(("*",), math=entry()), native=True)
    async with told(story):
        await story.tell("change")
        before = {tuple(tool.name for tool in request.tools) for request in story.model.requests}
        await until(lambda: any("fresh" in str(one) for one in servers(story)["math"].lists["tools"]))
        await story.tell("and now")
    assert len(before) == 1 and "mcp__math__fresh" not in next(iter(before))
    assert "mcp__math__fresh" in {tool.name for tool in story.model.requests[-1].tools}
    assert results(story)[-1].for_model == "called fresh"


async def test_many_tools_are_searched_for(tmp_path: Path) -> None:
    replies = [
        decide(act("mcp.find", words="thing 77"), next_step="continue"),
        decide(act("mcp.call", tool="mcp__big__thing_77", args={"text": "x"}), next_step="continue"),
        decide(act("mcp.call", tool="mcp__big__no_such", args={}), next_step="continue"),
        decide(respond("Done.")),
    ]
    story = Story(tmp_path, replies, mode="ask", settings=settings(big=entry("many")))
    async with told(story):
        story.answers = [Answer(choice="yes")]
        await story.tell("find thing 77")
    found, called, unknown = results(story)
    assert "thing_5" not in story.prompt(0) and "mcp.find" in story.prompt(0)
    assert found.for_model.startswith("mcp__big__thing_77")
    assert called.operation == "mcp__big__thing_77" and called.for_model == "called thing_77"
    assert operations(story) == ("mcp__big__thing_77",)
    assert not unknown.ok


async def test_a_resource_is_brought_by_its_mention(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(respond("Bread."))] * 2, settings=settings(math=entry()))
    async with told(story):
        await story.tell("what does @math:memo://one say?")
        await story.tell("and @math:memo://two or @nobody:memo://one?")
    assert "The password of the duck is bread." in story.prompt(0)
    assert "no such resource" in story.prompt(1)


async def test_a_resource_that_a_result_links_to_can_be_read_and_no_other(tmp_path: Path) -> None:
    read = [act("mcp.read", source=f"memo://{name}") for name in ("one", "gone", "unlinked")]
    replies = [decide(one, next_step="continue") for one in (read[0], act("mcp__math__odd_name"), *read)]
    story = Story(tmp_path, [*replies, decide(respond("Bread."))], settings=settings(math=entry("links")))
    async with told(story):
        story.answers = [Answer(choice="yes")]
        await story.tell("what is in the memo?")
    early, linked, one, gone, unlinked = results(story)
    assert not early.ok and "nothing is kept" in early.for_model, "nothing has linked to it yet"
    assert "memo://one" in linked.for_model and "mcp.read" in linked.for_model
    assert "The password of the duck is bread." in one.for_model and one.ok
    assert "no such resource" in gone.for_model and not gone.ok
    assert "nothing is kept" in unlinked.for_model and len(story.questions) == 1


async def test_links_of_a_result_carry_no_more_out_than_a_call_would(tmp_path: Path) -> None:
    """A choice among 256 links would tell a byte with each read, after one yes."""
    secret = [act("mcp.read", source=f"leak:{code}") for code in (*b"hunter2", 0, 0, 1, 1, 200, 2, 0)]
    replies = [decide(act("mcp__math__odd_name"), next_step="continue"), decide(*secret, next_step="continue")]
    story = Story(tmp_path, [*replies, decide(respond("Done."))], settings=settings(math=entry("links")))
    async with told(story):
        story.answers = [Answer(choice="yes")]
        await story.tell("go")
    read = [one.for_model for one in results(story)[1:]]
    heard = {text.partition("heard ")[2] for text in read if "heard" in text}
    assert heard == {"leak:0", "leak:0 leak:1", "leak:0 leak:1 leak:2"}, "each once"
    assert sum("nothing is kept" in text for text in read) == len(b"hunter2") + 1, "only of the first ones"


async def test_a_prompt_of_a_server_is_a_command(tmp_path: Path) -> None:
    story = Story(
        tmp_path, [decide(respond("Hello.")), decide(respond("It is water."))], settings=settings(math=entry())
    )
    async with told(story):
        await story.tell("hello")
        assert "/math:explain" in await story.chat.run_command("/help")
        assert "TOPIC" in await story.chat.run_command("/math:explain")
        await story.chat.run_command("/math:explain the sea")
        shown = await story.chat.run_command("/mcp")
        listed = await story.chat.run_command("/mcp math")
        again = await story.chat.run_command("/mcp restart math")
    assert "Please explain the sea." in story.prompt()
    assert shown.startswith("✓ math: ready") and "13 tools, 1 resource, 1 prompt" in shown
    assert "add: Adds two numbers" in listed and "@math:memo://one" in listed and "✓ math" in again


async def test_a_server_that_ends_is_started_again(tmp_path: Path) -> None:
    replies = [*calls(act("mcp__math__crash")), *calls(act("mcp__math__add", a=1, b=1))]
    story = Story(tmp_path, replies, settings=settings(("*",), math=entry()))
    async with told(story):
        await story.tell("crash")
        await until(lambda: servers(story)["math"].state == "ready")
        await story.tell("again")
    first, second = results(story)
    assert "exit code 3" in first.for_model and second.for_model == "2"


async def test_a_dead_server_is_told_of_and_stops_nobody(tmp_path: Path) -> None:
    given = settings(("*",), bad=entry("dead"), none={"command": "no-such-program-here"}, math=entry())
    story = Story(tmp_path, calls(act("mcp__math__add", a=1, b=1)), settings=given)
    async with told(story):
        await story.tell("add")
    told_of = {one.what.values.get("name"): one.what.values.get("reason") for one in story.all(Noticed)}
    assert "no key was given" in str(told_of["bad"]) and "No such file" in str(told_of["none"])
    assert results(story)[0].for_model == "2"


async def test_servers_of_the_folder_run_when_it_is_trusted(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    bring_server(tmp_path / "work")
    replies = calls(act("mcp__theirs__environment"))
    story = Story(tmp_path, replies, mode="ask")
    async with told(story):
        await story.tell("call")
    assert "unknown operation" in results(story)[0].for_model
    assert "mcp.untrusted" in {one.what.key for one in story.all(Noticed)}
    story = Story(tmp_path, replies, mode="ask")
    async with told(story):
        story.answers = [Answer(choice="trust"), Answer(choice="trust"), Answer(choice="yes")]
        await story.tell("call")
    assert json.loads(results(story)[-1].for_model)["CWD"] == str(story.folder.resolve())
    assert "server.py" in str(story.questions[1].details)


async def test_a_file_of_the_folder_that_changed_is_asked_about_anew(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    seen: list[list[str]] = []
    for number in (1, 1, 2):
        bring_server(tmp_path / "work", f"{number}")
        story = Story(tmp_path, calls(act("mcp__theirs__table")), mode="ask")
        story.answer = lambda question: Answer(choice="yes" if question.gate else "trust")
        async with told(story):
            await story.tell("call")
        seen.append([one.title.key for one in story.questions])
    assert "1" in str([detail.values.get("text") for detail in story.questions[0].details]), "what it was before"
    assert seen == [["trust.question", "mcp.agree", "gate.title"], ["gate.title"], ["mcp.agree", "gate.title"]]


def servers(story: Story) -> dict[str, Any]:
    assert story.built.outside
    return dict(story.built.outside.servers.servers)


async def until(true: Any, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)
