"""From bytes to the text that the model reads and the screen shows."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as some

from duckflow.tools.shell.output import Cleaner, Excerpt, Live, without_progress

CLEANED = [
    (b"plain\n", "plain\n"),
    ("日本語\n".encode(), "日本語\n"),
    (b"\x1b[1;31mred\x1b[0m", "red"),
    (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
    (b"\x1b]0;title\x07after", "after"),
    (b"\x1b(B\x1b=x\x1bM", "x"),
    (b"one\r\ntwo\r\n", "one\ntwo\n"),
    (b"bell\x07 nul\x00 del\x7f", "bell nul del"),
    (b"\x93\xfa\x96\x7b", "���{"),
]


@pytest.mark.parametrize(("data", "text"), CLEANED)
def test_bytes_become_text_however_they_are_split(data: bytes, text: str) -> None:
    for cut in range(len(data) + 1):
        cleaner = Cleaner()
        assert cleaner.clean(data[:cut]) + cleaner.clean(data[cut:]) + cleaner.clean(b"", last=True) == text


@given(some.lists(some.binary(max_size=40)))
def test_no_code_for_the_terminal_gets_through(pieces: list[bytes]) -> None:
    cleaner = Cleaner()
    text = "".join(map(cleaner.clean, pieces)) + cleaner.clean(b"", last=True)
    assert not any((ord(sign) < 32 and sign not in "\n\r\t") or 127 <= ord(sign) < 160 for sign in text)


def test_an_endless_control_code_does_not_hold_output_back_forever() -> None:
    cleaner = Cleaner()
    heard = "".join(cleaner.clean(b"\x1b]" if turn == 0 else b"text " * 1000) for turn in range(5))
    assert "text" in heard


def excerpt(text: str, piece: int, head: int = 10, tail: int = 20) -> str:
    made = Excerpt(head, tail)
    for at in range(0, len(text), piece):
        made.add(text[at : at + piece])
    return made.text()


@given(some.text(alphabet="ab\n", max_size=200), some.integers(1, 50))
def test_output_is_cut_the_same_way_however_it_was_split(text: str, piece: int) -> None:
    cut = excerpt(text, piece)
    assert cut == text if len(text) <= 30 else cut == excerpt(text, 1)
    assert len(cut) < 30 + 50


def test_the_cut_falls_between_lines_and_says_how_much_is_missing() -> None:
    text = "".join(f"line {number}\n" for number in range(100))
    assert excerpt(text, 7) == "line 0\n[… 767 characters left out, lines 2 to 98 …]\nline 98\nline 99\n"


def test_only_the_last_state_of_a_progress_bar_is_kept() -> None:
    assert excerpt("1%\r50%\r99%\nok\n", 3) == "99%\nok\n"


async def test_a_flood_reaches_the_screen_in_few_pieces_and_ends_with_its_end() -> None:
    heard: list[str] = []
    missing: list[int] = []

    def hear(text: str, left_out: int) -> None:
        heard.append(text)
        missing.append(left_out)

    live = Live(hear)
    for number in range(1000):
        live.add(f"{number}\n" * 50)
    await asyncio.sleep(0.15)
    live.add("end\n")
    live.close()
    live.add("too late")
    assert heard[0] == "0\n" * 50
    assert len(heard) <= 4 and sum(map(len, heard)) < 20_000
    assert heard[-1].endswith("end\n")
    assert sum(missing) + sum(text.count("\n") for text in heard) == 50_001, "what is left out is counted"


def test_dots_and_warnings_of_passing_tests_are_left_out() -> None:
    dots = "\n".join(f"{'.' * 70}ss [{number:3}%]" for number in range(0, 100, 5))
    warnings = (
        f"{'=' * 20} warnings summary {'=' * 20}\n" + "tests/a.py::b\n  old: use c\n\n" * 20 + "-- Docs: https://x\n"
    )
    verbose = "\n".join(f"tests/test_a.py::test_{number} PASSED [ 5%]" for number in range(30))
    last = "1492 passed, 20 skipped, 33 warnings in 19.97s"
    assert without_progress(f"{dots}\nprinted here\n{warnings}{last}\n") == f"printed here\n{last}\n"
    assert without_progress(f"{verbose}\n{last}") == f"{verbose}\n{last}"
    assert without_progress(f"..ss [100%]\n{last}") == f"..ss [100%]\n{last}"
