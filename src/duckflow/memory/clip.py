"""A text that is too long: its head and its tail."""

from duckflow.memory.tokens import estimate

HEAD_SHARE = 0.6
STEPS = 8


def clip(text: str, tokens: float, size: float | None = None) -> str:
    """At most so many estimated tokens; what is left out is said. Whoever knows the text's size already gives it."""
    size = estimate(text) if size is None else size
    if size <= tokens:
        return text
    keep = int(len(text) * tokens / size * 0.95)
    for _ in range(STEPS):
        clipped = _ends(text, keep)
        if estimate(clipped) <= tokens or keep <= 0:
            return clipped
        keep = int(keep * 0.85) - 20
    return _ends(text, 0)


def _ends(text: str, keep: int) -> str:
    keep = max(0, keep)
    head = int(keep * HEAD_SHARE)
    tail = keep - head
    end = text[len(text) - tail :] if tail else ""
    return f"{text[:head]}\n… [{len(text) - keep} characters left out] …\n{end}"
