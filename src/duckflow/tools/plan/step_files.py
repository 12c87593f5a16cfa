"""The files that a step is shown: its own, what the steps before it wrote into long ones, and what the conversation has
read while that is still so in the file."""

import posixpath
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import NamedTuple

from duckflow.i18n.template import note, quoted
from duckflow.safety.secrets import mask, secret_name
from duckflow.state.action import READ_FILE
from duckflow.state.agent import AgentState
from duckflow.state.json_fields import tables, text_of
from duckflow.state.message import Message
from duckflow.state.plan import Plan, Step
from duckflow.tools.plan.ports import Folder
from duckflow.tools.plan.step_context import files_of

MENTION = "@"
NEAR = 400
LEAST_RUN = 5
"""Lines: shorter runs that stand elsewhere now may be there by chance."""


class FilePiece(NamedTuple):
    """Lines of a file as they are now."""

    path: str
    text: str
    first: int = 0
    """The number of its first line; 0 where it is the whole file."""
    last: int = 0
    total: int = 0

    def quoted(self, language: str) -> str:
        lines = {"first": str(self.first), "last": str(self.last), "total": str(self.total)}
        source = note(language, "piece_of_file", path=self.path, **lines) if self.first else self.path
        return quoted(language, source, self.text)


def pieces(state: AgentState, plan: Plan, step: Step, folder: Folder, room: int) -> list[FilePiece]:
    """The step's own files come whole where there is room. What the conversation has read follows, the plan's files
    first, then the latest."""
    texts = _Texts(folder)
    chosen: list[FilePiece] = []
    for path in files_of(plan, step):
        text = texts.text(path)
        text = mask(text).text if len(text) <= room else ""
        if text.strip():
            room -= len(text)
            chosen.append(FilePiece(path, text))
    written, read = _lines_written(plan, texts), _lines_read(state, texts)
    for path, numbers in written.items():
        read.setdefault(path, set()).update(numbers)
    paths = sorted(read.keys() - {piece.path for piece in chosen}, key=lambda path: _rank(path, plan, step, read))
    # A step builds on what was written before it; that is short beside what was read.
    for path in sorted(paths, key=lambda path: path not in written):
        lines = texts.lines(path)
        for run in _runs(read[path]):
            piece = _cut(path, lines, run, room)
            if piece:
                room -= len(piece.text)
                chosen.append(piece)
    return chosen


class _Texts:
    """Reads each file once. A file that may hold secrets is empty here; in others, what is shown must still be masked:
    to mask all of a long file would take too long."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._read: dict[str, str] = {}
        self._split: dict[str, list[str]] = {}

    def text(self, path: str) -> str:
        if path not in self._read:
            self._read[path] = "" if secret_name(path) else self._folder.text(path)
        return self._read[path]

    def lines(self, path: str) -> list[str]:
        if path not in self._split:
            plain = self.text(path).removeprefix("\ufeff").replace("\r\n", "\n").removesuffix("\n")
            self._split[path] = plain.split("\n")
        return self._split[path]


def _lines_read(state: AgentState, texts: _Texts) -> dict[str, set[int]]:
    """Gives the indexes of the lines that the conversation has read and that are still the same, the latest file
    first."""
    calls = {
        action.action_id: action.args
        for message in state.messages
        if message.decision
        for action in message.decision.actions
        if action.operation == READ_FILE
    }
    read: dict[str, set[int]] = {}
    for message in reversed(state.messages):
        path, start = _asked_for(message, calls.get(message.answers))
        if not path:
            continue
        path = posixpath.normpath(path.removeprefix(f"{state.folder.rstrip('/')}/"))
        # The first line names the file. A last one may say that the rest is not shown.
        shown = message.text.split("\n")[1:]
        now = mask("\n".join(texts.lines(path)[start : start + len(shown)])).text.split("\n")
        pairs = zip(shown, now, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        if same and same >= len(shown) - 1:
            read.setdefault(path, set()).update(range(start, start + same))
        elif moved := _moved(shown, texts.lines(path), start):
            read.setdefault(path, set()).update(moved)
    return read


def _moved(shown: list[str], lines: list[str], start: int) -> set[int]:
    """Gives the indexes of runs of lines that stand elsewhere now, since something near them came or went."""
    from difflib import SequenceMatcher

    first = max(0, start - NEAR)
    now = mask("\n".join(lines[first : start + len(shown) + NEAR])).text.split("\n")
    blocks = SequenceMatcher(None, shown, now, autojunk=False).get_matching_blocks()
    return {first + block.b + place for block in blocks if block.size >= LEAST_RUN for place in range(block.size)}


def _lines_written(plan: Plan, texts: _Texts) -> dict[str, set[int]]:
    """Gives the indexes of the lines that the plan's tasks put into files, where they stand there now."""
    written: dict[str, set[int]] = {}
    done = [task for step in plan.steps for task in step.tasks if task.status == "completed" and len(task.makes) == 1]
    for task in done:
        path = task.makes[0]
        for new in (text_of(edit, "new").strip("\n") for edit in tables(task.args.get("edits"))):
            text = "\n".join(texts.lines(path)) if new.strip() else ""
            if new.strip() and (place := text.find(new)) >= 0:
                first = text.count("\n", 0, place)
                written.setdefault(path, set()).update(range(first, first + new.count("\n") + 1))
    return written


def _asked_for(message: Message, args: dict[str, object] | None) -> tuple[str, int]:
    """Gives the file that a result shows, and the index of the first line; nothing for other messages."""
    if message.role == "tool" and message.operation.startswith(MENTION):
        return message.operation.removeprefix(MENTION), 0
    if args is None:
        return "", 0
    start = str(args.get("start_line") or "1")
    return str(args.get("path") or ""), max(1, int(start)) - 1 if start.isdecimal() else 0


def _rank(path: str, plan: Plan, step: Step, read: dict[str, set[int]]) -> tuple[int, int]:
    """Files that the step names come first, then those of the plan, then the others as they were read."""
    name = posixpath.basename(path)
    named_by_step = name in step.text
    named_by_plan = any(name in other.text for other in plan.steps)
    return 2 - named_by_step - (named_by_step or named_by_plan or name in plan.goal), list(read).index(path)


def _runs(numbers: Iterable[int]) -> Iterator[range]:
    """Gives numbers that follow each other as ranges."""
    begin = end = -1
    for number in sorted(numbers):
        if number != end:
            if end > begin:
                yield range(begin, end)
            begin = number
        end = number + 1
    if end > begin:
        yield range(begin, end)


def _cut(path: str, lines: list[str], run: range, room: int) -> FilePiece | None:
    """Gives as many lines of the run as there is room for."""
    taken: list[str] = []
    for number in run:
        room -= len(lines[number]) + 1
        if room < 0:
            break
        taken.append(lines[number])
    text = mask("\n".join(taken)).text
    if not text.strip():
        return None
    last = run.start + len(taken)
    whole = run.start == 0 and last == len(lines)
    return FilePiece(path, text) if whole else FilePiece(path, text, run.start + 1, last, len(lines))
