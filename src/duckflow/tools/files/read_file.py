"""Reading a text file, whole or some lines of it."""

import asyncio
import os
from itertools import islice
from types import MappingProxyType

from duckflow.errors import ToolError
from duckflow.safety.path_names import shown, shown_size
from duckflow.state.phrase import say
from duckflow.tools.files.document import Document, large_lines
from duckflow.tools.files.file_tool import HOOK_PATH, FileTool, told
from duckflow.tools.tool import Args, Done


class ReadArgs(Args):
    path: str
    start_line: int = 1
    end_line: int = 0
    """0: to the end."""


class ReadFile(FileTool[ReadArgs]):
    """Shows a file's text and remembers that the model has seen it."""

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
        with told(self.workspace, path):
            size = self.workspace.stat(path).size
        if size > self.settings.max_file_bytes:
            return await asyncio.to_thread(self._excerpt, path, args)
        document = self.document(path)
        name = shown(document.path)
        lines = document.lines
        wanted = _wanted(args, len(lines), name)
        given, text, complete = self._cut(lines, wanted)
        outline = ""
        if given.stop < wanted.stop and (args.start_line, args.end_line) == (1, 0):
            outline = await asyncio.to_thread(_outline, document, self.settings.outline_characters)
        if outline:
            given, text, complete = self._cut(lines, range(min(len(lines), self.settings.outlined_lines)))
        known = range(given.start + 1, given.stop + 1) if complete else range(0)
        self.seen.saw(document.path, document.digest, known, len(lines))
        phrase = say("file.read", path=name, lines=len(given))
        if not lines:
            return Done(f"{name} (empty file)", phrase)
        rest = _outlined(outline, given) if outline else _rest(given, wanted, len(lines))
        return Done(f"{_header(document, given, len(lines))}\n{text}{rest}", phrase)

    def _excerpt(self, path: str, args: ReadArgs) -> Done:
        """Lines of a file too large to be read whole; it does not count as seen."""
        start = max(1, args.start_line)
        wanted = args.end_line - start + 1 if args.end_line > 0 else self.settings.read_lines
        with told(self.workspace, path), self.workspace.open(path) as file:
            size = shown_size(os.fstat(file.fileno()).st_size)
            pieces = list(islice(large_lines(file, start), max(1, min(wanted, self.settings.read_lines))))
        given, text, _ = self._cut([line for _, line in pieces], range(len(pieces)))
        name = shown(path)
        if not given:
            told_model = f"{name} ({size}) has no text at line {start}. Search it for the part you need."
            raise ToolError(told_model, "file.binary", path=name, size=size)
        last = pieces[given.stop - 1][0]
        header = f"{name} (lines {start}-{last} of a file of {size}; go on with start_line={last + 1})"
        return Done(f"{header}\n{text}", say("file.read", path=name, lines=len(given)))

    def _cut(self, lines: list[str], wanted: range) -> tuple[range, str, bool]:
        """As many of the wanted lines as may be shown at once, and whether they are complete: of a giant line only
        the beginning is shown."""
        room = self.settings.read_bytes
        out: list[str] = []
        for number in wanted[: self.settings.read_lines]:
            size = len(lines[number].encode("utf-8", "replace")) + 1
            if size > room:
                break
            room -= size
            out.append(lines[number])
        complete = bool(out) or not wanted
        if not complete:
            cut = lines[wanted.start][: self.settings.read_bytes // 4]
            out.append(f"{cut}\n[line {wanted.start + 1} is cut here: it is too long to be shown whole]")
        return range(wanted.start, wanted.start + len(out)), "\n".join(out), complete


def _wanted(args: ReadArgs, total: int, name: str) -> range:
    """Indexes of the lines asked for."""
    start = max(1, args.start_line)
    end = min(args.end_line, total) if args.end_line > 0 else total
    if start > max(total, 1) or (args.end_line > 0 and args.end_line < start):
        raise ToolError(
            f"{name} has {total} lines; lines {start}-{args.end_line or 'end'} are not among them.",
            "file.no_such_lines",
            path=name,
            lines=total,
        )
    return range(start - 1, end)


def _header(document: Document, given: range, total: int) -> str:
    form = document.form.describe()
    return f"{shown(document.path)} (lines {given.start + 1}-{given.stop} of {total}{', ' + form if form else ''})"


def _outline(document: Document, room: int) -> str:
    """What a long source file defines; nothing where its language is not known, or the extra is not installed."""
    from duckflow.code.outline import file_outline
    from duckflow.code.syntax import LARGEST, available, symbols_in

    text = "\n".join(document.lines)
    if len(text) > LARGEST or not available():
        return ""
    return file_outline(symbols_in(text, document.path), document.lines, room)


def _outlined(outline: str, given: range) -> str:
    return (
        f"\n[cut here after line {given.stop}: the file is too long to be shown whole. Read the lines you need with "
        f"start_line and end_line. It defines, with first and last lines:]\n{outline}"
    )


def _rest(given: range, wanted: range, total: int) -> str:
    if given.stop >= wanted.stop:
        return ""
    return f"\n[cut here: lines {given.stop + 1}-{total} are not shown; go on with start_line={given.stop + 1}]"
