"""Making folders."""

from duckflow.errors import ToolError
from duckflow.safety.path_names import shown
from duckflow.state.data import say
from duckflow.state.question import FileImpact, Preview
from duckflow.tools.files.file_tool import FileTool, explained_errors
from duckflow.tools.tool import Args, Done


class FolderArgs(Args):
    path: str


class MakeFolder(FileTool[FolderArgs]):
    """Makes a folder and the folders above it. A folder that exists already is no error."""

    operation = "file_ops.make_folder"
    effect = "write"
    subject = ("path",)
    paths = ("path",)
    expects = "folder"
    args = FolderArgs

    def preview(self, args: FolderArgs) -> Preview:
        path = self.real_path(args.path)
        if self._exists(path):
            return Preview(fingerprint="folder")
        return Preview(impacts=(FileImpact(path=shown(path) + "/", change="folder"),), fingerprint="absent")

    async def run(self, args: FolderArgs) -> Done:
        path = self.real_path(args.path)
        name = shown(path)
        if self._exists(path):
            return Done(f"The folder {name} exists already.", say("file.folder_exists", path=name))
        with explained_errors(self.workspace, path):
            self.workspace.make_folder(path)
        return Done(f"Made the folder {name}.", say("file.folder_made", path=name), changed=(path,))

    def _exists(self, path: str) -> bool:
        """Says whether the folder exists. Raises a ToolError if a file has that name, since no folder can be made
        there."""
        kind = self.kind(path)
        if kind not in (None, "folder"):
            name = shown(path)
            told_model = f"{name} exists and is not a folder. Choose another name."
            raise ToolError(told_model, "file.exists", path=name)
        return kind is not None
