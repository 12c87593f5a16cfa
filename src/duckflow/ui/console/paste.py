"""Long pastes: a short mark stands for them in the input line, the text itself goes along when it is sent."""

import re

LINES, CHARACTERS = 8, 1200
MARK = re.compile(r"\[pasted #(\d+): \d+ (?:lines|characters)\]")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class Pastes:
    """What was pasted in this session, by number."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}

    def take(self, pasted: str) -> str:
        """What to put into the line: the text itself when it is short, else a mark."""
        text = CONTROL.sub("", pasted.replace("\r\n", "\n").replace("\r", "\n"))
        lines = text.count("\n") + 1
        if lines <= LINES and len(text) <= CHARACTERS:
            return text
        number = len(self._texts) + 1
        self._texts[number] = text
        size = f"{lines} lines" if lines > 1 else f"{len(text)} characters"
        return f"[pasted #{number}: {size}]"

    def expand(self, line: str) -> str:
        """The line with every mark replaced by its text; what only looks like a mark stays."""
        return MARK.sub(lambda mark: self._texts.get(int(mark[1]), mark[0]), line)
