"""Highlighted code, line by line."""

from duckflow.ui.console.code import Code


def styles(code: Code, line: str) -> dict[str, str]:
    shown = code.line(line)
    assert shown.plain == line
    return {shown.plain[span.start : span.end]: str(span.style) for span in shown.spans}


def test_a_string_that_goes_on_is_still_one_on_the_next_line() -> None:
    code = Code("python")
    assert styles(code, "def hello():")["def"] == "magenta"
    assert "green" in styles(code, '    """A text').values()
    assert styles(code, "    def inside a text") == {"    def inside a text": "green"}
    assert "green" in styles(code, '    """').values()
    assert styles(code, "    return 1") == {"return": "magenta", "1": "cyan"}


def test_an_unknown_language_is_plain() -> None:
    assert styles(Code("no-such-language"), "def x") == {} == styles(Code(""), "def x")
