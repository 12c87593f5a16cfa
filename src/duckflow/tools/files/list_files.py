"""Listing a folder, and finding files by name."""

import asyncio
from itertools import islice

from duckflow.safety.files import FolderEntry
from duckflow.safety.ignore_rules import glob_matcher, ignored_in
from duckflow.safety.path_names import shown, shown_size
from duckflow.state.data import say
from duckflow.tools.files.file_tool import FileTool, explained_errors
from duckflow.tools.tool import Args, Done


class FindArgs(Args):
    pattern: str
    path: str = "."


class FindFiles(FileTool[FindArgs]):
    """Finds paths that match a glob, the newest first, without the files that git ignores."""

    operation = "file_ops.find_files"
    effect = "read"
    subject = ("path", "pattern")
    known_as = "Glob"
    counts_as = "search"
    led = True
    args = FindArgs

    async def run(self, args: FindArgs) -> Done:
        path = self.real_path(args.path)
        files = await asyncio.to_thread(self._found, path, args.pattern)
        pattern, limit = shown(args.pattern), self.settings.found_files
        phrase = say("file.found", pattern=pattern, files=len(files))
        if not files:
            return Done(f"No file fits {pattern} in {shown(path)} (what git ignores is not looked at).", phrase)
        lines = [shown(file.path) for file in files[:limit]]
        if len(files) > limit:
            lines.append(f"[the newest {limit} of {len(files)}; narrow the pattern]")
        return Done("\n".join(lines), phrase)

    def _found(self, path: str, pattern: str) -> list[FolderEntry]:
        matches_pattern = glob_matcher(pattern)
        is_ignored = ignored_in(self.workspace)
        prefix_length = 0 if path == "." else len(path) + 1
        with explained_errors(self.workspace, path):
            entries = self.workspace.walk(path, lambda folder: not is_ignored(folder))
            files = [
                entry
                for entry in entries
                if entry.kind != "folder" and matches_pattern(entry.path[prefix_length:]) and not is_ignored(entry)
            ]
        return sorted(files, key=lambda entry: (-entry.modified, entry.path))


class ListArgs(Args):
    path: str = "."
    depth: int = 1


class ListFiles(FileTool[ListArgs]):
    """Lists names, sorted, with sizes, without the files that git ignores."""

    operation = "file_ops.list_files"
    effect = "read"
    subject = ("path",)
    known_as = "LS"
    counts_as = "search"
    led = True
    led_in_tasks = True
    untold = frozenset({"depth"})
    asked_for = frozenset({"path"})
    args = ListArgs

    async def run(self, args: ListArgs) -> Done:
        path = self.real_path(args.path)
        entries = await asyncio.to_thread(self._found, path, max(1, args.depth))
        name, limit = shown(path), self.settings.list_entries
        phrase = say("file.listed", path=name, entries=min(len(entries), limit))
        lines = [_line(entry) for entry in entries[:limit]]
        if len(entries) > limit:
            lines.append(f"[only the first {limit} are shown; list a folder below, or find files by name]")
        return Done("\n".join([f"{name}/", *lines] if lines else [f"{name}/ (empty, or all ignored by git)"]), phrase)

    def _found(self, path: str, depth: int) -> list[FolderEntry]:
        """Returns the entries below a folder: at most one more than may be shown, so that the caller knows whether some
        are missing."""
        is_ignored = ignored_in(self.workspace)
        depth_above = 0 if path == "." else path.count("/") + 1

        def enter(folder: FolderEntry) -> bool:
            return folder.path.count("/") - depth_above + 1 < depth and not is_ignored(folder)

        with explained_errors(self.workspace, path):
            entries = (entry for entry in self.workspace.walk(path, enter) if not is_ignored(entry))
            return list(islice(entries, self.settings.list_entries + 1))


def _line(entry: FolderEntry) -> str:
    if entry.kind == "folder":
        return shown(entry.path) + "/"
    return f"{shown(entry.path)} ({shown_size(entry.size) if entry.kind == 'file' else entry.kind})"
