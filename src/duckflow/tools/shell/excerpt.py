"""The beginning and the end of a long text, in bounded memory."""

import re

REDRAWN = re.compile(r"[^\n\r]*\r")
"""What a progress bar printed over."""


class Excerpt:
    """Takes any amount of text and keeps its head and its tail."""

    def __init__(self, head: int, tail: int) -> None:
        self._head_size = head
        self._tail_size = tail
        self._head = ""
        self._tail = ""
        self._seen = 0

    def add(self, text: str) -> None:
        self._seen += len(text)
        room = self._head_size - len(self._head)
        if room > 0:
            self._head += text[:room]
            text = text[room:]
        self._tail += text
        # Twice as much before it is cut, so that cutting is rare.
        if len(self._tail) > 2 * self._tail_size:
            self._tail = self._tail[len(self._tail) - self._tail_size :]

    def text(self) -> str:
        """All of it, or head and tail with a line between them that says how much is missing."""
        if self._seen == len(self._head) + len(self._tail) and len(self._tail) <= self._tail_size:
            return REDRAWN.sub("", self._head + self._tail)
        head = self._head[: self._head.rfind("\n") + 1] or self._head + "\n"
        tail = self._tail[len(self._tail) - self._tail_size :]
        tail = tail[tail.find("\n") + 1 :] or tail
        missing = self._seen - len(head) - len(tail)
        return REDRAWN.sub("", f"{head}[… {missing} characters left out …]\n{tail}")
