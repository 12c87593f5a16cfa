"""Questions are answered as people answer: with a digit, a full-width digit, or a word."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.story import act, decide, respond
from tests.ui.console.terminal import Terminal, start

LOOK = {"json": decide(act("file_ops.list_files"), step="PLANNING", next_step="continue")}
STUCK = 4


def writing(number: int) -> list[Any]:
    told = respond(f"Number {number} is there.")
    return [{"json": decide(act("file_ops.write_file", path=f"f{number}.txt"), told)}, f"text {number}\n"]


@pytest.mark.parametrize(
    ("language", "answers", "hello"),
    [("en", ("1", "１", "yes", "ｙｅｓ"), "/help shows"), ("ja", ("1", "１", "はい", "お願いします"), "Esc で中断")],
)
def test_the_gate(tmp_path: Path, opened: list[Terminal], language: str, answers: list[str], hello: str) -> None:
    replies = [line for number in range(len(answers)) for line in writing(number)]
    terminal = Terminal(tmp_path, replies, "--lang", language)
    opened.append(terminal)
    terminal.wait_for(hello)
    for number, answer in enumerate(answers):
        terminal.enter("go")
        terminal.wait_for(f"+text {number}")
        terminal.answer(answer)
        terminal.wait_for(f"Number {number} is there.")
        assert (terminal.work / f"f{number}.txt").exists()


@pytest.mark.parametrize(
    "editor", ["true", *(pytest.param(one, marks=pytest.mark.slow) for one in ("false", "no-such"))]
)
def test_an_editor_that_changes_nothing_is_no_yes(tmp_path: Path, opened: list[Terminal], editor: str) -> None:
    """The question stays if the editor is left without saving, is killed, or does not exist."""
    terminal = start(opened, tmp_path, writing(0), EDITOR=editor, VISUAL="")
    terminal.enter("go")
    terminal.wait_for("+text 0")
    terminal.answer("5")
    terminal.wait_for("Nothing was edited, and nothing has been done yet")
    assert not (terminal.work / "f0.txt").exists()
    terminal.answer("1")
    terminal.wait_for("Number 0 is there.")
    assert (terminal.work / "f0.txt").exists()


@pytest.mark.parametrize(
    ("language", "answers", "title", "stopped", "hello"),
    [
        ("en", ("1", "１", "stop here"), "I am not making progress. What", "Stopped.", "/help shows"),
        ("ja", ("1", "１", "ここで止める"), "先に進めていません", "停止しました。", "Esc で中断"),
    ],
)
def test_a_duck_call(
    tmp_path: Path, opened: list[Terminal], language: str, answers: list[str], title: str, stopped: str, hello: str
) -> None:
    terminal = Terminal(tmp_path, [LOOK] * STUCK * len(answers), "--lang", language)
    opened.append(terminal)
    terminal.wait_for(hello)
    for number, answer in enumerate(answers, 1):
        terminal.enter("look")
        terminal.wait_until(shown(title, number), what=title)
        terminal.answer(answer)
        terminal.wait_until(shown(stopped, number), what=stopped)


@pytest.mark.parametrize(
    ("language", "title", "hello"),
    [("en", "I need your help", "/help shows"), ("ja", "力を貸してください", "Esc で中断")],
)
@pytest.mark.parametrize("question", ["Which library?", "Two ways are open.\nWhich library?"])
def test_the_models_own_duck_call_looks_like_one(
    tmp_path: Path, opened: list[Terminal], language: str, title: str, hello: str, question: str
) -> None:
    call = decide(act("duck_call", question=question, choices=["curses", "pygame"]), next_step="pending_user")
    terminal = Terminal(tmp_path, [{"json": call, "chunk": 4}], "--lang", language)
    opened.append(terminal)
    terminal.wait_for(hello)
    terminal.enter("make a game")
    terminal.wait_until(shown(title, 1), what=title)
    screen = terminal.wait_for("2. pygame")
    assert screen.count("Which library?") == 1 and "│ 1. curses" in screen


def shown(text: str, times: int) -> Callable[[str], bool]:
    """Returns the screen's text; wide characters stand with a gap after them."""
    return lambda screen: screen.replace(" ", "").count(text.replace(" ", "")) == times
