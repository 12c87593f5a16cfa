"""A text file as it was read: its text, its form on disk, and its digest."""

from dataclasses import dataclass

from duckflow.errors import ToolError
from duckflow.safety.digest import digest
from duckflow.safety.shown import shown, shown_size
from duckflow.safety.workspace import Workspace
from duckflow.tools.files.encoding import TextForm, decode, to_lf
from duckflow.tools.files.magic import kind_of_bytes


@dataclass(frozen=True, slots=True)
class Document:
    """`raw` has the line ends of the file, `text` only `\\n`."""

    path: str
    raw: str
    form: TextForm
    digest: str

    @property
    def text(self) -> str:
        return to_lf(self.raw)

    @property
    def lines(self) -> list[str]:
        return lines_of(self.text)


def lines_of(text: str) -> list[str]:
    """The lines; a newline at the end starts no further one."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def load(workspace: Workspace, path: str, limit: int) -> Document:
    """`path` in the one spelling of the workspace. A file that is no text is a ToolError that says what it is."""
    data = workspace.read_bytes(path, limit)
    decoded = decode(data)
    if decoded is None:
        kind, size, name = kind_of_bytes(data), shown_size(len(data)), shown(path)
        raise ToolError(
            f"{name} is no text but a {kind} ({size}); it cannot be read or edited here.",
            "file.binary",
            path=name,
            size=size,
        )
    return Document(path, decoded.text, decoded.form, digest(data))
