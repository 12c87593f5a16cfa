"""The scopes of a Python file: the names bound in each, the things they are bound to, and the places of their uses."""

import ast
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class Imported(NamedTuple):
    """An import such as `from module import name`. An empty name means the module itself, as in `import module`."""

    module: str
    level: int
    name: str


class Parameter(NamedTuple):
    """A parameter of a function. The `first` parameter of a method may be the object itself."""

    function: Function | ast.Lambda
    arg: ast.arg
    default: ast.expr | None
    first: bool


class ElementOf(NamedTuple):
    """A value that a loop takes from an expression, one element after the other."""

    of: ast.expr


class EnteredBy(NamedTuple):
    """The value that `with` binds to a name when it enters an expression."""

    of: ast.expr


class Typed(NamedTuple):
    """The value of a name with an annotation."""

    annotation: ast.expr


Source = Definition | ast.expr | Imported | Parameter | ElementOf | EnteredBy | Typed | None
"""The thing that a name is bound to; None if the binding is not followed."""


class Bound(NamedTuple):
    line: int
    source: Source
    scope: "Scope"


class Scope:
    """A module, class, function or comprehension."""

    def __init__(self, node: ast.AST, above: "Scope | None", path: str) -> None:
        self.node = node
        self.above = above
        self.path = path
        self.names = defaultdict[str, list[Bound]](list)
        self.attributes = defaultdict[str, list[Bound]](list)
        """The attributes that the methods of a class set on `self`."""
        self.stars: list[Imported] = []

    def bind(self, name: str, line: int, source: Source, scope: "Scope | None" = None) -> None:
        self.names[name].append(Bound(line, source, scope or self))

    @property
    def owner(self) -> "Scope | None":
        """The class that directly contains this function; None outside of a class."""
        outer_scope = self.above
        return outer_scope if outer_scope and isinstance(outer_scope.node, ast.ClassDef) else None


def class_around(scope: Scope) -> Scope | None:
    current_scope: Scope | None = scope
    while current_scope and not isinstance(current_scope.node, ast.ClassDef):
        current_scope = current_scope.above
    return current_scope


class NamePlace(NamedTuple):
    """A use of a name: the node, its line, its column in bytes, and the scope around it."""

    node: ast.Name | ast.Attribute | ast.alias
    line: int
    column: int
    scope: Scope
    imported: Imported | None = None


class PythonFile:
    """A parsed Python file. The constructor raises SyntaxError if the text is no Python of this version."""

    def __init__(self, path: str, text: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        self.path = path
        self.scope = Scope(tree, None, path)
        self.places = defaultdict[str, list[NamePlace]](list)
        self.scopes: dict[ast.AST, Scope] = {tree: self.scope}
        self.narrowed: dict[ast.AST, ast.expr] = {}
        """For each use of a name after an `isinstance` test: the class that the test names."""
        self._now = self.scope
        self._known: dict[str, ast.expr] = {}
        self._visit_all(tree.body)

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self._visit(node)

    def _visit(self, node: ast.AST) -> None:
        match node:
            case ast.Name():
                self.places[node.id].append(NamePlace(node, node.lineno, node.col_offset, self._now))
                if node.id in self._known:
                    self.narrowed[node] = self._known[node.id]
            case ast.Attribute():
                line, column = node.end_lineno or node.lineno, (node.end_col_offset or 0) - len(node.attr.encode())
                self.places[node.attr].append(NamePlace(node, line, column, self._now))
                self._visit(node.value)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._now.bind(node.name, node.lineno, node)
                self._visit_all((*node.decorator_list, *_defaults(node.args)))
                self._annotated(*_annotations(node.args), node.returns)
                in_class = isinstance(self._now.node, ast.ClassDef) and not _has(node, "staticmethod")
                self._visit_within(node, node.body, in_class)
            case ast.ClassDef():
                self._now.bind(node.name, node.lineno, node)
                self._visit_all((*node.decorator_list, *node.bases, *node.keywords))
                self._visit_within(node, node.body)
            case ast.Lambda():
                self._visit_all(_defaults(node.args))
                self._visit_within(node, [node.body])
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self._visit_within(node, ast.iter_child_nodes(node))
            case ast.If() | ast.IfExp():
                self._branches(node)
            case ast.BoolOp():
                types_before = self._known
                for value in node.values:
                    self._visit(value)
                    self._known = self._known | dict(_instances(value) if isinstance(node.op, ast.And) else ())
                self._known = types_before
            case ast.Import() | ast.ImportFrom():
                self._import(node)
            case ast.AnnAssign():
                self._bind(node.target, Typed(node.annotation))
                self._visit_all((node.target, *filter(None, [node.value])))
                self._annotated(node.annotation)
            case ast.Call(func=ast.Name(id="cast") | ast.Attribute(attr="cast"), args=[kind, value]):
                self._visit_all((node.func, value))
                self._annotated(kind)
            case _:
                self._bind_in(node)
                self._visit_all(ast.iter_child_nodes(node))
                if isinstance(node, ast.Assert):
                    self._known = self._known | dict(_instances(node.test))

    def _annotated(self, *annotations: ast.expr | None) -> None:
        """Visits annotations. Names in quoted annotations count as used, and so do names in `__all__`."""
        for annotation in filter(None, annotations):
            self._visit(annotation)
            for part in ast.walk(annotation):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    self._quoted(part, part.value)

    def _quoted(self, constant: ast.Constant, text: str) -> None:
        annotation = parsed_annotation(text)
        has_no_escapes = (
            constant.lineno == constant.end_lineno and constant.end_col_offset == constant.col_offset + len(text) + 2
        )
        for node in ast.walk(annotation) if annotation and has_no_escapes and text.isascii() else ():
            if isinstance(node, ast.Name):
                place = NamePlace(node, constant.lineno, constant.col_offset + 1 + node.col_offset, self._now)
                self.places[node.id].append(place)

    def _visit_within(self, node: ast.AST, body: Iterable[ast.AST], in_class: bool = False) -> None:
        """Visits nodes in a new scope. Types from `isinstance` tests of outer names do not hold in a definition."""
        outer_types, outer_scope = self._known, self._now
        self._known = {} if isinstance(node, Definition) else outer_types
        self._now = self.scopes[node] = Scope(node, outer_scope, self.path)
        if isinstance(node, Function | ast.Lambda):
            self._bind_parameters(node, in_class)
        for generator in node.generators if isinstance(node, Comprehension) else ():
            self._bind(generator.target, ElementOf(generator.iter))
        self._visit_all(body)
        self._known, self._now = outer_types, outer_scope

    def _branches(self, node: ast.If | ast.IfExp) -> None:
        self._visit(node.test)
        types_before = self._known
        self._known = types_before | dict(_instances(node.test))
        body, else_body = (node.body, node.orelse) if isinstance(node, ast.If) else ([node.body], [node.orelse])
        self._visit_all(body)
        self._known = types_before
        self._visit_all(else_body)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                top_module = alias.name.partition(".")[0]
                self._now.bind(
                    alias.asname or top_module, node.lineno, Imported(alias.name if alias.asname else top_module, 0, "")
                )
                continue
            imported = Imported(node.module or "", node.level, alias.name)
            if alias.name == "*":
                self._now.stars.append(imported)
                continue
            self._now.bind(alias.asname or alias.name, alias.lineno, imported)
            self.places[alias.name].append(NamePlace(alias, alias.lineno, alias.col_offset, self._now, imported))

    def _bind_in(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target, value)
                if any(named(target) == "__all__" for target in targets):
                    self._annotated(value)
            case ast.NamedExpr(target=target, value=value):
                self._bind(target, value)
            case ast.For(target=target, iter=through) | ast.AsyncFor(target=target, iter=through):
                self._bind(target, ElementOf(through))
            case ast.withitem(context_expr=entered, optional_vars=ast.expr() as target):
                self._bind(target, EnteredBy(entered))
            case ast.ExceptHandler(name=str() as name, type=kind):
                self._now.bind(name, node.lineno, Typed(kind) if kind else None)
            case ast.Global(names=names):
                for name in names:
                    self._now.bind(name, 0, Imported("", 0, name))
            case _:
                return

    def _bind_parameters(self, node: Function | ast.Lambda, in_class: bool) -> None:
        args = node.args
        positional_args = [*args.posonlyargs, *args.args]
        defaults = dict(zip(positional_args[len(positional_args) - len(args.defaults) :], args.defaults, strict=True))
        defaults |= {arg: value for arg, value in zip(args.kwonlyargs, args.kw_defaults, strict=True) if value}
        for number, arg in enumerate([*positional_args, *args.kwonlyargs]):
            is_first = in_class and number == 0 and bool(positional_args)
            self._now.bind(arg.arg, arg.lineno, Parameter(node, arg, defaults.get(arg), is_first))
        for arg in filter(None, (args.vararg, args.kwarg)):
            self._now.bind(arg.arg, arg.lineno, None)

    def _bind(self, target: ast.expr, source: Source) -> None:
        match target:
            case ast.Name():
                scope = self._now
                while isinstance(scope.node, Comprehension) and not isinstance(source, ElementOf) and scope.above:
                    scope = scope.above
                scope.bind(target.id, target.lineno, source, self._now)
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                scope = self._now
                while scope.above and not scope.owner:
                    scope = scope.above
                if scope.owner:
                    scope.owner.attributes[target.attr].append(Bound(target.lineno, source, self._now))
            case ast.Tuple() | ast.List():
                values = source.elts if isinstance(source, ast.Tuple | ast.List) else []
                part_values = values if len(values) == len(target.elts) else [None] * len(target.elts)
                for part, value in zip(target.elts, part_values, strict=True):
                    self._bind(part, value)
            case ast.Starred():
                self._bind(target.value, None)
            case _:
                pass


def parsed_annotation(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _annotations(args: ast.arguments) -> Iterator[ast.expr]:
    all_args = (*args.posonlyargs, *args.args, *args.kwonlyargs, *filter(None, (args.vararg, args.kwarg)))
    yield from (arg.annotation for arg in all_args if arg.annotation)


def _defaults(args: ast.arguments) -> Iterator[ast.expr]:
    yield from (value for value in (*args.defaults, *args.kw_defaults) if value)


def _instances(test: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yields the names that are instances of a class where this test is true, each with the class."""
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), kind]):
            yield name, kind
        case ast.BoolOp(op=ast.And(), values=values):
            for value in values:
                yield from _instances(value)
        case _:
            return


def _has(node: Function, decorator: str) -> bool:
    return any(named(node_of_decorator) == decorator for node_of_decorator in node.decorator_list)


def named(node: ast.expr) -> str:
    """Returns the last name of `a.b.c` or `a.b.c(...)`."""
    match node:
        case ast.Call(func=func):
            return named(func)
        case ast.Attribute(attr=attr):
            return attr
        case ast.Name(id=name):
            return name
        case _:
            return ""
