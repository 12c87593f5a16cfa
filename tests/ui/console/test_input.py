"""Typing at a real terminal: completion, history, pastes, own commands, the Ctrl+C ladder."""

import subprocess
from pathlib import Path

from tests.ui.console.terminal import Terminal, said, start

TAB, UP, DOWN, CTRL_C, CTRL_R = "\t", "\x1b[A", "\x1b[B", "\x03", "\x12"


def test_commands_and_files_are_completed_and_mentioned_files_go_along(tmp_path: Path, opened: list[Terminal]) -> None:
    (tmp_path / "work/src").mkdir(parents=True)
    (tmp_path / "work/src/app.py").write_text("the_answer = 42\n")
    terminal = start(opened, tmp_path, [said("seen", when="the_answer = 42")])
    terminal.type("/stat")
    terminal.wait_for("show what Duckflow is doing")
    terminal.enter(TAB)
    terminal.wait_for("Session ")
    terminal.type("explain @ap")
    terminal.wait_for("  src/app.py")
    terminal.type(TAB)
    terminal.wait_for("› explain @src/app.py")
    terminal.enter("")
    terminal.enter("please")
    terminal.wait_for("attached: src/app.py (1 line)")
    terminal.wait_for("seen")
    terminal.enter("／lang ja")
    terminal.wait_for("トークン")


def test_a_tab_typed_with_its_word_completes_it(tmp_path: Path, opened: list[Terminal]) -> None:
    """People who type fast do not wait for the menu."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work/app.py").write_text("")
    terminal = start(opened, tmp_path, [])
    terminal.type("look at @")
    terminal.wait_for("  app.py")
    terminal.type(f"a{TAB}")
    terminal.wait_for("› look at @app.py")


def test_a_long_paste_is_a_mark_in_the_line_and_whole_in_the_message(tmp_path: Path, opened: list[Terminal]) -> None:
    terminal = start(opened, tmp_path, [said("got it", when="line 9999")])
    terminal.type("look: ")
    terminal.paste("\r".join(f"line {number}" for number in range(10_000)))
    terminal.wait_for("› look: [pasted #1: 10000 lines]")
    terminal.paste(" one\rtwo")
    terminal.wait_for("  two")
    terminal.enter("")
    screen = terminal.wait_for("got it")
    assert "› look: line 0" in screen and "line 100\n" not in screen


def test_a_command_of_the_users_own_runs_at_once_and_the_model_knows(tmp_path: Path, opened: list[Terminal]) -> None:
    terminal = start(opened, tmp_path, [said("I saw it", when="printed-by-me"), said("slowly", delay=60)])
    terminal.enter("!echo printed-by-$((1 + 1)) | sed s/2/me/; exit 3")
    screen = terminal.wait_for("exit code 3")
    assert "│ printed-by-me" in screen
    terminal.enter("what do you make of it?")
    terminal.wait_for("I saw it")
    terminal.enter("now wait")
    terminal.enter("!sleep 4321")
    terminal.wait_until(lambda _: _running("sleep 4321"))
    terminal.type("\x1b")
    terminal.wait_for("exit code 130")
    terminal.wait_for("Interrupted.")
    terminal.wait_until(lambda _: not _running("sleep 4321"))
    terminal.enter("/audit")
    terminal.wait_for("why: typed by the user")


def _running(command: str) -> bool:
    return command in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout


def test_ctrl_c_stops_clears_and_leaves_and_the_history_stays_for_the_next_session(
    tmp_path: Path, opened: list[Terminal]
) -> None:
    terminal = start(opened, tmp_path, [said("slowly " * 800, chunk=16, delay=0.1)])
    terminal.enter("talk slowly")
    terminal.wait_for("slowly slowly")
    terminal.type("half a line" + CTRL_C)
    terminal.wait_for("Interrupted.")
    terminal.wait_for("› half a line")
    terminal.type(CTRL_C)
    terminal.wait_for("Ctrl+C again")
    terminal.type(CTRL_C)
    assert terminal.wait_for_end() == 0
    again = start(opened, tmp_path, [said("there")], "-c")
    again.type(UP)
    again.wait_for("› talk slowly")
    again.type(DOWN + CTRL_R + "slow")
    again.wait_for("(reverse-i-search)`slow'")
    again.type("\x1b")
    again.wait_for("› talk slowly")
    again.enter("")
    again.wait_for("there")


def test_a_line_typed_before_everything_is_loaded_counts(tmp_path: Path, opened: list[Terminal]) -> None:
    terminal = Terminal(tmp_path, [said("early bird")])
    opened.append(terminal)
    terminal.enter("good morning")
    terminal.wait_for("early bird")
