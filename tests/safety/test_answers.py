"""A yes is only a yes when it is nothing else."""

import pytest

from duckflow.safety.answers import read_answer

YES = ["y", "Yes", "OK", "1", "１", "ｙｅｓ", "はい", "はい。", "お願いします", "どうぞ！", " yes "]
NO = ["n", "no", "No.", "2", "２", "いいえ", "やめて", "だめ"]
UNCLEAR = [
    "",
    "maybe",
    "はい、でも名前を変えて",
    "yes but rename it",
    "12",
    "yes no",
    "?",
    "okay then do something else",
]


@pytest.mark.parametrize("text", YES)
def test_yes(text: str) -> None:
    answer = read_answer(text)
    assert answer is not None and answer.choice == "yes"


@pytest.mark.parametrize("text", NO)
def test_no(text: str) -> None:
    answer = read_answer(text)
    assert answer is not None and (answer.choice, answer.text) == ("no", "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no, use tabs", "use tabs"),
        ("no: because it is wrong", "because it is wrong"),
        ("いいえ、名前が違います", "名前が違います"),
        ("no use tabs", "use tabs"),
    ],
)
def test_a_no_may_say_why(text: str, reason: str) -> None:
    answer = read_answer(text)
    assert answer is not None and (answer.choice, answer.text) == ("no", reason)


@pytest.mark.parametrize("text", UNCLEAR)
def test_anything_else_is_unclear(text: str) -> None:
    assert read_answer(text) is None
