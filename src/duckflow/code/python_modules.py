"""The Python files of a project: each is read when it is needed, and found by the name of its module. Names are
followed through scopes and imports to their definitions."""

import ast
from collections.abc import Iterable
from functools import cached_property

from duckflow.code.python_scopes import Bound, Comprehension, Imported, PythonFile, Scope
from duckflow.code.store import CodeMap

SUFFIXES = (".py", ".pyi")


class PythonModules:
    """The Python files of the project, as the code map lists them."""

    def __init__(self, code_map: CodeMap) -> None:
        self.map = code_map
        self._files: dict[str, PythonFile | None] = {}

    @property
    def read(self) -> int:
        """The number of Python files that are in memory."""
        return len(self._files)

    def file(self, path: str) -> PythonFile | None:
        if path not in self._files:
            try:
                self._files[path] = PythonFile(path, self.map.text(path))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                self._files[path] = None
        return self._files[path]

    def followed(self, bounds: Iterable[Bound], seen: frozenset[Imported] = frozenset()) -> list[Bound]:
        """Replaces imports by the definitions that they import. An import of something else stays as it is."""
        definitions = list[Bound]()
        for bound in bounds:
            imported_bounds = (
                self.imported(bound.source, bound.scope.path, seen) if isinstance(bound.source, Imported) else []
            )
            definitions += imported_bounds or [bound]
        return definitions

    def imported(self, imported: Imported, path: str, seen: frozenset[Imported] = frozenset()) -> list[Bound]:
        if imported.name == "" or imported in seen:
            return []
        if imported.module == "" and imported.level == 0:
            file = self.file(path)
            return self.in_module(file, imported.name, seen | {imported}) if file else []
        definitions = list[Bound]()
        for file in self._modules(imported, path):
            definitions += self.in_module(file, imported.name, seen | {imported})
        return definitions

    def in_module(self, file: PythonFile, name: str, seen: frozenset[Imported]) -> list[Bound]:
        if name in file.scope.names:
            own_bounds = [bound for bound in file.scope.names[name] if bound.source not in seen]
            return self.followed(own_bounds, seen)
        definitions = list[Bound]()
        for star_import in file.scope.stars:
            if star_import not in seen:
                for module_file in self._modules(star_import, file.path):
                    definitions += self.in_module(module_file, name, seen | {star_import})
        return definitions

    def _modules(self, imported: Imported, path: str) -> list[PythonFile]:
        paths = self.paths_of(imported.module, imported.level, path)
        return [file for module_path in paths if (file := self.file(module_path))]

    def brought(self, imported: Imported, path: str) -> list[PythonFile] | None:
        """Returns the files of the module that an import binds. Returns an empty list if the import binds something
        else, and None if it imports nothing of the project."""
        module, level, name = imported
        paths = self.paths_of(".".join(filter(None, (module, name))), level, path)
        known_paths = paths or self.paths_of(module, level, path)
        return [file for module_path in paths if (file := self.file(module_path))] if known_paths else None

    def paths_of(self, module: str, level: int, path: str) -> list[str]:
        """Returns the files that a module's name can mean. An absolute name begins in a folder that is no package."""
        module_parts = [*filter(None, module.split("."))]
        if level:
            folder = path.split("/")[:-1]
            base_parts = folder[: len(folder) - (level - 1)]
            return self.stems.get("/".join([*base_parts, *module_parts]), [])
        if not module_parts:
            return []
        module_stem, roots = "/".join(module_parts), list[tuple[int, str]]()
        for stem in self._by_last.get(module_parts[-1], ()):
            if stem == module_stem or stem.endswith(f"/{module_stem}"):
                root = stem[: len(stem) - len(module_stem)].rstrip("/")
                if root == "" or root not in self._packages:
                    nearness = len(root) if path.startswith(f"{root}/") or not root else -1
                    roots.append((nearness, stem))
        return self.stems[max(roots)[1]] if roots else []

    @cached_property
    def stems(self) -> dict[str, list[str]]:
        stems = dict[str, list[str]]()
        for path, _ in self.map.files():
            if path.endswith(SUFFIXES):
                stems.setdefault(path.rpartition(".")[0].removesuffix("/__init__"), []).append(path)
        return stems

    @cached_property
    def _by_last(self) -> dict[str, list[str]]:
        stems_by_last = dict[str, list[str]]()
        for stem in self.stems:
            stems_by_last.setdefault(stem.rpartition("/")[2], []).append(stem)
        return stems_by_last

    @cached_property
    def _packages(self) -> frozenset[str]:
        return frozenset(stem for stem, paths in self.stems.items() if any("__init__.py" in path for path in paths))

    def lookup(self, name: str, scope: Scope) -> list[Bound]:
        """Looks a name up from the inner scope to the outer. The names of a class are seen only directly in the class's
        body."""
        current_scope: Scope | None = scope
        while current_scope:
            is_own_scope = current_scope is scope or (
                isinstance(scope.node, Comprehension) and current_scope is scope.above
            )
            if name in current_scope.names and (is_own_scope or not isinstance(current_scope.node, ast.ClassDef)):
                return current_scope.names[name]
            if current_scope.above is None:
                file = self.file(current_scope.path)
                return self.in_module(file, name, frozenset()) if file else []
            current_scope = current_scope.above
        return []
