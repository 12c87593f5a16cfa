"""Deleting files and folders."""

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from duckflow.errors import ToolError
from duckflow.safety.files import FolderEntry
from duckflow.safety.path_names import shown, shown_size
from duckflow.state.data import say
from duckflow.state.question import FileImpact, Preview
from duckflow.tools.files.change import diff, refuse_if_changed
from duckflow.tools.files.file_tool import FileTool, explained_errors
from duckflow.tools.tool import Args, Done

NAMED = 50
"""The number of files of a folder that a preview names; further files are only counted."""
COUNTED = 100_000


class DeleteArgs(Args):
    path: str
    recursive: bool = False


class DeleteFile(FileTool[DeleteArgs]):
    """Deletes a file, a link, an empty folder, or with `recursive` a folder and everything in it."""

    operation = "file_ops.delete_file"
    effect = "write"
    subject = ("path",)
    paths = ("path",)
    makes = ()
    led = True
    args = DeleteArgs

    def preview(self, args: DeleteArgs) -> Preview:
        target, entries = self._found(args)
        fingerprint = self._fingerprint(target, entries)
        self.seen.previewed(target.path, fingerprint)
        if target.kind == "folder":
            return _folder_preview(target, entries, fingerprint)
        text = self._text(target)
        shown_diff = diff(text, "", target.path, self.settings.deleted_lines)
        impact = FileImpact(path=shown(target.path), change="delete", removed=shown_diff.removed)
        return Preview(impacts=(impact,), diff=shown_diff.text, fingerprint=fingerprint)

    async def run(self, args: DeleteArgs) -> Done:
        target, entries = self._found(args)
        refuse_if_changed(target.path, self._fingerprint(target, entries), self.seen)
        with explained_errors(self.workspace, target.path):
            self.workspace.delete(target.path, args.recursive)
        self.seen.forget(target.path)
        name = shown(target.path)
        files = [entry for entry in entries if entry.kind != "folder"]
        if target.kind != "folder":
            return Done(f"Deleted {name}.", say("file.deleted", path=name), changed=(target.path,))
        phrase = say("file.folder_deleted", path=name, files=len(files))
        told_model = f"Deleted the folder {name} with {len(files)} files."
        return Done(told_model, phrase, changed=(target.path, *_usable(files[:NAMED])))

    def _found(self, args: DeleteArgs) -> tuple[FolderEntry, list[FolderEntry]]:
        """Returns the file or folder to delete, and everything that lies in it."""
        with explained_errors(self.workspace, args.path):
            target = self.workspace.stat(args.path, follow=False)
            if target.path == ".":
                raise ToolError("The work folder itself cannot be deleted. Name something in it.", "path.whole_folder")
            entries = list(islice(self.workspace.walk(target.path), COUNTED)) if target.kind == "folder" else []
        if entries and not args.recursive:
            name, files = shown(target.path), sum(entry.kind != "folder" for entry in entries)
            raise ToolError(
                f"{name} is a folder with {files} files. To delete it with all that is in it, set recursive to true.",
                "file.not_empty",
                path=name,
                reason="",
            )
        return target, entries

    def _fingerprint(self, target: FolderEntry, inside: list[FolderEntry]) -> str:
        """Returns a digest of the name, kind, size and time of the target, and of everything in it if it is a
        folder."""
        hasher = hashlib.sha256()
        for entry in (target, *inside):
            # A folder's own time changes with its content, which is part of the digest anyway.
            size_and_time = "" if entry.kind == "folder" else f"{entry.size} {entry.modified}"
            hasher.update(f"{entry.path}\0{entry.kind}\0{size_and_time}\0".encode("utf-8", "surrogateescape"))
        return hasher.hexdigest()

    def _text(self, target: FolderEntry) -> str:
        """Returns the text for the diff. It is empty for a link, a large file, or a file that is no text."""
        if target.kind != "file" or target.size > self.settings.read_bytes:
            return ""
        try:
            return self.document(target.path).text
        except ToolError:
            return ""


def _usable(files: list[FolderEntry]) -> Iterator[str]:
    """Yields the paths that are valid text. Other names, with broken bytes, could not be stored in the journal."""
    for file in files:
        with suppress(UnicodeEncodeError):
            file.path.encode()
            yield file.path


def _folder_preview(folder: FolderEntry, inside: list[FolderEntry], fingerprint: str) -> Preview:
    """Shows the folder with its number of files, then the first files by name."""
    files = [file for file in inside if file.kind != "folder"]
    folder_impact = FileImpact(path=f"{shown(folder.path)}/ ({len(files)})", change="delete")
    file_impacts = [FileImpact(path=shown(file.path), change="delete") for file in files[:NAMED]]
    lines = [f"--- a/{shown(folder.path)}/ ({len(files)}, {shown_size(sum(file.size for file in files))})"]
    lines += [f"-{shown(file.path)} ({shown_size(file.size)})" for file in files[:NAMED]]
    if len(files) > NAMED:
        lines.append(f"… +{len(files) - NAMED}")
    return Preview(impacts=(folder_impact, *file_impacts), diff="\n".join(lines), fingerprint=fingerprint)
