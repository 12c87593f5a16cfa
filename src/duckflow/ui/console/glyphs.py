"""Signs for borders, bullets and the spinner; plain ones for terminals that cannot show the others."""

from dataclasses import dataclass

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
    """Which signs are used."""

    plain: bool = False

    @classmethod
    def of(cls, encoding: str, wanted_plain: bool) -> "Glyphs":
        """Plain ones when they are wanted, or when the terminal's encoding lacks the others."""
        try:
            NEEDED.encode(encoding)
        except (UnicodeEncodeError, LookupError):
            return cls(plain=True)
        return cls(wanted_plain)

    def fit(self, text: str) -> str:
        return text.translate(PLAIN) if self.plain else text

    def spinner(self, step: int) -> str:
        signs = "|/-\\" if self.plain else SPINNER
        return signs[step % len(signs)]
