"""Finding JSON in what models really send, within bounds, and saying exactly what is wrong with the rest."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from duckflow.errors import ReplyUnusable
from duckflow.forms.broken_json import MAX_MENDED, MAX_TEXT, json_values, read_json

SCALARS = (
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False, allow_infinity=False) | some.text()
)
VALUES = some.recursive(SCALARS, lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner), max_leaves=20)
OBJECTS = some.dictionaries(some.text(), VALUES)
MARKS = some.sampled_from("{}[]()\"',:\\\n#a“”：，｛｝1")
PIECES = some.sampled_from(
    ('\\"', "//", "/*", "*/", "...", '"""', "key:", "```", "~~~", "<<<<<<<", "<think>", "</think>", "-2.5e")
)
WORDS = some.sampled_from(('"a":1', '{"a":1}', "true", "None", "\\u30", "\\ud83d"))


@given(OBJECTS, some.sampled_from([None, 2]), some.booleans(), some.data())
def test_valid_json_comes_back_untouched_also_amid_prose_and_no_cut_of_it_goes_unnoticed(
    value: dict[str, Any], indent: int | None, ascii_only: bool, data: some.DataObject
) -> None:
    read = read_json(json.dumps(value, indent=indent, ensure_ascii=ascii_only))
    assert read.value == value
    assert not read.repaired
    assert not read.cut
    if not value:
        return
    read = read_json(f"Here is what I decided:\n\n```json\n{json.dumps(value, indent=1)}\n```\nShall I go on?")
    assert read.value == value
    assert not read.repaired
    text = json.dumps(value)
    cut = text[: data.draw(some.integers(1, len(text) - 1))]
    try:
        read = read_json(cut)
    except ReplyUnusable:
        return
    assert read.repaired


@given(some.text() | some.lists(MARKS | PIECES | WORDS, max_size=40).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        value = read_json(text).value
    except ReplyUnusable as refusal:
        assert refusal.correction
    else:
        assert isinstance(value, dict | list)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("\ufeff  [1]", [1]),
        ('<think>{"not": "this"}</think>\n{"this": 1}', {"this": 1}),
        ('so I answer</think>\n{"this": 1}', {"this": 1}),
        ('Of the set {a, b} I take [the first]:\n{"this": 1}', {"this": 1}),
        ('~~~json\n{"a": "```x```"}\n~~~', {"a": "```x```"}),
        ('handle({"a": 1});', {"a": 1}),
        (json.dumps('{"a": "b\\n"}'), {"a": "b\n"}),
        (r"{\"a\": \"say \\\"hi\\\"\"}", {"a": 'say "hi"'}),
    ],
)
def test_json_is_found_in_a_reply(text: str, value: Any) -> None:
    found = [read.value for read in json_values(text)]
    assert value in found
    assert found[-1] == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"say": "the "big" duck", "n": 1}', {"say": 'the "big" duck', "n": 1}),
        ('{"size": (3, 4)}', {"size": [3, 4]}),
        ("{'path': 'a.py', 'all': True, 'limit': None}", {"path": "a.py", "all": True, "limit": None}),
        ("{path: a.py, lines: [1, 2,],}", {"path": "a.py", "lines": [1, 2]}),
        ('{"a": "x", // why\n "b": 2}', {"a": "x", "b": 2}),
        ("｛“理由”：“確認する”，“ok”：true｝", {"理由": "確認する", "ok": True}),
        ('｛"text"："、，：は文の中ではそのまま"｝', {"text": "、，：は文の中ではそのまま"}),
        ('{"text": "two\nlines",}', {"text": "two\nlines"}),
        ('{"names": ["a", "b"}, "n": 1}', {"names": ["a", "b"], "n": 1}),
    ],
)
def test_broken_json_is_mended_and_marked(text: str, value: Any) -> None:
    read = read_json(text)
    assert read.value == value
    assert read.repaired


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "x", "b": "some te',
        '{"a": {"b": 1}, "c": "x',
        '{"a": [1, 2], "c',
        '{"a": [1, {"b": 2}],',
        '{"a": "x',
        '{"a": 12',
    ],
)
def test_json_that_stops_in_the_middle_is_noticed(text: str) -> None:
    assert read_json(text).cut


@pytest.mark.parametrize("text", ['{"a": [1, {"b": "x"}', '{"a": {"b": {}', "{'a': 1} as you see", '{"a": 1,}'])
def test_forgotten_brackets_and_words_around_it_are_no_cut(text: str) -> None:
    read = read_json(text)
    assert read.repaired and not read.cut


def test_a_guess_stops_before_the_raw_blocks() -> None:
    read = read_json('{"say": "the "big" duck"}\n```c\nint main() { return 0; }\n```\n')
    assert read.value == {"say": 'the "big" duck'}
    assert "int main" in read.rest


def test_several_values_are_a_list_of_those_that_hold_something() -> None:
    read = read_json('{}\n{"a": 1}\n[]\n{"b": 2}')
    assert read.value == [{"a": 1}, {"b": 2}]
    assert read.repaired


def test_text_after_the_value_is_kept() -> None:
    read = next(json_values('```json\n{"a": 1}\n```\n```py\nprint()\n```'))
    assert read.rest == "```py\nprint()\n```"


def test_leftover_brackets_are_a_sign_of_trouble() -> None:
    assert read_json('{"a": 1}}').repaired
    assert read_json('{"a": 1}, "b": 2}').value == {"a": 1, "b": 2}


def test_half_a_surrogate_pair_cannot_be_stored_so_it_is_replaced() -> None:
    value = read_json(r'{"a": ["\ud83e", "\ud83e\udd86"]}').value
    assert value == {"a": ["\ufffd", "🦆"]}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no JSON"),
        ("just words", "no JSON"),
        ("<think>{} and so on", "no JSON"),
        ('{"a": 1,\n "b": ' + '["x" y" ' * (MAX_MENDED // 7), "line 2, column 12"),
        ('{"a": ' * 500, "Expecting value"),
        ('{"a": ' * 100_000, "nested too deeply"),
        ("x" * (MAX_TEXT + 1), "too long"),
    ],
)
def test_the_refusal_names_the_exact_place(text: str, reason: str) -> None:
    with pytest.raises(ReplyUnusable) as refusal:
        read_json(text)
    assert reason in refusal.value.correction


@pytest.mark.parametrize(
    "unit", ['"a":</b>', '{k "', "[{'", '"x" y: ', "a:b,c ", '\\" """}', '/*"', "#\n{", '["', ",", "((", "```{"]
)
@pytest.mark.parametrize("start", ["", "[", '{"a": "b" c'])
def test_hostile_text_is_read_in_finite_time(start: str, unit: str) -> None:
    for size in (50_000, 900_000):
        text = start + unit * (size // len(unit))
        try:
            assert isinstance(read_json(text).value, dict | list)
        except ReplyUnusable as refusal:
            assert refusal.correction
