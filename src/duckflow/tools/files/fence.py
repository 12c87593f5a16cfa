"""The one fence that models like to put around a whole file."""

import re

FENCE = re.compile(r"\s*(`{3,})([^`]*)$")
MARKDOWN = (".md", ".markdown", ".mdx")


def without_fence(content: str, path: str) -> str:
    """The text inside, when the whole content is one fence. A Markdown file may consist of a fence: there only one
    that is itself called markdown is taken off."""
    lines = content.strip().split("\n")
    first = FENCE.match(lines[0])
    if not first or len(lines) < 2 or not _closes_last(lines, first[1]):
        return content
    if path.lower().endswith(MARKDOWN) and first[2].strip().lower() not in ("markdown", "md", "mdx"):
        return content
    return "".join(line + "\n" for line in lines[1:-1])


def _closes_last(lines: list[str], opening: str) -> bool:
    """Whether the first fence ends with the last line, fences inside it included."""
    depth = 0
    for number, line in enumerate(lines):
        fence = FENCE.match(line.rstrip("\r"))
        if not fence or len(fence[1]) < len(opening):
            continue
        depth += 1 if fence[2].strip() or number == 0 else -1
        if depth == 0:
            return number == len(lines) - 1
    return False
