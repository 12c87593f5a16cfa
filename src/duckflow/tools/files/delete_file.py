"""Deleting files and folders."""

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from duckflow.errors import ToolError
from duckflow.safety.files import FolderEntry
from duckflow.safety.path_names import shown, shown_size
from duckflow.state.phrase import say
from duckflow.state.question import FileImpact, Preview
from duckflow.tools.files.change import diff, refuse_if_changed
from duckflow.tools.files.file_tool import FileTool, told
from duckflow.tools.tool import Args, Done

NAMED = 50
"""Files of a folder that a preview names; the others are counted."""
COUNTED = 100_000


class DeleteArgs(Args):
    path: str
    recursive: bool = False


class DeleteFile(FileTool[DeleteArgs]):
    """Deletes a file, a link, an empty folder, or with `recursive` a folder and all that is in it."""

    operation = "file_ops.delete_file"
    effect = "write"
    subject = ("path",)
    paths = ("path",)
    makes = ()
    led = True
    args = DeleteArgs

    def preview(self, args: DeleteArgs) -> Preview:
        found, inside = self._found(args)
        fingerprint = self._fingerprint(found, inside)
        self.seen.previewed(found.path, fingerprint)
        if found.kind == "folder":
            return _folder_preview(found, inside, fingerprint)
        text = self._text(found)
        shown_diff = diff(text, "", found.path, self.settings.deleted_lines)
        impact = FileImpact(path=shown(found.path), change="delete", removed=shown_diff.removed)
        return Preview(impacts=(impact,), diff=shown_diff.text, fingerprint=fingerprint)

    async def run(self, args: DeleteArgs) -> Done:
        found, inside = self._found(args)
        refuse_if_changed(found.path, self._fingerprint(found, inside), self.seen)
        with told(self.workspace, found.path):
            self.workspace.delete(found.path, args.recursive)
        self.seen.forget(found.path)
        name = shown(found.path)
        files = [one for one in inside if one.kind != "folder"]
        if found.kind != "folder":
            return Done(f"Deleted {name}.", say("file.deleted", path=name), changed=(found.path,))
        phrase = say("file.folder_deleted", path=name, files=len(files))
        told_model = f"Deleted the folder {name} with {len(files)} files."
        return Done(told_model, phrase, changed=(found.path, *_usable(files[:NAMED])))

    def _found(self, args: DeleteArgs) -> tuple[FolderEntry, list[FolderEntry]]:
        """The thing itself, and all that lies in it."""
        with told(self.workspace, args.path):
            found = self.workspace.stat(args.path, follow=False)
            if found.path == ".":
                raise ToolError("The work folder itself cannot be deleted. Name something in it.", "path.whole_folder")
            inside = list(islice(self.workspace.walk(found.path), COUNTED)) if found.kind == "folder" else []
        if inside and not args.recursive:
            name, files = shown(found.path), sum(one.kind != "folder" for one in inside)
            raise ToolError(
                f"{name} is a folder with {files} files. To delete it with all that is in it, set recursive to true.",
                "file.not_empty",
                path=name,
                reason="",
            )
        return found, inside

    def _fingerprint(self, found: FolderEntry, inside: list[FolderEntry]) -> str:
        """What it is, or a digest of all names, sizes and times in a folder."""
        facts = hashlib.sha256()
        for one in (found, *inside):
            # A folder's own time changes with what is in it, which is looked at anyway.
            state = "" if one.kind == "folder" else f"{one.size} {one.modified}"
            facts.update(f"{one.path}\0{one.kind}\0{state}\0".encode("utf-8", "surrogateescape"))
        return facts.hexdigest()

    def _text(self, found: FolderEntry) -> str:
        """For the diff; nothing for a link, a large file, or what is no text."""
        if found.kind != "file" or found.size > self.settings.read_bytes:
            return ""
        try:
            return self.document(found.path).text
        except ToolError:
            return ""


def _usable(files: list[FolderEntry]) -> Iterator[str]:
    """Paths that are text; a name of broken bytes could not be kept on the record."""
    for one in files:
        with suppress(UnicodeEncodeError):
            one.path.encode()
            yield one.path


def _folder_preview(found: FolderEntry, inside: list[FolderEntry], fingerprint: str) -> Preview:
    """The folder with its number of files, then the first files by name."""
    files = [one for one in inside if one.kind != "folder"]
    whole = FileImpact(path=f"{shown(found.path)}/ ({len(files)})", change="delete")
    named = [FileImpact(path=shown(one.path), change="delete") for one in files[:NAMED]]
    lines = [f"--- a/{shown(found.path)}/ ({len(files)}, {shown_size(sum(one.size for one in files))})"]
    lines += [f"-{shown(one.path)} ({shown_size(one.size)})" for one in files[:NAMED]]
    if len(files) > NAMED:
        lines.append(f"… +{len(files) - NAMED}")
    return Preview(impacts=(whole, *named), diff="\n".join(lines), fingerprint=fingerprint)
