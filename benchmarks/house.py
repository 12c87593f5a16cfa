"""How the house is built, as a Markdown table: `python -m benchmarks.house [REV…]`.

Measures the given git revisions and then the working tree; a cell in which they differ shows them all. What a file
imports is read from the whole text: at the top, inside functions, and for the type checker only."""

import ast
import statistics
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.revisions import TOP, unpack

SMALL = 40
MAKERS = ("agent", "work", "store", "remote")
"""Rooms that make events, keep them, or carry a conversation to another process."""

Graph = Mapping[str, set[str]]
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One file, read once. `early`: what is imported when it is loaded; `imported`: all that it names anywhere."""

    name: str
    path: Path
    text: str
    tree: ast.Module
    early: set[str]
    imported: set[str]

    @cached_property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @property
    def room(self) -> str:
        return self.name.split(".")[1] if "." in self.name else "duckflow"

    @property
    def package(self) -> str:
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    @cached_property
    def classes(self) -> list[ast.ClassDef]:
        return [node for node in self.statements if isinstance(node, ast.ClassDef)]

    @cached_property
    def functions(self) -> list[Function]:
        return [node for node in self.statements if isinstance(node, Function)]

    @cached_property
    def statements(self) -> list[ast.AST]:
        """Yields statements and those inside them. Expressions are left out, because they hold no statements."""
        found: list[ast.AST] = [self.tree]
        for node in found:
            found += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
        return found


@dataclass(frozen=True)
class House:
    """Every module by its dotted name."""

    modules: Mapping[str, Module]

    @cached_property
    def importers(self) -> Counter[str]:
        """How many other modules import each one."""
        return Counter(name for module in self.modules.values() for name in module.imported)

    @cached_property
    def module_cycles(self) -> list[list[str]]:
        return cycles({name: module.early for name, module in self.modules.items()})

    @cached_property
    def lazy_cycles(self) -> list[list[str]]:
        """Returns cycles including imports inside functions and for the type checker."""
        return cycles({name: module.imported for name, module in self.modules.items()})

    @cached_property
    def package_cycles(self) -> list[list[str]]:
        """Returns cycles between packages of which neither holds the other."""
        graph: dict[str, set[str]] = defaultdict(set)
        for module in self.modules.values():
            for name in module.imported:
                one, other = module.package, self.modules[name].package
                if not f"{one}.".startswith(f"{other}.") and not f"{other}.".startswith(f"{one}."):
                    graph[one].add(other)
        return cycles(graph)

    @cached_property
    def doubled_classes(self) -> dict[str, list[str]]:
        """Class names that occur more than once, with the modules they occur in."""
        places: dict[str, list[str]] = defaultdict(list)
        for module in self.modules.values():
            for node in module.classes:
                places[node.name].append(module.name)
        return {name: modules for name, modules in places.items() if len(modules) > 1}

    @cached_property
    def kinds_of_events(self) -> set[str]:
        return {node.name for module in self.modules.values() if module.room == "events" for node in module.classes}

    def interprets(self, module: Module) -> bool:
        """Says whether the module looks at what kind an event is."""
        return module.room != "events" and any(map(self._asks_for_kind, ast.walk(module.tree)))

    def _asks_for_kind(self, node: ast.AST) -> bool:
        asked: list[ast.expr] = []
        match node:
            case ast.MatchClass():
                asked = [node.cls]
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
                asked = [part for part in ast.walk(kinds) if isinstance(part, ast.expr)]
            case _:
                pass
        names = {part.attr if isinstance(part, ast.Attribute) else getattr(part, "id", "") for part in asked}
        return bool(names & self.kinds_of_events - {"Event"})


def read_house(source: Path) -> House:
    """Reads a house; `source` is the folder of the package `duckflow`."""
    paths = {_dotted(path.relative_to(source.parent)): path for path in sorted(source.rglob("*.py"))}
    known = frozenset(paths)
    return House({name: _read(name, path, known) for name, path in paths.items()})


def _dotted(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _read(name: str, path: Path, known: frozenset[str]) -> Module:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    early, imported = ({found for found in _imports(tree, known, late) if found != name} for late in (False, True))
    return Module(name, path, text, tree, early, imported)


def _imports(node: ast.AST, known: frozenset[str], late: bool) -> Iterator[str]:
    """Names of known modules that are imported below this node."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            continue
        if isinstance(child, ast.ImportFrom) and child.module:
            for alias in child.names:
                full = f"{child.module}.{alias.name}"
                yield from {full if full in known else child.module} & known
        elif isinstance(child, ast.Import):
            yield from {alias.name for alias in child.names} & known
        elif late or not (isinstance(child, Function) or _for_types_only(child)):
            yield from _imports(child, known, late)


def _for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def cycles(graph: Graph) -> list[list[str]]:
    """Groups of nodes that all reach each other (Tarjan)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        order[node] = lowest[node] = len(order)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in order:
                visit(other)
            if other in stack:
                lowest[node] = min(lowest[node], lowest[other])
        if lowest[node] == order[node]:
            group = stack[stack.index(node) :]
            del stack[-len(group) :]
            if len(group) > 1:
                found.append(sorted(group))

    for node in graph:
        if node not in order:
            visit(node)
    return found


def length(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _touching(groups: Iterable[Iterable[str]], modules: Iterable[Module]) -> str:
    """How many of the groups have a member among these modules, or are one of their packages."""
    names = {name for module in modules for name in (module.name, module.package)}
    return str(sum(not names.isdisjoint(group) for group in groups))


Measure = Callable[[House, list[Module]], str]


def _longest_function(_: House, modules: list[Module]) -> str:
    found = [(length(node), node.name) for module in modules for node in module.functions]
    lines, name = max(found, default=(0, "none"))
    return f"`{name}` {lines}"


def _one_importer(house: House, modules: list[Module]) -> str:
    count = house.importers
    return str(sum(count[module.name] == 1 for module in modules if module.path.name != "__init__.py"))


MEASURES: dict[str, Measure] = {
    "files": lambda _, modules: str(len(modules)),
    "lines": lambda _, modules: str(sum(module.lines for module in modules)),
    "median": lambda _, modules: f"{statistics.median(module.lines for module in modules):g}" if modules else "0",
    f"under {SMALL} lines": lambda _, modules: str(sum(module.lines < SMALL for module in modules)),
    "longest function": _longest_function,
    "one importer": _one_importer,
    "interprets events": lambda house, modules: str(sum(map(house.interprets, modules))),
    "module cycles": lambda house, modules: _touching(house.module_cycles, modules),
    "package cycles": lambda house, modules: _touching(house.package_cycles, modules),
    "lazy cycles": lambda house, modules: _touching(house.lazy_cycles, modules),
    "class names twice": lambda house, modules: _touching(house.doubled_classes.values(), modules),
}


def table(houses: list[House]) -> str:
    rooms = sorted({module.room for house in houses for module in house.modules.values()} - {"duckflow"})
    rows = [["room", *MEASURES], ["---"] * (len(MEASURES) + 1)]
    for room in [*rooms, "all"]:
        cells: list[str] = []
        for measure in MEASURES.values():
            values = [
                measure(house, [one for one in house.modules.values() if room in (one.room, "all")]) for house in houses
            ]
            cells.append(values[0] if len(set(values)) == 1 else " → ".join(values))
        rows.append([room, *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def read_revision(revision: str) -> House:
    with tempfile.TemporaryDirectory() as folder:
        unpack(revision, Path(folder))
        return read_house(Path(folder) / "src/duckflow")


def _interpreters(house: House) -> str:
    """Modules outside the rooms that make events or keep them: of these rooms only `view` should have one."""
    names = [name for name, module in house.modules.items() if module.room not in MAKERS and house.interprets(module)]
    return f"{len(names)} ({', '.join(name.removeprefix('duckflow.') for name in names)})"


def main() -> None:
    revisions = sys.argv[1:]
    house = read_house(TOP / "src/duckflow")
    print(f"Trees: {', '.join([*revisions, 'the working tree'])}. Every file counts, `__init__.py` too.\n")
    houses = [*map(read_revision, revisions), house]
    print(table(houses))
    print(f"\nInterpreters of events for people: {' → '.join(map(_interpreters, houses))}")
    named = {
        "Cycles": [*house.module_cycles, *house.lazy_cycles, *house.package_cycles],
        "Class names twice": [[name, *modules] for name, modules in house.doubled_classes.items()],
    }
    for title, groups in named.items():
        for group in groups:
            print(f"\n{title} in the working tree: {', '.join(group)}")


if __name__ == "__main__":
    main()
