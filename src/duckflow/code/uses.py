"""Finds the uses of a definition. As far as the text allows, these are distinguished from places that mean another
definition of the same name."""

import ast
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from duckflow.code.python_modules import SUFFIXES, PythonModules
from duckflow.code.python_scopes import Bound, NamePlace
from duckflow.code.python_types import PythonTypes
from duckflow.code.store import CodeMap
from duckflow.code.syntax import Language, Symbol, language_of, symbols_of, tree_of

if TYPE_CHECKING:
    from ast_grep_py import SgNode


Meaning = Literal["it", "unsure", "other"]
OF_BUILTINS = frozenset(name for kind in (str, bytes, list, dict, set, int, tuple, object) for name in dir(kind))
MOST_FILES = 300
"""The most parsed files in memory; beyond this number all are dropped."""


class PythonProject:
    """Finds out which definition a name in a Python file means."""

    def __init__(self, code_map: CodeMap) -> None:
        self._modules = PythonModules(code_map)
        self._types = PythonTypes(self._modules)
        self._of_unknown = dict[Symbol, Meaning]()

    def meanings(self, path: str, target: Symbol) -> dict[tuple[int, int], Meaning] | None:
        """Returns the meaning of every place in a file that has the target's name, by line and column in characters;
        None for a file that is no Python of this version."""
        if self._modules.read > MOST_FILES:
            self._modules = PythonModules(self._modules.map)
            self._types = PythonTypes(self._modules)
        file = self._modules.file(path)
        if file is None:
            return None
        lines: list[str] | None = None
        meanings = dict[tuple[int, int], Meaning]()
        for place in file.places.get(target.name, ()):
            lines = lines or self._modules.map.text(path).split("\n")
            bytes_before = lines[place.line - 1].encode("utf-8", "replace")[: place.column]
            meanings[place.line, len(bytes_before.decode("utf-8", "replace"))] = self._meaning(place, target)
        return meanings

    def _meaning(self, place: NamePlace, target: Symbol) -> Meaning:
        definition = (target.path, target.line)
        bindings, is_certain = self._bounds(place)
        if any((binding.scope.path, binding.line) == definition for binding in bindings):
            return "it"
        if is_certain or not target.parent or not isinstance(place.node, ast.Attribute):
            return "other"
        if target not in self._of_unknown:
            self._of_unknown[target] = self._meant_by_name(target)
        return self._of_unknown[target]

    def _meant_by_name(self, target: Symbol) -> Meaning:
        """Judges a member of an object of unknown type. If the member's name is unusual and defined only once, it means
        that definition."""
        kinds_in_file = {symbol.qualified: symbol.what for symbol in self._modules.map.in_file(target.path)}
        if kinds_in_file.get(target.parent) == "function":
            return "other"
        symbols_of_name = [symbol for symbol in self._modules.map.named(target.name) if symbol.path.endswith(SUFFIXES)]
        return "it" if target.name not in OF_BUILTINS and len(symbols_of_name) == 1 else "unsure"

    def _bounds(self, place: NamePlace) -> tuple[list[Bound], bool]:
        """Returns the definitions that a place refers to, and whether no other definition is possible."""
        node, scope = place.node, place.scope
        if place.imported:
            bindings = self._modules.imported(place.imported, scope.path)
            return bindings, True
        if isinstance(node, ast.Name):
            return self._modules.followed(self._modules.lookup(node.id, scope)), True
        if not isinstance(node, ast.Attribute):
            return [], True
        values = self._types.infer(node.value, scope)
        bindings = [binding for value in values for binding in self._types.classes.member(value, node.attr)]
        is_certain = bool(values) and all(self._types.classes.is_complete(value, set()) for value in values)
        return self._modules.followed(bindings), bool(bindings) or is_certain


Role = Literal["call", "name", "import"]


class Use(NamedTuple):
    """A place that has the target's name. `within` is the name of the definition around the place."""

    path: str
    line: int
    column: int
    role: Role
    within: str
    text: str
    means: Meaning


class Uses(NamedTuple):
    """The uses that were found, and the files for which there was no time left."""

    uses: list[Use]
    not_looked_at: list[str]

    def meaning(self, means: Meaning) -> list[Use]:
        return [use for use in self.uses if use.means == means]


class SourceFile:
    """A file that mentions the target's name."""

    def __init__(self, path: str, text: str, language: Language) -> None:
        self.path = path
        self.text = text
        self.language = language

    @cached_property
    def tree(self) -> "SgNode":
        return tree_of(self.text, self.language)

    @cached_property
    def symbols(self) -> list[Symbol]:
        return list(symbols_of(self.tree, self.language, self.path))

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    def around(self, line: int) -> Symbol | None:
        """Returns the innermost class or function (or other definition that is no variable) around a line."""
        enclosing_symbols = (
            symbol for symbol in self.symbols if symbol.start <= line <= symbol.end and symbol.what != "variable"
        )
        return max(enclosing_symbols, key=lambda symbol: (symbol.start, -symbol.end), default=None)

    def use(self, line: int, column: int, role: Role, means: Meaning) -> Use:
        enclosing_symbol = self.around(line)
        enclosing_name, text = enclosing_symbol.qualified if enclosing_symbol else "", self.lines[line - 1].strip()
        return Use(self.path, line, column, role, enclosing_name, text, means)

    def imports_of(self, name: str) -> list[str]:
        """Returns the file's import statements that contain the name."""
        if not self.language.imports:
            return []
        kinds = sorted(self.language.imports)
        texts = (node.text() for node in self.tree.find_all({"rule": {"any": [{"kind": kind} for kind in kinds]}}))
        return [text for text in texts if re.search(rf"\b{re.escape(name)}\b", text)]


def find_uses(code_map: CodeMap, target: Symbol, seconds: float = 10.0) -> Uses:
    """Finds the uses of a definition, first in files near it. The result names the files that there was no time for."""
    language = language_of(target.path)
    assert language
    candidates = [symbol for symbol in code_map.named(target.name) if _family(symbol.path) == _family(target.path)]
    paths = [path for path in code_map.mentioning(target.name) if _family(path) == _family(target.path)]
    paths.sort(key=lambda path: (-_shared(path, target.path), path))
    deadline, uses = time.monotonic() + seconds, list[Use]()
    python = PythonProject(code_map) if language.grammar == "python" else None
    for number, path in enumerate(paths):
        if time.monotonic() > deadline:
            return Uses(uses, paths[number:])
        if file_language := language_of(path):
            meanings = python.meanings(path, target) if python else None
            uses += _uses_in(SourceFile(path, code_map.text(path), file_language), target, candidates, meanings)
    return Uses(uses, [])


def _uses_in(
    file: SourceFile, target: Symbol, candidates: Sequence[Symbol], meanings: Mapping[tuple[int, int], Meaning] | None
) -> Iterator[Use]:
    definition_lines = {(symbol.path, symbol.line) for symbol in candidates if symbol.path == file.path}
    name_pattern = f"^{re.escape(target.name)}$"
    name_kinds = sorted(file.language.names)
    seen_places = set[tuple[int, int]]()
    for node in file.tree.find_all({"rule": {"any": [{"kind": kind, "regex": name_pattern} for kind in name_kinds]}}):
        place = node.range().start
        line, column = place.line + 1, place.column
        seen_places.add((line, column))
        if (file.path, line) in definition_lines and _defines(node, file.language):
            continue
        role = _role(node, file)
        python_meaning = None if meanings is None else meanings.get((line, column), "other")
        meaning = python_meaning or _meaning(node, file, target, candidates, role)
        yield file.use(line, column, role, meaning)
    # For the grammar, quoted annotations are only strings, so their names are added here.
    yield from (
        file.use(*place, "name", meaning) for place, meaning in (meanings or {}).items() if place not in seen_places
    )


def _defines(node: "SgNode", language: Language) -> bool:
    """Says whether a name is the one in its own definition, and not a use of it."""
    parent = node.parent()
    return parent is not None and (parent.kind() in language.definitions or "declarat" in parent.kind())


def _role(node: "SgNode", file: SourceFile) -> Role:
    if any(ancestor.kind() in file.language.imports for ancestor in node.ancestors()):
        return "import"
    return "call" if _after(node, file).startswith("(") else "name"


def _after(node: "SgNode", file: SourceFile) -> str:
    """Returns the text after a node in the node's line."""
    end_position = node.range().end
    return file.lines[end_position.line][end_position.column :].lstrip()


def _meaning(node: "SgNode", file: SourceFile, target: Symbol, candidates: Sequence[Symbol], role: Role) -> Meaning:
    """Judges a use by rules that hold in most languages: imports, files of a folder, and the owner of a member."""
    receiver = _receiver(node, file.language)
    enclosing_symbol = file.around(node.range().start.line + 1)
    if role == "import":
        return "it" if _from_file(node, file, target, candidates) else "other"
    if receiver is not None:
        fitting_symbols = _owners(receiver, file, enclosing_symbol, candidates)
    elif target.parent and target.what in ("function", "variable", "constructor"):
        fitting_symbols = [
            symbol for symbol in candidates if enclosing_symbol and _inherits(enclosing_symbol, symbol, file)
        ]
        fitting_symbols = fitting_symbols if file.language.own and "self" not in file.language.own else []
    else:
        fitting_symbols = _visible(target.name, file, candidates)
    if target in fitting_symbols:
        # One thing may have several declarations in one file.
        owners = {(symbol.path, symbol.parent) for symbol in fitting_symbols}
        return "it" if len(owners) == 1 else "unsure"
    if fitting_symbols or receiver is None:
        return "other"
    return "it" if len(candidates) == 1 and target.parent else "unsure" if target.parent else "other"


def _receiver(node: "SgNode", language: Language) -> str | None:
    """Returns the text before the dot, or None if the name stands alone."""
    parent = node.parent()
    if parent and parent.kind() == "navigation_suffix":
        parent = parent.parent()
    if parent is None or parent.kind() not in language.members:
        return None
    field = language.members[parent.kind()]
    receiver = parent.field(field) if field else parent.child(0)
    if receiver is None or receiver.range().start.index == node.range().start.index:
        return None
    return receiver.text()


def _owners(receiver: str, file: SourceFile, within: Symbol | None, candidates: Sequence[Symbol]) -> list[Symbol]:
    """Returns the definitions that a member of this receiver can mean; none if the text does not show its type."""
    variable = re.split(r"\W+", receiver.rstrip(")(!? "))[-1]
    if receiver in file.language.own:
        return [symbol for symbol in candidates if within and _inherits(within, symbol, file)]
    if named_symbols := [
        symbol
        for symbol in candidates
        if variable and variable in (symbol.parent.rpartition(".")[2], _stem(symbol.path))
    ]:
        return named_symbols
    if within and variable.isidentifier():
        body = "\n".join(file.lines[within.start - 1 : within.end])
        typed_symbols = [
            symbol
            for symbol in candidates
            if symbol.parent and _is_one(variable, symbol.parent.rpartition(".")[2], body)
        ]
        if typed_symbols:
            return typed_symbols
    import_texts = file.imports_of(variable) if variable else []
    return [
        symbol
        for symbol in candidates
        if not symbol.parent and any(_named_in(text, symbol.path) for text in import_texts)
    ]


def _is_one(variable: str, owner: str, body: str) -> bool:
    """Says whether the text creates or declares the variable as an instance of the class."""
    assignment_pattern = rf"\b{re.escape(variable)}\b\s*(?::=|=|:)[^\n;]*?\b{re.escape(owner)}\b"
    declaration_pattern = rf"\b{re.escape(owner)}\b[\w<>\[\]*&?, ]*\s[*&]*{re.escape(variable)}\b"
    return re.search(f"{assignment_pattern}|{declaration_pattern}", body) is not None


def _inherits(within: Symbol, definition: Symbol, file: SourceFile) -> bool:
    """Says whether the class around a place has the definition itself, or inherits from the class that has it."""
    owner = definition.parent.rpartition(".")[2]
    if not owner:
        return False
    if owner in within.qualified.split("."):
        return True
    classes = [symbol for symbol in file.symbols if symbol.bases and within.qualified.startswith(symbol.qualified)]
    return any(re.search(rf"\b{re.escape(owner)}\b", symbol.bases) for symbol in classes)


def _visible(name: str, file: SourceFile, candidates: Sequence[Symbol]) -> list[Symbol]:
    """Returns the definitions that a name without an owner can mean in a file: those of the file itself, else imported
    ones, else those of its folder, else all."""
    if own_symbols := [symbol for symbol in candidates if symbol.path == file.path]:
        return own_symbols
    if import_texts := file.imports_of(name):
        named_symbols = [symbol for symbol in candidates if any(_named_in(text, symbol.path) for text in import_texts)]
        # A file of the project may re-export names that another file defines.
        may_be_reexported = any(re.search(r"""["']\.""", text) for text in import_texts)
        return named_symbols or ([symbol for symbol in candidates if not symbol.parent] if may_be_reexported else [])
    folder = file.path.rpartition("/")[0]
    if package_symbols := [
        symbol for symbol in candidates if file.language.package and symbol.path.rpartition("/")[0] == folder
    ]:
        return package_symbols
    # In languages without imports, every definition is visible.
    needs_no_import = not file.language.imports or file.language.package or file.language.grammar in ("c", "cpp")
    return list(candidates) if needs_no_import else []


def _from_file(node: "SgNode", file: SourceFile, target: Symbol, candidates: Sequence[Symbol]) -> bool:
    text = next((ancestor.text() for ancestor in node.ancestors() if ancestor.kind() in file.language.imports), "")
    return _named_in(text, target.path) or (len(candidates) == 1 and not re.search(r"""["']\w""", text))


def _named_in(statement: str, path: str) -> bool:
    """Says whether an import names this file, or its folder where the file (`index`, `mod`) stands for the folder."""
    words = re.split(r"\W+", statement)
    return _stem(path) in words or path.rpartition("/")[0].rpartition("/")[2] in words


def _stem(path: str) -> str:
    folder, _, name = path.rpartition("/")
    stem = name.partition(".")[0]
    return folder.rpartition("/")[2] if stem in ("index", "mod", "lib", "__init__") else stem


def _family(path: str) -> str:
    grammar = language.grammar if (language := language_of(path)) else ""
    return {"tsx": "javascript", "typescript": "javascript", "cpp": "c", "kotlin": "java"}.get(grammar, grammar)


def _shared(path: str, other: str) -> int:
    """Returns the number of folders that two paths have in common."""
    part_pairs = zip(path.split("/"), other.split("/"), strict=False)
    return next((number for number, (part, other_part) in enumerate(part_pairs) if part != other_part), 99)
