"""New code that nothing reaches: a public name or a key of a configuration that a change adds, and that no other line
of the folder mentions.

It is found by a text search. Any mention counts as a use, be it a call, a test, a document or a text, so that no used
name is reported."""

import ast
import contextlib
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from duckflow.errors import ToolError
from duckflow.proof.python_tests import UNREADABLE
from duckflow.safety.files import FolderEntry
from duckflow.safety.ignore_rules import HEAVY
from duckflow.safety.undo.facts import FileVersions
from duckflow.safety.workspace import Workspace
from duckflow.state.checks import is_code

MOST_FILES = 8000
LARGEST = 1024 * 1024
SHORTEST_NAME = 4
USUAL_COUNT, USUAL_SHARE = 3, 0.1
"""If at least this number and this share of the older names in a file are mentioned nowhere else, a new name without a
mention is normal there."""
QUIET_DECORATORS = re.compile(
    r"(?:functools\.)?(?:wraps|lru_cache|cache|singledispatch|total_ordering)\b.*"
    r"|(?:typing\.|t\.)?(?:overload|final|no_type_check|override)|(?:contextlib\.)?(?:async)?contextmanager"
    r"|staticmethod|classmethod|(?:dataclasses\.)?dataclass\b.*|(?:abc\.)?abstractmethod"
)
"""Decorators that register nothing anywhere. A property is not among them: like a field, it is read by its name."""
DEFINED = re.compile(
    r"^(?:export\s+)?(?:async\s+)?(?:function\*?|class|func|fn|pub fn|pub struct|struct|type|interface)\s+(\w+)"
    r"|^(?:export\s+)?(?:const|let)\s+(\w+)\s*=\s*(?:async\s*)?(?:\(|function)"
)
BY_PATTERN = (".js", ".jsx", ".ts", ".tsx", ".mjs", ".go", ".rs")
KEYS = {
    (".toml", ".ini", ".cfg"): re.compile(r"""["']?([\w-]+)["']?\s*="""),
    (".json",): re.compile(r'(?:[{,]\s*)?"([\w-]+)"\s*:'),
    (".yaml", ".yml"): re.compile(r"""["']?([\w-]+)["']?:(?:\s|$)"""),
}
"""Patterns for the beginning of a line with a key, by the endings of configuration files."""
SETTINGS_CLASS = re.compile(r"\w*(?:Settings|Config|Configuration|Options|Preferences)")
FEWEST_KEYS, MOST_KEYS = 3, 300
"""A new key without a mention is reported only if at least this many other keys of its file are mentioned. A file with
more keys than the second number counts as data and is left out."""
CALLED_BY_OTHERS = re.compile(
    r"main|init|setup|teardown|handler|default|register|pytest_\w+|test\w*|Test\w*|load_tests"
)


REGISTRY = re.compile(r"__subclasses__|__init_subclass__|metaclass=(?!(?:abc\.)?ABCMeta\b)")
CONFIGURATION = re.compile(r"(?:.*/)?(?:\.?[^./]+|.*\.(?:cfg|toml|ini|json|ya?ml|conf))")


class NewName(NamedTuple):
    """A public function, class, method or key of a configuration that a change adds, and the lines that define it."""

    path: str
    name: str
    first: int
    last: int
    bases: tuple[str, ...] = ()
    """The classes that a class extends."""
    is_key: bool = False


def new_names(changes: Sequence[FileVersions]) -> list[NewName]:
    """Returns names that no changed file had before: a name that was only moved is not new."""
    words_before = {word for change in changes for form in (r"\w+", r"[\w-]+") for word in re.findall(form, change.old)}
    written_changes = [change for change in changes if change.after is not None and is_code(change.path)]
    defined_names = [name for change in written_changes for name in _defined(change.path, change.new)]
    return [new_name for new_name in defined_names if new_name.name not in words_before and _may_be_told(new_name.name)]


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
    elif key := next((key for file_endings, key in KEYS.items() if path.endswith(file_endings)), None):
        lines = [(number, key.match(line.lstrip())) for number, line in enumerate(text.splitlines(), 1)]
        keys = [NewName(path, match[1], number, number, is_key=True) for number, match in lines if match]
        yield from keys if len(keys) <= MOST_KEYS else ()


def _in_python(path: str, body: Iterable[ast.stmt], with_methods: bool) -> Iterator[NewName]:
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if all(QUIET_DECORATORS.fullmatch(ast.unparse(decorator)) for decorator in node.decorator_list):
            base_names = tuple(map(ast.unparse, node.bases)) if isinstance(node, ast.ClassDef) else ()
            yield NewName(path, node.name, node.lineno, node.end_lineno or node.lineno, base_names)
        if isinstance(node, ast.ClassDef) and SETTINGS_CLASS.fullmatch(node.name):
            yield from _fields(path, node)
        # A method of a class that extends another one may be called by that one.
        if isinstance(node, ast.ClassDef) and with_methods and not node.bases and not node.decorator_list:
            yield from _in_python(path, node.body, False)


def _fields(path: str, settings: ast.ClassDef) -> Iterator[NewName]:
    for field in settings.body:
        match field:
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                yield NewName(path, name, field.lineno, field.end_lineno or field.lineno, is_key=True)
            case _:
                pass


def unreached(names: Sequence[NewName], texts: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the names that no text mentions outside of their own definition. A file in which names without any
    mention are usual is left out: such names are reached in another way, for example by a registry of subclasses or by
    the users of a library."""
    alarms = _unmentioned(names, texts)
    unmentioned_names = [new_name for new_name in names if new_name.name in alarms]
    places = {(new_name.path, new_name.is_key) for new_name in unmentioned_names}
    usual_places = {
        (path, is_key)
        for path, is_key in places
        if (_keys_are_for_others(path, names, texts) if is_key else _is_usual_in(path, names, texts))
    }
    unusual_names = [new_name for new_name in unmentioned_names if (new_name.path, new_name.is_key) not in usual_places]
    return tuple(
        new_name.name
        for new_name in unusual_names
        if new_name.is_key or not (_is_hook(new_name, texts) or _is_registered(new_name, texts))
    )


def _is_hook(new: NewName, texts: Mapping[str, str]) -> bool:
    """Says whether a configuration names the module, and no code does. The module is then a plugin of another program,
    which calls the functions that it knows by name."""
    module = re.compile(rf"\b{re.escape(Path(new.path).stem)}\b")
    paths = [path for path, text in texts.items() if path != new.path and module.search(text)]
    return any(map(CONFIGURATION.fullmatch, paths)) and not any(path.endswith(".py") for path in paths)


def _is_registered(new: NewName, texts: Mapping[str, str]) -> bool:
    """Says whether a class that the new class extends, directly or not, may keep a list of its subclasses."""
    base_names = re.findall(r"\w+", " ".join(new.bases))
    for base_name in base_names:
        pattern = re.compile(rf"^class {re.escape(base_name)}\b(.*)", re.MULTILINE)
        for text in texts.values():
            if match := pattern.search(text):
                if REGISTRY.search(text):
                    return True
                base_names += [word for word in re.findall(r"\w+", match[1]) if word not in base_names]
    return False


def _is_usual_in(path: str, names: Sequence[NewName], texts: Mapping[str, str]) -> bool:
    """Says whether it is usual in this file that names are mentioned nowhere else. Names that the change adds are left
    out."""
    new_names_here = {name.name for name in names}
    older_names = [
        name
        for name in _defined(path, texts.get(path, ""))
        if not name.is_key and name.name not in new_names_here and _may_be_told(name.name)
    ]
    return len(_unmentioned(older_names, texts)) >= max(USUAL_COUNT, USUAL_SHARE * len(older_names))


def _keys_are_for_others(path: str, names: Sequence[NewName], texts: Mapping[str, str]) -> bool:
    """Says whether the keys of this file may be read by another program, or by code that does not name them. The code
    of the folder reads a key by its name only if it names the file and the other keys beside it."""
    if not path.endswith(".py"):
        file_name = path.rpartition("/")[2]
        if not any(file_name in text for other, text in texts.items() if other.endswith((".py", *BY_PATTERN))):
            return True
    new_names_here = {name.name for name in names}
    keys = [key for key in _defined(path, texts.get(path, "")) if key.is_key and _may_be_told(key.name)]
    unmentioned_keys = set(_unmentioned(keys, texts))
    mentioned_count = len({key.name for key in keys} - unmentioned_keys)
    return not unmentioned_keys <= new_names_here or mentioned_count < max(FEWEST_KEYS, len(unmentioned_keys))


def _unmentioned(names: Sequence[NewName], texts: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the names that no text mentions outside of their own definition. A name is left out if its beginning,
    such as `visit_`, is a string of its own in the code: the code may build the whole name from it."""
    unmentioned_names = {new_name.name: new_name for new_name in names}
    if not unmentioned_names:
        return ()
    # The key `max-rows` is mentioned by `max_rows`, too.
    names_by_spelling = {spelling: name for name in unmentioned_names for spelling in (name, name.replace("-", "_"))}
    pattern = re.compile(r"\b(?:" + "|".join(map(re.escape, names_by_spelling)) + r")\b")
    prefixes = re.compile("|".join(rf"[\"'`]{re.escape(_prefix(name))}[{{\"'`%]" for name in unmentioned_names))
    dynamic_prefixes = set[str]()
    for path, text in texts.items():
        dynamic_prefixes |= {match[1:-1] for match in prefixes.findall(text)}
        for number, line in enumerate(text.splitlines(), 1):
            for name in {names_by_spelling[spelling] for spelling in pattern.findall(line)} & unmentioned_names.keys():
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
    texts, deadline = dict[str, str](), time.monotonic() + seconds
    with contextlib.closing(Workspace(folder)) as workspace:
        for entry in workspace.walk(enter=lambda entry: not _is_left_out(folder, entry)):
            if len(texts) > MOST_FILES or time.monotonic() > deadline:
                return None
            if entry.kind == "file" and entry.size <= LARGEST:
                with contextlib.suppress(OSError, ToolError):
                    file_bytes = workspace.read_bytes(f"./{entry.path}", LARGEST)
                    if b"\0" not in file_bytes[:1024]:
                        texts[entry.path] = file_bytes.decode("utf-8", "replace")
    return texts


def _is_left_out(folder: Path, entry: FolderEntry) -> bool:
    return entry.name in HEAVY or entry.name == ".git" or (folder / entry.path / "pyvenv.cfg").exists()
