"""The printer of the conversation: it wraps lines to the width of the terminal, in Japanese as well as English, and
prints each line once."""

from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from duckflow.i18n.plain import TAB, plain
from duckflow.i18n.width import cells, line_ends

PLAIN = str.maketrans(
    {
        **dict.fromkeys("╭╮╰╯├┤┼└┌┐┘", "+"),
        **dict.fromkeys("─━", "-"),
        **dict.fromkeys("│┃", "|"),
        **dict.fromkeys("·•●", "*"),
        **dict.fromkeys("›▶→", ">"),
        **dict.fromkeys("○☐", "o"),
        **dict.fromkeys("█▓", "#"),
        **dict.fromkeys("░▒", "."),
        **dict.fromkeys("▁▂▃", "_"),
        **dict.fromkeys("▄▅▆▇", "="),
        "✓": "v",
        "✗": "x",
        "⚠": "!",
        "⚙": "&",
        "⏸": "=",
        "…": "...",
        "−": "-",
        "×": "x",
        "≤": "<=",
        "≥": ">=",
        "“": '"',
        "”": '"',
        "–": "-",
    }
)
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
NEEDED = "╭╮╰╯─│├┤•…·⠋○✓✗⚙"


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The set of signs that is used: Unicode ones or plain ASCII."""

    plain: bool = False

    @classmethod
    def of(cls, encoding: str, wanted_plain: bool) -> "Glyphs":
        """Returns plain signs if they are wanted, or if the terminal's encoding lacks the Unicode ones."""
        try:
            NEEDED.encode(encoding)
        except (UnicodeEncodeError, LookupError):
            return cls(plain=True)
        return cls(wanted_plain)

    def fit(self, text: str) -> str:
        return text.translate(PLAIN) if self.plain else text

    def spinner(self, step: int) -> str:
        spinner_signs = "|/-\\" if self.plain else SPINNER
        return spinner_signs[step % len(spinner_signs)]


NARROWEST = 20
SHORTEST_PAGE, ROWS_BELOW = 8, 7


class Printer:
    """Prints lines on the console. Text from outside must go through `plain` before it gets here."""

    def __init__(self, console: Console, plain_signs: bool = False) -> None:
        self._console = console
        self.glyphs = Glyphs.of(console.encoding, plain_signs)

    @property
    def columns(self) -> int:
        return max(NARROWEST, self._console.width)

    @property
    def page(self) -> int:
        """The number of lines that can be read at once, besides the input line and the lines around it."""
        return max(SHORTEST_PAGE, self._console.height - ROWS_BELOW)

    @property
    def styled(self) -> bool:
        """Says whether bold and dim text can be seen."""
        return self._console.is_terminal and not self._console.is_dumb_terminal

    @property
    def coloured(self) -> bool:
        return self.styled and not self._console.no_color

    def line(self, text: Text) -> None:
        """Prints a line unwrapped, however long, so that it stays whole when copied from the screen."""
        if self.glyphs.plain:
            text = Text(self.glyphs.fit(text.plain), style=text.style, spans=text.spans)
        self._console.print(text, soft_wrap=True)

    def text(self, text: str, style: str = "", first: str = "", rest: str | None = None) -> None:
        """Prints text from outside, line by line, with `first` before the first line and `rest` before every further
        line."""
        for line in plain(text).split("\n"):
            self.wrapped(Text(line, style=style), first, rest)
            first = rest if rest is not None else first

    def wrapped(self, text: Text, first: str = "", rest: str | None = None) -> None:
        """Prints text broken where it reads well, with `first` before the first line and `rest` before every further
        line."""
        rest = " " * cells(first) if rest is None else rest
        style = text.style
        for number, row in enumerate(rows(text, self.columns - cells(first), cells(rest) - cells(first))):
            self.line(Text.assemble(Text(first if number == 0 else rest, style=style), row))


def rows(text: Text, columns: int, hanging: int = 0) -> list[Text]:
    """Splits the text into lines that fit."""
    if "\t" in text.plain:
        text = text.copy()
        text.expand_tabs(TAB)
    end_offsets = line_ends(text.plain, columns, hanging)
    if not end_offsets:
        return [text]
    pieces = list(text.divide(end_offsets))
    for piece in pieces[:-1]:
        piece.rstrip()
    return pieces
