"""One change of a file: its diff, its preview, and the writing."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from duckflow.errors import ToolError
from duckflow.safety.files import ABSENT
from duckflow.safety.path_names import shown, shown_line
from duckflow.safety.secrets import BLOT, mask, secret_name
from duckflow.safety.workspace import Workspace
from duckflow.state.changes import NO_NEWLINE
from duckflow.state.data import say
from duckflow.state.question import FileImpact, Preview
from duckflow.tools.files.document import Document, TextForm, encode, to_lf
from duckflow.tools.files.file_tool import SeenFiles, explained_errors
from duckflow.tools.tool import Done

CONTEXT = 3
EXACTLY_COMPARED = 2000
"""Texts with more lines than this are compared more roughly, because a file of many equal lines would take minutes."""
COMPARED = 20_000
"""Texts with more changed lines than this are not compared, because that would take too long. Their diff shows all old
lines, and after them all new ones."""
DIFFED = 400
"""The result of an edit quotes the changed places from a diff that is cut after this many lines."""
NOW_LINES = 40
NOW_RUN = 2
"""The number of lines quoted from each end of a long run of new lines. The lines between are left out: the model wrote
them."""
NOW_LENGTH = 200
HUNK = r"@@ -\S+ \+(\d+)"


@dataclass(frozen=True, slots=True)
class Diff:
    added: int
    removed: int
    text: str


def diff(before: str, after: str, path: str, limit: int | None = None) -> Diff:
    """Compares two texts. `before` is empty for a new file, and `after` for a deleted one. With a `limit`, lines of the
    diff beyond it are left out."""
    old, new = before.split("\n"), after.split("\n")
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    changed_old, changed_new = old[start : len(old) - end], new[start : len(new) - end]
    if len(changed_old) + len(changed_new) > COMPARED:
        lines = _replaced(_marked(old)[start : len(old) - end], _marked(new)[start : len(new) - end], start)
        added = (Counter(changed_new) - Counter(changed_old)).total()
        removed = (Counter(changed_old) - Counter(changed_new)).total()
    else:
        lead = max(0, start - CONTEXT)
        tail = max(0, end - CONTEXT)
        lines = _unified(_marked(old)[lead : len(old) - tail], _marked(new)[lead : len(new) - tail], lead)
        added = sum(line.startswith("+") for line in lines)
        removed = sum(line.startswith("-") for line in lines)
    shown_lines = [shown_line(line) for line in lines[:limit]]
    if limit is not None and len(lines) > limit:
        shown_lines.append(f"… +{len(lines) - limit}")
    return Diff(added, removed, "\n".join([_header(path), *shown_lines]) if lines else "")


def _common(old: list[str], new: list[str]) -> int:
    """Returns the number of lines at the start that both texts have in common."""
    return next((count for count, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))


def _marked(lines: list[str]) -> list[str]:
    """Takes the pieces of a text that was split at line ends. Drops the empty last piece if the text ended with a
    newline, else adds a remark to the last line that the newline is missing."""
    return lines[:-1] if not lines[-1] else [*lines[:-1], f"{lines[-1]}\n{NO_NEWLINE}"]


def _unified(old: list[str], new: list[str], offset: int) -> list[str]:
    import difflib

    lines: list[str] = []
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=len(old) + len(new) > EXACTLY_COMPARED)
    for opcodes in matcher.get_grouped_opcodes(CONTEXT):
        first, last = opcodes[0], opcodes[-1]
        lines.append(f"@@ -{_range(first[1], last[2], offset)} +{_range(first[3], last[4], offset)} @@")
        for kind, old_from, old_to, new_from, new_to in opcodes:
            if kind == "equal":
                lines += [" " + line for line in old[old_from:old_to]]
            else:
                lines += ["-" + line for line in old[old_from:old_to]]
                lines += ["+" + line for line in new[new_from:new_to]]
    return [part for line in lines for part in line.split("\n")]


def _replaced(old: list[str], new: list[str], offset: int) -> list[str]:
    lines = [f"@@ -{_range(0, len(old), offset)} +{_range(0, len(new), offset)} @@"]
    lines += [f"-{line}" for line in old] + [f"+{line}" for line in new]
    return [part for line in lines for part in line.split("\n")]


def _range(start: int, stop: int, offset: int) -> str:
    length = stop - start
    first_number = start + offset + (1 if length else 0)
    return str(first_number) if length == 1 else f"{first_number},{length}"


def _header(path: str) -> str:
    return f"--- a/{shown(path)}\n+++ b/{shown(path)}"


@dataclass(frozen=True, slots=True)
class TextChange:
    """A new text for a file. `before` is None for a new file; `raw` is the new text with the file's own line ends.

    `whole` means that the model gave all of the text, not only a part."""

    path: str
    before: Document | None
    raw: str
    whole: bool = False

    @property
    def fingerprint(self) -> str:
        return self.before.digest if self.before else ABSENT

    @property
    def kind(self) -> Literal["create", "edit"]:
        return "edit" if self.before else "create"

    def data(self) -> bytes:
        form = self.before.form if self.before else TextForm()
        if not form.exact:
            name = shown(self.path)
            raise ToolError(
                f"{name} has bytes that its encoding ({form.describe()}) does not give back unchanged, so it cannot be "
                "rewritten without damage. Nothing was changed; tell the user.",
                "file.not_exact",
                path=name,
            )
        return encode(self.raw, form)

    @property
    def is_none(self) -> bool:
        """Says whether the file already has exactly this text."""
        return self.before is not None and self.raw == self.before.raw

    def diff(self, lines: int | None = None) -> Diff:
        return diff(self.before.text if self.before else "", to_lf(self.raw), self.path, lines)


def preview_change(change: TextChange, seen: SeenFiles) -> Preview:
    """Previews the whole change; without an impact if nothing would change. Raises a ToolError if the text cannot be
    written."""
    _refuse_blots(change)
    change.data()
    seen.previewed(change.path, change.fingerprint)
    if change.is_none:
        return Preview(fingerprint=change.fingerprint)
    shown_diff = change.diff()
    impact = FileImpact(path=shown(change.path), change=change.kind, added=shown_diff.added, removed=shown_diff.removed)
    return Preview(impacts=(impact,), diff=shown_diff.text, fingerprint=change.fingerprint)


def _refuse_blots(change: TextChange) -> None:
    """Raises a ToolError if the change would replace a secret by the mark that the model sees in its place."""
    text_before = change.before.raw if change.before else ""
    if change.raw.count(BLOT) > text_before.count(BLOT) and mask(text_before).hidden:
        name = shown(change.path)
        raise ToolError(
            f"{BLOT} stands for a secret of {name} that you were not shown, and the new text would put it in the "
            "secret's place. Nothing was changed. Edit only other lines.",
            "file.blots",
            path=name,
        )


BLOTS_STAY = f"{BLOT} stands for a secret that you were not shown. Nothing was changed. Edit only other lines."


def put_back(edited: str, shown_text: str, raw: str) -> str:
    """Returns a text that was edited as it is shown to the model, with its secrets back in their places. Raises a
    ToolError if one of them would be gone, or if the places are not certain."""
    if shown_text == raw:
        return edited
    parts = shown_text.split(BLOT)
    secrets = _between(parts, raw)
    backwards = _between([part[::-1] for part in reversed(parts)], raw[::-1])
    # The first possible places and the last ones are the same only where no others are possible.
    is_certain = secrets is not None and backwards == [secret[::-1] for secret in reversed(secrets)]
    pieces = edited.split(BLOT)
    if secrets is None or not is_certain or BLOT in raw or len(pieces) != len(parts):
        raise ToolError(BLOTS_STAY, "edit.not_found")
    return "".join(part for pair in zip(pieces, (*secrets, ""), strict=True) for part in pair)


def _between(parts: Sequence[str], text: str) -> list[str] | None:
    """Returns what stands between these parts of a text, each part at the first place that is possible; None if the
    text is not made of them."""
    if not text.startswith(parts[0]):
        return None
    position, gaps = len(parts[0]), list[str]()
    for part in parts[1:-1]:
        place = text.find(part, position + 1)
        if place < 0:
            return None
        gaps.append(text[position:place])
        position = place + len(part)
    end = len(text) - len(parts[-1])
    return [*gaps, text[position:end]] if end > position and text.endswith(parts[-1]) else None


def refuse_if_changed(path: str, fingerprint: str, seen: SeenFiles) -> None:
    """Raises a ToolError if the file is no longer as it was when the change was shown to the user."""
    previewed_fingerprint = seen.take_preview(path)
    if previewed_fingerprint is not None and previewed_fingerprint != fingerprint:
        raise refused_as_changed(shown(path))


def refused_as_changed(name: str) -> ToolError:
    return ToolError(
        f"{name} changed after the change was shown to the user, so nothing was done. Read it again, then decide.",
        "file.changed",
        path=name,
    )


def write_change(change: TextChange, workspace: Workspace, seen: SeenFiles) -> Done:
    """Writes the change, and returns a result that says what changed."""
    refuse_if_changed(change.path, change.fingerprint, seen)
    name = shown(change.path)
    full_diff = change.diff(DIFFED)
    if change.is_none:
        return Done(f"{name} already has exactly this text; nothing was written.", say("file.unchanged", path=name))
    with explained_errors(workspace, change.path):
        new_digest = workspace.write_atomic(change.path, change.data(), change.fingerprint)
    if change.whole:
        seen.wrote(change.path, new_digest)
    else:
        seen.edited(change.path, change.fingerprint, new_digest)
    if change.before:
        told_model = f"Changed {name} (+{full_diff.added} -{full_diff.removed} lines).{_now(change, full_diff.text)}"
        phrase = say("file.written", path=name, added=full_diff.added, removed=full_diff.removed)
    else:
        told_model = f"Created {name} ({full_diff.added} lines)."
        phrase = say("file.created", path=name, lines=full_diff.added)
    return Done(told_model, phrase, changed=(change.path,))


def _now(change: TextChange, changes: str) -> str:
    """Quotes the changed places as they are now, with line numbers, so that the model need not read them again. New
    lines have a `+`. Returns an empty text if the model wrote the whole file, because then it knows the text."""
    lines, quoted_lines, run = to_lf(change.raw).split("\n"), list[str](), list[str]()
    number = 0
    for line in [*changes.split("\n")[2:], "@@"]:
        if line.startswith("+") and number <= len(lines):
            run.append(f"{number}+ {lines[number - 1][:NOW_LENGTH]}")
            number += 1
            continue
        quoted_lines += run if len(run) <= 2 * NOW_RUN else [*run[:NOW_RUN], "…", *run[-NOW_RUN:]]
        run = []
        if hunk := re.match(HUNK, line):
            quoted_lines += ["…"] if quoted_lines else []
            number = int(hunk[1])
        elif line.startswith(" "):
            quoted_lines.append(f"{number}: {lines[number - 1][:NOW_LENGTH]}")
            number += 1
    text = "\n".join([*quoted_lines[:NOW_LINES], "…"] if len(quoted_lines) > NOW_LINES else quoted_lines)
    if not quoted_lines or change.whole or secret_name(change.path) or mask(text).hidden:
        return ""
    return f" Now:\n{text}"
