"""The text shown while a reply streams in: everything that is said, once, however it is cut into pieces."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from duckflow.forms.live import LiveText

SAYS = {"response": "text", "duck_call": "question", "exit": "text"}


def shown(reply: str, size: int) -> str:
    live = LiveText(SAYS)
    return "".join(live.feed(reply[at : at + size]) for at in range(0, len(reply), size))


def decision(*actions: dict[str, Any]) -> dict[str, Any]:
    return {
        "rationale": 'says "hi"',
        "state_delta": {"goal": "text", "constraints": ["{", "actions"]},
        "actions": list(actions),
        "next_step": "done",
    }


def say(text: str) -> dict[str, Any]:
    return {"operation": "response", "reasoning": "it was asked", "args": {"text": text}}


@given(some.text(), some.integers(1, 7), some.booleans(), some.sampled_from([None, 1]))
def test_a_response_is_shown_exactly(text: str, size: int, ascii_only: bool, indent: int | None) -> None:
    reply = json.dumps(decision(say(text)), ensure_ascii=ascii_only, indent=indent)
    assert shown(reply, size) == text


@given(some.lists(some.sampled_from("🦆é日\\\"'\n{}[]\t"), max_size=12).map("".join), some.integers(1, 7))
def test_escapes_survive_any_cut(text: str, size: int) -> None:
    assert shown(json.dumps(decision(say(text))), size) == text


@given(some.text(some.characters(exclude_characters="{｛`[［<")), some.integers(1, 7))
def test_plain_prose_is_shown_as_it_comes(text: str, size: int) -> None:
    assert shown(text, size) == text.lstrip()


@given(some.text(), some.integers(1, 5))
def test_any_text_can_be_fed(text: str, size: int) -> None:
    assert isinstance(shown(text, size), str)


def test_it_comes_at_once_not_at_the_end() -> None:
    live = LiveText(SAYS)
    head = '{"rationale": "r", "actions": [{"operation": "response", "args": {"text": "'
    assert live.feed(head) == ""
    assert live.feed("Hel") == "Hel"
    assert live.feed("lo \\u65") == "lo "
    assert live.feed("e5\\ud83e") == "日"
    assert live.feed("\\udd8") == ""
    assert live.feed("6!\\") == "🦆!"
    assert live.feed('nBye"}') == "\nBye"
    assert live.feed('}], "next_step": "done"}\n```py\nprint()\n```') == ""


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("actions", "text"),
    [
        ([{"args": {"text": "late"}, "reasoning": "r", "operation": "response"}], "late"),
        ([{"parameters": {"text": "late"}, "thought": "r", "name": "response"}], "late"),
        ([{"args": {"question": "which?", "choices": ["text"]}, "operation": "duck_call"}], "which?"),
        ([{"operation": "exit", "args": {"text": "bye"}}], "bye"),
        ([say("one"), say("two")], "one\n\ntwo"),
        ([say("one"), say("")], "one"),
        ([say("one"), {"args": {"text": "two"}, "operation": "response"}], "one\n\ntwo"),
        ([{"args": {"text": "not said"}, "operation": "file_ops.write_file"}], ""),
        ([{"operation": "memory.remember", "args": {"text": "not said"}}], ""),
        ([{"operation": "response", "args": {"deep": {"text": "not said"}, "text": "said"}}], "said"),
        ([{"operation": "response", "args": {"note": "not said", "text": 5}}], ""),
    ],
)
def test_only_what_is_said_to_the_user_is_shown(actions: list[dict[str, Any]], text: str, size: int) -> None:
    assert shown(json.dumps(decision(*actions)), size) == text


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ("```json\n", "\n```", "hi"),
        ("\n ", "", "hi"),
        ("<think>{hm}</think>", "", "hi"),
        ("Sure.\n", "", "Sure.\n\n\nhi"),
        ("Use `x` and:\n```json\n", "\n```\nDone.", "Use `x` and:\n\n\nhi"),
    ],
)
def test_wrapping_does_not_matter(before: str, after: str, text: str, size: int) -> None:
    assert shown(before + json.dumps(decision(say("hi"))) + after, size) == text


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_code_in_a_plain_answer_is_shown(size: int) -> None:
    for end in ("", "\nor `x`", "\nor `x`.", "\n```\nmore\n```"):
        answer = "Like this:\n```python\nprint(1)\n```" + end
        assert shown(answer, size) == answer


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_a_list_says_nothing(size: int) -> None:
    assert shown(json.dumps([say("no decision")]), size) == ""


@given(some.text("{}[]`a \n"), some.integers(1, 7))
def test_a_reply_that_is_meant_to_be_prose_is_shown_whole(text: str, size: int) -> None:
    reply = f"Use {text}."
    live = LiveText(SAYS, prose=True)
    assert "".join(live.feed(reply[at : at + size]) for at in range(0, len(reply), size)) == reply


def test_a_prose_reply_that_begins_with_json_is_not_shown() -> None:
    live = LiveText(SAYS, prose=True)
    assert live.feed(json.dumps(decision(say("Hello.")))) == "Hello."
