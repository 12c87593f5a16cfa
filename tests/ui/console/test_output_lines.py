"""The part of a command's output that is shown."""

import io

import pytest
from rich.console import Console

from duckflow.events.types import (
    ActionFinished,
    ActionStarted,
    Event,
    OutputStreamed,
    ReplyRejected,
    StreamReset,
    TextStreamed,
)
from duckflow.i18n.width import cells
from duckflow.i18n.words import Words
from duckflow.state.action import Action, ActionResult
from duckflow.state.data import say
from duckflow.ui.console.printer import Printer
from duckflow.ui.console.screen import OutputLines, Screen
from duckflow.view.view import View


def test_the_first_lines_come_at_once_and_the_last_ones_at_the_end() -> None:
    output = OutputLines(first=2, last=2)
    assert output.add("1\n2\n3\n4") == ["1", "2"]
    assert output.add("4\n5\n6") == []
    assert output.latest == "6"
    assert output.end() == (2, ["5", "6"])


def test_nothing_is_left_out_of_a_short_output() -> None:
    output = OutputLines(first=2, last=3)
    assert output.add("a\nb\nc\nd\n") == ["a", "b"]
    assert output.end() == (0, ["c", "d"])


def test_lines_that_were_never_handed_on_count_and_end_the_beginning() -> None:
    output = OutputLines(first=5, last=1)
    assert output.add("a\nhal") == ["a"]
    assert output.add("y\nz\n", left_out=10) == []
    assert output.end() == (11, ["z"])


def test_only_the_last_state_of_a_progress_bar_is_shown() -> None:
    output = OutputLines(first=1, last=1)
    assert output.add("10%\r20%") == []
    assert output.latest == "20%"
    assert output.add("\r100%\nok\n") == ["100%"]


def test_a_line_without_an_end_stays_short() -> None:
    output = OutputLines(first=0, last=1)
    for _ in range(50):
        output.add("x" * 1000)
    assert len(output.end()[1][0]) <= 400


def show(*events: Event) -> str:
    """Returns the text on the screen after these events."""
    shown, view = io.StringIO(), View()
    screen = Screen(Printer(Console(file=shown, width=80)), Words("en"))
    for event in events:
        for item in view.hear(0, event):
            screen.draw(item)
    return shown.getvalue()


def test_text_before_a_call_stands_before_its_output() -> None:
    ls = Action(operation="shell.run", args={"command": "ls"}, reasoning="to see")
    shown = show(
        TextStreamed(text="I look around.", channel="say"),
        ActionStarted(action=ls, doing=say("wait.you"), effect="run"),
        OutputStreamed(text="a.py\nb.py\n"),
    )
    assert shown.split() == ["I", "look", "around.", "│", "a.py", "│", "b.py"]


def test_the_cause_of_a_failure_does_not_repeat_lines_already_shown() -> None:
    lines = ["one", "two", "three", *(f"between {n}" for n in range(5)), "Error: it is 100", *"abcde"]
    cause = "\n".join(lines[2:4] + lines[8:])
    why = say("shell.finished", command="x", code=1, seconds=1).with_cause(cause)
    result = ActionResult(action_id="1", operation="shell.run", ok=False, for_model="", for_user=why, effect="run")
    shown = show(
        OutputStreamed(text="\n".join(lines) + "\n", job="job"),
        ActionFinished(result=result, job="job"),
    )
    texts = [line.removeprefix("  │ ") for line in shown.split("\n") if line.startswith("  │ ")]
    heading = "… and of the lines left out, those that tell the cause:"
    assert texts == [*lines[:3], "… 6 lines left out …", *"abcde", heading, "between 0", "Error: it is 100"]


def test_a_reply_that_cannot_be_used_is_told_of_once() -> None:
    shown = show(
        TextStreamed(text="I write it.", channel="say"),
        ReplyRejected(reason="no JSON", attempt=1),
        StreamReset(),
    )
    said, told = shown.strip().split("\n")
    assert said.strip() == "I write it." and "could not be used; asking again" in told


@pytest.mark.parametrize("columns", [30, 40, 80])
def test_a_row_of_a_table_continues_below_its_second_column(columns: int) -> None:
    shown = io.StringIO()
    printer = Printer(Console(file=shown, width=columns, color_system=None))
    Screen(printer, Words("ja")).say(
        f"/help      {'一覧を表示する' * 5}\n/quit      終わる\n└─ ○ 1. 掛け算  (1 の後に実行)"
    )
    first, *rest, last, tree = shown.getvalue().splitlines()
    assert first.startswith("/help      一覧") and last == "/quit      終わる" and tree.startswith("└─ ○ 1. 掛け算  (1")
    assert rest and all(row.startswith(" " * 11) and cells(row) < columns for row in rest)
