"""Highlighted code, a line at a time. Only colours that every terminal shows readably on light and on dark."""

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
    """One block. What began on an earlier line (a long string, a comment) is remembered, nothing else."""

    def __init__(self, language: str) -> None:
        self._lexer = _lexer(language)
        self._context: list[str] = []

    @classmethod
    def of_file(cls, name: str) -> "Code":
        """In the language that the file's name tells."""
        from pygments.lexers import find_lexer_class_for_filename

        found = find_lexer_class_for_filename(name.rpartition("/")[2])
        return cls(found.aliases[0] if found and found.aliases else "")

    def line(self, text: str) -> Text:
        if self._lexer is None or len(text) > LONGEST_LINE or len(self._context) > LONGEST_CONTEXT:
            return Text(text)
        before = "".join(f"{line}\n" for line in self._context)
        place, shown, last = -len(before), Text(), ""
        for kind, value in self._lexer.get_tokens(f"{before}{text}\n"):
            last = str(kind).removeprefix("Token.")
            begin, place = place, place + len(value)
            if place > 0:
                shown.append(value[max(0, -begin) :], style=_style(last))
        # A string or comment that goes on past the end of the line: the next line must be read together with it.
        self._context = [*self._context, text] if last.startswith(OPEN_ENDED) else []
        shown.rstrip()
        return shown if shown.plain == text.rstrip() else Text(text)


def _style(kind: str) -> str:
    while kind:
        if style := STYLES.get(kind):
            return style
        kind = kind.rpartition(".")[0]
    return ""


def _lexer(language: str) -> Any:
    """What knows the language; nothing when nobody does."""
    if not language:
        return None
    from rich.syntax import Syntax

    return Syntax("", language).lexer
