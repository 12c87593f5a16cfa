"""Changing parts of a file by SEARCH and REPLACE."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import WithJsonSchema

from duckflow.errors import ToolError
from duckflow.state.phrase import Texts
from duckflow.state.question import Preview
from duckflow.tools.files.change import TextChange, preview_change, write_change
from duckflow.tools.files.file_tool import FileTool
from duckflow.tools.files.replace import replace
from duckflow.tools.tool import Args, Done

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
    """Pairs of old and new text; a model that is asked for them afterwards writes SEARCH/REPLACE blocks."""

    path: str
    edits: Annotated[list[Edit] | str, WithJsonSchema(TOLD)] = ""
    old: str = ""
    new: str = ""
    all: bool = False


class EditFile(FileTool[EditArgs]):
    """Replaces what is found exactly once; all edits of one call are made, or none."""

    operation = "file_ops.edit_file"
    effect = "write"
    told = Texts("replace a piece of a file", "ファイルの一部を置きかえる")
    paths = ("path",)
    expects = "there"
    body = "edits"
    untold = frozenset({"old", "new", "all"})
    asked_for = frozenset({"edits"})
    args = EditArgs

    def editable(self, args: EditArgs) -> str:
        return "edits" if args.edits else "new"

    def proposed(self, args: EditArgs) -> str:
        return "\n".join(map(_written, _pairs(args))) if isinstance(args.edits, list) else super().proposed(args)

    def has_body(self, args: Mapping[str, Any]) -> bool:
        return self.body in args or ("old" in args and "new" in args)

    def preview(self, args: EditArgs) -> Preview:
        return preview_change(self._change(args), self.seen, self.settings.diff_lines)

    async def run(self, args: EditArgs) -> Done:
        return write_change(self._change(args), self.workspace, self.seen)

    def _change(self, args: EditArgs) -> TextChange:
        document = self.document(args.path)
        text, pairs, problems = document.raw, _pairs(args), dict[int, ToolError]()
        for number, (old, new) in enumerate(pairs, 1):
            try:
                text = replace(text, old, new, args.all, whole_lines=isinstance(args.edits, str) and bool(args.edits))
            except ToolError as problem:
                problems[number] = problem
        if problems:
            raise _together(problems, len(pairs))
        return TextChange(document.path, document, text)


def _pairs(args: EditArgs) -> list[tuple[str, str]]:
    if args.edits and (args.old or args.new):
        raise ToolError("Give either `old` and `new`, or `edits`, not both. Nothing was changed.", "edit.both")
    if isinstance(args.edits, list):
        return [(one.old, one.new) for one in args.edits]
    return parse_blocks(args.edits) if args.edits.strip() else [(args.old, args.new)]


def _together(problems: dict[int, ToolError], edits: int) -> ToolError:
    """Everything that is wrong at once: one that fits must not hide behind another that does not."""
    first = next(iter(problems.values()))
    if edits == 1:
        return first
    told = [f"Edit {number} of {edits}: {problem.for_model}" for number, problem in problems.items()]
    if fitting := [str(number) for number in range(1, edits + 1) if number not in problems]:
        told.append(f"The others ({', '.join(fitting)}) fit. All edits of one call are made together: none was made.")
    return ToolError("\n".join(told), first.key, **{**first.values, "reason": "\n".join(told)})


def _written(pair: tuple[str, str]) -> str:
    old, new = (text if not text or text.endswith("\n") else f"{text}\n" for text in pair)
    return f"<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE"
