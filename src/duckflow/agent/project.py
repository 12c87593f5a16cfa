"""The project around a conversation: its rules, languages and folders, and its git branch. Each of these is read only
when something asks for it."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path, PurePosixPath

from duckflow.errors import ToolError
from duckflow.prompts.layers import NearRules
from duckflow.safety.files import FolderEntry, read_plain
from duckflow.safety.ignore_rules import ALWAYS_IGNORED
from duckflow.safety.path_names import MAX_DEPTH
from duckflow.safety.repository import find_repository
from duckflow.safety.secrets import secret_name
from duckflow.safety.workspace import HERE, Workspace
from duckflow.tools.plan.folder import WorkFolder, command_for_tests

HEAD_BYTES = 200
RULES_FILES = ("AGENTS.override.md", "AGENTS.md", "CLAUDE.md")
"""Names of files with rules. In each folder only the first one that exists counts."""
RULES_LIMIT = 8000
NEAR_LIMIT = 4000
NEAR_FILES = 3
OTHERS_WORK = ALWAYS_IGNORED | {"vendor", "vendored", "third_party", "site-packages", "bower_components", "Pods"}
"""Folders with the work of others: their AGENTS.md files are no rules of this project."""
LOOKED_AT = 600
DEPTH = 3
LANGUAGES = {
    ".py": "Python", ".js": "JavaScript", ".jsx": "JavaScript", ".ts": "TypeScript", ".tsx": "TypeScript", ".go": "Go",
    ".rs": "Rust", ".java": "Java", ".kt": "Kotlin", ".c": "C", ".h": "C", ".cpp": "C++", ".cc": "C++", ".cs": "C#",
    ".rb": "Ruby", ".php": "PHP", ".swift": "Swift", ".sh": "Shell", ".sql": "SQL", ".html": "HTML", ".css": "CSS",
    ".vue": "Vue", ".scala": "Scala", ".lua": "Lua", ".r": "R", ".jl": "Julia", ".ex": "Elixir", ".hs": "Haskell",
}  # fmt: skip
PLAIN_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,23}"
"""A pattern for a name that is so short and plain that it cannot contain instructions for a model."""
MOST_LANGUAGES, MOST_FOLDERS = 4, 8
LEAST_SHARE = 0.05
"""The smallest share of the code that a language must have to be named."""
LONG_FILE = 50_000
"""The largest size that is counted for a file. A longer file was hardly written by hand."""
BRANCH = r"ref: refs/heads/([\w./+-]{1,80})"
UNFINISHED = {
    "MERGE_HEAD": "merging", "rebase-merge": "rebasing", "rebase-apply": "rebasing", "CHERRY_PICK_HEAD": "picking",
    "REVERT_HEAD": "reverting", "BISECT_LOG": "bisecting",
}  # fmt: skip


def nothing() -> str:
    return ""


def no_skills(room: int) -> list[tuple[str, str]]:
    return []


class Project:
    """The surroundings of a conversation in one work folder."""

    def __init__(
        self,
        workspace: Workspace,
        known: Callable[[], str] = nothing,
        lessons: Callable[[], str] = nothing,
        skills: Callable[[int], list[tuple[str, str]]] = no_skills,
        limits: Callable[[str], str] = lambda _: "",
    ) -> None:
        self._workspace = workspace
        self._look_up = known
        self.lessons = lessons
        self.skills = skills
        self.limits = limits
        self._read: dict[str, tuple[tuple[int, int], str]] = {}

    def rules(self) -> str:
        return self._rules_of("", RULES_LIMIT)

    def rules_near(self, paths: Sequence[str]) -> list[NearRules]:
        folders = dict.fromkeys(folder for path in paths for folder in _above(path))
        candidates = (NearRules(folder, self._rules_of(f"{folder}/", NEAR_LIMIT)) for folder in folders)
        near_rules = [rules for rules in candidates if rules.text]
        return sorted(near_rules[-NEAR_FILES:], key=lambda rules: rules.folder.count("/"))

    def facts(self) -> str:
        return self._facts

    def known(self) -> str:
        return self._known

    def tests(self) -> str:
        return self._tests

    def branch(self) -> str:
        """Returns the branch from git's own files: starting git would take longer than everything else in a prompt."""
        git = self._git
        if git is None:
            return ""
        try:
            head_text = read_plain(git / "HEAD", HEAD_BYTES, cut=True).decode("utf-8", "replace")
        except OSError:
            return ""
        branch_match = re.match(BRANCH, head_text)
        unfinished_work = next((description for name, description in UNFINISHED.items() if (git / name).exists()), "")
        return ", ".join(filter(None, (branch_match[1] if branch_match else "detached HEAD", unfinished_work)))

    @cached_property
    def _known(self) -> str:
        # It is looked up once a session: a change at the front of a request would lose the provider's cache.
        return self._look_up()

    @cached_property
    def _facts(self) -> str:
        languages: Counter[str] = Counter()
        folders: list[str] = []
        for entry in islice(_entries(self._workspace, DEPTH), LOOKED_AT):
            if entry.kind == "folder":
                is_plain = "/" not in entry.path and re.fullmatch(PLAIN_NAME, entry.path)
                folders += [f"{entry.path}/"] if is_plain else []
            elif language := LANGUAGES.get(PurePosixPath(entry.path).suffix.lower()):
                languages[language] += min(entry.size, LONG_FILE) + 1
        least_share = languages.total() * LEAST_SHARE
        main_languages = ", ".join(
            name for name, share in languages.most_common(MOST_LANGUAGES) if share >= least_share
        )
        added_folders = ", ".join(f"+ {folder}" for folder in self._workspace.added)
        return "; ".join(filter(None, (main_languages, " ".join(sorted(folders)[:MOST_FOLDERS]), added_folders)))

    @cached_property
    def _tests(self) -> str:
        return command_for_tests(WorkFolder(self._workspace))

    @cached_property
    def _git(self) -> Path | None:
        """Returns the folder that contains git's own files."""
        repository = find_repository(self._workspace.root)
        return repository.folder if repository else None

    def _rules_of(self, folder: str, limit: int) -> str:
        """Returns the rules in this folder's AGENTS.md, or in the file that stands in for it."""
        return next((text for name in RULES_FILES if (text := self._rules(f"{folder}{name}", limit))), "")

    def _rules(self, path: str, limit: int) -> str:
        """Returns the text of an AGENTS.md, cut if it is very long. It is read again only when it has changed."""
        if not os.path.lexists(self._workspace.root / path):
            # Opening a file safely costs two milliseconds at the start, and most folders have none to open.
            return ""
        try:
            if secret_name(self._workspace.relative(path)):
                # A link to a secret file does not turn it into rules.
                return ""
            with self._workspace.open(path) as open_file:
                file_status = os.fstat(open_file.fileno())
                if file_status.st_nlink > 1:
                    # The file has a second name (a hard link), under which it may be a secret file.
                    return ""
                stamp = (file_status.st_mtime_ns, file_status.st_size)
                stamp_and_text = self._read.get(path)
                if stamp_and_text and stamp_and_text[0] == stamp:
                    return stamp_and_text[1]
                file_bytes = open_file.read(limit + 1)
        except (OSError, ToolError):
            return ""
        text = file_bytes[:limit].decode("utf-8", "ignore").strip()
        if len(file_bytes) > limit:
            text = f"{text}\n[…]"
        self._read[path] = (stamp, text)
        return text


def _above(path: str) -> Iterator[str]:
    """Yields the folders of a path beneath the work folder, the outermost first, up to where the work of others
    begins."""
    names = [name for name in path.split("/") if name not in ("", ".")][:-1]
    # No tool opens a path with more folders than this.
    for count in range(1, min(len(names), MAX_DEPTH) + 1):
        name = names[count - 1]
        if name == ".." or name.startswith(".") or name in OTHERS_WORK:
            return
        yield "/".join(names[:count])


def _entries(workspace: Workspace, depth: int, folder: str = HERE) -> Iterator[FolderEntry]:
    """Yields files and folders; entries near the top come first."""
    try:
        entries = workspace.listdir(folder)
    except (OSError, ToolError):
        return
    entries = [entry for entry in entries if not entry.name.startswith(".") and entry.name not in OTHERS_WORK]
    entries = [entry for entry in entries if not entry.name.endswith(".egg-info")]
    yield from entries
    for entry in entries if depth > 1 else ():
        if entry.kind == "folder":
            yield from _entries(workspace, depth - 1, f"./{entry.path}")
