"""Thinking aloud: some local servers pass a model's `<think>…</think>` on as if it were the reply."""

OPEN, CLOSE = "<think>", "</think>"


class Thoughts:
    """Lets a reply through without the thoughts at its beginning."""

    def __init__(self) -> None:
        self._held = ""
        self._inside = False
        self._over = False

    def pass_on(self, text: str) -> str:
        if self._over:
            return text
        self._held += text
        if not self._inside:
            start = self._held.lstrip()
            if not start.startswith(OPEN):
                return "" if OPEN.startswith(start) else self._release(self._held)
            self._inside = True
            self._held = start
        thought, closed, reply = self._held.partition(CLOSE)
        if closed:
            return self._release(reply.lstrip())
        self._held = thought[-len(CLOSE) :]
        return ""

    def rest(self) -> str:
        """What was held back when the reply ended, waiting for a tag that never came."""
        return "" if self._inside or self._over else self._release(self._held)

    def _release(self, text: str) -> str:
        self._over = True
        self._held = ""
        return text
