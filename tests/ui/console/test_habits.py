"""Habits that people bring to a terminal program."""

import json
import time
from functools import partial
from pathlib import Path

import pytest

from duckflow.i18n.words import Words
from tests.journeys.story import act, decide, respond
from tests.ui.console.terminal import Terminal

REPLY = {"json": decide(respond("Understood."), step="PLANNING")}
WRITE = {"json": decide(act("file_ops.write_file", path="a.txt", content="x\n"), respond("Written."))}


def has_answered(answer: str, times: int, screen: str) -> bool:
    """Says whether the answer stands there so many times, and the turn is over."""
    return screen.count(answer) == times and "esc" not in screen.splitlines()[-1].lower()


def press_escape_twice(terminal: Terminal, shows: str) -> None:
    """The second press counts within two seconds of the first; on a busy machine it may be read later, and both are
    pressed again when nothing has come of them."""
    for _ in range(5):
        terminal.type("\x1b")
        terminal.read(0.7)
        terminal.type("\x1b")
        until = time.monotonic() + 10
        while time.monotonic() < until:
            if shows in terminal.shown():
                return
    terminal.wait_for(shows)


@pytest.mark.parametrize("language", ["en", "ja"])
def test_escape_twice_goes_back_and_the_message_can_be_changed(
    tmp_path: Path, opened: list[Terminal], language: str
) -> None:
    words = Words(language)
    opened.append(
        terminal := Terminal(tmp_path, [REPLY, REPLY, WRITE, REPLY], "--lang", language, "--mode", "auto-edit")
    )
    terminal.wait_for("›")
    for text, answer in (("first thing", "Understood."), ("second thing", "Understood."), ("write it", "Written.")):
        # A message that is sent before this answer would belong to the same turn.
        after = terminal.shown().count(answer) + 1
        terminal.enter(text)
        terminal.wait_until(partial(has_answered, answer, after))
    press_escape_twice(terminal, words("back.title"))
    terminal.answer("1")
    terminal.wait_for(words("back.what"))
    terminal.answer("1")
    terminal.wait_for(words("back.talked")[:20])
    assert not (terminal.work / "a.txt").exists()
    terminal.wait_until(lambda screen: "› write it" in screen[screen.index(words("back.talked")[:20]) :])


@pytest.mark.parametrize("language", ["en", "ja"])
def test_a_new_conversation_knows_nothing_of_the_old_one(tmp_path: Path, opened: list[Terminal], language: str) -> None:
    opened.append(terminal := Terminal(tmp_path, [REPLY], "--lang", language, "--mode", "plan"))
    terminal.enter("hello there")
    terminal.wait_for("Understood.")
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps({"json": decide(respond("The other one."), step="PLANNING")}))
    terminal.enter(f"/model scripted:{other}")
    terminal.wait_for("other.jsonl")
    terminal.enter("/new")
    terminal.wait_until(lambda screen: screen.count(Words(language)("chat.hello", version="", folder="")[:8]) == 2)
    terminal.enter("/mode")
    terminal.wait_for("plan")
    terminal.enter("who are you?")
    terminal.wait_for("The other one.")
    terminal.enter("/cost")
    terminal.enter("/resume")
    terminal.wait_for("hello there")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("kind", "sign"), [("bell", b"\a"), ("desktop", b"\x1b]9;Duckflow: "), ("off", b"")])
def test_the_user_is_called_when_it_waits(tmp_path: Path, opened: list[Terminal], kind: str, sign: bytes) -> None:
    config = tmp_path / "home/config/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[ui]\nnotify = "{kind}"\nnotify_seconds = 0.0\n')
    opened.append(terminal := Terminal(tmp_path, [WRITE]))
    terminal.enter("write it")
    terminal.wait_for("a.txt")
    terminal.read(0.5)
    heard = terminal.raw.replace(b"\x1b]0;", b"").replace(b"\x1b]2;", b"")
    if sign:
        assert sign in heard
    else:
        assert b"\a" not in heard and b"]9;" not in heard
