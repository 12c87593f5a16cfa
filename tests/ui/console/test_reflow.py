"""The input line is erased whole after the terminal has wrapped it anew in a narrower window."""

import io

import pytest
from prompt_toolkit.application import Application, create_app_session
from prompt_toolkit.application.current import set_app
from prompt_toolkit.data_structures import Point, Size
from prompt_toolkit.input import DummyInput
from prompt_toolkit.layout import FormattedTextControl, Layout, Window

from duckflow.ui.console.reflow import ERASE_DOWN, ReflowedOutput, output_for


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        ("x" * 125, 120, 1),
        ("x" * 125, 119, 2),
        ("x" * 125, 60, 2),
        ("x" * 125, 40, 3),
        ("x" * 125, 130, 1),
        ("short", 40, 0),
        ("日" * 30, 60, 0),
        ("日" * 30, 59, 1),
        ("日" * 65, 7, 21),
        ("one\n" + "x" * 50, 40, 2),
    ],
)
async def test_the_editor_goes_up_to_where_the_line_begins_now(text: str, columns: int, rows: int) -> None:
    cursor = Point(x=len(text.rpartition("\n")[2]), y=text.count("\n"))
    written, width = io.StringIO(), [120]
    output = ReflowedOutput(written, lambda: Size(rows=40, columns=width[0]))
    with create_app_session(input=DummyInput(), output=output):
        control = FormattedTextControl(text + " ", focusable=True, get_cursor_position=lambda: cursor)
        window = Window(control, wrap_lines=True)
        app = Application[str](layout=Layout(window), output=output, input=DummyInput())
        app.renderer.report_absolute_cursor_row(1)
        with set_app(app):
            app.renderer.render(app, app.layout)
        output.remember(app)
        width[0] = columns
        written.seek(0)
        written.truncate()
        app.renderer.erase()
    goes_up = {0: "", 1: "\x1b[A"}.get(rows, f"\x1b[{rows}A")
    before, erased, _ = written.getvalue().partition(ERASE_DOWN)
    assert erased and before.rpartition("D")[2] == goes_up


def test_a_terminal_that_may_cut_lines_off_keeps_the_editors_own_way() -> None:
    assert output_for({"TERM": "xterm"}) is None
