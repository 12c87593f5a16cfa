"""What lies in a folder."""

import asyncio
from itertools import islice

from duckflow.safety.files import FolderEntry
from duckflow.safety.ignore_rules import glob_matcher, ignored_in
from duckflow.safety.path_names import shown, shown_size
from duckflow.state.phrase import say
from duckflow.tools.files.file_tool import FileTool, told
from duckflow.tools.tool import Args, Done


class FindArgs(Args):
    pattern: str
    path: str = "."


class FindFiles(FileTool[FindArgs]):
    """Paths that fit a glob, the newest first; what git ignores is left out."""

    operation = "file_ops.find_files"
    effect = "read"
    subject = ("path", "pattern")
    known_as = "Glob"
    counts_as = "search"
    led = True
    args = FindArgs

    async def run(self, args: FindArgs) -> Done:
        path = self.real_path(args.path)
        found = await asyncio.to_thread(self._found, path, args.pattern)
        pattern, limit = shown(args.pattern), self.settings.found_files
        phrase = say("file.found", pattern=pattern, files=len(found))
        if not found:
            return Done(f"No file fits {pattern} in {shown(path)} (what git ignores is not looked at).", phrase)
        lines = [shown(one.path) for one in found[:limit]]
        if len(found) > limit:
            lines.append(f"[the newest {limit} of {len(found)}; narrow the pattern]")
        return Done("\n".join(lines), phrase)

    def _found(self, path: str, pattern: str) -> list[FolderEntry]:
        fits = glob_matcher(pattern)
        ignored = ignored_in(self.workspace)
        start = 0 if path == "." else len(path) + 1
        with told(self.workspace, path):
            entries = self.workspace.walk(path, lambda folder: not ignored(folder))
            files = [one for one in entries if one.kind != "folder" and fits(one.path[start:]) and not ignored(one)]
        return sorted(files, key=lambda one: (-one.modified, one.path))


class ListArgs(Args):
    path: str = "."
    depth: int = 1


class ListFiles(FileTool[ListArgs]):
    """Names, sorted, with sizes; what git ignores is left out."""

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
        found = await asyncio.to_thread(self._found, path, max(1, args.depth))
        name, limit = shown(path), self.settings.list_entries
        phrase = say("file.listed", path=name, entries=min(len(found), limit))
        lines = [_line(one) for one in found[:limit]]
        if len(found) > limit:
            lines.append(f"[only the first {limit} are shown; list a folder below, or find files by name]")
        return Done("\n".join([f"{name}/", *lines] if lines else [f"{name}/ (empty, or all ignored by git)"]), phrase)

    def _found(self, path: str, depth: int) -> list[FolderEntry]:
        """One more than may be shown, to know that there are more."""
        ignored = ignored_in(self.workspace)
        above = 0 if path == "." else path.count("/") + 1

        def enter(folder: FolderEntry) -> bool:
            return folder.path.count("/") - above + 1 < depth and not ignored(folder)

        with told(self.workspace, path):
            entries = (one for one in self.workspace.walk(path, enter) if not ignored(one))
            return list(islice(entries, self.settings.list_entries + 1))


def _line(one: FolderEntry) -> str:
    if one.kind == "folder":
        return shown(one.path) + "/"
    return f"{shown(one.path)} ({shown_size(one.size) if one.kind == 'file' else one.kind})"
