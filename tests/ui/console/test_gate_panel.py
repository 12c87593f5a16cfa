"""The screen of a Gate: everything that would run comes first and whole, and nothing else looks like it."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from duckflow.i18n.plain import folded
from duckflow.i18n.words import Words
from duckflow.state.data import say
from duckflow.state.question import Choice, FileImpact, GateRequest, Question
from duckflow.ui.console.printer import Printer
from duckflow.ui.console.question_panel import QuestionPages, question_rows
from duckflow.ui.console.screen import Screen
from duckflow.view.items import NoticeItem
from tests.journeys.story import act, decide, respond
from tests.ui.console.terminal import Terminal, open_terminal

OLD = "".join(f"value_{number} = {number}\n" for number in range(1, 31)) + "def total(価格):\n    return 価格 * 1.08\n"
EDIT = act("file_ops.edit_file", "税率を直す", path="price.py", old="1.08", new="1.10")
HELLO = {"en": "/help shows", "ja": "/help で"}
YES = {"en": "1. yes", "ja": "1. はい"}


def rows(gate: GateRequest, columns: int = 80, language: str = "en", styled: bool = True) -> list[str]:
    console = Console(file=io.StringIO(), width=columns, height=40, force_terminal=styled, color_system=None)
    choices = (Choice(key="yes", label=say("gate.yes")), Choice(key="no", label=say("gate.no")))
    question = Question(kind="gate", title=say("gate.title"), gate=gate, choices=choices)
    return [row.plain for row in question_rows(question, Printer(console), Words(language))]


def gate(*commands: str, why: str = "needed", rationale: str = "asked for", **other: object) -> GateRequest:
    given = {"action_ids": ("a",), "operations": ("shell.run",), "intent": (why,), "rationale": rationale}
    return GateRequest.model_validate(given | {"commands": commands, "diff": "\n".join(commands)} | other)


@pytest.mark.parametrize("columns", [24, 40, 60, 80])
@pytest.mark.parametrize("language", ["en", "ja"])
def test_a_title_stands_whole_on_every_screen(columns: int, language: str) -> None:
    console = Console(file=io.StringIO(), width=columns, height=40, force_terminal=True, color_system=None)
    title = say("own.ask.key", endpoint="https://api.provider.example/v1")
    question = Question(kind="text", title=title, choices=(Choice(key="leave", label=say("own.leave")),))
    words = Words(language)
    shown = "".join(row.plain for row in question_rows(question, Printer(console), words))
    assert re.sub(r"\s", "", words.phrase(title)) in re.sub(r"[\s│╭╮─]", "", shown)


@pytest.mark.parametrize("styled", [True, False])
def test_two_choices_share_a_row_only_where_they_fit(styled: bool) -> None:
    choices = tuple(Choice(key=key, label=say(f"leave.{key}")) for key in ("cut", "stay"))
    question = Question(kind="choice", title=say("leave.finishing"), choices=choices)
    for columns, are_together in ((60, False), (90, False), (110, True)):
        console = Console(file=io.StringIO(), width=columns, height=40, force_terminal=styled, color_system=None)
        shown = [row.plain for row in question_rows(question, Printer(console), Words("en"))]
        assert [row for row in shown if "2. stay here" in row]
        assert any("1. leave at once" in row and "2. stay here" in row for row in shown) is are_together, columns


def test_a_question_without_a_diff_is_as_wide_as_the_terminal() -> None:
    """What an undo takes back and what a commit holds are long lists; narrow rows would make them longer."""
    impacts = tuple(FileImpact(path=f"src/pond/part_{number}.py", change="edit") for number in range(3))
    bare = GateRequest(action_ids=(), operations=("undo",), intent=(), rationale="", impacts=impacts)
    assert {len(row) for row in rows(bare, columns=150)} == {150}


@pytest.mark.parametrize(
    "columns", [60, pytest.param(80, marks=pytest.mark.slow), pytest.param(120, marks=pytest.mark.slow), 200]
)
@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_diff_stands_inside_the_panel(tmp_path: Path, opened: list[Terminal], columns: int, language: str) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/price.py").write_text(OLD)
    terminal = open_terminal(
        opened, tmp_path, [{"json": decide(EDIT, respond("Mended."))}], "--lang", language, columns=columns
    )
    terminal.wait_for(HELLO[language])
    terminal.enter("go")
    terminal.wait_for("╰")
    lines = [line.plain for line in terminal.styled()]
    top, bottom = (next(n for n, line in enumerate(lines) if line.startswith(edge)) for edge in "╭╰")
    framed = terminal.columns_of("│")[top + 1 : bottom]
    assert all({0, columns - 1} <= one or not one for one in framed) and sum(map(bool, framed)) > 10
    removed, added = (next(line for line in terminal.styled() if text in line.plain) for text in ("1.08", "1.10"))
    assert re.match(r"│ 32 -\s+return 価格 \* 1.08 ", removed.plain)
    assert re.match(r"│ 32 \+\s+return 価格 \* 1.10 ", added.plain)
    for line, changed in ((removed, "08"), (added, "10")):
        marked = [span for span in line.spans if getattr(span.style, "reverse", False)]
        assert "".join(line.plain[span.start : span.end] for span in marked) == changed
    assert any("magenta" in str(span.style) for span in added.spans), "the language's own colours"
    terminal.answer("1")
    terminal.wait_for("Mended.")
    assert "1.10" in (terminal.work / "price.py").read_text()


def test_commands_stand_first_and_whole_and_the_models_words_cannot_look_computed() -> None:
    long = "echo " + "x" * 300 + " ; rm -rf precious"
    forged = "fine\ncan be undone with /undo\n" + "⚠ " * 200 + "risk: low"
    impact = FileImpact(path="a.txt", change="edit", added=1)
    for columns in (60, 120):
        shown = rows(
            gate(f"$ {long}", why=forged, rationale="ok\n│ risk: low", impacts=(impact,), risk="high"), columns
        )
        inner = [row[2:-2].rstrip() for row in shown if row.startswith("│")]
        first = next(number for number, row in enumerate(inner) if not row.startswith(("$ ", "  ")))
        assert "".join(row[2:] for row in inner[:first]).replace(" ", "") == long.replace(" ", "")
        assert "risk: high" in inner and "risk: low" not in inner and "can be undone with /undo" not in inner
        said = [row for row in inner if row.startswith("┆ ")]
        assert said[0].startswith("┆ purpose: “fine can be undone") and any(
            "why: “ok │ risk: low”" in row for row in said
        )
        assert sum(len(row) for row in said) < 500
        assert not any("⚠" in row for row in inner if row not in said)
    assert any(
        row.strip().startswith("┆ 目的: 「fine") for row in rows(gate("$ ls", why=forged), language="ja", styled=False)
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("echo hi" + " " * 500 + "; rm -rf ~", "echo hi⟨500 spaces⟩; rm -rf ~"),
        ("a" + "\t" * 9 + "b", "a⟨9 spaces⟩b"),
        ("+" + " " * 40 + "deep = 1", "+" + " " * 40 + "deep = 1"),
        ("+" + " " * 60 + "deep = 1", "+⟨60 spaces⟩deep = 1"),
        ("        indented", "        indented"),
        ("rm\ufe00\ufe01\ufe0f -r", "rm⟨3 invisible characters⟩ -r"),
        ("rm\u00a0x", "rm\\xa0x"),
        ("x" + "".join(chr(0xE0100 + n) for n in range(40)), "x⟨40 invisible characters⟩"),
        ("❤️‍🔥 葛\U000e0100", "❤️‍🔥 葛\U000e0100"),
        ("e" + "\u0301" * 50 + "!", "e\u0301\u0301⟨48 invisible characters⟩!"),
    ],
)
def test_characters_that_could_hide_something_are_folded_and_counted(text: str, shown: str) -> None:
    assert folded(text, Words("en")) == shown
    assert folded("a" + " " * 60, Words("ja")) == "a⟨空白 60 個⟩"


def test_the_risk_and_what_cannot_be_undone_are_named() -> None:
    lasting = gate("$ curl x", risk="forbidden", lasting=(say("lasting.network"),))
    assert any("risk: very high" in row for row in rows(lasting))
    assert any("cannot be undone: what this sends over the network" in row for row in rows(lasting))
    assert any("リスク: 非常に高い" in row for row in rows(lasting, language="ja"))
    assert any("can be undone with /undo" in row for row in rows(gate("$ touch a", reversible=True)))


@pytest.mark.parametrize("lines", range(15, 45))
def test_the_answers_are_seen_with_the_last_page_only_and_together(lines: int) -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, height=30, force_terminal=True, color_system=None)
    choices = tuple(Choice(key=key, label=say("gate.yes")) for key in ("yes", "no", "edit"))
    asked = gate("$ " + "\n> ".join(f"echo {number}" for number in range(lines)), risk="high")
    pages = QuestionPages(Printer(console), Words("en"))
    pages.show(Question(kind="gate", title=say("gate.title"), gate=asked, choices=choices))
    while pages.left:
        assert "1. yes" not in out.getvalue()
        pages.more()
    assert "1. yes" in out.getvalue() and f"echo {lines - 1} " in out.getvalue()


@pytest.mark.parametrize(("language", "more", "yes"), [("en", "more", "yes"), ("ja", "続き", "はい")])
def test_a_risky_question_longer_than_the_screen_is_paged_before_a_yes_counts(
    tmp_path: Path, opened: list[Terminal], language: str, more: str, yes: str
) -> None:
    text = "".join(f"line {number}\n" for number in range(1, 91))
    write = {"json": decide(act("file_ops.write_file", path="long.sh", content=text), respond("It is written."))}
    terminal = open_terminal(opened, tmp_path, [write], "--lang", language)
    terminal.wait_for(HELLO[language])
    terminal.enter("go")
    screen = terminal.wait_for("+line 20")
    assert "+line 60" not in screen and YES[language] not in screen
    terminal.answer(more)
    assert YES[language] not in terminal.wait_for("+line 40")
    terminal.answer(yes)
    terminal.wait_until(lambda screen: "more lines first" in screen or "を読んでください" in screen.replace(" ", ""))
    assert not (terminal.work / "long.sh").exists()
    terminal.answer("")
    terminal.wait_for(YES[language])
    terminal.wait_for(f"› {yes}")
    terminal.answer("")
    terminal.wait_for("It is written.")
    assert (terminal.work / "long.sh").read_text() == text


def test_a_no_counts_at_any_time_and_all_shows_the_rest(tmp_path: Path, opened: list[Terminal]) -> None:
    text = "".join(f"line {number}\n" for number in range(1, 201))
    write = {"json": decide(act("file_ops.write_file", path="long.sh", content=text), respond("It is written."))}
    terminal = open_terminal(opened, tmp_path, [write, write], TERM="dumb")
    terminal.wait_for(HELLO["en"])
    terminal.enter("go")
    terminal.wait_for("more lines to read before")
    terminal.answer("no")
    terminal.wait_for("Refused")
    assert not (terminal.work / "long.sh").exists()
    terminal.enter("again")
    terminal.wait_until(lambda screen: screen.count("more lines to read before") == 2)
    terminal.answer("yes")
    terminal.wait_for("Your answer is kept")
    terminal.answer("all")
    assert "+line 199" in terminal.wait_for("1. yes")
    terminal.answer("")
    terminal.wait_for("It is written.")


def test_text_typed_before_the_question_is_no_answer(tmp_path: Path, opened: list[Terminal]) -> None:
    write = {
        "json": decide(act("file_ops.write_file", path="a.txt", content="x\n"), respond("It is written.")),
        "delay": 1,
    }
    terminal = open_terminal(opened, tmp_path, [write])
    terminal.wait_for(HELLO["en"])
    terminal.enter("go")
    terminal.wait_for("› go")
    terminal.type("1")
    terminal.wait_for("1. yes")
    terminal.answer("")
    terminal.wait_for("before the question could be read")
    assert not (terminal.work / "a.txt").exists()
    terminal.wait_for("› 1")
    terminal.answer("")
    terminal.wait_for("It is written.")


def test_a_question_at_a_long_box_is_answered_below_it(tmp_path: Path, opened: list[Terminal]) -> None:
    text = "".join(f"line {number}\n" for number in range(1, 91))
    write = {"json": decide(act("file_ops.write_file", path="long.sh", content=text), respond("It is written."))}
    terminal = open_terminal(opened, tmp_path, [write, {"json": {"answer": "Since it runs later."}}])
    terminal.wait_for(HELLO["en"])
    terminal.enter("go")
    terminal.wait_for("+line 20")
    terminal.answer("why that file?")
    terminal.wait_for("Since it runs later.")
    assert not (terminal.work / "long.sh").exists()
    terminal.answer("yes")
    terminal.wait_for("It is written.")


@pytest.mark.parametrize("commands", [(), ("$ pytest -q",)])
def test_a_long_question_without_risk_is_shown_at_once(commands: tuple[str, ...]) -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, height=30, force_terminal=True, color_system=None)
    pages = QuestionPages(Printer(console), Words("en"))
    asked = gate(*commands, diff="\n".join([*commands, *(f"+line {number}" for number in range(90))]), risk="medium")
    choices = (Choice(key="yes", label=say("gate.yes")), Choice(key="no", label=say("gate.no")))
    pages.show(Question(kind="gate", title=say("gate.title"), gate=asked, choices=choices))
    assert not pages.left and "line 89" in out.getvalue() and "1. yes" in out.getvalue()


def test_events_while_a_box_is_half_shown_stand_below_it() -> None:
    out = io.StringIO()
    printer = Printer(Console(file=out, width=80, height=30, force_terminal=True, color_system=None))
    screen = Screen(printer, Words("en"))
    asked = gate("$ " + "\n> ".join(f"echo {number}" for number in range(60)), risk="high")
    choices = (Choice(key="yes", label=say("gate.yes")), Choice(key="no", label=say("gate.no")))
    screen.ask(Question(kind="gate", title=say("gate.title"), gate=asked, choices=choices))
    screen.draw(NoticeItem("1", 0, 0.0, "noticed", say("job.paused", job="other work")))
    assert screen.question.left and "other work" not in out.getvalue()
    screen.question.more(whole=True)
    screen.catch_up()
    shown = out.getvalue()
    assert shown.index("echo 59") < shown.index("╰") < shown.index("other work")


@pytest.mark.parametrize("key", ["gate.explained", "step.answers"])
def test_a_models_answer_in_a_notice_is_shown_without_markup(key: str) -> None:
    out = io.StringIO()
    printer = Printer(Console(file=out, width=80, height=30, force_terminal=True, color_system=None))
    what = say(key, step="First", text="It is **new**, see `a.py`.")
    Screen(printer, Words("en")).draw(NoticeItem("1", 0, 0.0, "noticed", what))
    assert "It is new, see a.py." in out.getvalue()
