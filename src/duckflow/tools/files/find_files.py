"""Finding files by name."""

import asyncio

from duckflow.safety.files import FolderEntry
from duckflow.safety.ignored import glob_matcher, ignored_in
from duckflow.safety.path_names import shown
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
