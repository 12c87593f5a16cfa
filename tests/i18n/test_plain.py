"""Nothing from outside can steer the terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckflow.i18n.plain import plain


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain", "plain"),
        ("日本語 🦆", "日本語 🦆"),
        ("a\tb\nc\r\nd", "a\tb\nc\nd"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("evil\u202egnp.exe", "evil\\x202egnp.exe"),
        ("bell\x07\x9b", "bell\\x07\\x9b"),
        ("two\u2028lines", "two\\x2028lines"),
        ("zero\u200bwidth\ufeff", "zero\\x200bwidth\\xfeff"),
        ("hidden\u3164.exe", "hidden\\x3164.exe"),
        ("が か\u3099 👨\u200d👩", "が か\u3099 👨\u200d👩"),
        ("over\rwritten", "over\\x0dwritten"),
        ("[bold]brackets[/bold]", "[bold]brackets[/bold]"),
    ],
)
def test_control_and_direction_characters_become_visible(raw: str, shown: str) -> None:
    assert plain(raw) == shown


@given(st.text())
def test_no_escape_survives(text: str) -> None:
    assert not set(plain(text)) & {"\x1b", "\x9b", "\r", "\x07", "\u202e", "\u2066", "\u200b", "\u2028"}
