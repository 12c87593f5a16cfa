"""Long pastes stand as a mark in the line."""

from duckflow.ui.console.input_line import Pastes


def test_a_short_paste_is_itself_and_a_long_one_a_mark_that_is_expanded() -> None:
    pastes = Pastes()
    assert pastes.take("one\r\ntwo") == "one\ntwo"
    assert pastes.take("x\x1b[31m\x07y") == "x[31my"
    long = "\n".join(map(str, range(10_000)))
    mark = pastes.take(long)
    assert mark == "[pasted #1: 10000 lines]"
    assert pastes.take("z" * 5000) == "[pasted #2: 5000 characters]"
    assert pastes.expand(f"see {mark} and {mark}") == f"see {long} and {long}"


def test_what_only_looks_like_a_mark_stays() -> None:
    assert Pastes().expand("[pasted #7: 3 lines]") == "[pasted #7: 3 lines]"
