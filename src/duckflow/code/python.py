"""What a name in Python code refers to, as far as the text tells."""

import ast
from typing import Literal

from duckflow.code.python_modules import SUFFIXES, PythonModules
from duckflow.code.python_scopes import Bound, NamePlace
from duckflow.code.python_types import PythonTypes
from duckflow.code.store import CodeMap
from duckflow.code.syntax import Symbol

Meaning = Literal["it", "unsure", "other"]
OF_BUILTINS = frozenset(name for kind in (str, bytes, list, dict, set, int, tuple, object) for name in dir(kind))
MOST_FILES = 300
"""So many trees are held in memory; then it begins anew."""


class PythonProject:
    """Which definition a name in a Python file means."""

    def __init__(self, code_map: CodeMap) -> None:
        self._modules = PythonModules(code_map)
        self._types = PythonTypes(self._modules)
        self._of_unknown = dict[Symbol, Meaning]()

    def meanings(self, path: str, target: Symbol) -> dict[tuple[int, int], Meaning] | None:
        """For every place in a file that has the target's name, by line and column in characters; nothing for a file
        that is no Python of this version."""
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
            before = lines[place.line - 1].encode("utf-8", "replace")[: place.column]
            meanings[place.line, len(before.decode("utf-8", "replace"))] = self._meaning(place, target)
        return meanings

    def _meaning(self, place: NamePlace, target: Symbol) -> Meaning:
        wanted = (target.path, target.line)
        bounds, known = self._bounds(place)
        if any((bound.scope.path, bound.line) == wanted for bound in bounds):
            return "it"
        if known or not target.parent or not isinstance(place.node, ast.Attribute):
            return "other"
        if target not in self._of_unknown:
            self._of_unknown[target] = self._meant_by_name(target)
        return self._of_unknown[target]

    def _meant_by_name(self, target: Symbol) -> Meaning:
        """A member of an object that is not known: the only definition of an unusual name is meant."""
        around = {one.qualified: one.what for one in self._modules.map.in_file(target.path)}
        if around.get(target.parent) == "function":
            return "other"
        same = [one for one in self._modules.map.named(target.name) if one.path.endswith(SUFFIXES)]
        return "it" if target.name not in OF_BUILTINS and len(same) == 1 else "unsure"

    def _bounds(self, place: NamePlace) -> tuple[list[Bound], bool]:
        """What a place refers to, and whether that is known to be all."""
        node, scope = place.node, place.scope
        if place.imported:
            bounds = self._modules.imported(place.imported, scope.path)
            return bounds, True
        if isinstance(node, ast.Name):
            return self._modules.followed(self._modules.lookup(node.id, scope)), True
        if not isinstance(node, ast.Attribute):
            return [], True
        values = self._types.infer(node.value, scope)
        bounds = [bound for value in values for bound in self._types.classes.member(value, node.attr)]
        certain = bool(values) and all(self._types.classes.is_complete(value, set()) for value in values)
        return self._modules.followed(bounds), bool(bounds) or certain
