"""Colours of a diff: the terminal's own red and green, readable on light and on dark."""

import re

STYLES = {"+": "green", "-": "red", "@": "cyan"}
HUNK = re.compile(r"^@@ .* @@", re.MULTILINE)


def diff_style(line: str) -> str:
    """Names of files stand out from what is added and taken away."""
    if line.startswith(("+++ ", "--- ")):
        return "bold"
    return STYLES.get(line[:1], "")


def looks_like_diff(text: str) -> bool:
    return HUNK.search(text) is not None
