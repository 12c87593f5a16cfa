"""Hollow twins of real tests: the same tests with nothing left that could fail."""

import ast
import copy

from duckflow.proof.trial import TestsInQuestion
from duckflow.safety.undo.facts import FileVersions

RAISES = ("raises", "assertRaises", "warns", "assertWarns", "assertRaisesRegex")
KINDS = ("assert_true", "computed", "mocked", "renamed")


def twins(changes: list[FileVersions], questions: TestsInQuestion, kind: str) -> list[FileVersions] | None:
    """The same change with hollow tests in the place of those in question; nothing where the kind does not fit."""
    made, replaced = list[FileVersions](), 0
    target = _target(questions)
    for one in changes:
        names = set(questions.tests.get(one.path, ()))
        if not names:
            made.append(one)
            continue
        tree = ast.parse(one.new)
        maker = TwinMaker(names, kind, target, ast.parse(one.old))
        maker.visit(tree)
        replaced += maker.replaced
        made.append(one._replace(after=ast.unparse(ast.fix_missing_locations(tree)).encode()))
    return made if replaced else None


def _target(questions: TestsInQuestion) -> str:
    """The dotted name of a function that the change touches."""
    lines = questions.lines()
    for one in questions.code:
        for node in ast.parse(one.new).body if one.path in lines else ():
            touched = lines[one.path].intersection(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            if isinstance(node, ast.FunctionDef) and touched:
                module = one.path.removeprefix("src/").removesuffix(".py").replace("/", ".")
                return f"{module.removesuffix('.__init__')}.{node.name}"
    return ""


class TwinMaker(ast.NodeTransformer):
    """Weakens the tests with these names."""

    def __init__(self, names: set[str], kind: str, target: str, old: ast.Module) -> None:
        self._names = names
        self._kind = kind
        self._target = target
        self._old = old
        self._within: list[str] = []
        self.replaced = 0

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.ClassDef):
            self._within.append(node.name)
            self.generic_visit(node)
            self._within.pop()
            return node
        if not isinstance(node, ast.FunctionDef):
            return self.generic_visit(node)
        if "::".join((*self._within, node.name)) not in self._names:
            return node
        twin = getattr(self, f"_{self._kind}")(node)
        self.replaced += twin is not None
        return twin or node

    def _assert_true(self, node: ast.FunctionDef) -> ast.AST:
        Weaker(computed=False).generic_visit(node)
        return node

    def _computed(self, node: ast.FunctionDef) -> ast.AST:
        Weaker(computed=True).generic_visit(node)
        return node

    def _mocked(self, node: ast.FunctionDef) -> ast.AST:
        if self._target:
            module, _, name = self._target.rpartition(".")
            text = (
                f"import importlib\nfrom unittest import mock\nmodule = importlib.import_module({module!r})\n"
                f"with mock.patch.object(module, {name!r}, return_value=7):\n    assert module.{name}() == 7"
            )
        else:
            text = "from unittest import mock\ntarget = mock.Mock(return_value=7)\nassert target(1) == 7"
        node.body = ast.parse(text).body
        return node

    def _renamed(self, node: ast.FunctionDef) -> ast.AST | None:
        body = self._old.body
        for name in self._within:
            found = [one for one in body if isinstance(one, ast.ClassDef) and one.name == name]
            body = found[0].body if found else []
        others = [one for one in body if isinstance(one, ast.FunctionDef) and one.name.startswith("test")]
        others = [one for one in others if "::".join((*self._within, one.name)) not in self._names]
        if not others:
            return None
        twin = copy.deepcopy(others[0])
        twin.name = node.name
        return twin


class Weaker(ast.NodeTransformer):
    """Removes from assertions what they assert: True, or the computed value, remains."""

    def __init__(self, computed: bool) -> None:
        self._computed = computed

    def visit(self, node: ast.AST) -> ast.AST:
        match node:
            case ast.Assert():
                value = node.test.left if isinstance(node.test, ast.Compare) else node.test
                return self._weak(value)
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name), args=[value, *_])) if name.startswith("assert"):
                return self._weak(value)
            case ast.With(items=[ast.withitem(context_expr=ast.Call(func=func))]) if _raises(func):
                suppress = ast.parse("__import__('contextlib').suppress(BaseException)", mode="eval").body
                node.items = [ast.withitem(context_expr=suppress)]
                return self.generic_visit(node)
            case _:
                return self.generic_visit(node)

    def _weak(self, value: ast.expr) -> ast.stmt:
        if not self._computed:
            return ast.parse("assert True").body[0]
        holder = ast.parse("for expected in [0]:\n    assert 0 == expected").body[0]
        assert isinstance(holder, ast.For) and isinstance(holder.iter, ast.List)
        holder.iter.elts = [value]
        check = holder.body[0]
        assert isinstance(check, ast.Assert) and isinstance(check.test, ast.Compare)
        check.test.left = copy.deepcopy(value)
        return holder


def _raises(func: ast.expr) -> bool:
    return ast.unparse(func).rpartition(".")[2] in RAISES
