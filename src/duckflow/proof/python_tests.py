"""Rules about tests in Python: which of them a change adds or alters, and which of them cannot fail."""

import ast
import copy
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

CASES = re.compile(r"Test|.*TestCase|.*Tests?$")
ASSERTING = re.compile(r"assert(?:_?\w+)?|raises(?:_\w+)?|warns|fail(?:If|Unless)?\w*|deprecated_call|check(?:_\w+)?")
Function = ast.FunctionDef | ast.AsyncFunctionDef


class FileTests(NamedTuple):
    """The tests of one file that a change adds or alters, by names as in `Class::function`, and what is known about
    them without running them."""

    tried: tuple[str, ...]
    """Tests that are to be run."""
    trivial: tuple[str, ...]
    """Tests whose assertions cannot fail."""
    copies: tuple[str, ...]
    """Tests that do the same as a test that existed before the change."""
    asserting: frozenset[int]
    """The lines with assertions that can fail."""
    altered: frozenset[str] = frozenset()
    """The tests that existed before the change in another form."""
    asserting_tests: frozenset[str] = frozenset()
    """The tests of the file that have assertions which can fail."""
    imported: frozenset[str] = frozenset()
    """The files that the tests may import. Their paths are guessed from the names of the imported modules."""


UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""Errors for a source that Python cannot parse, for example because an expression is too long or too deep."""
NO_TESTS = FileTests((), (), (), frozenset())


def tests_in_question(before: str, after: str) -> FileTests:
    """Returns the tests that a change of a file adds or alters; none for a file that cannot be parsed."""
    try:
        tree = ast.parse(after)
        return _in_question(tests_of(ast.parse(before)), tests_of(tree))._replace(imported=_imported(tree))
    except UNREADABLE:
        return NO_TESTS


def _in_question(old: dict[str, Function], new: dict[str, Function]) -> FileTests:
    shape_by_name = {name: shape_of(test) for name, test in old.items()}
    bodies = {_body(name, test): name for name, test in old.items()}
    changed_names = [name for name, test in new.items() if shape_of(test) != shape_by_name.get(name)]
    copy_sources = {name: bodies[body] for name in changed_names if (body := _body(name, new[name])) in bodies}
    renamed_names = {name for name, source in copy_sources.items() if source not in new}
    copies = tuple(name for name in copy_sources if name not in renamed_names)
    trivial_names = tuple(name for name in changed_names if name not in copy_sources and _cannot_fail(new[name]))
    tried_names = tuple(name for name in changed_names if name not in copy_sources and name not in trivial_names)
    lines = {name: frozenset(_asserting_lines(test)) for name, test in new.items()}
    asserting_lines, altered_names = frozenset[int]().union(*lines.values()), frozenset(changed_names).intersection(old)
    return FileTests(
        tried_names,
        trivial_names,
        copies,
        asserting_lines,
        altered_names,
        frozenset(name for name in lines if lines[name]),
    )


def _imported(tree: ast.Module) -> frozenset[str]:
    """Returns the files that a module may import. Their paths are guessed from the names of the imported modules."""
    names = set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                names |= {alias.name for alias in node.names}
            case ast.ImportFrom(module=str(module), level=0):
                names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
            case _:
                pass
    paths = (f"{folder}{name.replace('.', '/')}" for name in names for folder in ("", "src/"))
    return frozenset(f"{path}{suffix}" for path in paths for suffix in (".py", "/__init__.py"))


def tests_of(tree: ast.Module) -> dict[str, Function]:
    """Returns the tests of a file, by names as in `Class::function`."""
    return dict(_each_test(tree.body, ""))


def _each_test(body: Sequence[ast.stmt], prefix: str) -> Iterator[tuple[str, Function]]:
    for node in body:
        if isinstance(node, Function) and node.name.startswith("test"):
            yield f"{prefix}{node.name}", node
        elif isinstance(node, ast.ClassDef) and _holds_tests(node):
            yield from _each_test(node.body, f"{prefix}{node.name}::")
        elif isinstance(node, ast.If | ast.Try):
            yield from _each_test(node.body, prefix)


def _holds_tests(node: ast.ClassDef) -> bool:
    return any(CASES.match(name) for name in (node.name, *map(ast.unparse, node.bases)))


def shape_of(test: Function, named: bool = True) -> str:
    """Returns the code of a test in a comparable form, without its comments and docstring."""
    bare_test = copy.copy(test)
    bare_test.body = [node for node in test.body if not only_words(node)]
    bare_test.name = test.name if named else ""
    return ast.dump(bare_test)


def _body(name: str, test: Function) -> tuple[str, str]:
    """Returns the class and the shape of a test. The same code in another class may do something else, because it has
    other attributes and fixtures."""
    return name.rpartition("::")[0], shape_of(test, named=False)


def only_words(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _cannot_fail(test: Function) -> bool:
    """Says whether a test asserts something, but nothing that could be false. A test without assertions may still show
    that nothing is raised."""
    asserts = [node for node in ast.walk(test) if isinstance(node, ast.Assert)]
    has_other_asserts = any(isinstance(node, ast.Call) and _asserts(node) for node in ast.walk(test))
    if not asserts or has_other_asserts:
        return False
    repeating_nodes = _repeating(test)
    return all(node in repeating_nodes or _is_trivial(node.test) for node in asserts)


def _repeating(test: Function) -> set[ast.AST]:
    """Returns the assertions that compare an expression with the value that it had in the line before: `kept = f(x)`,
    `assert f(x) == kept`. If anything stands in between, that may be what the test is about."""
    assertions = set[ast.AST]()
    for node in ast.walk(test):
        body: list[ast.stmt] = getattr(node, "body", None) or [] if isinstance(node, ast.stmt) else []
        for first_statement, next_statement in pairwise([node, *body]):
            match first_statement, next_statement:
                case (
                    (
                        ast.Assign(targets=[ast.Name(id=name)], value=value)
                        | ast.For(target=ast.Name(id=name), iter=ast.List(elts=[value]) | ast.Tuple(elts=[value]))
                    ),
                    ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right])),
                ):
                    texts = {name, ast.unparse(value)}
                    assertions |= {next_statement} if {ast.unparse(left), ast.unparse(right)} == texts else set()
                case _:
                    pass
    return assertions


def _is_trivial(test: ast.expr) -> bool:
    match test:
        case ast.Constant() | ast.Tuple(elts=[_, *_]):
            return True
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is() | ast.LtE() | ast.GtE()], comparators=[right]):
            return ast.dump(left) == ast.dump(right)
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(map(_is_trivial, values))
        case ast.BoolOp(op=ast.And(), values=values):
            return all(map(_is_trivial, values))
        case _:
            return False


def _asserts(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if not ASSERTING.fullmatch(name):
        return False
    # assertEqual(x, x) and assertTrue(True) check nothing.
    compares_same = len(call.args) > 1 and ast.dump(call.args[0]) == ast.dump(call.args[1])
    return not compares_same and not (len(call.args) == 1 and isinstance(call.args[0], ast.Constant))


def _asserting_lines(test: Function) -> Iterator[int]:
    for node in ast.walk(test):
        match node:
            case ast.Assert(test=condition) if not _is_trivial(condition):
                yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
            case ast.Call() if _asserts(node):
                yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
            case ast.With(items=items) | ast.AsyncWith(items=items) if any(
                isinstance(item.context_expr, ast.Call) and _asserts(item.context_expr) for item in items
            ):
                yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
            case _:
                pass
