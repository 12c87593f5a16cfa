"""A new text for a file: shown before, then written if nothing came between."""

from dataclasses import dataclass
from typing import Literal

from duckflow.errors import ToolError
from duckflow.safety.digest import ABSENT
from duckflow.safety.shown import shown
from duckflow.safety.workspace import Workspace
from duckflow.state.phrase import say
from duckflow.state.question import FileImpact, Preview
from duckflow.tools.files.diff import Diff, diff
from duckflow.tools.files.document import Document
from duckflow.tools.files.encoding import TextForm, encode, to_lf
from duckflow.tools.files.failure import told
from duckflow.tools.files.seen import SeenFiles
from duckflow.tools.tool import Done


@dataclass(frozen=True, slots=True)
class TextChange:
    """`before` is nothing for a new file; `raw` is the new text with the file's own line ends.

    `whole`: the model gave all of the text, not only a part."""

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

    def diff(self, lines: int) -> Diff:
        return diff(self.before.text if self.before else "", to_lf(self.raw), self.path, lines)


def preview_change(change: TextChange, seen: SeenFiles, lines: int) -> Preview:
    """Also finds out whether the text can be written at all."""
    change.data()
    shown_diff = change.diff(lines)
    seen.previewed(change.path, change.fingerprint)
    impact = FileImpact(path=shown(change.path), change=change.kind, added=shown_diff.added, removed=shown_diff.removed)
    return Preview(impacts=(impact,), diff=shown_diff.text, fingerprint=change.fingerprint)


def refuse_if_changed(path: str, fingerprint: str, seen: SeenFiles) -> None:
    """What was shown to the user must still be what would happen."""
    previewed = seen.take_preview(path)
    if previewed is not None and previewed != fingerprint:
        name = shown(path)
        raise ToolError(
            f"{name} changed after the change was shown to the user, so nothing was done. Read it again, then decide.",
            "file.changed",
            path=name,
        )


def write_change(change: TextChange, workspace: Workspace, seen: SeenFiles) -> Done:
    """Write it, and say what changed."""
    refuse_if_changed(change.path, change.fingerprint, seen)
    name = shown(change.path)
    counted = change.diff(0)
    if change.before and change.raw == change.before.raw:
        return Done(f"{name} already has exactly this text; nothing was written.", say("file.unchanged", path=name))
    with told(workspace, change.path):
        digest = workspace.write_atomic(change.path, change.data(), change.fingerprint)
    if change.whole:
        seen.wrote(change.path, digest)
    else:
        seen.edited(change.path, change.fingerprint, digest)
    if change.before:
        told_model = f"Changed {name} (+{counted.added} -{counted.removed} lines)."
        phrase = say("file.written", path=name, added=counted.added, removed=counted.removed)
    else:
        told_model = f"Created {name} ({counted.added} lines)."
        phrase = say("file.created", path=name, lines=counted.added)
    return Done(told_model, phrase, changed=(change.path,))
