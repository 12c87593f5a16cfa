"""Searching the text of files."""

import asyncio
import os
import re
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from pydantic import Field

from duckflow.errors import DuckflowError, ToolError
from duckflow.programs.find import find_program, is_stand_in, own_module
from duckflow.programs.launch import Launch
from duckflow.safety.ignore_rules import ALWAYS_IGNORED, IgnoredPaths
from duckflow.safety.path_names import shown, shown_line
from duckflow.safety.sandbox.reading import can_keep_in, kept_in
from duckflow.safety.secret_index import secrets_beneath
from duckflow.safety.secrets import Hide, Masked, secret_name
from duckflow.safety.workspace import Workspace
from duckflow.state.action import GREP
from duckflow.state.data import say
from duckflow.tools.files.document import load
from duckflow.tools.files.file_tool import FileTool, SeenFiles, explained_errors
from duckflow.tools.files.search import (
    BROKE_OFF,
    LONGEST_LINE,
    Match,
    Search,
    Shows,
    TextMatch,
    around,
    find_matches,
    search_launch,
)
from duckflow.tools.settings import FileSettings
from duckflow.tools.tool import Args, Done

RIPGREP = (
    *("--no-config", "--no-messages", "--no-heading", "--with-filename", "--line-number", "--null", "--color=never"),
    *("--hidden", "--no-require-git", "--sort=path", "--max-columns-preview"),
)
FILES_NAMED = 10
CUT_MARK, SHORTEST_CUT = re.compile(r" \[\.\.\. [^\]\n]{0,80}\]$"), LONGEST_LINE // 4
"""A line that was cut at a number of bytes may have as few as a fourth of that number of letters."""
PLAIN_PATTERN = re.compile(r"""(?:[\w \t"'/=:,;@#%&<>~`!-]|\\[^\w\s]|\|)+""")
"""Matches a pattern of plain words: whatever it fits in a part of a line, it fits in the whole line, too."""


class GrepArgs(Args):
    pattern: str
    path: str = "."
    glob: str = ""
    ignore_case: bool = False
    context: int = Field(default=0, ge=0, le=200)


class Grep(FileTool[GrepArgs]):
    """Finds lines that match a regular expression; with ripgrep where it is installed, else with Python."""

    operation = GREP
    effect = "read"
    subject = ("path", "pattern")
    known_as = "Grep"
    counts_as = "search"
    led = True
    untold = frozenset({"ignore_case", "glob"})
    args = GrepArgs

    def __init__(
        self, workspace: Workspace, seen: SeenFiles, settings: FileSettings, hider: Callable[[], Awaitable[Hide]]
    ) -> None:
        """`hider` returns what hides the secrets that are known by now."""
        super().__init__(workspace, seen, settings)
        self._hider = hider

    async def run(self, args: GrepArgs) -> Done:
        path = self.real_path(args.path)
        with explained_errors(self.workspace, path):
            kind = self.workspace.stat(path).kind
        if not args.pattern:
            raise ToolError("The pattern is empty. Give a regular expression to look for.", "grep.bad_pattern")
        # The user was asked about a secret file that the call names.
        hide = Masked if secret_name(path) else await self._hider()
        shows = _without_guesses(args, hide, self.settings.grep_line)
        search_result = await self._by_ripgrep(args, path, shows) if kind == "folder" else None
        if search_result is None:
            search_result = await self._by_python(args, path, shows)
        secret_paths: list[str] = []
        if kind == "folder" and not secret_name(path):
            # These files are listed whether they hold a match or not: otherwise a secret could be guessed piece by
            # piece.
            secret_paths = await asyncio.to_thread(self._secret_files, path)
            search_result.matches = [match for match in search_result.matches if not secret_name(match.path)]
        pattern = shown(args.pattern)
        phrase = say("file.searched", pattern=pattern, matches=len(search_result.matches))
        lines = [
            *self._by_file(search_result.matches, args.context, hide),
            *self._notes(search_result, pattern, path),
            *_left_out(secret_paths),
        ]
        return Done("\n".join(lines), phrase)

    async def _by_ripgrep(self, args: GrepArgs, path: str, shows: Shows) -> TextMatch | None:
        """Searches with ripgrep. Returns None when Python has to search: ripgrep reads only UTF-8, knows fewer kinds of
        expressions, does not know which places are private, and goes by names, so that it needs a kernel that keeps it
        in the folder."""
        ripgrep = find_program("rg", self.workspace.root)
        if ripgrep is None or not args.pattern.isascii() or self.workspace.private or is_stand_in(ripgrep):
            return None
        if not await asyncio.to_thread(can_keep_in):
            return None
        options = [*RIPGREP, f"--max-columns={LONGEST_LINE}"]
        options += ["--ignore-case"] if args.ignore_case else []
        options += [f"--glob=!{name}/" for name in sorted(ALWAYS_IGNORED)]
        options += [f"--glob={args.glob}"] if args.glob else []
        command = [ripgrep, *options, f"--regexp={args.pattern}"]
        launch = await asyncio.to_thread(_kept_in_folder, command, self.workspace.root_of(path), path)
        search_result = await self._collect(launch, path, b"", shows)
        # ripgrep waits for a pipe in place of a file with rules, and breaks off at a huge one. Python's search reads
        # neither of them.
        has_failed = search_result.exit_code >= BROKE_OFF or search_result.timed_out
        return None if has_failed and not search_result.matches else search_result

    async def _by_python(self, args: GrepArgs, path: str, shows: Shows) -> TextMatch:
        root = self.workspace.root_of(path)
        request = Search(
            folder=str(root),
            path=_inside(root, path),
            pattern=args.pattern,
            glob=args.glob,
            ignore_case=args.ignore_case,
            file_bytes=self.settings.max_file_bytes,
            private=tuple(map(str, self.workspace.private)),
        )
        _check(request)
        launch = search_launch(own_module("duckflow.tools.files.search"), root)
        search_result = await self._collect(
            launch, "." if root == self.workspace.root else str(root), request.to_json(), shows
        )
        if search_result.exit_code:
            raise ToolError("The search broke off. Try a simpler pattern, or a folder below.", "grep.failed")
        return search_result

    async def _collect(self, launch: Launch, path: str, request: bytes, shows: Shows) -> TextMatch:
        """Returns the matches of a program that searches a folder, with paths relative to the work folder."""
        limit, seconds = self.settings.grep_matches, self.settings.grep_seconds
        with explained_errors(self.workspace, path):
            search_result = await find_matches(launch, request, limit, seconds, shows)
        if path != ".":
            search_result.matches = [replace(match, path=f"{path}/{match.path}") for match in search_result.matches]
        return search_result

    def _secret_files(self, folder: str) -> list[str]:
        """Returns the secret files in a folder, relative to it. They were found by their names, so it is made sure that
        they do not lie elsewhere, where a link has led meanwhile."""
        secret_paths = secrets_beneath(self.workspace.root_of(folder), folder)
        searched_paths = [path for path in secret_paths if ALWAYS_IGNORED.isdisjoint(path.split("/"))]
        return [path for path in searched_paths if self._lies_here(f"{folder}/{path}")]

    def _lies_here(self, path: str) -> bool:
        try:
            self.workspace.stat(path, follow=False)
        except (OSError, ToolError):
            return False
        return True

    def _by_file(self, matches: list[Match], context: int, hide: Hide) -> list[str]:
        """Lists each file's name, and below it its matches with the lines around them. The text of a line follows its
        number and a mark: `:` for a match and `-` for a line around a match."""
        lines: list[str] = []
        for path, file_matches in groupby(matches, lambda match: match.path):
            lines += ["", shown(path)] if lines else [shown(path)]
            lines += self._in_file(path, {match.line: match.text for match in file_matches}, context, hide)
        if context and len(lines) > self.settings.read_lines:
            return [*lines[: self.settings.read_lines], "[cut here; give less context or a narrower pattern]"]
        return lines

    def _in_file(self, path: str, hits: dict[int, str], context: int, hide: Hide) -> Iterator[str]:
        texts = self._lines_of(path) if context else ()
        context_lines = {
            line for hit in hits for line in range(max(1, hit - context), min(len(texts), hit + context) + 1)
        }
        last_number = 0
        for line in sorted(context_lines | hits.keys()):
            if context and last_number and line > last_number + 1:
                yield "--"
            text = hits[line] if line in hits else texts[line - 1]
            if len(text) > self.settings.grep_line and line not in hits:
                text = hide(text).text[: self.settings.grep_line]
            yield f"{line}{':' if line in hits else '-'}{shown_line(text)}"
            last_number = line

    def _lines_of(self, path: str) -> Sequence[str]:
        """Returns the lines of a file; an empty list if the file cannot be read as a whole."""
        try:
            return load(self.workspace, path, self.settings.max_file_bytes).lines
        except (DuckflowError, OSError):
            return ()

    def _notes(self, result: TextMatch, pattern: str, path: str) -> list[str]:
        if result.timed_out:
            seconds = self.settings.grep_seconds
            return [f"[stopped after {seconds:g} s, not all was searched; use a simpler pattern or a folder below]"]
        if result.more:
            return [f"[stopped after {len(result.matches)} matches; narrow the pattern, path or glob]"]
        return [] if result.matches else [f"No line fits {pattern} in {shown(path)} (ignored files are not searched)."]


def _without_guesses(args: GrepArgs, hide: Hide, line_length: int) -> Shows:
    """Returns a function that says what is shown of a line that the pattern fits. A line with a secret counts only if
    the pattern is made of plain words and one of them stands in what is left of the line: any other pattern could guess
    the secret piece by piece, by what fits or by what does not. So does a cut line count only by what is left of it. A
    long line is cut when its secrets are hidden: otherwise the pattern could choose a cut within one."""

    def shows(text: str) -> str | None:
        # Ripgrep says behind a line that it has cut how often the pattern fits the rest.
        text = CUT_MARK.sub("", text) if len(text) >= SHORTEST_CUT else text
        masked = hide(text)
        match = _found(args.pattern, masked.text, flags)
        is_certain = match is not None and (is_plain or not masked.hidden)
        if not is_certain and (masked.hidden or len(text) >= SHORTEST_CUT):
            return None
        return text if len(text) <= line_length else around(masked.text, match.start() if match else 0, line_length)

    is_plain = PLAIN_PATTERN.fullmatch(args.pattern) is not None
    flags = re.IGNORECASE if args.ignore_case else 0
    return shows


def _found(pattern: str, text: str, flags: int) -> re.Match[str] | None:
    """Returns the first match; None also for a pattern that only ripgrep knows."""
    try:
        return re.search(pattern, text, flags)
    except (re.error, OverflowError, RecursionError):
        return None


def _kept_in_folder(ripgrep: list[str], root: Path, path: str) -> Launch:
    """Returns the launch of ripgrep in a folder of `root`, of which it cannot get out. It gets the rules on what to
    ignore that stand elsewhere in a file in memory."""
    rules_text = IgnoredPaths(root).above(os.path.relpath(root / path, root))
    rules = os.memfd_create("rules")
    with open(rules, "wb", closefd=False) as file:
        file.write(rules_text.encode("utf-8", "surrogateescape"))
    command = [*ripgrep, f"--ignore-file=/proc/self/fd/{rules}", "--", "./"]
    return kept_in(replace(search_launch(command, root / path), fds=(rules,)), root)


def _inside(root: Path, path: str) -> str:
    """Returns the path in the spelling that a workspace of this folder uses."""
    return os.path.relpath(path, root) if path.startswith("/") else path


def _check(request: Search) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            request.regex()
    except (re.error, OverflowError, RecursionError) as problem:
        raise ToolError(
            f"The pattern is no valid regular expression: {problem}. Escape special characters with a backslash.",
            "grep.bad_pattern",
            reason=str(problem),
        ) from None


def _left_out(secret: list[str]) -> list[str]:
    if not secret:
        return []
    file_names = ", ".join(map(shown, secret[:FILES_NAMED])) + (", …" if len(secret) > FILES_NAMED else "")
    return [
        f"[not searched, because they look like secrets: {file_names}; name one as the path, and the user is asked]"
    ]
