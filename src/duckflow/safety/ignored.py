"""What listings and searches leave out: what git would ignore, found without git; and globs."""

from collections.abc import Callable
from functools import lru_cache

from duckflow.errors import ToolError
from duckflow.safety.files import FolderEntry
from duckflow.safety.ignore_rules import HEAVY, LONGEST_RULES, RULES_FILE, IgnoredPaths, RulesFile
from duckflow.safety.wildcard import Wildcard
from duckflow.safety.workspace import Workspace

GIT = ".git"
MOST_BRACES = 64
ALWAYS_IGNORED = HEAVY | {GIT, ".idea"}

Ignored = Callable[[FolderEntry], bool]


def ignored_in(workspace: Workspace) -> Ignored:
    """For what lies in the work folder. No git runs: a repository's settings could make it start a program."""
    paths = IgnoredPaths(workspace.root)
    known: dict[str, RulesFile] = {}

    def rules_in(folder: str) -> RulesFile:
        if folder not in known:
            above = rules_in(folder.rpartition("/")[0]) if folder else paths.top
            text = _rules_text(workspace, folder)
            known[folder] = paths.below(above, folder, text) if text else above
        return known[folder]

    def ignored(found: FolderEntry) -> bool:
        is_folder = found.kind == "folder"
        if is_folder and found.name == GIT:
            return True
        return paths.ignores(rules_in(found.path.rpartition("/")[0]), found.path, is_folder)

    return ignored


def _rules_text(workspace: Workspace, folder: str) -> str:
    try:
        return workspace.read_bytes(f"./{folder}/{RULES_FILE}", LONGEST_RULES).decode("utf-8", "surrogateescape")
    except (OSError, ToolError):
        return ""


def glob_matcher(pattern: str) -> Callable[[str], bool]:
    """For paths relative to where a search starts; a pattern without `/` fits the last name at any depth."""
    pattern = pattern.removeprefix("./")
    try:
        ways = wildcards(pattern.lstrip("/") if "/" in pattern else f"**/{pattern}")
    except ValueError:
        ways = ()
    if not ways or not all(one.readable for one in ways):
        told = f"The glob {pattern!r} cannot be read. Use something like *.py or src/**/*.ts."
        raise ToolError(told, "file.bad_glob", glob=pattern)
    return lambda path: any(one.matches(path) for one in ways)


@lru_cache(maxsize=256)
def wildcards(pattern: str) -> tuple[Wildcard, ...]:
    """One for each way to read the braces; a ValueError when these are too many."""
    return tuple(Wildcard(one) for one in _unbraced(pattern))


def _unbraced(pattern: str) -> list[str]:
    """`a{b,c}` is `ab` and `ac`; braces that do not close are ordinary characters."""
    waiting, found = [pattern], list[str]()
    while waiting:
        one = waiting.pop()
        opened = one.find("{")
        closed = one.find("}", opened)
        inner = one.rfind("{", 0, closed)
        if opened < 0 or closed < 0 or inner < 0:
            found.append(one)
            continue
        waiting += [one[:inner] + choice + one[closed + 1 :] for choice in one[inner + 1 : closed].split(",")]
        if len(waiting) + len(found) > MOST_BRACES:
            raise ValueError(pattern)
    return found
