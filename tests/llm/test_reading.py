"""The rules by which slips in JSON are mended, one by one."""

from typing import Any

import pytest

from duckflow.llm.reading import DEPTH, JsonReader, ReadDeadline, Unclear


def read(text: str) -> tuple[Any, JsonReader]:
    reader = JsonReader(text, 0, ReadDeadline(5))
    return reader.read(), reader


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'path': 'a.py', 'all': True, 'limit': None}", {"path": "a.py", "all": True, "limit": None}),
        ("{path: a.py, lines: [1, 2,],}", {"path": "a.py", "lines": [1, 2]}),
        ('{"a": 1 "b": 2\n"c": "x"\n"d": "y"}', {"a": 1, "b": 2, "c": "x", "d": "y"}),
        ('[{"a": 1} {"a": 2}]', [{"a": 1}, {"a": 2}]),
        ('{"a": "x", // why\n "b": /* two */ 2, # three\n "c": 3}', {"a": "x", "b": 2, "c": 3}),
        ('{"steps": ["one", ..., "last", …]}', {"steps": ["one", "last"]}),
        (
            "｛“理由”：“確認する”，“confidence”：０．８、“ok”：ｔｒｕｅ｝",
            {"理由": "確認する", "confidence": 0.8, "ok": True},
        ),
        ('{"text": "、，：は文の中ではそのまま",}', {"text": "、，：は文の中ではそのまま"}),
        ('{"code": """print("hi")\nx = {1: 2}\n"""}', {"code": 'print("hi")\nx = {1: 2}\n'}),
        ("{`a`: `b`}", {"a": "b"}),
        ('{"a":, "b":}', {"a": None, "b": None}),
        ('{"a" "b", "c" 3}', {"a": "b", "c": 3}),
        (
            '{"n": 1_000, "m": 2., "e": 3e, "v": 1.2.3, "z": 007}',
            {"n": 1000, "m": 2.0, "e": 3, "v": "1.2.3", "z": "007"},
        ),
        ('{"x": undefined, "y": NaN, "z": None}', {"x": None, "y": None, "z": None}),
    ],
)
def test_a_slip_is_mended(text: str, value: Any) -> None:
    assert read(text)[0] == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'{"pattern": "\d+\.py", 1: "it\'s"}', {"pattern": r"\d+\.py", "1": "it's"}),
        (r'{"face": "\ud83e\udd86", "half": "\ud83e!",}', {"face": "🦆", "half": "\ufffd!"}),
        ('{"text": "two\nlines",}', {"text": "two\nlines"}),
        ('{"text": "the quote is on its own line\n  ",}', {"text": "the quote is on its own line"}),
        ('{"text": "ends with a break\\n",}', {"text": "ends with a break\n"}),
    ],
)
def test_strings_keep_their_text(text: str, value: Any) -> None:
    assert read(text)[0] == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"names": ["a", "b"}', {"names": ["a", "b"]}),
        ('{"names": ["a", "b"}, "n": 1}', {"names": ["a", "b"], "n": 1}),
        ('[{"a": 1]', [{"a": 1}]),
        ('{"a": 1]', {"a": 1}),
        ('[{"a": 1}}, {"a": 2}]', [{"a": 1}, {"a": 2}]),
        ('{"actions": [{"args": {"n": 1}}}], "next": "done"}', {"actions": [{"args": {"n": 1}}], "next": "done"}),
        ('{"actions": [1]}, "next": "done"}', {"actions": [1], "next": "done"}),
    ],
)
def test_a_wrong_bracket_loses_nothing(text: str, value: Any) -> None:
    assert read(text)[0] == value


@pytest.mark.parametrize(
    ("text", "value", "missing", "half"),
    [
        ('{"a": [1, {"b": "x"}', {"a": [1, {"b": "x"}]}, "]}", False),
        ('{"a": {"b": {}', {"a": {"b": {}}}, "}}", False),
        ('{"a": "x"\n```\nas you see', {"a": "x"}, "}", False),
        ('{"a": "x",', {"a": "x"}, "}", True),
        ('{"a": "some te', {"a": "some te"}, "}", True),
        ('{"a": "x\\u30', {"a": "x"}, "}", True),
        ('{"a": "x\\', {"a": "x"}, "}", True),
        ('{"a": 12', {"a": 12}, "}", True),
        ('{"a": ', {"a": None}, "}", True),
        ('{"a', {"a": None}, "}", True),
        ('{"a": 1, "', {"a": 1}, "}", True),
        ('["', [], "]", True),
    ],
)
def test_a_cut_is_noticed(text: str, value: Any, missing: str, half: bool) -> None:
    got, reader = read(text)
    assert (got, reader.missing, reader.half) == (value, missing, half)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ('{"say": "the "big" duck"}', 13),
        ('{"a": 1, oops "b": 2}', 13),
        ("{'one', 'two'}", 6),
        ('{"a": (1, 2)}', 6),
        ('["a": 1]', 3),
        ('[a", b"]', 2),
        ('{"a": "never closed}', 6),
        ("{note: see also: this}", 7),
    ],
)
def test_what_is_unclear_is_not_guessed(text: str, position: int) -> None:
    with pytest.raises(Unclear) as problem:
        read(text)
    assert problem.value.position == position
    assert not problem.value.final


def test_depth_has_an_end() -> None:
    assert read("[" * DEPTH + "1,]")[1].missing == "]" * (DEPTH - 1)
    with pytest.raises(Unclear) as problem:
        read("[" * (DEPTH + 1))
    assert problem.value.final


def test_the_time_limit_is_looked_at_on_the_way() -> None:
    with pytest.raises(Unclear) as problem:
        JsonReader("[1, 2]", 0, ReadDeadline(-1)).read()
    assert problem.value.final
