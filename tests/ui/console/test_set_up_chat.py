"""The first minutes: no model yet, `/doctor`, `/init`, and being ended from outside."""

import signal
from pathlib import Path

from tests.ui.console.terminal import Terminal, open_terminal

NOWHERE = {
    "HF_ENDPOINT": "http://127.0.0.1:9",
    "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
    "PIP_EXTRA_INDEX_URL": "",
    "PIP_FIND_LINKS": "",
    "PIP_CONFIG_FILE": "/dev/null",
    "PIP_RETRIES": "0",
}


def test_without_a_model_the_ways_are_told_and_the_local_one_is_offered(tmp_path: Path, opened: list[Terminal]) -> None:
    terminal = open_terminal(opened, tmp_path, None, **NOWHERE)
    terminal.wait_for("There is no model yet")
    terminal.enter("make me a game")
    screen = terminal.wait_for("4. not now")
    assert "1. a key from OpenAI" in screen and "3. the small local model" in screen
    terminal.answer("perhaps")
    terminal.wait_for("one of the numbers")
    terminal.answer("３")
    terminal.wait_for("could not be downloaded")
    terminal.enter("again")
    terminal.wait_until(lambda shown: shown.count("4. not now") == 2)
    terminal.answer("4")
    terminal.wait_for("Your message is back in the line")
    terminal.wait_until(lambda shown: shown.count("› again") == 2, what="the message in the line")
    terminal.type("\x15")
    terminal.enter("/quit")
    assert terminal.wait_for_end() == 0


def test_doctor_in_the_chat_shows_the_same(tmp_path: Path, opened: list[Terminal]) -> None:
    terminal = open_terminal(opened, tmp_path, [], "--lang", "ja")
    terminal.wait_for("/help")
    terminal.enter("/doctor")
    screen = terminal.wait_for("下の矢印")
    assert "作業フォルダー" in screen and "git" in screen


def test_init_in_the_chat_asks_and_writes(tmp_path: Path, opened: list[Terminal]) -> None:
    terminal = open_terminal(opened, tmp_path, [])
    terminal.wait_for("/help")
    terminal.enter("/init")
    terminal.wait_for("1/3")
    terminal.answer("２")
    terminal.wait_for("2/3")
    terminal.answer("1")
    terminal.wait_for("3/3")
    terminal.answer("2")
    terminal.wait_for("AGENTS.md の下書きを作りますか")
    terminal.answer("1")
    terminal.wait_for("書き込みました: AGENTS.md")
    assert 'language = "ja"' in (tmp_path / "home/config/config.toml").read_text()
    assert "コマンド" in (terminal.work / "AGENTS.md").read_text()


def test_ended_from_outside_the_chat_leaves_in_order(tmp_path: Path, opened: list[Terminal]) -> None:
    terminal = open_terminal(opened, tmp_path, [])
    terminal.wait_for("/help")
    terminal.process.kill(signal.SIGTERM)
    assert terminal.wait_for_end() == 130
