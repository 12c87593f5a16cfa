"""What is shown of a command's output."""

from duckflow.ui.console.screen import OutputLines


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


def test_of_a_progress_bar_the_last_state_stands() -> None:
    output = OutputLines(first=1, last=1)
    assert output.add("10%\r20%") == []
    assert output.latest == "20%"
    assert output.add("\r100%\nok\n") == ["100%"]


def test_a_line_without_an_end_stays_short() -> None:
    output = OutputLines(first=0, last=1)
    for _ in range(50):
        output.add("x" * 1000)
    assert len(output.end()[1][0]) <= 400
