"""Reading a text file, the whole or some lines of it."""

import asyncio
import os
from itertools import islice
from types import MappingProxyType

from duckflow.errors import ToolError
from duckflow.safety.path_names import shown, shown_size
from duckflow.state.data import say
from duckflow.tools.files.document import Document, large_lines
from duckflow.tools.files.file_tool import HOOK_PATH, FileTool, explained_errors
from duckflow.tools.tool import Args, Done


class ReadArgs(Args):
    path: str
    start_line: int = 1
    end_line: int = 0
    """The last line to read; 0 means to the end."""


class ReadFile(FileTool[ReadArgs]):
    """Shows a file's text, and remembers that the model has seen it."""

    operation = "file_ops.read_file"
    effect = "read"
    subject = ("path",)
    known_as = "Read"
    hook_args = MappingProxyType({"path": HOOK_PATH})
    expects = "there"
    led = True
    led_in_tasks = True
    args = ReadArgs

    async def run(self, args: ReadArgs) -> Done:
        path = self.real_path(args.path)
        with explained_errors(self.workspace, path):
            size = self.workspace.stat(path).size
        if size > self.settings.max_file_bytes:
            return await asyncio.to_thread(self._excerpt, path, args)
        document = self.document(path)
        name = shown(document.path)
        lines = document.lines
        wanted_range = _wanted(args, len(lines), name)
        shown_lines, text, is_complete = self._cut(lines, wanted_range)
        outline = ""
        if shown_lines.stop < wanted_range.stop and (args.start_line, args.end_line) == (1, 0):
            outline = await asyncio.to_thread(_outline, document, self.settings.outline_characters)
        if outline:
            shown_lines, text, is_complete = self._cut(lines, range(min(len(lines), self.settings.outlined_lines)))
        seen_numbers = range(shown_lines.start + 1, shown_lines.stop + 1) if is_complete else range(0)
        self.seen.saw(document.path, document.digest, seen_numbers, len(lines))
        phrase = say("file.read", path=name, lines=len(shown_lines))
        if not lines:
            return Done(f"{name} (empty file)", phrase)
        note = _outlined(outline, shown_lines) if outline else _rest(shown_lines, wanted_range, len(lines))
        return Done(f"{_header(document, shown_lines, len(lines))}\n{text}{note}", phrase)

    def _excerpt(self, path: str, args: ReadArgs) -> Done:
        """Reads lines of a file that is too large to be read whole. The file does not count as seen."""
        start = max(1, args.start_line)
        wanted_count = args.end_line - start + 1 if args.end_line > 0 else self.settings.read_lines
        with explained_errors(self.workspace, path), self.workspace.open(path) as open_file:
            size = shown_size(os.fstat(open_file.fileno()).st_size)
            excerpt = list(islice(large_lines(open_file, start), max(1, min(wanted_count, self.settings.read_lines))))
        shown_lines, text, _ = self._cut([line for _, line in excerpt], range(len(excerpt)))
        name = shown(path)
        if not shown_lines:
            told_model = f"{name} ({size}) has no text at line {start}. Search it for the part you need."
            raise ToolError(told_model, "file.binary", path=name, size=size)
        last_number = excerpt[shown_lines.stop - 1][0]
        header = f"{name} (lines {start}-{last_number} of a file of {size}; go on with start_line={last_number + 1})"
        return Done(f"{header}\n{text}", say("file.read", path=name, lines=len(shown_lines)))

    def _cut(self, lines: list[str], wanted: range) -> tuple[range, str, bool]:
        """Returns as many of the wanted lines as may be shown at once, and whether they are complete. Only the
        beginning of a giant line is shown."""
        bytes_left = self.settings.read_bytes
        lines_to_show: list[str] = []
        for number in wanted[: self.settings.read_lines]:
            size = len(lines[number].encode("utf-8", "replace")) + 1
            if size > bytes_left:
                break
            bytes_left -= size
            lines_to_show.append(lines[number])
        is_complete = bool(lines_to_show) or not wanted
        if not is_complete:
            cut_line = lines[wanted.start][: self.settings.read_bytes // 4]
            lines_to_show.append(f"{cut_line}\n[line {wanted.start + 1} is cut here: it is too long to be shown whole]")
        return range(wanted.start, wanted.start + len(lines_to_show)), "\n".join(lines_to_show), is_complete


def _wanted(args: ReadArgs, total: int, name: str) -> range:
    """Returns the indexes of the lines that the call asks for."""
    first_line = max(1, args.start_line)
    last_line = min(args.end_line, total) if args.end_line > 0 else total
    if first_line > max(total, 1) or (args.end_line > 0 and args.end_line < first_line):
        raise ToolError(
            f"{name} has {total} lines; lines {first_line}-{args.end_line or 'end'} are not among them.",
            "file.no_such_lines",
            path=name,
            lines=total,
        )
    return range(first_line - 1, last_line)


def _header(document: Document, part: range, total: int) -> str:
    form = document.form.describe()
    return f"{shown(document.path)} (lines {part.start + 1}-{part.stop} of {total}{', ' + form if form else ''})"


def _outline(document: Document, room: int) -> str:
    """Returns the outline of a long source file. It is empty if the language is not known, or the extra that reads code
    is not installed."""
    from duckflow.code.outline import file_outline
    from duckflow.code.syntax import LARGEST, available, symbols_in

    text = "\n".join(document.lines)
    if len(text) > LARGEST or not available():
        return ""
    return file_outline(symbols_in(text, document.path), document.lines, room)


def _outlined(outline: str, part: range) -> str:
    return (
        f"\n[cut here after line {part.stop}: the file is too long to be shown whole. Read the lines you need with "
        f"start_line and end_line. It defines, with first and last lines:]\n{outline}"
    )


def _rest(part: range, wanted: range, total: int) -> str:
    if part.stop >= wanted.stop:
        return ""
    return f"\n[cut here: lines {part.stop + 1}-{total} are not shown; go on with start_line={part.stop + 1}]"
