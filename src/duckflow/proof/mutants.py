"""Small breaks of changed code, chosen by a fixed rule: a return gives nothing, a condition is inverted, a call is left
out, a value is None."""

import ast
import zlib
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

from duckflow.proof.python_tests import UNREADABLE

BreakKind = Literal["return", "condition", "drop", "value"]
ORDER: tuple[BreakKind, ...] = ("return", "condition", "drop", "value")


class Break(NamedTuple):
    """One break. `place` is the number of the broken node in the file."""

    path: str
    line: int
    kind: BreakKind
    place: int


def breaks_of(path: str, text: str, lines: Collection[int]) -> list[Break]:
    """Returns every possible break of these lines of a file; none where it cannot be parsed."""
    try:
        nodes = enumerate(ast.walk(ast.parse(text)))
    except UNREADABLE:
        return []
    breaks = list[Break]()
    for place, node in nodes:
        kind, line = _kind(node), int(getattr(node, "lineno", 0))
        breaks += [Break(path, line, kind, place)] if kind and line in lines else []
    return breaks


def chosen(
    breaks: Sequence[Break], reached: Mapping[str, Collection[tuple[str, int]]], most: int, scattered: bool = False
) -> list[Break]:
    """Chooses at most `most` breaks. Each choice favours tests that few breaks have been chosen for, and the break that
    most of these tests run. Of equal ones a return comes first, then a condition; with `scattered`, conditions come
    first, from all over the code. `reached` holds the lines that each test runs."""
    picked, remaining = list[Break](), list(breaks)
    tried = dict.fromkeys(reached, 0)
    rank = _scattered if scattered else _in_order
    while remaining and len(picked) < most:
        worth = [(_worth(candidate, reached, tried), rank(candidate), candidate) for candidate in remaining]
        gain, _, best = max(worth)
        if not gain and picked:
            break
        picked.append(best)
        remaining = [candidate for candidate in remaining if (candidate.path, candidate.line) != (best.path, best.line)]
        for test, lines in reached.items():
            tried[test] += (best.path, best.line) in lines
    return picked


def _in_order(candidate: Break) -> tuple[int, int]:
    return -ORDER.index(candidate.kind), -candidate.line


def _scattered(candidate: Break) -> tuple[int, int]:
    return candidate.kind == "condition", zlib.crc32(f"{candidate.path}:{candidate.line}".encode())


def _worth(candidate: Break, reached: Mapping[str, Collection[tuple[str, int]]], tried: Mapping[str, int]) -> float:
    return sum(
        1 / (1 + 3 * tried[test]) for test, lines in reached.items() if (candidate.path, candidate.line) in lines
    )


def broken(text: str, chosen_break: Break) -> str:
    """Returns the whole file with one break."""
    tree = ast.parse(text)
    target = next(node for number, node in enumerate(ast.walk(tree)) if number == chosen_break.place)
    match target:
        case ast.Return() | ast.Yield() | ast.Assign() | ast.AnnAssign():
            target.value = ast.Constant(None)
        case ast.If() | ast.While() | ast.IfExp():
            target.test = ast.UnaryOp(ast.Not(), target.test)
        case _:
            _LeaveOut(target).visit(tree)
    return ast.unparse(ast.fix_missing_locations(tree))


def _kind(node: ast.AST) -> BreakKind | None:
    match node:
        case ast.Return(value=value) | ast.Yield(value=value) if value and not _is_none(value):
            return "return"
        case ast.If() | ast.While() | ast.IfExp():
            return "condition"
        case ast.Expr(value=ast.Call() | ast.Await() | ast.YieldFrom()) | ast.Raise() | ast.AugAssign():
            return "drop"
        case ast.Assign(value=value) | ast.AnnAssign(value=value) if value and not _is_none(value):
            return "value"
        case _:
            return None


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


class _LeaveOut(ast.NodeTransformer):
    """Replaces one node by `pass`."""

    def __init__(self, target: ast.AST) -> None:
        self._target = target

    def visit(self, node: ast.AST) -> ast.AST:
        return ast.Pass() if node is self._target else self.generic_visit(node)
