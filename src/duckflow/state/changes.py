"""The scope of an undo, the hunks of a change (how they are found, taken back and applied again), and the user's
comments on lines. Also the findings of a review, and the witnesses (commands) that demonstrate findings."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from pydantic import Field

from duckflow.state.data import FrozenData, new_id

CONTEXT = 3
EXACTLY_COMPARED = 2000
"""The largest number of lines that are compared exactly. Longer texts are compared more roughly: many equal lines would
take minutes otherwise."""
ID_LENGTH = 12


class WorkAuthor(NamedTuple):
    """The origin of a change: a turn of the conversation, or a step of a background job with the turn in which it
    began."""

    turn: int
    job: str = ""
    step: str = ""

    @property
    def name(self) -> str:
        """Returns the key under which this author's changes are stored."""
        return f"{self.job}/{self.step}" if self.job else str(self.turn)

    @property
    def whole(self) -> "UndoScope":
        """Returns the scope that undoes everything of this author: the turn, or the job with all of its steps."""
        return UndoScope(job=self.job) if self.job else UndoScope(turn=self.turn)


class UndoScope(NamedTuple):
    """Says which work an undo takes back. An empty scope means the latest work that changed something: a turn, or a
    whole job."""

    turn: int = 0
    job: str = ""
    step: str = ""
    """The step whose changes are undone: of the job in `job`, or of any job if `job` is empty."""
    since: int = 0
    """The first turn to undo. All later turns, and jobs that began in them, are undone too."""
    paths: tuple[str, ...] = ()
    """Limits the undo to these files and folders. If the scope names no turn, job or step, the newest change of each is
    undone, whoever made it."""
    without: frozenset[str] = frozenset()
    """Jobs whose work is not undone, since they still run."""

    @property
    def named(self) -> bool:
        return bool(self.turn or self.job or self.step or self.since)

    def touches(self, path: str) -> bool:
        return not self.paths or any(
            path == wanted_path or path.startswith(f"{wanted_path}/") for wanted_path in self.paths
        )

    def holds(self, author: WorkAuthor) -> bool:
        """Says whether the author's work belongs to the scope. A scope that names nothing contains all work."""
        if author.job in self.without:
            return False
        if self.since:
            return author.turn >= self.since
        if self.turn:
            return author.turn == self.turn and not author.job
        return (not self.job or author.job == self.job) and (not self.step or author.step == self.step)


LATEST = UndoScope()


NO_NEWLINE = "\\ No newline at end of file"
DiffSide = Literal["new", "old"]


class DiffLine(NamedTuple):
    """A line of a hunk with its sign (space, `-` or `+`) and its numbers in the old and the new file; 0 where it is
    missing."""

    sign: str
    text: str
    old: int
    new: int


HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class ReadLine(NamedTuple):
    """A line of a unified diff and the file it belongs to. Its sign is `@` where a hunk begins, and empty for a line
    between hunks; `text` is then the whole line. For a removed line, `new` is the number of the line that follows
    it."""

    path: str
    sign: str
    text: str
    old: int = 0
    new: int = 0


def read_diff(diff: str) -> Iterator[ReadLine]:
    """Reads a unified diff line by line. Each hunk says how many lines it has, so a line inside one is never taken for
    the name of another file."""
    path, old, new, old_left, new_left = "", 0, 0, 0, 0
    for line in diff.split("\n"):
        sign, text = line[:1] or " ", line[1:]
        in_old, in_new = sign in "- " and old_left > 0, sign in "+ " and new_left > 0
        if (in_old and sign == "-") or (in_new and sign == "+") or (in_old and in_new):
            yield ReadLine(path, sign, text, old, new)
            old, old_left, new, new_left = old + in_old, old_left - in_old, new + in_new, new_left - in_new
        elif hunk := HUNK.match(line):
            old, old_left = int(hunk[1]), int(hunk[2] or 1)
            new, new_left = int(hunk[3]), int(hunk[4] or 1)
            yield ReadLine(path, "@", line, old, new)
        else:
            name = _unquoted(line[4:].split("\t")[0].strip()) if line.startswith(("--- ", "+++ ")) else ""
            if name and name != "/dev/null":
                path = name[2:] if name.startswith(("a/", "b/")) else name
            yield ReadLine(path, "", line)


def _unquoted(name: str) -> str:
    """Removes the quotes that git puts around a name with quotes or control characters in it."""
    if not (name.startswith('"') and name.endswith('"')):
        return name
    try:
        unescaped = name[1:-1].encode("utf-8", "surrogateescape").decode("unicode_escape")
        return unescaped.encode("latin-1").decode("utf-8", "surrogateescape")
    except ValueError:
        return name


class Hunk(FrozenData):
    """Neighbouring changes of a file with the lines around them. Its id is computed from its text, so the same change
    has the same id every time."""

    hunk_id: str
    turn: int
    job: str = ""
    """The job that did the work; empty where a turn did it."""
    path: str
    whole: bool = False
    """True if the work created or deleted the whole file."""
    old_start: int
    new_start: int
    lines: tuple[str, ...]
    """Lines as in a unified diff: each begins with a space, `-`, `+`, or a backslash where a newline is missing."""

    @property
    def header(self) -> str:
        old_count, new_count = self.before.count("\n"), self.after.count("\n")
        return f"@@ -{self.old_start},{old_count} +{self.new_start},{new_count} @@"

    @property
    def before(self) -> str:
        return _joined(self.lines, "-")

    @property
    def after(self) -> str:
        return _joined(self.lines, "+")

    def numbered(self) -> Iterator[DiffLine]:
        old_number, new_number = max(self.old_start, 1), max(self.new_start, 1)
        for line in self.lines:
            sign, text = line[:1], line[1:]
            if sign != "\\":
                yield DiffLine(sign, text, 0 if sign == "+" else old_number, 0 if sign == "-" else new_number)
            old_number, new_number = old_number + (sign in " -"), new_number + (sign in " +")

    def changed(self) -> list[DiffLine]:
        return [line for line in self.numbered() if line.sign != " "]

    def line(self, number: int, side: DiffSide) -> str | None:
        """Returns the text of a line of this hunk, by its number in the new or the old file."""
        texts = (line.text for line in self.numbered() if number == (line.old if side == "old" else line.new))
        return next(texts, None)


class LineComment(FrozenData):
    """The user's comment on one line that a turn or a job changed. It waits until all comments are sent together."""

    comment_id: str = Field(default_factory=new_id("comment"))
    turn: int
    job: str = ""
    path: str
    line: int
    side: DiffSide = "new"
    """Says which file the line number counts in: `old` means the file before the work, as for a removed line."""
    text: str
    quote: str = ""
    """The text of the commented line."""


def _joined(lines: Sequence[str], sign: str) -> str:
    text, last_sign = "", ""
    for line in lines:
        if line == NO_NEWLINE:
            text = text.removesuffix("\n") if last_sign in (" ", sign) else text
        elif line[:1] in (" ", sign):
            text += f"{line[1:]}\n"
        last_sign = line[:1]
    return text


def hunks_of(turn: int, job: str, path: str, before: str | None, after: str | None) -> list[Hunk]:
    """Returns the changes of a file; None on one side means that the file was made or deleted."""
    import hashlib
    from difflib import SequenceMatcher

    old, new = split_lines(before or ""), split_lines(after or "")
    matcher = SequenceMatcher(None, old, new, autojunk=len(old) + len(new) > EXACTLY_COMPARED)
    hunks = list[Hunk]()
    for codes in matcher.get_grouped_opcodes(CONTEXT):
        lines = list[str]()
        for kind, old_from, old_to, new_from, new_to in codes:
            if kind == "equal":
                lines += _signed(" ", old[old_from:old_to])
            else:
                lines += _signed("-", old[old_from:old_to]) + _signed("+", new[new_from:new_to])
        text = "\n".join((f"{turn}/{job}/{path}", *lines))
        starts = [start + (stop > start) for start, stop in ((codes[0][1], codes[-1][2]), (codes[0][3], codes[-1][4]))]
        hunk_id = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:ID_LENGTH]
        # Two equal changes of one file differ only in their places.
        hunk_id += f"-{sum(hunk.hunk_id.startswith(hunk_id) for hunk in hunks)}"
        is_whole_file = before is None or after is None
        hunks.append(
            Hunk(
                hunk_id=hunk_id,
                turn=turn,
                job=job,
                path=path,
                whole=is_whole_file,
                old_start=starts[0],
                new_start=starts[1],
                lines=tuple(lines),
            )
        )
    return hunks


def with_hunk(text: str, hunk: Hunk, back: bool) -> str | None:
    """Returns the text with the hunk taken back, or applied again; None if its lines are no longer there."""
    present_text, wanted_text = (hunk.after, hunk.before) if back else (hunk.before, hunk.after)
    lines, old_lines = split_lines(text), split_lines(present_text)
    start = (hunk.new_start if back else hunk.old_start) - 1
    fitting_places = [
        place for place in range(len(lines) - len(old_lines) + 1) if lines[place : place + len(old_lines)] == old_lines
    ]
    if not old_lines or not fitting_places:
        return None
    place = min(fitting_places, key=lambda place: abs(place - start))
    return "".join((*lines[:place], wanted_text, *lines[place + len(old_lines) :]))


def _signed(sign: str, lines: Sequence[str]) -> list[str]:
    signed_lines = list[str]()
    for line in lines:
        signed_lines += [sign + line.removesuffix("\n")] if line.endswith("\n") else [sign + line, NO_NEWLINE]
    return signed_lines


def split_lines(text: str) -> list[str]:
    """Splits a text into lines with their newlines; as in git, no other character ends a line."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1])


FINDING = "review.finding"
"""The operation by which a review agent reports; no other agent has it."""
FindingSeverity = Literal["high", "medium", "low"]
SEVERITIES: tuple[FindingSeverity, ...] = ("high", "medium", "low")
WitnessStatus = Literal["fails", "fails_new", "fails_before_too", "passes", "broken", "not_run"]
"""`fails`: the command fails on the change, and passes before it. `fails_new`: it fails on the change, and the code
before it has nothing that the command could try. `broken`: the command itself did not work. `not_run`: nothing could be
run here."""


class Witness(FrozenData):
    """A command, and maybe a file for it, that was run in a copy of the folder to demonstrate a finding."""

    command: str
    path: str = ""
    text: str = ""
    status: WitnessStatus = "not_run"
    code: int | None = None
    before_code: int | None = None
    output: str = ""

    @property
    def shows(self) -> bool:
        return self.status in ("fails", "fails_new")


class ReviewFinding(FrozenData):
    """Something that is wrong with a change, and the line of the changed file where it is wrong."""

    path: str
    line: int
    severity: FindingSeverity
    text: str
    witness: Witness | None = None
    agent_id: str = ""

    @property
    def shown(self) -> bool:
        return self.witness is not None and self.witness.shows

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"


def by_weight(findings: Iterable[ReviewFinding]) -> list[ReviewFinding]:
    """Sorts findings: first the ones with a witness, then by severity and place."""
    return sorted(
        findings,
        key=lambda finding: (not finding.shown, SEVERITIES.index(finding.severity), finding.path, finding.line),
    )
