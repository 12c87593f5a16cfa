"""Changing parts of a file: finding the place that an edit means, and replacing it."""

import re
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from heapq import nlargest
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import WithJsonSchema

from duckflow.errors import ToolError
from duckflow.safety.path_names import shown
from duckflow.safety.secrets import BLOT, Hide, Masked, mask, secret_name
from duckflow.safety.workspace import Workspace
from duckflow.state.action import EDIT_FILE
from duckflow.state.question import FileImpact, Preview
from duckflow.tools.files.change import BLOTS_STAY, TextChange, preview_change, put_back, write_change
from duckflow.tools.files.document import dominant_newline, with_newline
from duckflow.tools.files.file_tool import HOOK_PATH, FileTool, SeenFiles
from duckflow.tools.files.reindent import reindent
from duckflow.tools.settings import FileSettings
from duckflow.tools.tool import Args, Done

COMPARED = 5000
AROUND = 3
SIMILAR = 0.6
LENGTH = 200
TRIED = 3
LIKELY = 20
MOST_PLACES = 50
"""Number of matches at which the search stops: by then the edit is ambiguous anyway."""


def closest(lines: list[str], wanted: list[str]) -> range | None:
    """Returns the indexes of lines around the place that is most similar to the longest wanted line; None if no line is
    similar."""
    import difflib

    wanted_lines = [line.strip()[:LENGTH] for line in wanted]
    stripped_lines = [line.strip()[:LENGTH] for line in lines[:COMPARED]]
    for line in sorted(filter(None, wanted_lines), key=len, reverse=True)[:TRIED]:
        letters = Counter(line)
        # An exact comparison takes a hundred times longer, so only the lines that share the most letters are compared.
        likely_lines = nlargest(LIKELY, dict.fromkeys(stripped_lines), key=lambda other: _shared(letters, other))
        if close_matches := difflib.get_close_matches(line, likely_lines, 1, SIMILAR):
            first_index = stripped_lines.index(close_matches[0]) - wanted_lines.index(line)
            return range(max(0, first_index - AROUND), min(len(lines), first_index + len(wanted) + AROUND))
    return None


def _shared(letters: Counter[str], line: str) -> float:
    return (letters & Counter(line)).total() / (letters.total() + len(line))


QUOTED = 2000
LINES_NAMED = 10
TELLING = 12
"""If a new text of at least this length is already in the file, the edit was probably made before."""

# The ways in which two lines are compared, from strict to loose.
LOOSER: tuple[Callable[[str], str], ...] = (str.rstrip, str.strip, lambda line: " ".join(line.split()))


def replace(before: str, old: str, new: str, all: bool = False, whole_lines: bool = False) -> str:
    """Returns the text after the edit. Raises a ToolError when `old` is missing, ambiguous, or nothing would change.

    The search for `old` is exact at first. Then it goes line by line and ignores trailing blanks, then indentation
    (which is carried over to `new`), and last the width of blanks inside a line. `whole_lines` means that `old` starts
    at the beginning of a line."""
    newline = dominant_newline(before)
    old, new = with_newline(old, newline), with_newline(new, newline)
    if old == new:
        raise ToolError("`old` and `new` are the same, so nothing was changed.", "edit.nothing")
    if not old:
        return _fill(before, new)
    offsets = _places(before, old, whole_lines, all)
    if len(offsets) == 1 or (offsets and all):
        return _spliced(before, old, new, offsets)
    if offsets:
        raise _ambiguous([before.count("\n", 0, offset) + 1 for offset in offsets])
    return _replace_loosely(before, old, new, all)


def _fill(before: str, new: str) -> str:
    if before:
        raise ToolError("`old` is empty. Copy the text to be replaced from the file into it.", "edit.empty")
    return new


def _places(text: str, old: str, whole_lines: bool, all: bool) -> list[int]:
    """Returns the places where `old` occurs in the text. Unless `all` places are wanted, overlapping places count too,
    because an edit that fits in two ways is ambiguous. That search stops at MOST_PLACES, because a file of one repeated
    letter has a place at every letter."""
    offsets: list[int] = []
    offset = text.find(old)
    while offset >= 0 and (all or len(offsets) < MOST_PLACES):
        fits = not whole_lines or offset == 0 or text[offset - 1] in "\r\n"
        if fits:
            offsets.append(offset)
        offset = text.find(old, offset + (max(1, len(old) - 1) if fits and all else 1))
    return offsets


def _spliced(text: str, old: str, new: str, places: list[int]) -> str:
    pieces: list[str] = []
    copied_to = 0
    for offset in places:
        if offset >= copied_to:
            pieces += (text[copied_to:offset], new)
            copied_to = offset + len(old)
    return "".join(pieces) + text[copied_to:]


def _replace_loosely(before: str, old: str, new: str, all: bool) -> str:
    lines = before.split("\n")
    old_lines, new_lines = _trimmed(old, new)
    unsure_places: list[int] = []
    for loosen in LOOSER if old_lines else ():
        places = _line_places([loosen(line) for line in lines], [loosen(line) for line in old_lines], all)
        reindented = {index: reindent(old_lines, lines[index : index + len(old_lines)], new_lines) for index in places}
        replacements = {index: lines_there for index, lines_there in reindented.items() if lines_there is not None}
        if len(replacements) == 1 or (replacements and all):
            text_after = _put(lines, replacements, len(old_lines), "\r" if dominant_newline(before) == "\r\n" else "")
            if text_after == before:
                raise ToolError("The file already reads like that, so nothing was changed.", "edit.nothing")
            return text_after
        if replacements:
            raise _ambiguous([index + 1 for index in replacements])
        unsure_places = unsure_places or places
    raise _not_found(before, lines, old_lines, new, unsure_places)


def _trimmed(old: str, new: str) -> tuple[list[str], list[str]]:
    """Splits both texts into lines without line ends. Drops the blank lines at both ends of `old`. For each of them it
    drops a blank line at the same end of `new`, if there is one."""
    old_lines, new_lines = (deque(line.rstrip("\r") for line in text.split("\n")) for text in (old, new))
    for side, pop_line in ((0, deque[str].popleft), (-1, deque[str].pop)):
        while old_lines and not old_lines[side].strip():
            pop_line(old_lines)
            if new_lines and not new_lines[side].strip():
                pop_line(new_lines)
    return list(old_lines), list(new_lines)


def _line_places(lines: list[str], wanted: list[str], all: bool) -> list[int]:
    """Returns the indexes of the lines where the wanted lines begin. It joins the lines and searches them once, because
    comparing every line with every wanted line would take too long."""
    text = "".join(f"\n{line}" for line in (*lines, ""))
    offsets = _places(text, "".join(f"\n{line}" for line in (*wanted, "")), False, all)
    numbers, number, end = list[int](), 0, 0
    for offset in offsets:
        number, end = number + text.count("\n", end, offset), offset
        numbers.append(number)
    return numbers


def _put(lines: list[str], fresh: dict[int, list[str]], length: int, line_end: str) -> str:
    out: list[str] = []
    end = 0
    for index, new_lines in fresh.items():
        if index >= end:
            out += lines[end:index]
            end = index + length
            out += [line + line_end for line in new_lines]
            if end == len(lines):
                # The last line of a file may have no newline at its end. When it is deleted, the line before keeps its
                # newline.
                out = [*out[:-1], out[-1].removesuffix(line_end)] if new_lines else [*out, ""]
    return "\n".join(out + lines[end:])


def _ambiguous(numbers: list[int]) -> ToolError:
    line_numbers = ", ".join(map(str, numbers[:LINES_NAMED])) + (", …" if len(numbers) > LINES_NAMED else "")
    return ToolError(
        f"`old` fits {len(numbers)} places (lines {line_numbers}), so nothing was changed. "
        "Add neighbouring lines to `old` until it fits only one, or set all=true to replace every one.",
        "edit.ambiguous",
        count=len(numbers),
        lines=line_numbers,
    )


def _not_found(before: str, lines: list[str], wanted: list[str], new: str, unsure: list[int]) -> ToolError:
    closest_range = range(unsure[0], unsure[0] + len(wanted)) if unsure else closest(lines, wanted)
    sentences = ["`old` does not occur in the file, so nothing was changed."]
    if unsure:
        sentences = [
            "`old` fits only without its indentation, and which one is meant is not clear. Nothing was changed."
        ]
    if len(new.strip()) >= TELLING and new.strip() in before:
        sentences.append("The text of `new` is already there: perhaps the edit was made before.")
    if len(before) <= QUOTED:
        sentences.append(f"The current text of the file is:\n{_quoted(lines)}\nCopy `old` exactly from it.")
    elif closest_range:
        quoted_lines = _quoted([lines[index] for index in closest_range])
        sentences.append(
            f"The nearest text, lines {closest_range.start + 1}-{closest_range.stop}, is:\n{quoted_lines}\n"
            "Copy `old` exactly from it."
        )
    else:
        sentences.append("Read the file again before editing.")
    return ToolError("\n".join(sentences), "edit.not_found")


def _quoted(lines: list[str]) -> str:
    text = "\n".join(line.rstrip("\r") for line in lines)
    return text if len(text) <= QUOTED else text[:QUOTED] + "…"


HEAD = re.compile(r"\s*(<{5,}) ?SEARCH\b.*")
END = re.compile(r"\s*>{5,} ?REPLACE\b.*")
FORM = """<<<<<<< SEARCH
the exact current lines
=======
the new lines
>>>>>>> REPLACE"""


def parse_blocks(text: str) -> list[tuple[str, str]]:
    """Returns the (old, new) pairs, each of whole lines. Text between the blocks, such as prose or fences, is
    ignored."""
    lines = text.replace("\r\n", "\n").split("\n")
    blocks: list[tuple[str, str]] = []
    index = 0
    while index < len(lines):
        head_match = HEAD.fullmatch(lines[index])
        index += 1
        if head_match:
            block_end = _end(lines, index)
            blocks.append(_block(lines[index:block_end], len(head_match[1]), len(blocks) + 1))
            index = block_end + 1
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
    """Splits a block at its divider. The divider is as long as the marker above it, so that other lines of `=` can be
    part of the text."""
    dividers = [index for index, line in enumerate(lines) if line.strip() == "=" * width]
    if len(dividers) != 1:
        raise _unreadable(f"block {number} needs exactly one line of {'=' * width}, it has {len(dividers)}")
    old_lines, new_lines = lines[: dividers[0]], lines[dividers[0] + 1 :]
    return "".join(line + "\n" for line in old_lines), "".join(line + "\n" for line in new_lines)


def _unreadable(why: str) -> ToolError:
    return ToolError(
        f"The edits cannot be read: {why}. Nothing was changed. Write each edit like this:\n{FORM}", "edit.unreadable"
    )


class Edit(Args):
    old: str
    new: str


TOLD = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"old": {"type": "string"}, "new": {"type": "string"}},
        "required": ["old", "new"],
    },
}


class EditArgs(Args):
    """The edits of a call, as pairs of old and new text. If the model sends them after the call, it writes them as
    SEARCH/REPLACE blocks."""

    path: str
    edits: Annotated[list[Edit] | str, WithJsonSchema(TOLD)] = ""
    old: str = ""
    new: str = ""
    all: bool = False


class EditFile(FileTool[EditArgs]):
    """Replaces text that occurs exactly once. All edits of one call are made, or none."""

    operation = EDIT_FILE
    effect = "write"
    subject = ("path",)
    known_as = "Edit"
    hook_args = MappingProxyType({"path": HOOK_PATH})
    paths = ("path",)
    expects = "there"
    body = "edits"
    untold = frozenset({"old", "new", "all"})
    asked_for = frozenset({"edits"})
    args = EditArgs

    def __init__(
        self, workspace: Workspace, seen: SeenFiles, settings: FileSettings, hider: Callable[[], Awaitable[Hide]]
    ) -> None:
        """`hider` returns what hides the secrets that are known by now."""
        super().__init__(workspace, seen, settings)
        self._hider = hider
        self._hide: Hide = mask

    def editable(self, args: EditArgs) -> str:
        return "edits" if args.edits else "new"

    def proposed(self, args: EditArgs) -> str:
        return "\n".join(map(_written, _pairs(args))) if isinstance(args.edits, list) else super().proposed(args)

    def has_body(self, args: Mapping[str, Any]) -> bool:
        return self.body in args or ("old" in args and "new" in args)

    def for_hooks(self, args: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        texts = _pairs(EditArgs.model_validate(args)) or [("", "")]
        pairs = [{"old_string": old, "new_string": new} for old, new in texts]
        other_args = {name: value for name, value in args.items() if name not in ("edits", "old", "new", "all")}
        hook_args = super().for_hooks(other_args, folder) | pairs[0] | {"replace_all": bool(args.get("all"))}
        return hook_args | ({"edits": pairs} if len(pairs) > 1 else {})

    def from_hooks(self, args: Mapping[str, Any], updated: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        our_args, pairs = super().from_hooks(args, updated, folder), updated.get("edits") or [updated]
        complete_pairs = [pair for pair in pairs if "old_string" in pair and "new_string" in pair]
        edits = [{"old": pair["old_string"], "new": pair["new_string"]} for pair in complete_pairs]
        other_args = {name: value for name, value in our_args.items() if name not in ("edits", "old", "new")}
        return {**other_args, "edits": edits} if edits else our_args

    def preview(self, args: EditArgs) -> Preview:
        path = self.document(args.path).path
        if not secret_name(path):
            return preview_change(self._change(args), self.seen)
        with suppress(ToolError):
            if (preview := preview_change(self._change(args), self.seen)).impacts:
                return preview
        return Preview(impacts=(FileImpact(path=shown(path), change="edit"),))

    async def run(self, args: EditArgs) -> Done:
        return write_change(self._change(args), self.workspace, self.seen)

    async def get_ready(self, calls: Sequence[Mapping[str, Any]] = ()) -> None:
        self._hide = await self._hider()

    def _change(self, args: EditArgs) -> TextChange:
        document = self.document(args.path)
        # The model edits what it was shown, so that no secret decides whether an edit fits.
        masked = Masked(document.raw) if secret_name(document.path) else self._hide(document.raw)
        if masked.hidden and any(BLOT in new for _, new in _pairs(args)):
            raise ToolError(BLOTS_STAY, "edit.not_found")
        return TextChange(document.path, document, put_back(_changed(masked.text, args), masked.text, document.raw))


def _changed(text: str, args: EditArgs) -> str:
    """Returns the text after all edits of a call."""
    pairs, problems = _pairs(args), dict[int, ToolError]()
    for number, (old, new) in enumerate(pairs, 1):
        try:
            text = replace(text, old, new, args.all, whole_lines=isinstance(args.edits, str) and bool(args.edits))
        except ToolError as problem:
            problems[number] = problem
    if problems:
        raise _together(problems, len(pairs))
    return text


def _pairs(args: EditArgs) -> list[tuple[str, str]]:
    if args.edits and (args.old or args.new):
        raise ToolError("Give either `old` and `new`, or `edits`, not both. Nothing was changed.", "edit.both")
    if isinstance(args.edits, list):
        return [(edit.old, edit.new) for edit in args.edits]
    return parse_blocks(args.edits) if args.edits.strip() else [(args.old, args.new)]


def _together(problems: dict[int, ToolError], edits: int) -> ToolError:
    """Joins the problems of all edits into one error, so that the model learns of all of them at once, and which edits
    fit."""
    first_problem = next(iter(problems.values()))
    if edits == 1:
        return first_problem
    sentences = [f"Edit {number} of {edits}: {problem.for_model}" for number, problem in problems.items()]
    if fitting_numbers := [str(number) for number in range(1, edits + 1) if number not in problems]:
        sentences.append(
            f"The others ({', '.join(fitting_numbers)}) fit. All edits of one call are made together: none was made."
        )
    return ToolError(
        "\n".join(sentences), first_problem.key, **{**first_problem.values, "reason": "\n".join(sentences)}
    )


def _written(pair: tuple[str, str]) -> str:
    old, new = (text if not text or text.endswith("\n") else f"{text}\n" for text in pair)
    return f"<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE"
