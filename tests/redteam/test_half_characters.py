"""Half a character, and names of files that are no text: wherever they come from, the turn goes on and is recorded."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from duckflow.editor.streams import read_message
from duckflow.events.types import ActionFinished
from duckflow.ui.headless_input import read_led_line
from duckflow.whole_text import PieceJoiner, make_value_whole, make_whole, read_json
from tests.cli.shell import HELLO, Shell
from tests.journeys.story import Story, act, decide, respond
from tests.llm.fake_endpoint import FakeEndpoint, chunk, sends

HALF = "\ud800"
HALVES = ["x \ud800 y", "\udfff", "\udcff\udc80", "\ude00\ud83d", "a\ud83d"]
SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    half, schema = "half \\ud800", {"type": "object"}
    answers = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": half}},
        "tools/list": {"tools": [{"name": "add", "description": half, "inputSchema": schema}]},
    }
    answer = answers.get(asked["method"], {"content": [{"type": "text", "text": half}], half: half})
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
"""


@pytest.mark.parametrize("text", HALVES)
def test_text_from_outside_is_valid_unicode(text: str) -> None:
    whole = make_whole(text)
    whole.encode()
    assert len(whole) <= len(text) and make_whole("\ud83e\udd86") == "🦆"
    message = json.dumps({"method": text, "id": 1, "params": {text: [text]}})
    assert read_message(message.encode()) == make_value_whole(json.loads(message)) == read_json(message)
    led = read_led_line(json.dumps({"type": "user", "text": f"hi {text}"}))
    assert led and led.text == make_whole(f"hi {text}")


def test_a_character_whose_halves_came_apart_is_one_again() -> None:
    joiner = PieceJoiner()
    read = [joiner.read(json.dumps({"a": [{"text": text}]}))["a"][0]["text"] for text in ("x\ud83e", "", "\udd86", "y")]
    assert read == ["x", "", "🦆", "y"]


def of_delta(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}]}


def of_call(name: str, arguments: str, call_id: str = "c1") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return of_delta(tool_calls=[{"index": 0, "id": call_id, "type": "function", "function": function}])


STREAMED = {
    "text": of_delta(content=f"hello {HALF} you"),
    "thought": of_delta(reasoning_content=f"hm {HALF}", content="hello"),
    "arguments": of_call("shell_run", json.dumps({"command": f"echo {HALF}"})),
    "name": of_call(f"shell{HALF}", "{}"),
    "id": of_call("file_ops_list_files", "{}", f"c{HALF}"),
}


@pytest.mark.parametrize("where", STREAMED)
def test_a_streamed_reply(tmp_path: Path, where: str) -> None:
    shell = Shell(tmp_path)
    answers = [sends(STREAMED[where], chunk(finish="stop")), *[sends(chunk("hello"), chunk(finish="stop"))] * 3]
    with FakeEndpoint(*answers, models=[{"id": "m"}]) as endpoint:
        shell.write_config(f'[llm]\ntries = 1\n[llm.endpoints.pond]\nbase_url = "{endpoint.url}"\n')
        done = shell.run("-p", "hello", "-m", "pond:m", "--mode", "full-auto")
    assert done.returncode == 0 and "hello" in done.stdout, done.stderr


def test_servers_hooks_thoughts_and_lines_of_json(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (shell.work.parent / "server.py").write_text(SERVER)
    told = json.dumps({"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": HALF}})
    (shell.work.parent / "told.json").write_text(told)
    shell.write_config(
        f'[mcp]\nallow = ["pond/*"]\n[mcp.servers.pond]\ncommand = "{sys.executable}"\n'
        f'args = ["{tmp_path}/server.py"]\n[[hooks.UserPromptSubmit]]\n'
        f'hooks = [{{ type = "command", command = "cat {tmp_path}/told.json" }}]\n'
    )
    call = json.dumps(decide(act("mcp__pond__add"), respond("done"), next_step="continue"))
    model = shell.script({"text": call, "thought": HALF}, *[HELLO] * 3)
    line = json.dumps({"type": "user", "text": f"go {HALF}"})
    led = ("--input-format", "stream-json", "--output-format", "stream-json")
    done = shell.run(*led, "-m", model, "--mode", "full-auto", stdin=line + "\n")
    assert done.returncode == 0 and "half �" in done.stdout, done.stdout[-900:] + done.stderr[-900:]
    assert shell.run("-c", "-p", "again", "-m", shell.script()).returncode == 0


@pytest.mark.parametrize("command", ["touch $'a\\xff'; rm mine.txt", "mv d e; rm mine.txt", "ls d; rm mine.txt"])
async def test_a_name_that_is_no_text_is_recorded_and_taken_back(tmp_path: Path, command: str) -> None:
    story = Story(tmp_path, [decide(act("shell.run", command=command), respond("done"))], mode="full-auto")
    work = tmp_path / "work"
    (work / "mine.txt").write_text("mine")
    (work / "d").mkdir()
    (work / b"d/\x83e.txt".decode("utf-8", "surrogateescape")).write_text("shift-jis")
    before = sorted(work.rglob("*"))
    await story.tell("go")
    assert story.ending().outcome == "done"
    assert any(isinstance(event, ActionFinished) for _, event in story.session.record())
    await story.chat.undo.restore(back=True)
    assert sorted(work.rglob("*")) == before and (work / "mine.txt").read_text() == "mine"
    await story.close()
