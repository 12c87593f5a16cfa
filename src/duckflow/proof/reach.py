"""New code that nothing reaches: a public name that a change adds, and that no other line of the folder speaks of.

It is found by search, and errs to silence: any mention counts as a use, be it a call, a test, a document or a text."""

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
    """Names that no changed file had before: what was only moved is not new."""
    before = {word for one in changes for word in re.findall(r"\w+", one.old)}
    found = [name for one in changes if one.after is not None and is_code(one.path) for name in _defined(one)]
    return [new for new in found if new.name not in before and _may_be_told(new.name)]


def _may_be_told(name: str) -> bool:
    return len(name) >= SHORTEST_NAME and not name.startswith("_") and not CALLED_BY_OTHERS.fullmatch(name)


def _defined(one: FileVersions) -> Iterator[NewName]:
    if one.path.endswith(".py"):
        try:
            yield from _in_python(one.path, ast.parse(one.new).body, True)
        except UNREADABLE:
            return
    elif one.path.endswith(BY_PATTERN):
        for number, line in enumerate(one.new.splitlines(), 1):
            if match := DEFINED.match(line):
                yield NewName(one.path, match[1] or match[2], number, number)


def _in_python(path: str, body: Iterable[ast.stmt], with_methods: bool) -> Iterator[NewName]:
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if all(QUIET_DECORATORS.fullmatch(ast.unparse(one)) for one in node.decorator_list):
            yield NewName(path, node.name, node.lineno, node.end_lineno or node.lineno)
        # A method of a class that extends another one may be called by that.
        if isinstance(node, ast.ClassDef) and with_methods and not node.bases and not node.decorator_list:
            yield from _in_python(path, node.body, False)


def unreached(names: Sequence[NewName], texts: Mapping[str, str]) -> tuple[str, ...]:
    """Those of the names that no text mentions outside of their own definition. A name that begins like a piece of text
    that is put together with others, as `visit_` is, may be called by that."""
    left = {new.name: new for new in names}
    if not left:
        return ()
    pattern = re.compile(r"\b(?:" + "|".join(map(re.escape, left)) + r")\b")
    prefixes = re.compile("|".join(rf"[\"'`]{re.escape(_prefix(name))}[{{\"'`%]" for name in left))
    dynamic = set[str]()
    for path, text in texts.items():
        dynamic |= {found[1:-1] for found in prefixes.findall(text)}
        for number, line in enumerate(text.splitlines(), 1):
            for name in set(pattern.findall(line)) & left.keys():
                own = left[name]
                if path != own.path or not own.first <= number <= own.last:
                    del left[name]
        if not left:
            return ()
    return tuple(name for name in left if _prefix(name) not in dynamic)


def _prefix(name: str) -> str:
    return name.partition("_")[0] + "_"


def texts_of(folder: Path, seconds: float) -> dict[str, str] | None:
    """The texts of the folder; nothing where there are too many to be read in time."""
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
