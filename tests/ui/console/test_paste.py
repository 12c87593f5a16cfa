"""Long pastes and pictures stand as a mark in the line; the path of a picture becomes a mention."""

from pathlib import Path

import pytest

from duckflow.i18n.words import Words
from duckflow.ui.console.pastes import Pastes


def test_a_short_paste_is_itself_and_a_long_one_a_mark_that_is_expanded() -> None:
    pastes = Pastes(Words("en"))
    assert pastes.take("one\r\ntwo") == "one\ntwo"
    assert pastes.take("x\x1b[31m\x07y") == "x[31my"
    long = "\n".join(map(str, range(10_000)))
    mark = pastes.take(long)
    assert mark == "[pasted #1: 10000 lines]"
    assert pastes.take("z" * 5000) == "[pasted #2: 5000 characters]"
    assert pastes.expand(f"see {mark} and {mark}") == f"see {long} and {long}"


def test_a_mark_speaks_the_language_of_the_chat() -> None:
    pastes = Pastes(Words("ja"))
    mark = pastes.take("行\n" * 20)
    assert mark == "[貼り付け #1: 21 行]" and pastes.expand(f"これ {mark}") == "これ " + "行\n" * 20


def test_text_that_only_looks_like_a_mark_stays() -> None:
    assert Pastes(Words("en")).expand("[pasted #7: 3 lines]") == "[pasted #7: 3 lines]"


@pytest.mark.parametrize(
    ("pasted", "put"),
    [
        ("{top}/shot.png", "@{top}/shot.png "),
        ("'{top}/my shot.PNG'", '@"{top}/my shot.PNG" '),
        (r"{top}/my\ shot.PNG ", '@"{top}/my shot.PNG" '),
        ("{top}/my shot.PNG", '@"{top}/my shot.PNG" '),
        ("file://{top}/my%20shot.PNG\n", '@"{top}/my shot.PNG" '),
        ("{top}/shot.png '{top}/my shot.PNG'", '@{top}/shot.png @"{top}/my shot.PNG" '),
        ("{top}/none.png", "{top}/none.png"),
        ("{top}/notes.txt", "{top}/notes.txt"),
        ("see {top}/shot.png", "see {top}/shot.png"),
        ("{top}/shot.png is wrong", "{top}/shot.png is wrong"),
    ],
)
def test_the_path_of_a_picture_becomes_a_mention(tmp_path: Path, pasted: str, put: str) -> None:
    for name in ("shot.png", "my shot.PNG", "notes.txt"):
        (tmp_path / name).write_bytes(b"x")
    assert Pastes(Words("en")).take(pasted.format(top=tmp_path)) == put.format(top=tmp_path)
