"""New code that nothing reaches: a public name that a change adds, and that no other line of the folder mentions.

It is found by a text search. In doubt it says nothing: any mention counts as a use, be it a call, a test, a document or
a text."""

import ast
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from duckflow.proof.python_tests import UNREADABLE, is_code
from duckflow.safety.ignore_rules import HEAVY
from duckflow.safety.undo.undo import FileVersions

MOST_FILES = 8000
LARGEST = 1024 * 1024
SHORTEST_NAME = 4
USUAL_COUNT, USUAL_SHARE = 3, 0.1
"""Number and share of older names without a mention from which a new name without one is not unusual in a file."""
QUIET_DECORATORS = re.compile(
    r"(?:functools\.)?(?:wraps|lru_cache|cache|cached_property|singledispatch|total_ordering)\b.*"
    r"|(?:typing\.|t\.)?(?:overload|final|no_type_check|override)|(?:contextlib\.)?(?:async)?contextmanager"
    r"|staticmethod|classmethod|property|(?:dataclasses\.)?dataclass\b.*|(?:abc\.)?abstractmethod"
)
"""Decorators that register nothing anywhere."""
DEFINED = re.compile(
    r"^(?:export\s+)?(?:async\s+)?(?:function\*?|class|func|fn|pub fn|pub struct|struct|type|interface)\s+(\w+)"
    r"|^(?:export\s+)?(?:const|let)\s+(\w+)\s*=\s*(?:async\s*)?(?:\(|function)"
)
BY_PATTERN = (".js", ".jsx", ".ts", ".tsx", ".mjs", ".go", ".rs")
CALLED_BY_OTHERS = re.compile(
    r"main|init|setup|teardown|handler|default|register|pytest_\w+|test\w*|Test\w*|load_tests"
)


class NewName(NamedTuple):
    """A public function, class or method that a change adds, and the lines that define it."""

    path: str
    name: str
    first: int
    last: int


def new_names(changes: Sequence[FileVersions]) -> list[NewName]:
    """Returns names that no changed file had before: a name that was only moved is not new."""
    words_before = {word for change in changes for word in re.findall(r"\w+", change.old)}
    written_changes = [change for change in changes if change.after is not None and is_code(change.path)]
    defined_names = [name for change in written_changes for name in _defined(change.path, change.new)]
    return [new for new in defined_names if new.name not in words_before and _may_be_told(new.name)]


def _may_be_told(name: str) -> bool:
    return len(name) >= SHORTEST_NAME and not name.startswith("_") and not CALLED_BY_OTHERS.fullmatch(name)


def _defined(path: str, text: str) -> Iterator[NewName]:
    if path.endswith(".py"):
        try:
            yield from _in_python(path, ast.parse(text).body, True)
        except UNREADABLE:
            return
    elif path.endswith(BY_PATTERN):
        for number, line in enumerate(text.splitlines(), 1):
            if match := DEFINED.match(line):
                yield NewName(path, match[1] or match[2], number, number)


def _in_python(path: str, body: Iterable[ast.stmt], with_methods: bool) -> Iterator[NewName]:
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if all(QUIET_DECORATORS.fullmatch(ast.unparse(decorator)) for decorator in node.decorator_list):
            yield NewName(path, node.name, node.lineno, node.end_lineno or node.lineno)
        # A method of a class that extends another one may be called by that one.
        if isinstance(node, ast.ClassDef) and with_methods and not node.bases and not node.decorator_list:
            yield from _in_python(path, node.body, False)


def unreached(names: Sequence[NewName], texts: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the names that no text mentions outside of their own definition. Nothing is said of a file in which names
    without any mention are usual: they are reached in another way, such as a registry of subclasses or by the users of
    a library."""
    alarms = _unmentioned(names, texts)
    usual_paths = {
        path for path in {new.path for new in names if new.name in alarms} if _is_usual_in(path, names, texts)
    }
    return tuple(new.name for new in names if new.name in alarms and new.path not in usual_paths)


def _is_usual_in(path: str, names: Sequence[NewName], texts: Mapping[str, str]) -> bool:
    """Says whether names that were in this file before the change are often mentioned nowhere."""
    new = {name.name for name in names}
    older_names = [
        name for name in _defined(path, texts.get(path, "")) if name.name not in new and _may_be_told(name.name)
    ]
    return len(_unmentioned(older_names, texts)) >= max(USUAL_COUNT, USUAL_SHARE * len(older_names))


def _unmentioned(names: Sequence[NewName], texts: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the names that no text mentions outside of their own definition. A name that begins like a piece of text
    that is put together with others, as `visit_` is, may be called by that."""
    unmentioned_names = {new.name: new for new in names}
    if not unmentioned_names:
        return ()
    pattern = re.compile(r"\b(?:" + "|".join(map(re.escape, unmentioned_names)) + r")\b")
    prefixes = re.compile("|".join(rf"[\"'`]{re.escape(_prefix(name))}[{{\"'`%]" for name in unmentioned_names))
    dynamic_prefixes = set[str]()
    for path, text in texts.items():
        dynamic_prefixes |= {match[1:-1] for match in prefixes.findall(text)}
        for number, line in enumerate(text.splitlines(), 1):
            for name in set(pattern.findall(line)) & unmentioned_names.keys():
                own_name = unmentioned_names[name]
                if path != own_name.path or not own_name.first <= number <= own_name.last:
                    del unmentioned_names[name]
        if not unmentioned_names:
            return ()
    return tuple(name for name in unmentioned_names if _prefix(name) not in dynamic_prefixes)


def _prefix(name: str) -> str:
    return name.partition("_")[0] + "_"


def texts_of(folder: Path, seconds: float) -> dict[str, str] | None:
    """Returns the texts of the folder; None where there are too many to be read in time."""
    texts, folders, deadline = dict[str, str](), [folder], time.monotonic() + seconds
    while folders:
        for entry in os.scandir(folders.pop()):
            if len(texts) > MOST_FILES or time.monotonic() > deadline:
                return None
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in HEAVY and entry.name != ".git" and not Path(entry.path, "pyvenv.cfg").exists():
                    folders.append(Path(entry.path))
            elif entry.is_file(follow_symlinks=False) and entry.stat().st_size <= LARGEST:
                data = Path(entry.path).read_bytes()
                if b"\0" not in data[:1024]:
                    texts[os.path.relpath(entry.path, folder)] = data.decode("utf-8", "replace")
    return texts
