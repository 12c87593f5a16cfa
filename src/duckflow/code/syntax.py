"""Reads the definitions in a file's text by the grammar of its language (ast-grep). The languages are rows of data in
languages.json."""

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from duckflow.safety.ignore_rules import ALWAYS_IGNORED

if TYPE_CHECKING:
    from ast_grep_py import SgNode

TABLE = Path(__file__).with_name("languages.json")
LARGEST = 1_000_000
"""The most bytes of a file that is read: a longer file was hardly written by hand."""
LONGEST_LINE = 10_000
MOST_ENTRIES = 20_000
"""The most folder entries that are counted to find out whether a folder is large."""
DEEPEST = 50
"""The deepest nesting of definitions that is followed. Each level takes as much time as all levels around it."""
NO_NAME = frozenset(
    {"object_pattern", "array_pattern", "pattern_list", "tuple_pattern", "attribute", "subscript", "member_expression",
     "element_reference", "list_pattern", "left_assignment_list", "call", "index_expression"}
)  # fmt: skip
NAME_FIELDS = ("name", "left", "declarator", "property")
TOP = frozenset({"program", "export_statement"})
WRAPPERS = frozenset({"decorated_definition", "export_statement", "template_declaration"})
"""Nodes around a definition that count as its beginning, such as decorators."""


class Language(NamedTuple):
    """One row of the table of languages. Kinds of nodes are those of the language's grammar."""

    grammar: str
    suffixes: tuple[str, ...]
    definitions: Mapping[str, str]
    """The kinds of nodes that define something, each with what it defines, such as `class`."""
    names: frozenset[str]
    """The kinds of nodes that are names."""
    members: Mapping[str, str]
    """The kinds of nodes such as `a.b`, each with the node's field that holds the owner `a`. If the field's name is
    empty, the first child is the owner."""
    imports: frozenset[str] = frozenset()
    bases: tuple[str, ...] = ()
    """Fields or kinds of nodes that hold the names of base classes."""
    own: frozenset[str] = frozenset()
    """The words by which an object refers to itself or to its base class."""
    functions: frozenset[str] = frozenset()
    """Kinds of values that make a variable a function, such as an arrow function."""
    constants_only: frozenset[str] = frozenset()
    needs_body: frozenset[str] = frozenset()
    package: bool = False
    """True if files of one folder see each other's names without an import."""


class Symbol(NamedTuple):
    """A definition in a file. Lines count from 1. `start` is the line of the first decorator, and `line` the line of
    the name."""

    name: str
    what: str
    parent: str
    line: int
    start: int
    end: int
    bases: str = ""
    path: str = ""

    @property
    def qualified(self) -> str:
        return f"{self.parent}.{self.name}" if self.parent else self.name


def available() -> bool:
    """Says whether the extra `code` is installed, without loading it."""
    return find_spec("ast_grep_py") is not None


@cache
def languages() -> Mapping[str, Language]:
    """Returns the known languages by the suffix of their files."""
    table: dict[str, dict[str, Any]] = json.loads(TABLE.read_text(encoding="utf-8"))
    rows = [_language(name, table.get(row.get("like", ""), {}) | row) for name, row in table.items()]
    return {suffix: language for language in rows for suffix in language.suffixes}


def _language(grammar: str, row: dict[str, Any]) -> Language:
    return Language(
        grammar,
        tuple(row["suffixes"]),
        row["definitions"],
        frozenset(row["names"]),
        row["members"],
        frozenset(row.get("imports", ())),
        tuple(row.get("bases", ())),
        frozenset(row.get("own", ())),
        frozenset(row.get("functions", ())),
        frozenset(row.get("constants_only", ())),
        frozenset(row.get("needs_body", ())),
        bool(row.get("package")),
    )


def language_of(path: str) -> Language | None:
    return languages().get(PurePosixPath(path).suffix.lower())


def tree_of(text: str, language: Language) -> "SgNode":
    from ast_grep_py import SgRoot

    # Finding a place takes time in proportion to its line, so lines too long to be written by hand are emptied.
    readable_text = re.sub(rf"[^\n]{{{LONGEST_LINE},}}", lambda line: " " * len(line[0]), text)
    return SgRoot(readable_text, language.grammar).root()


class _Around(NamedTuple):
    """A definition that contains others: its end, its name and its kind."""

    end: int
    qualified: str
    what: str


def symbols_in(text: str, path: str) -> list[Symbol]:
    """Returns the definitions in the order of the text; none if the language is not known."""
    language = language_of(path)
    return list(symbols_of(tree_of(text, language), language, path)) if language else []


def symbols_of(tree: "SgNode", language: Language, path: str) -> Iterator[Symbol]:
    nodes = tree.find_all({"rule": {"any": [{"kind": kind} for kind in language.definitions]}})
    outer_symbols: list[_Around] = []
    for node in nodes:
        node_range = node.range()
        while outer_symbols and outer_symbols[-1].end <= node_range.start.index:
            outer_symbols.pop()
        if len(outer_symbols) >= DEEPEST:
            continue
        kind = node.kind()
        # Most nodes are local variables, so they are skipped before anything else is checked.
        if not language.functions and language.definitions[kind] == "variable" and _is_local(outer_symbols):
            continue
        name = _name_of(node, kind, language)
        if name is None or (kind in language.needs_body and node.field("body") is None):
            continue
        symbol_kind = _what(node, kind, language, name, outer_symbols)
        if not symbol_kind:
            continue
        parent = outer_symbols[-1].qualified if outer_symbols else ""
        *outer_names, own_name = re.split(r"::|\.", name.text().removeprefix("~"))
        parent = ".".join(filter(None, (parent, *outer_names))) or _receiver(node, kind)
        qualified = f"{parent}.{own_name}" if parent else own_name
        if symbol_kind != "type" or kind == "type_spec":
            outer_symbols.append(
                _Around(node_range.end.index, own_name if symbol_kind == "part" else qualified, symbol_kind)
            )
        if symbol_kind == "part":
            continue
        bases_text = _bases(node, language) if symbol_kind in ("class", "interface") else ""
        start, line = _start(node), name.range().start.line + 1
        yield Symbol(own_name, symbol_kind, parent, line, start, node_range.end.line + 1, bases_text, path)


def _name_of(node: "SgNode", kind: str, language: Language) -> "SgNode | None":
    """Returns the node that holds a definition's name: one of its fields, or the first name inside."""
    fields = ("type",) if kind == "impl_item" else NAME_FIELDS
    name = next((field for field_name in fields if (field := node.field(field_name))), None) or node
    if name.kind() in NO_NAME:
        return None
    if name.kind() in language.names or name.kind() in ("scope_resolution", "qualified_identifier"):
        return name
    direct_child = next((child for child in name.children() if child.kind() in language.names), None)
    # ast-grep refuses kinds that the grammar does not have.
    name_kinds = {*language.names, *(("qualified_identifier", "destructor_name") if language.grammar == "cpp" else ())}
    return direct_child or name.find({"rule": {"any": [{"kind": kind_of_name} for kind_of_name in sorted(name_kinds)]}})


def _what(node: "SgNode", kind: str, language: Language, name: "SgNode", around: Sequence[_Around]) -> str:
    """Returns the kind of definition that a node makes; empty for a variable that other code cannot see."""
    symbol_kind = language.definitions[kind]
    if symbol_kind != "variable":
        return symbol_kind
    value = node.field("value")
    if value and value.kind() in language.functions:
        return "function"
    if _is_local(around) or (kind in language.constants_only and not name.text()[:1].isupper()):
        return ""
    parent = node.parent()
    grandparent = parent.parent() if parent else None
    return (
        ""
        if language.functions and kind == "variable_declarator" and grandparent and grandparent.kind() not in TOP
        else symbol_kind
    )


def _is_local(around: Sequence[_Around]) -> bool:
    return any(outer_symbol.what in ("function", "constructor") for outer_symbol in around)


def _receiver(node: "SgNode", kind: str) -> str:
    """Returns the receiver type of a Go method, which stands before the method's name."""
    receiver = node.field("receiver") if kind == "method_declaration" else None
    name_match = re.search(r"(\w+)\s*(?:\[[^\]]*\])?\s*\)$", receiver.text()) if receiver else None
    return name_match[1] if name_match else ""


def _bases(node: "SgNode", language: Language) -> str:
    fields = (
        node.field(base_field)
        for base_field in language.bases
        if base_field in ("superclasses", "superclass", "interfaces")
    )
    base_texts = [field.text() for field in fields if field]
    base_texts += (
        [child.text() for child in node.children() if child.kind() in language.bases] if not base_texts else []
    )
    return re.sub(r"\s+", " ", " ".join(base_texts))[:300]


def _start(node: "SgNode") -> int:
    parent = node.parent()
    return (parent if parent and parent.kind() in WRAPPERS else node).range().start.line + 1


def is_large(folder: Path, files: int) -> bool:
    """Says whether the folder has about this many source files. It runs before the first request, so it reads no ignore
    rules and stops as soon as it can."""
    waiting_folders, entry_count, sources = [str(folder)], 0, 0
    while waiting_folders and entry_count < MOST_ENTRIES:
        with contextlib.suppress(OSError), os.scandir(waiting_folders.pop()) as entries:
            for entry in entries:
                entry_count += 1
                if entry.name.startswith(".") or entry.name in ALWAYS_IGNORED:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting_folders.append(entry.path)
                elif language_of(entry.name):
                    sources += 1
                    if sources >= files:
                        return True
    return False
