"""The list of sessions: aligned in both languages, cut where it must be."""

from pathlib import Path

from rich.cells import cell_len

from duckflow.commands.session_rows import session_lines, session_rows
from duckflow.events.views import SessionSummary
from duckflow.i18n.words import Words, age, money
from duckflow.state.agent import Headline
from duckflow.store.sessions import SessionEntry

NOW = 1_800_000_000.0


def entry(title: str, ago: float, folder: str = "", cost: float = 0.0, turns: int = 12) -> SessionSummary:
    head = Headline(title=title, asked=f"asked {title}", folder=folder, turns=turns, cost_usd=cost)
    return SessionEntry("20260101-abc", Path("x.db"), head, NOW - ago, here=not folder).summary()


ENTRIES = [
    entry("Fix the parser", 30, cost=0.42),
    entry("日本語のとても長い題名で、幅の計算が正しいかどうかを確かめるためのもの", 7200, turns=1),
    entry("evil \x1b[31m\nname", 86_400 * 3, folder="/work/other", cost=0.001),
]


def test_every_line_is_as_wide_as_the_others_and_fits() -> None:
    for language in ("en", "ja"):
        lines = session_lines(session_rows(ENTRIES, Words(language), NOW), 79)
        assert lines[2] == "/work/other"
        widths = {cell_len(line) for line in (*lines[:2], lines[3])}
        assert widths == {79}
        assert "\x1b" not in "".join(lines) and "…" in lines[1]


def test_ages_turns_and_money_are_said_in_the_users_language() -> None:
    english = session_lines(session_rows(ENTRIES, Words("en"), NOW), 90)
    assert "just now  12 turns   $0.42" in english[0]
    assert "2 h ago    1 turn" in english[1]
    assert "3 d ago  12 turns  <$0.01" in english[3]
    japanese = session_lines(session_rows(ENTRIES, Words("ja"), NOW), 90)
    assert "2 時間前" in japanese[1] and "12 ターン" in japanese[0]


def test_an_old_session_shows_a_date_and_a_free_one_no_price() -> None:
    assert age(NOW - 86_400 * 90, NOW, Words("en")).startswith("20")
    assert age(NOW + 50, NOW, Words("en")) == "just now"
    assert age(NOW - 119, NOW, Words("en")) == "1 min ago"
    assert money(0) == ""


def test_a_filter_finds_words_of_title_first_message_and_folder() -> None:
    parser, long, other = session_rows(ENTRIES, Words("en"), NOW)
    assert parser.matches("PARSER fix") and parser.matches("asked")
    assert long.matches("題名") and not long.matches("題名 parser")
    assert other.matches("other evil")
