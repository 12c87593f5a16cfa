"""Edits as raw text: blocks of SEARCH and REPLACE."""

import re

from duckflow.errors import ToolError

HEAD = re.compile(r"\s*(<{5,}) ?SEARCH\b.*")
END = re.compile(r"\s*>{5,} ?REPLACE\b.*")
FORM = """<<<<<<< SEARCH
the exact current lines
=======
the new lines
>>>>>>> REPLACE"""


def parse_blocks(text: str) -> list[tuple[str, str]]:
    """The (old, new) pairs, each of whole lines. What stands between the blocks (prose, fences) does not count."""
    lines = text.replace("\r\n", "\n").split("\n")
    blocks: list[tuple[str, str]] = []
    at = 0
    while at < len(lines):
        head = HEAD.fullmatch(lines[at])
        at += 1
        if head:
            end = _end(lines, at)
            blocks.append(_block(lines[at:end], len(head[1]), len(blocks) + 1))
            at = end + 1
    if not blocks:
        raise _unreadable("no SEARCH/REPLACE block was found")
    return blocks


def _end(lines: list[str], start: int) -> int:
    for number in range(start, len(lines)):
        if END.fullmatch(lines[number]):
            return number
        if HEAD.fullmatch(lines[number]):
            break
    raise _unreadable("a block does not end with >>>>>>> REPLACE")


def _block(lines: list[str], width: int, number: int) -> tuple[str, str]:
    """The divider is as long as the marker above it, so that other lines of `=` can be part of the text."""
    dividers = [at for at, line in enumerate(lines) if line.strip() == "=" * width]
    if len(dividers) != 1:
        raise _unreadable(f"block {number} needs exactly one line of {'=' * width}, it has {len(dividers)}")
    old, new = lines[: dividers[0]], lines[dividers[0] + 1 :]
    return "".join(line + "\n" for line in old), "".join(line + "\n" for line in new)


def _unreadable(why: str) -> ToolError:
    return ToolError(
        f"The edits cannot be read: {why}. Nothing was changed. Write each edit like this:\n{FORM}", "edit.unreadable"
    )
