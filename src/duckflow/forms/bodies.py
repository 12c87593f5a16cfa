"""Bodies: the raw text of a file or an edit, written outside the JSON."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from duckflow.forms.live import without_thoughts

EDITS = "edits"
MARKDOWN = ("md", "markdown", "mdx")
LABEL_LINES = 2

FENCE = r" {0,3}(`{3,}|~{3,})([^`]*)\Z"
HEADING = r"#{1,6} |---\n|<[!A-Za-z]"
SEARCH = r"<{5,9} ?SEARCH\b"
REPLACE = r">{5,9} ?REPLACE\b"


class Body(NamedTuple):
    """The text of a file or an edit. It is not `complete` if its fence or its edit was never closed: then the reply was
    probably cut off."""

    text: str
    complete: bool = True


class Block(NamedTuple):
    """The text inside a fence, or a run of edits with their markers. `end` is the number of the line after the
    block."""

    lines: Sequence[str]
    closed: bool
    end: int
    edits: bool = False

    def text(self) -> str:
        return one_newline("\n".join(self.lines))


def take_blocks(text_after_json: str) -> tuple[str, ...]:
    """Returns the raw blocks that follow a Decision, in order. A block that is not closed is left out, so that the
    model is asked for it again."""
    return tuple(block.text() for block in _blocks(text_after_json.replace("\r\n", "\n").split("\n")) if block.closed)


def clean_body(text: str, kind: str = "") -> Body:
    """Returns the body in a plain reply. `kind` is `edits`, or the name of the file where it is known.

    One fence around everything is taken off; with prose around it the longest fenced block counts. A document may hold
    fences of its own, so only a fence around all of it is taken off.
    """
    text = without_thoughts(text).replace("\r\n", "\n").strip("\n")
    lines = text.rstrip().split("\n")
    blocks = _blocks(lines)
    if not blocks:
        return Body(one_newline(text))
    if kind == EDITS and (edits := _edits_in(blocks)):
        return Body("".join(block.text() for block in edits), all(block.closed for block in edits))
    suffix = kind.lower().rpartition(".")[2]
    fence = re.match(FENCE, lines[0])
    if fence and (suffix in MARKDOWN or fence.group(2).strip().lower() in MARKDOWN) and _closes(lines[-1], fence):
        return Body(one_newline("\n".join(lines[1:-1])))
    lines_around = len([line for line in lines if line.strip()]) - sum(len(block.lines) for block in blocks)
    has_only_labels = lines_around <= 2 * len(blocks) + LABEL_LINES
    if not fence and (suffix in MARKDOWN or ("." not in kind and re.match(HEADING, text) and not has_only_labels)):
        return Body(one_newline(text))
    fenced = [block for block in blocks if not block.edits]
    if not fenced:
        return Body(one_newline(text))
    longest_block = max(fenced, key=lambda block: sum(map(len, block.lines)))
    return Body(longest_block.text(), longest_block.closed)


def one_newline(text: str) -> str:
    """Returns the text with exactly one newline at its end. An empty text stays empty."""
    text = text.rstrip("\n")
    return text + "\n" if text else ""


def _edits_in(blocks: Sequence[Block]) -> list[Block]:
    """Returns the blocks of edits, including those inside a fence."""
    edits: list[Block] = []
    for block in blocks:
        edits += [block] if block.edits else [inner_block for inner_block in _blocks(block.lines) if inner_block.edits]
    return edits


def _blocks(lines: Sequence[str]) -> list[Block]:
    blocks: list[Block] = []
    position = 0
    while position < len(lines):
        if fence := re.match(FENCE, lines[position]):
            blocks.append(_fenced(lines, position, fence))
        elif re.match(SEARCH, lines[position]):
            blocks.append(_edit_run(lines, position))
        else:
            position += 1
            continue
        position = blocks[-1].end
    return blocks


def _fenced(lines: Sequence[str], start: int, opening: re.Match[str]) -> Block:
    """Reads a fenced block. In it, a fence with a language opens an inner block; a bare one closes the innermost."""
    fence_depth = 1
    for position in range(start + 1, len(lines)):
        if _closes(lines[position], opening):
            fence_depth -= 1
        elif (inner_fence := re.match(FENCE, lines[position])) and inner_fence.group(1) == opening.group(1):
            fence_depth += 1
        if not fence_depth:
            return Block(lines[start + 1 : position], True, position + 1)
    return Block(lines[start + 1 :], False, len(lines))


def _closes(line: str, opening: re.Match[str]) -> bool:
    match = re.match(FENCE, line)
    return bool(match and match.group(1).startswith(opening.group(1)) and not match.group(2).strip())


def _edit_run(lines: Sequence[str], start: int) -> Block:
    """Reads edits that follow one another with only blank lines between them: they belong to one file."""
    position = start
    while True:
        last_index = next((index for index in range(position, len(lines)) if re.match(REPLACE, lines[index])), None)
        if last_index is None:
            return Block(lines[start:], False, len(lines), edits=True)
        position = next((index for index in range(last_index + 1, len(lines)) if lines[index].strip()), len(lines))
        if position == len(lines) or not re.match(SEARCH, lines[position]):
            return Block(lines[start : last_index + 1], True, last_index + 1, edits=True)
