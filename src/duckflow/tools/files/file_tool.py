"""What all file tools share."""

from duckflow.safety.entry import Kind
from duckflow.safety.workspace import Workspace
from duckflow.tools.files.document import Document, load
from duckflow.tools.files.failure import told
from duckflow.tools.files.seen import SeenFiles
from duckflow.tools.files.settings import FileSettings
from duckflow.tools.tool import A, Tool


class FileTool(Tool[A]):
    """A tool that works on files of the work folder."""

    def __init__(self, workspace: Workspace, seen: SeenFiles, settings: FileSettings) -> None:
        self.workspace = workspace
        self.seen = seen
        self.settings = settings

    def real_path(self, path: str, follow: bool = True) -> str:
        """The one spelling of a path; a ToolError when it cannot be used."""
        with told(self.workspace, path):
            return self.workspace.relative(path, follow)

    def kind(self, path: str, follow: bool = True) -> Kind | None:
        """What is there; nothing when there is nothing."""
        with told(self.workspace, path):
            try:
                return self.workspace.stat(path, follow).kind
            except FileNotFoundError:
                return None

    def document(self, path: str) -> Document:
        """The text file at a path."""
        with told(self.workspace, path):
            return load(self.workspace, self.workspace.relative(path), self.settings.max_file_bytes)
