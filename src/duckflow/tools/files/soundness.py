"""A first check of a text that is about to be written: whether it parses, and whether it is complete.
Nothing is run."""

import ast
import json
import warnings
from collections.abc import Callable

SIZE_LIMIT = 200_000


def fault_in(path: str, text: str, before: str = "") -> str:
    """Describes, in one line for the model, a mistake that is plain in the text; empty if there is none."""
    if len(text) > SIZE_LIMIT:
        return ""
    match path.lower().rpartition(".")[2]:
        case "py" | "pyi":
            return _python_fault(text, before)
        case "json":
            return _data_fault(text, json.loads)
        case "toml":
            import tomllib

            return _data_fault(text, tomllib.loads)
        case _:
            return ""


def _python_fault(text: str, before: str) -> str:
    new_tree = _parsed(text)
    if isinstance(new_tree, str):
        return new_tree
    old_tree = _parsed(before)
    if isinstance(old_tree, str):
        return ""
    before_definitions, new_definitions = _definitions(old_tree), _definitions(new_tree)
    if missing_names := [
        name for name in before_definitions if name not in new_definitions and not name.startswith("_")
    ]:
        return f"{', '.join(missing_names)} was in the file and is missing now"
    if empty_names := [
        name for name, node in new_definitions.items() if name in before_definitions and _is_empty(node)
    ]:
        return f"{', '.join(empty_names)} still does nothing"
    return ""


def _parsed(text: str) -> ast.Module | str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        wrong_line = (error.text or "").strip()
        return f"SyntaxError in line {error.lineno}: {error.msg}" + (f": {wrong_line}" if wrong_line else "")
    except (ValueError, RecursionError, MemoryError) as error:
        return f"it cannot be read as Python: {error}"


def _definitions(tree: ast.Module) -> dict[str, ast.AST]:
    """Returns functions, classes and their methods by name, and assigned names."""
    definitions: dict[str, ast.AST] = {}
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                definitions[node.name] = node
            case ast.ClassDef():
                definitions[node.name] = node
                methods = (
                    statement
                    for statement in node.body
                    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
                )
                definitions |= {f"{node.name}.{method.name}": method for method in methods}
            case ast.Assign():
                definitions |= {target.id: node for target in node.targets if isinstance(target, ast.Name)}
            case _:
                pass
    return definitions


def _is_empty(node: ast.AST) -> bool:
    """Says whether a function consists of nothing but `pass`, `...`, a docstring, or `raise NotImplementedError`."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return all(_says_nothing(statement) for statement in node.body)


def _says_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Raise(exc=ast.Name(id="NotImplementedError") | ast.Call(func=ast.Name(id="NotImplementedError"))):
            return True
        case _:
            return False


def _data_fault(text: str, load: Callable[[str], object]) -> str:
    try:
        load(text)
    except (ValueError, RecursionError) as error:
        return str(error)
    return ""
