"""The types of Python expressions, as far as the text shows them. Classes, calls, annotations and imports are followed
through the project's own files."""

import ast
import builtins
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from duckflow.code.python_modules import PythonModules
from duckflow.code.python_scopes import (
    Bound,
    ElementOf,
    EnteredBy,
    Function,
    Imported,
    Parameter,
    Scope,
    Source,
    Typed,
    class_around,
    named,
    parsed_annotation,
)

DEPTH = 12
MANY = frozenset(
    {"list", "List", "set", "Set", "frozenset", "FrozenSet", "tuple", "Tuple", "Sequence", "Iterable", "Iterator",
     "Collection", "Generator", "AsyncIterator", "AsyncIterable", "AsyncGenerator", "deque", "MutableSequence",
     "dict", "Dict", "Mapping", "MutableMapping", "defaultdict", "OrderedDict", "AbstractSet"}
)  # fmt: skip
FIRST = frozenset({"Generator", "AsyncGenerator"})
SAME = frozenset({"Optional", "Union", "Annotated", "Final", "ClassVar", "Awaitable", "Coroutine", "Required"})
PROPERTIES = frozenset({"property", "cached_property", "lazyproperty", "reify"})
ITEMS = frozenset({"values", "pop", "get", "copy", "popleft", "setdefault"})
"""Methods of containers that return elements of the container."""


class PythonValue(NamedTuple):
    """A possible value of an expression. The kind `many` is a container whose elements have the type of the annotation
    or expression in `node`. The kind `outside` is a value that does not come from the project's code."""

    kind: Literal["module", "class", "instance", "function", "many", "outside"]
    scope: Scope | None = None
    """The scope of the module or class; for a function or an annotation, the scope around it."""
    node: ast.AST | None = None
    receiver: Scope | None = None
    """The class on which a method was looked up. It may be a subclass of the class that defines the method."""


OUTSIDE = PythonValue("outside")
Infer = Callable[[ast.expr, Scope], tuple[PythonValue, ...]]


class PythonClasses:
    """The members of classes and modules, including inherited ones."""

    def __init__(self, modules: PythonModules, infer: Infer) -> None:
        self._modules = modules
        self._infer = infer

    def member(self, value: PythonValue, name: str) -> list[Bound]:
        scope = value.scope
        if value.kind == "module" and scope and (file := self._modules.file(scope.path)):
            return self._modules.in_module(file, name, frozenset())
        if value.kind in ("class", "instance") and scope:
            return self._in_class(scope, name, set())
        return []

    def _in_class(self, scope: Scope, name: str, seen: set[Scope]) -> list[Bound]:
        """Returns the class's own members of this name, else those of the first base class that has the name."""
        if scope in seen:
            return []
        seen.add(scope)
        if own_members := [*scope.names.get(name, ()), *scope.attributes.get(name, ())]:
            return own_members
        base_scopes = (base.scope for base in self.bases(scope) if base.kind == "class" and base.scope)
        return next((members for base in base_scopes if (members := self._in_class(base, name, seen))), list[Bound]())

    def bases(self, scope: Scope) -> list[PythonValue]:
        if not isinstance(scope.node, ast.ClassDef) or scope.above is None:
            return []
        values = list[PythonValue]()
        for base_node in scope.node.bases:
            plain_base = base_node.value if isinstance(base_node, ast.Subscript) else base_node
            values += self._infer(plain_base, scope.above) or [PythonValue("outside", scope)]
        return values

    def is_complete(self, value: PythonValue, seen: set[Scope]) -> bool:
        """Says whether all members of the value are code of the project. Then a name that is missing is certainly not a
        member."""
        scope = value.scope
        if value.kind in ("outside", "many", "function", "module"):
            return scope is None or value.kind != "outside"
        if scope is None or scope in seen:
            return True
        seen.add(scope)
        return all(self.is_complete(base, seen) for base in self.bases(scope))


class PythonTypes:
    """Infers types. Results are cached, since many places ask about the same expression."""

    def __init__(self, modules: PythonModules) -> None:
        self._modules = modules
        self.classes = PythonClasses(modules, self.infer)
        self._values: dict[ast.AST, tuple[PythonValue, ...]] = {}
        self._asking: set[object] = set()
        self._depth = 0

    def infer(self, node: ast.expr, scope: Scope) -> tuple[PythonValue, ...]:
        """Returns the possible values of an expression; an empty tuple if they are unknown."""
        if node in self._values or node in self._asking or self._depth > DEPTH:
            return self._values.get(node, ())
        self._asking.add(node)
        self._depth += 1
        try:
            values = tuple(dict.fromkeys(self._inferred(node, scope)))
        finally:
            self._asking.discard(node)
            self._depth -= 1
        if self._depth == 0 or values:
            self._values[node] = values
        return values

    def _inferred(self, node: ast.expr, scope: Scope) -> Iterator[PythonValue]:
        file = self._modules.file(scope.path)
        if file and (kind := file.narrowed.get(node)) and (narrowed_values := list(self._instances_of(kind, scope))):
            yield from narrowed_values
            return
        match node:
            case ast.Name(id=name):
                bindings = self._modules.lookup(name, scope)
                for binding in bindings:
                    yield from self._value(binding)
                if not bindings and hasattr(builtins, name):
                    yield OUTSIDE
            case ast.Attribute(value=inner, attr=attr):
                for value in self.infer(inner, scope):
                    yield from self._attribute(value, attr)
            case ast.Call():
                yield from self._called(node, scope)
            case ast.Await(value=inner) | ast.NamedExpr(value=inner) | ast.Starred(value=inner):
                yield from self.infer(inner, scope)
            case ast.BoolOp(values=values):
                for value in values:
                    yield from self.infer(value, scope)
            case ast.IfExp(body=body, orelse=orelse):
                yield from self.infer(body, scope)
                yield from self.infer(orelse, scope)
            case ast.Subscript(value=inner):
                yield from self._elements(self.infer(inner, scope))
            case ast.List(elts=[first, *_]) | ast.Set(elts=[first, *_]) | ast.Tuple(elts=[first, *_]):
                yield PythonValue("many", scope, first)
            case ast.ListComp(elt=first) | ast.SetComp(elt=first) | ast.GeneratorExp(elt=first):
                yield PythonValue("many", file.scopes[node] if file else scope, first)
            case ast.Dict(values=[first, *_]):
                yield PythonValue("many", scope, first)
            case ast.Constant(value=None):
                return
            case ast.Constant() | ast.JoinedStr() | ast.List() | ast.Dict() | ast.Tuple() | ast.Set() | ast.Compare():
                yield OUTSIDE
            case _:
                pass

    def _elements(self, values: Iterable[PythonValue]) -> Iterator[PythonValue]:
        for value in values:
            if value.kind == "many" and value.scope and isinstance(value.node, ast.expr):
                yield from self.infer(value.node, value.scope)
            elif value.kind == "class":
                yield value

    def _value(self, bound: Bound) -> Iterator[PythonValue]:
        source: Source = bound.source
        match source:
            case ast.ClassDef():
                if file := self._modules.file(bound.scope.path):
                    yield PythonValue("class", file.scopes[source])
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield PythonValue("function", bound.scope, source)
            case Imported():
                for followed_binding in self._modules.followed([bound]):
                    if not isinstance(followed_binding.source, Imported):
                        yield from self._value(followed_binding)
                    elif (files := self._modules.brought(followed_binding.source, followed_binding.scope.path)) is None:
                        yield OUTSIDE
                    else:
                        yield from (PythonValue("module", file.scope) for file in files)
            case Parameter():
                yield from self._parameter(source, bound.scope)
            case ElementOf(of):
                yield from self._elements(self.infer(of, bound.scope))
            case EnteredBy(of):
                yield from self._entered(of, bound.scope)
            case Typed(annotation):
                yield from self._instances_of(annotation, bound.scope)
            case ast.expr():
                yield from self.infer(source, bound.scope)
            case None:
                return

    def _entered(self, of: ast.expr, scope: Scope) -> Iterator[PythonValue]:
        for value in self.infer(of, scope):
            if value.kind == "many":
                yield from self._elements([value])
                continue
            methods = [*self.classes.member(value, "__enter__"), *self.classes.member(value, "__aenter__")]
            results = [value for bound in methods for method in self._value(bound) for value in self._returned(method)]
            yield from results or [value]

    def _parameter(self, parameter: Parameter, scope: Scope) -> Iterator[PythonValue]:
        function = parameter.function
        if parameter.first and scope.owner and isinstance(function, Function):
            names = {named(decorator) for decorator in function.decorator_list}
            is_class_method = "classmethod" in names or function.name in ("__new__", "__init_subclass__")
            yield PythonValue("class" if is_class_method else "instance", scope.owner)
        elif parameter.arg.annotation and scope.above:
            yield from self._instances_of(parameter.arg.annotation, scope.above)
        elif parameter.default:
            yield from self.infer(parameter.default, scope.above or scope)

    def _instances_of(self, annotation: ast.expr, scope: Scope) -> Iterator[PythonValue]:
        """Yields the possible values of a name with this annotation."""
        match annotation:
            case ast.Constant(value=str() as text):
                if quoted_annotation := parsed_annotation(text):
                    yield from self._instances_of(quoted_annotation, scope)
            case ast.Constant():
                return
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                yield from self._instances_of(ast.Tuple([left, right]), scope)
            case ast.Tuple(elts=parts):
                yield from (value for part in parts for value in self._instances_of(part, scope))
            case ast.Subscript(value=outer, slice=inner):
                yield from self._generic(named(outer), outer, inner, scope)
            case ast.Name(id="Self"):
                if owner := class_around(scope):
                    yield PythonValue("instance", owner)
            case _:
                for value in self.infer(annotation, scope):
                    if value.kind in ("class", "outside"):
                        yield PythonValue("instance", value.scope) if value.kind == "class" else OUTSIDE

    def _generic(self, name: str, outer: ast.expr, inner: ast.expr, scope: Scope) -> Iterator[PythonValue]:
        type_arguments = _parts(inner)
        if name in SAME:
            yield from self._instances_of(ast.Tuple(type_arguments), scope)
        elif name in ("type", "Type"):
            for value in self._instances_of(type_arguments[0], scope):
                yield PythonValue("class", value.scope) if value.kind == "instance" else value
        elif name in MANY and type_arguments:
            part = type_arguments[0 if name in FIRST or name.lower() == "tuple" else -1]
            yield PythonValue("many", scope, ast.Call(func=ast.Name(id="cast"), args=[part, part], keywords=[]))
        else:
            yield from self._instances_of(outer, scope)

    def _called(self, node: ast.Call, scope: Scope) -> Iterator[PythonValue]:
        match node:
            case ast.Call() if named(node) == "TypeVar":
                return
            case ast.Call(func=ast.Name(id="super")):
                owner = class_around(scope)
                bases = self.classes.bases(owner) if owner else ()
                yield from (PythonValue("instance", base.scope) if base.kind == "class" else base for base in bases)
                return
            case ast.Call(args=[kind, _]) if named(node) == "cast":
                yield from self._instances_of(kind, scope)
                return
            case ast.Call(func=ast.Name(id="type"), args=[argument]):
                for value in self.infer(argument, scope):
                    yield PythonValue("class", value.scope) if value.kind == "instance" else OUTSIDE
                return
            case ast.Call(
                func=ast.Name(id="list" | "sorted" | "set" | "tuple" | "reversed" | "iter"), args=[argument, *_]
            ):
                yield from (value for value in self.infer(argument, scope) if value.kind == "many")
                return
            case ast.Call(func=ast.Name(id="next"), args=[argument, *_]):
                yield from self._elements(self.infer(argument, scope))
                return
            case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr in ITEMS:
                collections = [value for value in self.infer(inner, scope) if value.kind == "many"]
                if collections:
                    yield from collections if attr in ("values", "copy") else self._elements(collections)
                    return
            case _:
                pass
        for value in self.infer(node.func, scope):
            if value.kind == "class":
                yield PythonValue("instance", value.scope)
            elif value.kind == "function":
                yield from self._of_function(value, node, scope)
            elif value.kind == "instance":
                for binding in self.classes.member(value, "__call__"):
                    for method in self._value(binding):
                        yield from self._returned(method)
            elif value.kind == "outside":
                yield OUTSIDE

    def _of_function(self, function: PythonValue, call: ast.Call, scope: Scope) -> Iterator[PythonValue]:
        """Infers the result of a call. If the function returns a type variable, the argument of that type shows its
        value."""
        returned_values = list(self._returned(function))
        yield from returned_values
        for argument, relation in _giving(function.node, call) if not returned_values else ():
            values = self.infer(argument, scope)
            if relation == "class":
                yield from (PythonValue("instance", value.scope) for value in values if value.kind == "class")
            else:
                yield from values if relation == "same" else self._elements(values)

    def _returned(self, function: PythonValue) -> Iterator[PythonValue]:
        yield from (_on_receiver(value, function) for value in self._given_back(function))

    def _given_back(self, function: PythonValue) -> Iterator[PythonValue]:
        node, scope = function.node, function.scope
        if not isinstance(node, Function) or scope is None:
            return
        if node.returns:
            yield from self._instances_of(node.returns, scope)
            return
        file = self._modules.file(scope.path)
        function_scope = file.scopes.get(node) if file else None
        if function_scope is None or node in self._asking:
            return
        self._asking.add(node)
        try:
            for statement in _own_statements(node.body):
                if isinstance(statement, ast.Return) and statement.value:
                    yield from self.infer(statement.value, function_scope)
                elif yielded_type := _yielded(statement):
                    yield PythonValue("many", function_scope, yielded_type)
        finally:
            self._asking.discard(node)

    def _attribute(self, value: PythonValue, name: str) -> Iterator[PythonValue]:
        if value.kind == "outside":
            yield OUTSIDE
            return
        if value.kind == "module" and value.scope:
            stem = value.scope.path.rpartition(".")[0].removesuffix("/__init__")
            paths = self._modules.stems.get(f"{stem}/{name}", [])
            yield from (PythonValue("module", file.scope) for path in paths if (file := self._modules.file(path)))
        receiver = value.scope if value.kind in ("class", "instance") else None
        for binding in self.classes.member(value, name):
            for member in self._value(binding):
                method = member._replace(receiver=receiver) if member.kind == "function" else member
                is_property_read = value.kind == "instance" and _is_property(member.node)
                yield from self._returned(method) if is_property_read else (method,)


def _giving(node: ast.AST | None, call: ast.Call) -> Iterator[tuple[ast.expr, Literal["same", "many", "class"]]]:
    """Yields the arguments of a call that determine the type variable which its function returns."""
    if not isinstance(node, Function) or node.returns is None:
        return
    variable, params = named(node.returns), [*node.args.posonlyargs, *node.args.args]
    params = params[1:] if params and params[0].arg in ("self", "cls") else params
    arguments = dict(zip((arg.arg for arg in params), call.args, strict=False))
    arguments |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    for arg in (*params, *node.args.kwonlyargs):
        value = arguments.get(arg.arg)
        match arg.annotation:
            case ast.Name(id=name) if value and name == variable:
                yield value, "same"
            case ast.Subscript(value=outer, slice=inner) if value and variable in map(named, _parts(inner)):
                yield value, "many" if named(outer) in MANY else "class"
            case _:
                pass


def _parts(inner: ast.expr) -> list[ast.expr]:
    """Returns the type arguments between the brackets of a generic type."""
    return inner.elts if isinstance(inner, ast.Tuple) else [inner]


def _is_property(node: ast.AST | None) -> bool:
    return isinstance(node, Function) and not PROPERTIES.isdisjoint(map(named, node.decorator_list))


def _on_receiver(value: PythonValue, method: PythonValue) -> PythonValue:
    """If a method returns its own class or an instance of it, replaces the class that defines the method by the class
    on which it was called."""
    is_own_method = method.receiver and value.kind in ("class", "instance") and value.scope is method.scope
    return value._replace(scope=method.receiver) if is_own_method else value


def _yielded(statement: ast.stmt) -> ast.expr | None:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return value.value if isinstance(value, ast.Yield) else None


def _own_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields the statements of a function, without those of functions and classes inside it."""
    for statement in body:
        yield statement
        if not isinstance(statement, Function | ast.ClassDef):
            yield from _own_statements(node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.stmt))
            handlers = (node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.ExceptHandler))
            yield from (inner_statement for handler in handlers for inner_statement in _own_statements(handler.body))
