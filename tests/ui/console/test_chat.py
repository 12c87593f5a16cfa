"""A person at a terminal."""

from pathlib import Path

import pytest

from duckflow.i18n.words import Words
from tests.journeys.story import act, decide, respond
from tests.ui.console.terminal import Terminal, open_terminal

WRITE = {"json": decide(act("file_ops.write_file", path="hello.py"), respond("It is written."))}
BODY = "print('hello')\n"
ANSWER = {
    "json": decide(respond("こんにちは。\n[bold]角括弧[/bold]はそのまま。"), step="PLANNING"),
    "chunk": 4,
    "delay": 0.01,
}
SLOW = {"json": decide(respond("slowly " * 200), step="PLANNING"), "chunk": 4, "delay": 0.1}
HELLO = "/help shows"


def test_a_change_is_shown_asked_for_and_made(tmp_path: Path, opened: list[Terminal]) -> None:
    terminal = open_terminal(opened, tmp_path, [WRITE, BODY])
    terminal.wait_for(HELLO)
    terminal.enter("create hello.py")
    screen = terminal.wait_for("1. yes")
    assert "+print('hello')" in screen and "It is written." not in screen
    terminal.answer("maybe")
    terminal.wait_for("2: no, tell the model: maybe")
    terminal.answer("１")
    terminal.wait_for("It is written.")
    assert (terminal.work / "hello.py").read_text() == BODY
    terminal.type("\x04")
    assert terminal.wait_for_end() == 0
    assert "duckflow -r" in terminal.shown()


def test_japanese_streams_in_and_brackets_are_plain_text(tmp_path: Path, opened: list[Terminal]) -> None:
    terminal = open_terminal(opened, tmp_path, [ANSWER], "--lang", "ja")
    terminal.wait_for("Esc で中断")
    terminal.enter("やあ")
    screen = terminal.wait_for("はそのまま。")
    assert "こんにちは。" in screen.replace(" ", "")
    assert "[bold]角括弧[/bold]" in screen.replace(" ", "")


@pytest.mark.parametrize("language", ["en", "ja"])
def test_a_line_typed_during_a_turn_steers_or_waits(tmp_path: Path, opened: list[Terminal], language: str) -> None:
    look = decide(act("file_ops.list_files", path="."), step="PLANNING", next_step="continue")
    heard = {"json": decide(respond("steered answer"), step="PLANNING"), "when": "twofold"}
    after = {"json": decide(respond("later answer"), step="PLANNING"), "when": "threefold"}
    slow = SLOW | {"json": look, "delay": 0.05}
    terminal = open_terminal(opened, tmp_path, [slow, heard, after], "--lang", language)
    terminal.wait_for("Esc")
    terminal.enter("one")
    terminal.wait_for("› one")
    terminal.enter("twofold")
    terminal.type("threefold\x1b\r")
    words, told = Words(language), "".join
    waiting = [words("chat.unheard", text="twofold"), words("chat.queued", text="threefold")]
    terminal.wait_until(lambda screen: all(told(line.split()) in told(screen.split()) for line in waiting))
    order = ["›twofold", told(words("chat.meanwhile").split()), "steeredanswer", "›threefold", "lateranswer"]

    def stand_in_order(screen: str) -> bool:
        """Waits for the texts in order: streamed text may be drawn a moment before the line above it."""
        places = [told(screen.split()).find(text) for text in order]
        return -1 not in places and places == sorted(places)

    terminal.wait_until(stand_in_order, what="the lines in their order")
    terminal.type("above\x1b\rbelow\x04")
    terminal.wait_until(lambda screen: "above\n  below" in screen, what="a new line at rest")


def test_commands_help_and_suggest(tmp_path: Path, opened: list[Terminal]) -> None:
    terminal = open_terminal(opened, tmp_path, [])
    terminal.wait_for(HELLO)
    terminal.enter("/hepl")
    terminal.wait_for("/help?")
    terminal.enter("/help")
    terminal.wait_for("Ctrl+D")
    terminal.enter("/mode plan")
    terminal.wait_for("Mode: plan")
    terminal.enter("/lang ja")
    terminal.wait_for("日")
    terminal.enter("/quit")
    assert terminal.wait_for_end() == 0


@pytest.mark.slow
def test_a_session_goes_on_after_a_restart(tmp_path: Path, opened: list[Terminal]) -> None:
    first = open_terminal(opened, tmp_path, [ANSWER], "remember me")
    first.wait_for("はそのまま")
    first.type("\x04")
    first.wait_for_end()
    again = open_terminal(
        opened, tmp_path, [{"json": decide(respond("I do remember."), step="PLANNING")}], "-c", "do you?"
    )
    again.wait_for("I do remember.")
    again.enter("/status")
    again.wait_for("2 turns")
    again.wait_for("Trend: mood █")
