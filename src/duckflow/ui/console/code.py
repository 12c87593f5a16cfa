"""Highlighted code, line by line, in colours that are readable on light and on dark terminals."""

from typing import Any

from rich.text import Text

LONGEST_LINE = 2000
LONGEST_CONTEXT = 400
STYLES = {
    "Comment": "dim italic",
    "Keyword": "magenta",
    "Keyword.Type": "cyan",
    "Keyword.Constant": "cyan",
    "Literal.String": "green",
    "Literal.Number": "cyan",
    "Name.Function": "bold",
    "Name.Class": "bold",
    "Name.Builtin": "cyan",
    "Name.Decorator": "yellow",
    "Name.Tag": "magenta",
    "Name.Attribute": "cyan",
    "Generic.Deleted": "red",
    "Generic.Inserted": "green",
    "Generic.Heading": "bold",
    "Generic.Subheading": "cyan",
}
OPEN_ENDED = ("Literal.String", "Comment")


class Code:
    """One block of code. Of earlier lines it remembers only an unfinished string or comment."""

    def __init__(self, language: str) -> None:
        self._lexer = _lexer(language)
        self._context: list[str] = []

    @classmethod
    def of_file(cls, name: str) -> "Code":
        """Makes a block of code in the language that the file's name tells."""
        from pygments.lexers import find_lexer_class_for_filename

        lexer = find_lexer_class_for_filename(name.rpartition("/")[2])
        return cls(lexer.aliases[0] if lexer and lexer.aliases else "")

    def line(self, text: str) -> Text:
        if self._lexer is None or len(text) > LONGEST_LINE or len(self._context) > LONGEST_CONTEXT:
            return Text(text)
        text_before = "".join(f"{line}\n" for line in self._context)
        offset, styled_text, last_kind = -len(text_before), Text(), ""
        for kind, value in self._lexer.get_tokens(f"{text_before}{text}\n"):
            last_kind = str(kind).removeprefix("Token.")
            token_offset, offset = offset, offset + len(value)
            if offset > 0:
                styled_text.append(value[max(0, -token_offset) :], style=_style(last_kind))
        # If a string or comment goes on past the end of the line, the next line must be read together with it.
        self._context = [*self._context, text] if last_kind.startswith(OPEN_ENDED) else []
        styled_text.rstrip()
        return styled_text if styled_text.plain == text.rstrip() else Text(text)


def _style(kind: str) -> str:
    while kind:
        if style := STYLES.get(kind):
            return style
        kind = kind.rpartition(".")[0]
    return ""


def _lexer(language: str) -> Any:
    """Returns the lexer of the language; None if there is none."""
    if not language:
        return None
    from rich.syntax import Syntax

    return Syntax("", language).lexer
