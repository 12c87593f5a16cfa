"""The tour with a person at the keys."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ui.console.terminal import Terminal


@pytest.fixture
def tour(tmp_path: Path) -> Iterator[Terminal]:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    terminal = Terminal(tmp_path, None, "demo", TMPDIR=str(temporary))
    yield terminal
    terminal.process.close(force=True)


@pytest.mark.slow
def test_enter_sends_what_is_suggested_and_everything_can_be_answered_otherwise(tour: Terminal, tmp_path: Path) -> None:
    tour.wait_for("sends: Hello!")
    tour.answer("/cost")
    tour.wait_for("No model has been called")
    tour.answer("")
    tour.wait_for("sends: Write a greeting")
    tour.answer("write me something")
    tour.wait_for("sends: 1")
    tour.answer("no, not today")
    tour.wait_for("sends: Plan a small")
    tour.answer("")
    tour.wait_for("sends: yes")
    tour.answer("")
    tour.wait_for("sends: How far")
    tour.wait_for("game.py  (+3")
    tour.answer("１")
    tour.wait_for("score.py  (+2")
    tour.answer("")
    tour.wait_for("1 task done")
    tour.answer("")
    tour.wait_for("sends: Why is the game slow?")
    tour.answer("")
    tour.wait_for("What should I do?")
    tour.answer("stop here")
    tour.wait_for("sends: /undo")
    tour.answer("")
    tour.wait_for("Undo the changes of")
    tour.answer("")
    tour.wait_for("sends: /quit")
    tour.answer("")
    assert tour.wait_for_end() == 0
    assert "duckflow init" in tour.shown() and list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.slow
def test_it_can_be_left_at_any_time(tour: Terminal, tmp_path: Path) -> None:
    tour.wait_for("sends: Hello!")
    tour.answer("")
    tour.wait_for("sends: Write a greeting")
    tour.answer("")
    tour.wait_for("May I?")
    tour.type("\x04")
    assert tour.wait_for_end() == 0
    assert list((tmp_path / "tmp").iterdir()) == []
