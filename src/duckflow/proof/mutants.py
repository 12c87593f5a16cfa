"""Small breaks of changed code, chosen by a fixed rule: a return gives None, a condition is inverted, a call is left
out, a value is None or the opposite of what it was."""

import ast
import zlib
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

from duckflow.proof.python_tests import UNREADABLE

BreakKind = Literal["return", "condition", "drop", "value", "opposite"]
ORDER: tuple[BreakKind, ...] = ("return", "condition", "drop", "value", "opposite")
"""The kinds of breaks (faults put in on purpose) in the order in which they are chosen. The opposite comes last: it is
for tests that expect False or nothing, because such tests still pass when a value becomes None."""

Place = tuple[str, int]
"""A line: the path of its file and its number."""
Reached = Mapping[str, Mapping[Place, None]]
"""The lines that each test runs, the last one first."""


class Break(NamedTuple):
    """One break: a small fault that is put into the code on purpose. `place` is the number of the broken node in the
    file."""

    path: str
    line: int
    kind: BreakKind
    place: int
    function: int = 0
    """The first line of the innermost function around it; 0 outside functions."""


def breaks_of(path: str, text: str, lines: Collection[int]) -> list[Break]:
    """Returns every possible break (a fault to put in on purpose) of these lines of a file; none where it cannot be
    parsed."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except UNREADABLE:
        return []
    functions = dict[int, int]()
    for node in nodes:
        # Inner functions come after those around them.
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions |= dict.fromkeys(range(node.lineno, (node.end_lineno or node.lineno) + 1), node.lineno)
    breaks = list[Break]()
    for index, node in enumerate(nodes):
        line = int(getattr(node, "lineno", 0))
        breaks += [Break(path, line, kind, index, functions.get(line, 0)) for kind in _kinds(node) if line in lines]
    return breaks


def chosen(breaks: Sequence[Break], reached: Reached, most: int, scattered: bool = False) -> list[Break]:
    """Chooses at most `most` breaks (faults to put in on purpose), so that each test is tried on some. Breaks that many
    tests run come first; of equally good ones, a return comes before a condition. With `scattered`, conditions from all
    over the code come first, and every other choice is a break of a line that a test ran last, because that line is
    nearest to what the test checks."""
    picked_breaks, remaining_breaks = list[Break](), list(breaks)
    try_counts = dict.fromkeys(reached, 0)
    rank = _scattered if scattered else _in_order
    while remaining_breaks and len(picked_breaks) < most:
        latest_break = (
            _latest(remaining_breaks, reached, try_counts, picked_breaks)
            if scattered and len(picked_breaks) % 2 == 0
            else None
        )
        worth = [(_worth(candidate, reached, try_counts), rank(candidate), candidate) for candidate in remaining_breaks]
        best_worth, _, best_break = max(worth)
        if not best_worth and picked_breaks:
            break
        best_break = latest_break or best_break
        picked_breaks.append(best_break)
        remaining_breaks = [
            candidate
            for candidate in remaining_breaks
            if (candidate.path, candidate.line) != (best_break.path, best_break.line)
            or (candidate.kind == "opposite" and candidate != best_break)
        ]
        for test, lines in reached.items():
            try_counts[test] += (best_break.path, best_break.line) in lines
    return picked_breaks


def _latest(
    breaks: Sequence[Break], reached: Reached, tried: Mapping[str, int], picked: Collection[Break]
) -> Break | None:
    """Returns a break (a fault to put in on purpose) of the last line that a test ran, in a function that has no break
    so far. The test with the fewest breaks is looked at first."""
    functions = {(chosen_break.path, chosen_break.function) for chosen_break in picked}
    by_line = {
        (candidate.path, candidate.line): candidate
        for candidate in reversed(breaks)
        if (candidate.path, candidate.function) not in functions
    }
    for test in sorted(reached, key=lambda name: tried[name]):
        if reached_line := next((reached_line for reached_line in reached[test] if reached_line in by_line), None):
            return by_line[reached_line]
    return None


def _in_order(candidate: Break) -> tuple[int, int]:
    return -ORDER.index(candidate.kind), -candidate.line


def _scattered(candidate: Break) -> tuple[int, int]:
    kind_rank = {"condition": 1, "opposite": -1}.get(candidate.kind, 0)
    return kind_rank, zlib.crc32(f"{candidate.path}:{candidate.line}".encode())


def _worth(candidate: Break, reached: Reached, tried: Mapping[str, int]) -> float:
    return sum(
        1 / (1 + 3 * tried[test]) for test, lines in reached.items() if (candidate.path, candidate.line) in lines
    )


def broken(text: str, chosen_break: Break) -> str:
    """Returns the file's whole text with one break in it."""
    tree = ast.parse(text)
    target = next(node for number, node in enumerate(ast.walk(tree)) if number == chosen_break.place)
    match target:
        case (
            ast.Return(value=value) | ast.Yield(value=value) | ast.Assign(value=value) | ast.AnnAssign(value=value)
        ) if value and chosen_break.kind == "opposite":
            target.value = ast.UnaryOp(ast.Not(), value)
        case ast.Return() | ast.Yield() | ast.Assign() | ast.AnnAssign():
            target.value = ast.Constant(None)
        case ast.If() | ast.While() | ast.IfExp():
            target.test = ast.UnaryOp(ast.Not(), target.test)
        case _:
            _LeaveOut(target).visit(tree)
    return ast.unparse(ast.fix_missing_locations(tree))


def _kinds(node: ast.AST) -> tuple[BreakKind, ...]:
    match node:
        case ast.Return(value=value) | ast.Yield(value=value) if value and not _is_none(value):
            return ("return", "opposite")
        case ast.If() | ast.While() | ast.IfExp():
            return ("condition",)
        case ast.Expr(value=ast.Call() | ast.Await() | ast.YieldFrom()) | ast.Raise() | ast.AugAssign():
            return ("drop",)
        case ast.Assign(value=value) | ast.AnnAssign(value=value) if value and not _is_none(value):
            return ("value", "opposite")
        case _:
            return ()


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


class _LeaveOut(ast.NodeTransformer):
    """Replaces one node by `pass`."""

    def __init__(self, target: ast.AST) -> None:
        self._target = target

    def visit(self, node: ast.AST) -> ast.AST:
        return ast.Pass() if node is self._target else self.generic_visit(node)
