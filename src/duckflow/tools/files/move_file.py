"""Moving and renaming files and folders."""

from duckflow.errors import ToolError
from duckflow.safety.files import FolderEntry
from duckflow.safety.path_names import shown
from duckflow.safety.secret_index import secrets_beneath
from duckflow.state.data import say
from duckflow.state.question import FileImpact, Preview
from duckflow.tools.files.change import refuse_if_changed
from duckflow.tools.files.file_tool import FileTool, explained_errors
from duckflow.tools.tool import Args, Done

NAMED = 10
"""The number of secret files in a moved folder that a preview names. They are named because a secret file may no longer
be recognized under its new name."""


class MoveArgs(Args):
    source: str
    target: str


class MoveFile(FileTool[MoveArgs]):
    """Moves a file or folder, never over another one. If the target is a folder, the file or folder is moved into the
    target."""

    operation = "file_ops.move_file"
    effect = "write"
    subject = ("source",)
    paths = ("source", "target")
    makes = ("target",)
    led = True
    args = MoveArgs

    def preview(self, args: MoveArgs) -> Preview:
        source, target = self._ends(args)
        fingerprint = self._fingerprint(source)
        self.seen.previewed(source.path, fingerprint)
        old_name, new_name = shown(source.path), shown(target)
        workspace_root = self.workspace.root_of(source.path)
        secrets_inside = secrets_beneath(workspace_root, source.path) if source.kind == "folder" else []
        secret_paths = [f"{source.path}/{path}" for path in secrets_inside]
        move_impacts = [FileImpact(path=shown(path), change="move") for path in (source.path, *secret_paths[:NAMED])]
        impacts = (*move_impacts, FileImpact(path=new_name, change="create"))
        return Preview(impacts=impacts, diff=f"rename from {old_name}\nrename to {new_name}", fingerprint=fingerprint)

    async def run(self, args: MoveArgs) -> Done:
        source, target = self._ends(args)
        refuse_if_changed(source.path, self._fingerprint(source), self.seen)
        with explained_errors(self.workspace, target):
            self.workspace.move(source.path, target)
        self.seen.moved(source.path, target)
        old, new = shown(source.path), shown(target)
        return Done(f"Moved {old} to {new}.", say("file.moved", source=old, target=new), changed=(source.path, target))

    def _ends(self, args: MoveArgs) -> tuple[FolderEntry, str]:
        with explained_errors(self.workspace, args.source):
            source = self.workspace.stat(args.source, follow=False)
        target = self.real_path(args.target, follow=False)
        if self.kind(target) == "folder":
            target = self.real_path(f"{target}/{source.name}", follow=False)
        if target == source.path or target.startswith(source.path + "/"):
            raise ToolError(
                f"{shown(source.path)} cannot be moved to itself or into itself. Choose another target.",
                "file.into_itself",
                path=shown(source.path),
            )
        if self.kind(target, follow=False) is not None:
            raise ToolError(
                f"{shown(target)} exists already and is not overwritten. Choose another name or delete it first.",
                "file.exists",
                path=shown(target),
            )
        return source, target

    def _fingerprint(self, source: FolderEntry) -> str:
        return f"{source.kind} {source.size} {source.modified}"
