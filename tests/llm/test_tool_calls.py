"""Tool calls over real HTTP, through the whole program: in pieces, malformed, or not at all."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import Answer, Exchange, FakeEndpoint, chunk, refuses, refuses_field, says, sends
from talking import QUICK, provider_for

from duckflow.events.types import ReplyRejected, TextStreamed
from duckflow.llm.facts import AbilityBook
from duckflow.llm.settings import LlmSettings
from tests.journeys.story import Story, act, decide, respond

WRITE = "file_ops_write_file"
HELLO = {"reasoning": "it was asked for", "path": "a.txt", "content": "hello\n"}


def piece(index: int, arguments: str, call_id: str = "", name: str = "", **more: Any) -> dict[str, Any]:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    call: dict[str, Any] = {"index": index, "function": function} | ({"id": call_id} if call_id else {}) | more
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}


def calls(
    *made: tuple[str, dict[str, Any]], text: str = "So it goes.", size: int = 7, finish: str = "tool_calls"
) -> Answer:
    """Answers with these calls, their arguments in pieces."""
    events = [chunk(text)]
    for index, (name, args) in enumerate(made):
        written = json.dumps(args)
        events.append(piece(index, "", f"call_{name}_{index}", name, extra_content={"sign": "s"}))
        events += [piece(index, written[start : start + size]) for start in range(0, len(written), size)]
    return sends(*events, chunk(finish="tool_calls"))


def story_with(server: FakeEndpoint, top: Path, book: AbilityBook | None = None, **settings: Any) -> Story:
    story = Story(top, [])
    story.provider = provider_for(server, QUICK.model_copy(update=settings), book=book)
    return story


async def test_calls_in_pieces_are_done_in_order_and_sent_back_unchanged(tmp_path: Path) -> None:
    read = ("file_ops_read_file", {"path": "a.txt"})
    edit = {"reasoning": "better", "path": "a.txt", "edits": [{"old": "hello", "new": "good day"}]}
    with FakeEndpoint(calls((WRITE, HELLO), ("file_ops_edit_file", edit), read), says("It is written.")) as server:
        story = story_with(server, tmp_path)
        assert await story.tell("write a.txt") == "done"
        assert (story.folder / "a.txt").read_text() == "good day\n"
        assert story.said() == ["It is written."]
        first, second = server.received
    assert {tool["function"]["name"] for tool in first["tools"]} >= {
        WRITE,
        "file_ops_edit_file",
        "shell_run",
        "decision",
    }
    assert "response" not in {tool["function"]["name"] for tool in first["tools"]}
    assert "response_format" not in first
    assert second["messages"][: len(first["messages"]) - 1] == first["messages"][:-1], (
        "only the state at the end is new"
    )
    replied, *results = second["messages"][-5:-1]
    assert replied["content"] == "So it goes."
    assert [json.loads(call["function"]["arguments"]) for call in replied["tool_calls"]] == [HELLO, edit, read[1]]
    assert {call["extra_content"]["sign"] for call in replied["tool_calls"]} == {"s"}
    assert [result["tool_call_id"] for result in results] == [call["id"] for call in replied["tool_calls"]]
    assert "good day" in results[-1]["content"] and {result["role"] for result in results} == {"tool"}


@pytest.mark.parametrize(
    "bad",
    [
        sends(piece(0, '{"path": "a.txt", "content": "half', "c1", WRITE), chunk(finish="length")),
        sends(piece(0, json.dumps(HELLO), "c1", WRITE), piece(1, '{"pa', "c2", WRITE), chunk(finish="length")),
        sends(piece(0, '{"path": a.txt}', "c1", WRITE), piece(1, '{"path": a.txt}', "c2", WRITE), chunk(finish="stop")),
        sends(piece(0, '["a.txt"]', "c1", WRITE), chunk(finish="tool_calls")),
    ],
    ids=["cut in a call", "cut after a call", "broken", "no object"],
)
async def test_an_incomplete_reply_is_requested_again_and_none_of_it_is_done(tmp_path: Path, bad: Answer) -> None:
    with FakeEndpoint(bad, calls((WRITE, HELLO | {"path": "b.txt"})), says("Now it is.")) as server:
        story = story_with(server, tmp_path)
        assert await story.tell("write") == "done"
        assert [path.name for path in story.folder.iterdir()] == ["b.txt"]
        assert len(story.all(ReplyRejected)) == 1
        assert "could not be used" in server.received[1]["messages"][-1]["content"]


async def test_an_unreadable_call_among_others_is_answered_with_the_reason(tmp_path: Path) -> None:
    """The readable calls are treated as after any other error: edits of other files are done, commands are not."""
    bad = sends(
        piece(0, '{"path": b.txt}', "c1", WRITE),
        piece(1, json.dumps(HELLO), "c2", WRITE),
        piece(2, json.dumps({"command": "touch c.txt", "reasoning": "x"}), "c3", "shell_run"),
        chunk(finish="tool_calls"),
    )
    with FakeEndpoint(bad, says("One of them.")) as server:
        story = story_with(server, tmp_path)
        assert await story.tell("write both") == "done"
        assert [path.name for path in story.folder.iterdir()] == ["a.txt"]
        assert len(server.received) == 3 and not story.all(ReplyRejected), "the last one is a look at what failed"
        answers = [message for message in server.received[1]["messages"] if message["role"] == "tool"]
        results = {message["tool_call_id"]: message["content"] for message in answers}
    assert "are no JSON" in results["c1"] and "ERROR" not in results["c2"] and "not run" in results["c3"].lower()


async def test_a_call_of_an_unknown_tool_gets_a_result_that_says_so(tmp_path: Path) -> None:
    with FakeEndpoint(calls(("file_ops_reed", {"path": "x"})), says("I was wrong.")) as server:
        story = story_with(server, tmp_path)
        assert await story.tell("read x") == "done"
        [result] = [message for message in server.received[1]["messages"] if message["role"] == "tool"]
    assert "unknown operation" in result["content"] and "file_ops_read_file" in result["content"]


async def test_a_question_before_the_calls_holds_them_back(tmp_path: Path) -> None:
    with FakeEndpoint(calls((WRITE, HELLO), text="Shall I write it to a.txt?")) as server:
        story = story_with(server, tmp_path)
        assert await story.tell("write") == "pending_user"
    assert list(story.folder.iterdir()) == [] and story.said() == ["Shall I write it to a.txt?"]


async def test_an_endpoint_that_refuses_tools_is_asked_for_json_and_remembered(tmp_path: Path) -> None:
    fine = says(json.dumps(decide(respond("Hello."), step="PLANNING")))
    book = AbilityBook(tmp_path / "abilities.json")
    with FakeEndpoint(refuses_field("tools", "this model does not support tools", fine)) as server:
        assert await story_with(server, tmp_path, book).tell("hi") == "done"
        assert ["tools" in body for body in server.received] == [True, False]
        assert server.received[1]["response_format"]["type"] == "json_schema"
        provider = provider_for(server, book=book)
        assert not provider.takes_tools
        await provider.aclose()


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(decide(act("file_ops.write_file", path="a.txt", content="hello\n"), next_step="continue")),
        "I write.\n<tool_call>\n" + json.dumps({"name": WRITE, "arguments": HELLO}) + "\n</tool_call>",
        "```json\n" + json.dumps({"name": "file_ops.write_file", "parameters": HELLO}) + "\n```",
    ],
    ids=["decision", "tagged call", "bare call"],
)
async def test_a_model_that_ignores_tools_is_understood_and_remembered(tmp_path: Path, text: str) -> None:
    book = AbilityBook(tmp_path / "abilities.json")
    done = says(json.dumps(decide(respond("Done."))))
    with FakeEndpoint(says(text), done) as server:
        story = story_with(server, tmp_path, book)
        assert await story.tell("write") == "done"
        assert (story.folder / "a.txt").read_text() == "hello\n"
        assert ["tools" in body for body in server.received] == [True, False]


async def test_the_setting_decides_whether_tools_are_sent(tmp_path: Path) -> None:
    with FakeEndpoint(says(json.dumps(decide(respond("Hello."), step="PLANNING")))) as server:
        assert await story_with(server, tmp_path, tools="json").tell("hi") == "done"
    assert "tools" not in server.received[0]
    assert LlmSettings().tools == "auto"


async def test_thoughts_are_separated_from_the_reply_and_sent_back_with_the_calls(tmp_path: Path) -> None:
    thinks = [{"choices": [{"index": 0, "delta": {"reasoning_content": text}}]} for text in ("Hm, ", "a.txt.")]
    looks = [piece(0, '{"path": "."}', "c1", "file_ops_list_files"), chunk(finish="tool_calls")]
    with FakeEndpoint(sends(*thinks, *looks), says("<think>I know", " it.</think>It is empty.")) as server:
        story = story_with(server, tmp_path, effort="low")
        assert await story.tell("look") == "done"
        replied = next(message for message in server.received[1]["messages"] if message["role"] == "assistant")
    assert replied["reasoning_content"] == "Hm, a.txt." and replied["tool_calls"]
    assert [body["reasoning_effort"] for body in server.received] == ["low", "low"]
    thought = "".join(event.text for event in story.all(TextStreamed) if event.channel == "think")
    assert thought == "Hm, a.txt.I know it." and story.said() == ["It is empty."]


async def test_an_endpoint_that_refuses_thoughts_and_effort_gets_neither(tmp_path: Path) -> None:
    thinks = {"choices": [{"index": 0, "delta": {"reasoning": "Hm."}}]}
    looks = sends(thinks, piece(0, '{"path": "."}', "c1", "file_ops_list_files"), chunk(finish="tool_calls"))

    def strict(exchange: Exchange) -> None:
        body = exchange.endpoint.received[-1]
        if "reasoning_effort" in body:
            refuses(400, "Unrecognized request argument: reasoning_effort")(exchange)
        elif any("reasoning" in message for message in body["messages"]):
            refuses(400, "messages.2: property 'reasoning' is unsupported")(exchange)
        elif any(message["role"] == "tool" for message in body["messages"]):
            says("It is empty.")(exchange)
        else:
            looks(exchange)

    with FakeEndpoint(strict) as server:
        story = story_with(server, tmp_path, effort="high")
        assert await story.tell("look") == "done"
        assert len(server.received) == 4 and story.said() == ["It is empty."]


async def test_where_no_user_message_may_follow_a_result_it_is_appended_to_it(tmp_path: Path) -> None:
    looks = calls(("file_ops_list_files", {"path": "."}))

    def strict(exchange: Exchange) -> None:
        roles = [message["role"] for message in exchange.endpoint.received[-1]["messages"]]
        if ("tool", "user") in pairwise(roles):
            refuses(400, "Unexpected role 'user' after role 'tool'")(exchange)
        else:
            (says("It is empty.") if "tool" in roles else looks)(exchange)

    with FakeEndpoint(strict) as server:
        story = story_with(server, tmp_path)
        assert await story.tell("look") == "done"
        last = server.received[-1]["messages"][-1]
    assert last["role"] == "tool" and "[state]" in last["content"] and "tools" in server.received[-1]
