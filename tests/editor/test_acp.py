"""Duckflow in an editor: questions, updates and actions as the protocol's own client sees them."""

import asyncio
import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from duckflow.i18n.words import Words
from tests.cli.shell import Shell
from tests.editor.editor import Editor, Session, at, opened
from tests.journeys.drawn import png
from tests.journeys.plans import PROPOSE, SNAKE, report, run_step, write_tasks
from tests.journeys.processes import processes, wait_until_running
from tests.journeys.story import act, decide, respond
from tests.llm.fake_endpoint import FakeEndpoint, says

SERVER = Path(__file__).parents[1] / "tools/outside/stdio_server.py"

WRITE = decide(act("file_ops.write_file", "to greet", path="hello.py", content="print('hi')\n"), next_step="continue")
EDIT = decide(act("file_ops.edit_file", "to greet all", path="hello.py", old="hi", new="hello"), next_step="continue")
RUN = decide(act("shell.run", "to see it", command="touch made && echo two"), next_step="continue")
DONE = decide(respond("All done."))


def text_of(call: dict[str, Any]) -> str:
    return "\n".join(one["content"]["text"] for one in call["content"] if one["type"] == "content")


async def test_a_file_is_written_after_a_yes_and_its_diff_is_shown(shell: Shell) -> None:
    editor = Editor("yes")
    async with opened(shell, editor, "-m", shell.script(WRITE, DONE)) as session:
        assert await session.say("make hello.py") == "end_turn"
    path = shell.work / "hello.py"
    assert path.read_text() == "print('hi')\n"
    (request,) = editor.requests
    assert request["toolCall"]["title"] == "create hello.py"
    assert request["toolCall"]["kind"] == "edit"
    assert {"type": "diff", "path": str(path), "newText": "print('hi')\n"} in request["toolCall"]["content"]
    assert [option["kind"] for option in request["options"]][:2] == ["allow_once", "reject_once"]
    assert "risk: medium" in text_of(request["toolCall"])
    (call,) = editor.calls().values()
    assert call["toolCallId"] == request["toolCall"]["toolCallId"]
    assert call["status"] == "completed"
    assert call["locations"] == [{"path": str(path)}]
    assert [one["status"] for one in editor.updates if "toolCallId" in one] == ["pending", "in_progress", "completed"]
    assert editor.updates[0]["sessionUpdate"] == "available_commands_update"
    assert "All done." in editor.said()
    assert "[ Duckflow | Mood:" in editor.said(), "after work it tells how it is"
    assert "because it was asked for" in editor.said("agent_thought_chunk")
    (title,) = editor.all("session_info_update")
    assert title["title"] == "make hello.py"
    assert editor.all("usage_update")[-1]["used"] > 0


async def test_a_no_leaves_everything_as_it_is_and_a_command_is_shown_whole(shell: Shell) -> None:
    editor = Editor("no", "yes")
    async with opened(shell, editor, "-m", shell.script(WRITE, RUN, DONE)) as session:
        assert await session.say("make hello.py") == "end_turn"
        assert not (shell.work / "hello.py").exists()
        assert [call["status"] for call in editor.calls().values()] == ["failed"]
        assert await session.say("then run it") == "end_turn"
    command = editor.requests[1]["toolCall"]
    assert command["kind"] == "execute"
    assert command["title"] == "touch made && echo two"
    assert "$ touch made && echo two" in text_of(command)
    assert "two" in text_of(list(editor.calls().values())[1])


async def test_a_yes_for_the_tests_in_words_is_a_rule_for_the_session(shell: Shell) -> None:
    commands = [f"python3 -m pytest -q{more}" for more in ("", " -x")]
    runs = [decide(act("shell.run", command=command), next_step="continue") for command in commands]
    editor = Editor()
    # No test is there to pass, so "All done." is looked at once more.
    async with opened(shell, editor, "-m", shell.script(*runs, DONE, DONE)) as session:
        turn = asyncio.create_task(session.say("test it"))
        await editor.until(lambda: editor.requests)
        await session.say("yes, and don't ask again for pytest")
        await turn
        await editor.until(lambda: "All done." in editor.said())
    (request,) = editor.requests
    assert any("every ordinary run of pytest" in option["name"] for option in request["options"])
    assert [call["title"] for call in editor.calls().values()] == commands


async def test_cancelling_ends_the_turn_and_what_it_runs(shell: Shell) -> None:
    slow = decide(act("shell.run", command="touch began; sleep 600"), next_step="continue")
    editor = Editor("yes")
    async with opened(shell, editor, "-m", shell.script(slow, WRITE, DONE)) as session:
        turn = asyncio.create_task(session.say("run it"))
        await editor.until(lambda: any(one["status"] == "in_progress" for one in editor.calls().values()))
        await session.connection.cancel(session_id=session.id)
        assert await turn == "cancelled"
        assert [call["status"] for call in editor.calls().values()] == ["failed"]
        # The same holds while it asks.
        turn = asyncio.create_task(session.say("go on"))
        await editor.until(lambda: len(editor.requests) == 2)
        await session.connection.cancel(session_id=session.id)
        editor.answer("")
        assert await turn == "cancelled"
        assert await session.say("finish") == "end_turn"
    assert "All done." in editor.said()


async def test_a_session_is_listed_loaded_with_its_past_and_continued(shell: Shell) -> None:
    from acp import RequestError

    editor = Editor("yes", "yes")
    async with opened(shell, editor, "-m", shell.script(WRITE, DONE)) as session:
        await session.say("make hello.py")
    later = Editor("yes")
    async with at(shell, later, "-m", shell.script(EDIT, DONE)) as connection:
        (listed,) = (await connection.list_sessions(cwd=str(shell.work))).sessions
        assert (listed.session_id, listed.title, listed.cwd) == (session.id, "make hello.py", str(shell.work))
        assert (await connection.list_sessions(cwd=str(shell.home))).sessions == []
        await connection.load_session(session_id=session.id, cwd=str(shell.work), mcp_servers=[])
        assert later.said("user_message_chunk") == "make hello.py"
        assert "All done." in later.said()
        (call,) = later.calls().values()
        assert call["status"] == "completed"
        assert [one["newText"] for one in call["content"] if one["type"] == "diff"] == ["print('hi')\n"]
        assert await Session(connection, later, session.id).say("say hello") == "end_turn"
        diff = list(later.calls().values())[1]["content"][0]
        assert (diff["oldText"], diff["newText"]) == ("print('hi')\n", "print('hello')\n")
        await connection.close_session(session_id=session.id)
        await connection.resume_session(session_id=session.id, cwd=str(shell.work), mcp_servers=[])
        with pytest.raises(RequestError, match="nothing-like-it"):
            await connection.load_session(session_id="nothing-like-it", cwd=str(shell.work), mcp_servers=[])


async def test_modes_options_and_commands(shell: Shell) -> None:
    from acp import RequestError

    editor = Editor()
    async with at(shell, editor, "-m", shell.script(WRITE, DONE), "--mode", "auto-edit") as connection:
        made = await connection.new_session(cwd=str(shell.work), mcp_servers=[])
        session = Session(connection, editor, made.session_id)
        assert made.modes and made.modes.current_mode_id == "auto-edit"
        assert {mode.id for mode in made.modes.available_modes} == {"plan", "ask", "auto-edit"}
        await connection.set_session_mode(session_id=session.id, mode_id="ask")
        assert [option.id for option in made.config_options or []] == ["mode", "model", "language"]
        await connection.set_session_mode(session_id=session.id, mode_id="auto-edit")
        assert editor.all("current_mode_update")[-1]["currentModeId"] == "auto-edit"
        assert await session.say("make hello.py") == "end_turn", "nobody was asked"
        assert editor.requests == []
        assert "Mood" in editor.said()
        assert await session.say("/status") == "end_turn"
        assert made.session_id in editor.said()
        answer = await connection.set_config_option(session_id=session.id, config_id="language", value="ja")
        assert answer and [option.current_value for option in answer.config_options][2] == "ja"
        commands = {
            one["name"]: one["description"] for one in editor.all("available_commands_update")[-1]["availableCommands"]
        }
        assert commands["status"] == "今の作業と調子、その理由を表示する"
        assert "quit" not in commands
        assert await session.say("/resume 1") == "end_turn"
        assert "/resume はターミナル用です" in editor.said()
        assert await session.say("!echo mine") == "end_turn"
        assert "mine" in text_of(list(editor.calls().values())[-1])
        with pytest.raises(RequestError, match="モード"):
            await connection.set_session_mode(session_id=session.id, mode_id="no-such-mode")


async def test_a_plan_is_updated_as_it_advances_and_its_job_is_a_tool_call(shell: Shell) -> None:
    written = {"text": "x = 1\n", "when": "complete content of game.py"}
    ended = {"json": report("It went well."), "when": "background job has ended"}
    script = shell.script(PROPOSE, {"json": SNAKE}, run_step(1), {"json": write_tasks("game.py")}, written, ended)
    editor = Editor()
    async with opened(shell, editor, "-m", script, "--mode", "auto-edit") as session:
        assert await session.say("make a snake game") == "end_turn"
        entries = editor.all("plan")[-1]["entries"]
        assert [(one["content"], one["status"]) for one in entries] == [("Core loop", "pending"), ("Score", "pending")]
        assert await session.say("yes") == "end_turn"
        await editor.until(lambda: "It went well." in editor.said())
    told = [[one["status"] for one in plan["entries"]] for plan in editor.all("plan")]
    assert told[-1] == ["completed", "pending"]
    assert ["in_progress", "pending"] in told
    job = next(
        call for call in editor.calls().values() if call.get("title", "").startswith("⚙ ") and call["kind"] == "think"
    )
    assert job["status"] == "completed"


async def test_waiting_leaves_a_draft_and_one_yes_starts_it_in_the_background(shell: Shell) -> None:
    editor = Editor()
    async with opened(shell, editor, "-m", shell.script(PROPOSE, {"json": SNAKE}), "--mode", "plan") as session:
        assert await session.say("make a snake game") == "end_turn"
        assert await session.say("ちょっと待って") == "end_turn"
        assert "stays as it is" in editor.said()
        assert await session.say("yes please, in the background") == "end_turn"
        await editor.until(lambda: any(call.get("title", "").startswith("⚙ ") for call in editor.calls().values()))


async def test_a_job_asks_when_no_prompt_is_open(shell: Shell) -> None:
    written = {"text": "x = 1\n", "when": "complete content of game.py"}
    ended = {"json": report("It went well."), "when": "background job has ended"}
    script = shell.script(PROPOSE, {"json": SNAKE}, run_step(1), {"json": write_tasks("game.py")}, written, ended)
    editor = Editor()
    async with opened(shell, editor, "-m", script) as session:
        await session.say("make a snake game")
        assert await session.say("yes") == "end_turn"
        await editor.until(lambda: editor.requests)
        (request,) = editor.requests
        assert "Core loop" in text_of(request["toolCall"])
        assert not (shell.work / "game.py").exists()
        editor.answer("yes")
        await editor.until(lambda: "It went well." in editor.said())
    assert (shell.work / "game.py").exists()


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_a_duck_call_is_a_message_and_a_request_and_may_be_answered_in_words(shell: Shell, language: str) -> None:
    looks = [decide(act("file_ops.list_files", f"look {n}", path="."), next_step="continue") for n in range(4)]
    editor = Editor("instruct")
    arguments = ("-m", shell.script(*looks, DONE), "--max-loops", "2", "--lang", language)
    async with opened(shell, editor, *arguments) as session:
        assert await session.say("look around") == "end_turn"
        assert "🦆" in editor.said()
        (request,) = editor.requests
        assert [option["kind"] for option in request["options"]].count("reject_once") == 1
        assert request["toolCall"]["title"] in editor.said()
        editor.answer("stop")
        assert await session.say("only look at README") == "end_turn"


async def test_two_hundred_updates_come_in_their_order(shell: Shell) -> None:
    text = " ".join(f"word{number}" for number in range(200))
    reply = {"text": json.dumps(decide(respond(text))), "chunk": 7}
    editor = Editor()
    async with opened(shell, editor, "-m", shell.script(reply)) as session:
        assert await session.say("count") == "end_turn"
    assert len(editor.all("agent_message_chunk")) >= 200
    assert editor.said().startswith(text)


async def test_several_sessions_work_side_by_side_in_their_own_folders(shell: Shell) -> None:
    other = shell.work.parent / "other"
    other.mkdir()
    editor = Editor()
    async with opened(shell, editor, "-m", shell.script(WRITE, DONE), "--mode", "auto-edit") as first:
        made = await first.connection.new_session(cwd=str(other), mcp_servers=[])
        second = Session(first.connection, editor, made.session_id)
        assert await asyncio.gather(first.say("make hello.py"), second.say("make hello.py")) == ["end_turn"] * 2
    assert (shell.work / "hello.py").exists()
    assert (other / "hello.py").exists()
    assert {one["sessionId"] for one in editor.updates} == {first.id, second.id}


async def test_files_that_the_editor_sends_along_reach_the_model(shell: Shell) -> None:
    from acp import embedded_text_resource, resource_block, resource_link_block

    (shell.work / "notes.txt").write_text("on disk\n")
    editor = Editor()
    async with opened(shell, editor, "-m", shell.script(DONE)) as session:
        resource = resource_block(embedded_text_resource(f"file://{shell.work}/main.py", "not saved yet\n"))
        link = resource_link_block("notes.txt", f"file://{shell.work}/notes.txt")
        assert await session.say("look at", resource, link) == "end_turn"
        assert await session.say("/export md out.md") == "end_turn"
    record = (shell.work / "out.md").read_text()
    assert "main.py" in record
    assert "@notes.txt" in record


async def test_a_picture_reaches_a_model_that_sees(shell: Shell) -> None:
    from acp import image_block

    data = base64.b64encode(png(30, 20)).decode()
    editor = Editor()
    with FakeEndpoint(says("A small picture.")) as endpoint:
        shell.environment |= {"OPENAI_BASE_URL": endpoint.url, "OPENAI_API_KEY": "none"}
        async with opened(shell, editor, "-m", "openai:mock") as session:
            assert await session.say("what is it?", image_block(data, "image/png")) == "end_turn"
        assert f"data:image/png;base64,{data}" in json.dumps(endpoint.received[-1])
    assert "A small picture." in editor.said()


async def test_tools_of_the_editors_servers_are_there_behind_the_gate(shell: Shell) -> None:
    from acp.schema import McpServerStdio, SseMcpServer

    server = McpServerStdio(name="sums", command=sys.executable, args=[str(SERVER)], env=[])
    stream = SseMcpServer(type="sse", name="old", url="http://127.0.0.1:9/", headers=[])
    add = decide(act("mcp__sums__add", a=2, b=3), next_step="continue")
    editor = Editor("yes")
    async with at(shell, editor, "-m", shell.script(add, DONE)) as connection:
        made = await connection.new_session(cwd=str(shell.work), mcp_servers=[server, stream])
        assert await Session(connection, editor, made.session_id).say("add two and three") == "end_turn"
    assert "MCP server old" in editor.said()
    (request,) = editor.requests
    assert "sums" in text_of(request["toolCall"])
    (call,) = editor.calls().values()
    assert "5" in call["rawOutput"]["text"]


async def test_a_very_risky_action_needs_a_typed_word(shell: Shell) -> None:
    """A yes that an editor gives by itself is not enough."""
    wipe = decide(act("shell.run", command="rm -rf /"), next_step="continue")
    editor = Editor("yes")
    async with opened(shell, editor, "-m", shell.script(wipe, DONE)) as session:
        assert await session.say("wipe it") == "end_turn"
        assert "a number is not enough" in editor.said()
        assert await session.say("no") == "end_turn"
    assert [call["status"] for call in editor.calls().values()] == ["failed"]


async def test_everything_ends_when_the_editor_closes(shell: Shell) -> None:
    slow = decide(act("shell.run", command="sleep 607.31"), next_step="continue")
    editor = Editor("yes")
    async with opened(shell, editor, "-m", shell.script(slow)) as session:
        turn = asyncio.create_task(session.say("run it"))
        await asyncio.to_thread(wait_until_running, "sleep 607.31")
    assert processes("sleep 607.31") == {}
    with pytest.raises(ConnectionError):
        await turn


def test_a_bad_message_gets_an_error_and_never_a_traceback(shell: Shell) -> None:
    lines = [
        "no json",
        "[]",
        "{}",
        '{"id": 1, "method": "session/new", "params": {"cwd": "relative"}}',
        '{"id": 2, "method": "session/prompt", "params": {"sessionId": "none", "prompt": []}}',
        '{"id": 3, "method": "no/such"}',
        '{"id": 4, "method": "session/list", "params": {"cursor": "x"}}',
        '{"method": "no/such/notification"}',
        '{"method": "session/cancel", "params": 5}',
        '{"id": 5, "method": "initialize", "params": {"protocolVersion": 99}}',
    ]
    ended = shell.run("acp", stdin="\n".join(lines))
    assert ended.returncode == 0, ended.stderr
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    codes = {answer["id"]: answer.get("error", {}).get("code") for answer in answers}
    assert [answer["error"]["code"] for answer in answers if answer["id"] is None] == [-32700, -32600, -32600]
    assert (codes[1], codes[2], codes[3], codes[4], codes[5]) == (-32602, -32002, -32601, -32602, None)
    assert answers[-1]["result"]["protocolVersion"] == 1
    assert "Traceback" not in ended.stderr


async def test_an_undo_is_asked_for_as_what_it_is_and_offers_only_what_an_editor_can_give(shell: Shell) -> None:
    editor = Editor("yes", "yes")
    async with opened(shell, editor, "-m", shell.script(WRITE, DONE)) as session:
        await session.say("make hello.py")
        await session.say("/undo")
    assert not (shell.work / "hello.py").exists()
    write, undo = editor.requests
    title = Words("en")("undo.title", turn=1, wish="make hello.py")
    assert undo["toolCall"]["title"] == title and title in text_of(undo["toolCall"])
    for request in (write, undo):
        assert [option["name"] for option in request["options"] if option["optionId"] == "no"] == ["no"]


async def test_a_model_that_was_set_up_meanwhile_answers_in_the_open_session(shell: Shell) -> None:
    from acp import RequestError

    editor = Editor()
    with FakeEndpoint(says("All done."), models=[{"id": "duck"}]) as endpoint:
        async with opened(shell, editor) as session:
            with pytest.raises(RequestError) as refused:
                await session.say("hello")
            assert refused.value.code == -32000, "the editor offers to set up a model"
            shell.write_config(f'[llm]\nmodel = "mine:duck"\n[llm.endpoints.mine]\nbase_url = "{endpoint.url}"\n')
            await session.say("hello")
    assert "All done." in editor.said()


async def test_a_key_that_nothing_here_would_keep_is_asked_of_the_editors_environment(shell: Shell) -> None:
    from acp import RequestError

    table = '[llm.endpoints.mine]\nbase_url = "http://127.0.0.1:9/v1"\nkey_env = "MINE_API_KEY"\n'
    shell.write_config(f'[llm]\nmodel = "mine:duck"\n{table}')
    async with opened(shell, Editor()) as session:
        with pytest.raises(RequestError) as refused:
            await session.say("hello")
    assert refused.value.code != -32000, "`duckflow init` could not keep the key for the editor either"
    assert "Put MINE_API_KEY into the “env”" in str(refused.value)


async def test_a_folder_that_is_not_there_is_the_editors_mistake(shell: Shell) -> None:
    from acp import RequestError

    async with at(shell, Editor()) as connection:
        with pytest.raises(RequestError) as refused:
            await connection.new_session(cwd=str(shell.work / "gone"), mcp_servers=[])
    assert refused.value.code == -32602 and "gone" in str(refused.value)


async def test_a_terminal_is_offered_only_to_an_editor_that_opens_one(shell: Shell) -> None:
    declared: dict[str, dict[str, Any]] = {
        "plain": {},
        "declared": {"auth": {"terminal": True}},
        "next version": {"auth": {"terminal": {}}},
        "older": {"_meta": {"terminal-auth": True}},
    }
    offered: dict[str, dict[str, Any]] = {}
    for name, capabilities in declared.items():
        params = {"protocolVersion": 1, "clientCapabilities": capabilities}
        request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
        (offered[name],) = json.loads(shell.run("acp", stdin=request).stdout)["result"]["authMethods"]
    plain = offered.pop("plain")
    assert "type" not in plain and "args" not in plain and "duckflow init" in plain["description"]
    assert all((method["type"], method["args"]) == ("terminal", ["init"]) for method in offered.values())


async def test_nobody_is_logged_in_while_no_model_is_set_up(shell: Shell) -> None:
    from acp import RequestError

    with FakeEndpoint(models=[{"id": "duck"}]) as endpoint:
        async with at(shell, Editor()) as connection:
            with pytest.raises(RequestError) as refused:
                await connection.authenticate(method_id="init")
            assert refused.value.code == -32000 and "No model is set up yet" in str(refused.value)
            shell.write_config(f'[llm]\nmodel = "mine:duck"\n[llm.endpoints.mine]\nbase_url = "{endpoint.url}"\n')
            await connection.authenticate(method_id="init")


async def test_a_message_without_a_model_is_kept_and_the_editor_is_told_only_what_holds_there(shell: Shell) -> None:
    from acp import RequestError

    editor = Editor()
    with FakeEndpoint(says("All done."), models=[{"id": "duck"}]) as endpoint:
        async with opened(shell, editor) as session:
            await editor.until(lambda: "No model is set up yet" in editor.said())
            with pytest.raises(RequestError) as refused:
                await session.say("count the ducks")
            assert "go on" in str(refused.value) and "export" not in str(refused.value)
            shell.write_config(f'[llm]\nmodel = "mine:duck"\n[llm.endpoints.mine]\nbase_url = "{endpoint.url}"\n')
            await session.say("go on")
        sent = json.dumps(endpoint.received[-1])
    assert "count the ducks" in sent and "go on" in sent
    told = editor.said() + editor.said("agent_thought_chunk")
    assert "first message" not in told and "All done." in told


async def test_a_refused_key_is_to_be_corrected_where_the_editor_holds_it(shell: Shell) -> None:
    from acp import RequestError

    with FakeEndpoint(says("ok"), models=[{"id": "duck"}], key="sk-right-0123456789") as endpoint:
        table = f'[llm.endpoints.mine]\nbase_url = "{endpoint.url}"\nkey_env = "MINE_API_KEY"\n'
        shell.write_config(f'[llm]\nmodel = "mine:duck"\n{table}')
        shell.environment["MINE_API_KEY"] = "sk-wrong-0123456789"
        async with opened(shell, Editor()) as session:
            with pytest.raises(RequestError) as refused:
                await session.say("hello")
    assert "Correct MINE_API_KEY" in str(refused.value) and "agent_servers" in str(refused.value)
