"""Markup inside a line of Markdown: emphasis, code, links. Square brackets alone are just brackets."""

import re
from bisect import bisect_left

from rich.text import Text

MARK = re.compile(
    r"(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?P<ticks>`+)"
    r"|(?P<name>(?<!\w)__[a-z][a-z0-9_]*__(?!\w))"
    r"|(?P<strong>\*{2}|__)"
    r"|(?P<strike>~~)"
    r"|(?P<soft>[*_])"
    r'|!?\[(?P<label>[^\[\]\n]*)\]\((?P<url>[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)(?:\s+"[^"\n]*")?\)'
    r"|<(?P<address>https?://[^\s<>]+)>"
)
TICKS = re.compile(r"`+")
STYLES = {"strong": "bold", "soft": "italic", "strike": "strike"}
CODE = "cyan"
DEEPEST = 6


def inline(text: str, coloured: bool) -> Text:
    """Returns the line with its styles. Without colours code keeps its backticks, so that it stands out from words."""
    return _Inline(text, coloured, 0).read()


class _Inline:
    """One stretch of text. A sign that is never closed is searched for only once, so that reading takes time in
    proportion to the length, whatever the text contains."""

    def __init__(self, text: str, coloured: bool, depth: int) -> None:
        self._text = text
        self._coloured = coloured
        self._depth = depth
        self._done = Text()
        self._never_closed: set[str] = set()
        self._tick_runs: dict[int, list[int]] | None = None

    def read(self) -> Text:
        offset = 0
        while mark := MARK.search(self._text, offset) if self._depth < DEEPEST else None:
            self._done.append(self._text[offset : mark.start()])
            offset = self._take(mark)
        return self._done.append(self._text[offset:])

    def _take(self, mark: re.Match[str]) -> int:
        """Appends what the mark stands for, and returns the place to continue from."""
        sign, kind = mark[0], mark.lastgroup
        if mark["escape"]:
            self._done.append(sign[1])
            return mark.end()
        if mark["ticks"]:
            return self._code(mark)
        if mark["address"]:
            self._done.append(mark["address"], style="underline")
            return mark.end()
        if mark["url"] is not None:
            self._link(mark["label"] or "", mark["url"])
            return mark.end()
        # `__init__` is a name in code, even if Markdown would make it bold.
        end = -1 if mark["name"] else self._closing(mark)
        if end < 0 or kind is None:
            self._done.append(sign)
            return mark.end()
        self._inner(self._text[mark.end() : end], STYLES[kind])
        return end + len(sign)

    def _inner(self, text: str, style: str) -> None:
        inner = _Inline(text, self._coloured, self._depth + 1).read()
        inner.stylize(style)
        self._done.append_text(inner)

    def _code(self, mark: re.Match[str]) -> int:
        if self._tick_runs is None:
            self._tick_runs = {}
            for run in TICKS.finditer(self._text):
                self._tick_runs.setdefault(len(run[0]), []).append(run.start())
        ends = self._tick_runs.get(len(mark[0]), [])
        end_index = bisect_left(ends, mark.end())
        if end_index == len(ends):
            self._done.append(mark[0])
            return mark.end()
        code = self._text[mark.end() : ends[end_index]]
        code = code[1:-1] if len(code) > 2 and code[0] == code[-1] == " " and code.strip() else code
        self._done.append(code if self._coloured else f"`{code}`", style=CODE)
        return ends[end_index] + len(mark[0])

    def _link(self, label: str, url: str) -> None:
        """Appends a link. Its address is always shown: a link must not hide where it leads."""
        if label and label != url:
            self._inner(label, "underline")
            self._done.append(f" ({url})", style="dim")
        else:
            self._done.append(url, style="underline")

    def _closing(self, mark: re.Match[str]) -> int:
        """Returns where the emphasis ends, or -1 if the sign is an ordinary one (2 * 3, snake_case)."""
        text, sign, start = self._text, mark[0], mark.end()
        is_underscore = sign[0] == "_"
        if start >= len(text) or text[start].isspace() or (is_underscore and _in_word(text, mark.start() - 1)):
            return -1
        offset = start if sign not in self._never_closed else len(text)
        while (offset := text.find(sign, offset)) > 0:
            offset_after = offset + len(sign)
            stands_alone = len(sign) == 2 or (
                text[offset_after : offset_after + 1] != sign and text[offset - 1] != sign
            )
            if (
                offset > start
                and stands_alone
                and not text[offset - 1].isspace()
                and not (is_underscore and _in_word(text, offset_after))
            ):
                return offset
            offset = offset_after
        self._never_closed.add(sign)
        return -1


def _in_word(text: str, place: int) -> bool:
    return 0 <= place < len(text) and text[place].isalnum()
