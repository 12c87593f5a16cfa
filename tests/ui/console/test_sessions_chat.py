"""Going from one session to another in a terminal."""

from contextlib import closing
from pathlib import Path

from duckflow.store.journal import Journal
from tests.journeys.story import act, decide, respond
from tests.ui.console.terminal import Terminal

REPLY = {"json": decide(respond("Understood."), step="PLANNING")}
WRITE = {"json": decide(act("file_ops.write_file", path="new.txt", content="x"), respond("Written."))}


def talked(top: Path, *messages: str) -> None:
    for message in messages:
        terminal = Terminal(top, [REPLY], message)
        terminal.wait_for("Understood.")
        terminal.type("\x04")
        assert terminal.wait_for_end() == 0


def test_a_session_is_picked_by_typing_and_left_with_escape(tmp_path: Path, opened: list[Terminal]) -> None:
    talked(tmp_path, "talk about parsers", "日本語の話")
    # Without a choice nothing is opened.
    opened.append(terminal := Terminal(tmp_path, [], "-r"))
    terminal.wait_for("talk about parsers")
    terminal.type("\x1b")
    assert terminal.wait_for_end() == 0
    assert "Duckflow" not in terminal.shown()
    opened.append(terminal := Terminal(tmp_path, [REPLY], "-r"))
    screen = terminal.wait_for("talk about parsers")
    assert "1. 日" in screen
    terminal.type("zzz")
    terminal.wait_for("Nothing matches")
    terminal.type("\x15pars\r")
    terminal.wait_for("Continuing “talk about parsers”")
    terminal.wait_for("chosen on the command line")
    terminal.enter("/resume")
    terminal.wait_for("type to filter")
    terminal.type("\x1b")
    terminal.wait_for("you stay in this one")
    terminal.enter("/resume")
    terminal.wait_until(lambda screen: "type to filter" in screen)
    terminal.type("２\r")
    terminal.wait_for("Continuing “日")
    terminal.wait_until(lambda screen: screen.count("chosen on the command line") == 2)
    terminal.enter("/mode plan")
    terminal.wait_for("Mode: plan")
    terminal.enter("/fork")
    terminal.wait_for("This is a branch of")
    terminal.wait_until(lambda screen: screen.count("chosen on the command line") == 3)
    terminal.enter("/mode")
    terminal.wait_for("Mode: plan. To change it")
    # A dumb terminal gets a numbered list: the branch, where it came from, the other.
    opened.append(terminal := Terminal(tmp_path, [], "-r", TERM="dumb"))
    terminal.wait_for("3. talk about parsers")
    terminal.enter("３")
    terminal.wait_for("Continuing “talk about parsers”")


def test_a_cut_off_turn_and_its_question_are_shown_on_resuming(tmp_path: Path, opened: list[Terminal]) -> None:
    opened.append(first := Terminal(tmp_path, [WRITE], "make new.txt"))
    first.wait_for("1. yes")
    first.process.kill(9)
    opened.append(again := Terminal(tmp_path, [REPLY], "-c", "--mode", "auto-edit"))
    screen = again.wait_for("This has not been done yet")
    assert "› make new.txt" in screen and "The last turn was interrupted." in screen and "new.txt" in screen
    again.enter("/mode plan")
    again.wait_for("Mode: plan")
    again.type("\x04")
    again.wait_for_end()
    opened.append(third := Terminal(tmp_path, [REPLY], "-c"))
    third.wait_for("The mode was plan; now it is ask")


def test_a_session_that_is_open_elsewhere_is_not_entered(tmp_path: Path, opened: list[Terminal]) -> None:
    talked(tmp_path, "the other window")
    journal = next((tmp_path / "home/data/sessions").rglob("*.db"))
    opened.append(terminal := Terminal(tmp_path, [REPLY], "here"))
    terminal.wait_for("Understood.")
    with closing(Journal(journal)):
        terminal.enter("/resume 2")
        terminal.wait_for("open in another window")
    terminal.wait_until(lambda screen: screen.count("chosen on the command line") == 2)
    terminal.enter("still there?")
    terminal.wait_until(lambda screen: screen.count("Understood.") == 2)
