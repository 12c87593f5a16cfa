"""Changing a part of a file: an exact text is replaced by another."""

from duckflow.errors import ToolError
from duckflow.state.question import Preview
from duckflow.tools.files.change import TextChange, preview_change, write_change
from duckflow.tools.files.edits import parse_blocks
from duckflow.tools.files.file_tool import FileTool
from duckflow.tools.files.replace import replace
from duckflow.tools.tool import Args, Done


class EditArgs(Args):
    """Either `old` and `new`, or `edits`: raw text with SEARCH/REPLACE blocks."""

    path: str
    old: str = ""
    new: str = ""
    all: bool = False
    edits: str = ""


class EditFile(FileTool[EditArgs]):
    """Replaces what is found exactly once; all edits of one call are made, or none."""

    operation = "file_ops.edit_file"
    changes = True
    body = "edits"
    untold = frozenset({"old", "new", "all"})
    args = EditArgs

    def editable(self, args: EditArgs) -> str:
        return "edits" if args.edits.strip() else "new"

    def preview(self, args: EditArgs) -> Preview:
        return preview_change(self._change(args), self.seen, self.settings.diff_lines)

    async def run(self, args: EditArgs) -> Done:
        return write_change(self._change(args), self.workspace, self.seen)

    def _change(self, args: EditArgs) -> TextChange:
        document = self.document(args.path)
        text = document.raw
        for old, new in _pairs(args):
            text = replace(text, old, new, args.all, whole_lines=bool(args.edits))
        return TextChange(document.path, document, text)


def _pairs(args: EditArgs) -> list[tuple[str, str]]:
    if args.edits.strip():
        if args.old or args.new:
            raise ToolError("Give either `old` and `new`, or `edits`, not both. Nothing was changed.", "edit.both")
        return parse_blocks(args.edits)
    return [(args.old, args.new)]
