"""The files that have a say in which tests run and how they end: by a change of one of them any run can pass."""

import ast
import asyncio
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

from duckflow.i18n.template import note
from duckflow.state.action import ActionResult
from duckflow.state.agent import AgentState
from duckflow.state.checks import CheckReport, left_out_of
from duckflow.tools.shell.checkers import SHOWING, recognised, text_in

TextOf = Callable[[str], str]

INI = ("pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg")
TOML = ("pyproject.toml", "pytest.toml", ".pytest.toml")
PYTHON_START = re.compile(r"(?:site|user)customize\.py|.*\.pth|entry_points\.txt")
"""Files that Python runs or reads before any test."""
SCRIPTS = re.compile(
    r"(?:GNU)?[Mm]akefile|.*\.mk|[Jj]ustfile|[Tt]askfile\.ya?ml|noxfile\.py|tox\.ini|build\.(?:gradle|xml).*"
)
JAVASCRIPT = re.compile(r"(?:jest|vitest|vite|babel)\.(?:config|workspace|setup)\..*|\.mocharc.*|\.babelrc.*")
JAVASCRIPT_KEYS = frozenset(("jest", "vitest", "mocha", "babel"))
PACKAGE = "package.json"
PACKAGE_RUNNERS = frozenset(("npm", "pnpm", "yarn", "bun"))
HARMLESS_KEYS = frozenset((
    "pythonpath", "minversion", "markers", "asyncio_mode", "asyncio_default_fixture_loop_scope", "xfail_strict",
    "log_cli", "log_level", "log_cli_level", "cache_dir", "filterwarnings", "console_output_style", "required_plugins",
))  # fmt: skip
"""Settings of pytest that leave nothing out."""
HARMLESS_OPTION = re.compile(rf"{SHOWING.pattern}|--import-mode=\w+|--cov\S*|--showlocals|--strict")
PLAIN_FOLDER = re.compile(r"[\w./-]+")
FIXTURE = re.compile(r"pytest\.fixture|fixture")
CONFTEST = "conftest.py"
SETTINGS = (*INI, *TOML, CONFTEST, PACKAGE)
PATH_CALLS = frozenset(("sys.path.insert", "sys.path.append"))
NOT_CALM = re.compile(r"\b(?:pytest\b(?!\.(?:raises|fixture|param)\b)|_pytest\b|request\.node|outcome)")
Definition = ast.FunctionDef | ast.AsyncFunctionDef


async def doubted(result: ActionResult, state: AgentState) -> ActionResult:
    """A run that passes shows nothing where files that decide how it ends were changed in the same turn, or where
    tests that failed before are no longer run."""
    assert result.check
    runs = [run.report.tests for run in state.check_runs if run.report.check == result.check.check]
    changed = {path for path, turns in state.changed_in.items() if not turns or state.turn in turns}
    paths, text_of = sorted(changed.union(result.changed)), partial(text_in, Path(state.folder))
    deciding = await asyncio.to_thread(deciding_files, result.check, max(runs, default=0), paths, text_of)
    left_out = left_out_of(state.check_runs, result.check, state.turn) if state.changed_in_turn else ()
    if not deciding and not left_out:
        return result
    key, names = ("check_doubted", deciding) if deciding else ("tests_left_out", left_out)
    why = note(state.language, key, files=", ".join(names), check=result.check.check)
    check = result.check.model_copy(update={"ok": None, "left_out": () if deciding else left_out})
    return result.model_copy(update={"check": check, "for_model": f"{result.for_model}\n{why}"})


def deciding_files(report: CheckReport, before: int, changed: Iterable[str], text_of: TextOf) -> list[str]:
    """Gives those of the changed files that can decide how this run ends. `before`: so many tests ran the last time.
    Where fewer run now, no change of the settings is harmless. `text_of` reads a file of the work folder."""
    words, fewer = report.check.split(), report.tests < before
    return [path for path in changed if _decides(words, path, text_of) or (fewer and _name(path) in SETTINGS)]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _decides(words: list[str], path: str, text_of: TextOf) -> bool:
    runner, name = words[0], _name(path)
    if name not in SETTINGS and (name.partition(".")[0] in (runner, f"_{runner}") or f"_{runner}/" in path):
        return True
    if runner in PACKAGE_RUNNERS or name == PACKAGE:
        return name == PACKAGE and not _plain_package(text_of(path), words)
    if runner in ("pytest", "python", "unittest"):
        return bool(PYTHON_START.fullmatch(name)) or (runner == "pytest" and not _plain_for_pytest(name, path, text_of))
    if runner in ("jest", "vitest", "mocha"):
        return bool(JAVASCRIPT.fullmatch(name))
    return bool(SCRIPTS.fullmatch(name))


def _plain_package(text: str, words: list[str]) -> bool:
    """Says whether a package says nothing on the runners of tests, and its scripts in the call are checks."""
    try:
        package: dict[str, Any] = json.loads(text)
        scripts: dict[str, str] = {name: package.get("scripts", {})[name] for name in _scripts(package, words)}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False
    return JAVASCRIPT_KEYS.isdisjoint(package) and all(recognised(script) for script in scripts.values())


def _scripts(package: dict[str, Any], words: list[str]) -> list[str]:
    if words[0] not in PACKAGE_RUNNERS:
        return []
    named = [word for word in words[1:] if word in package.get("scripts", {})]
    around = [f"{when}{name}" for name in named for when in ("pre", "post")]
    return [*named, *(name for name in around if name in package["scripts"])] or ["test"]


def _plain_for_pytest(name: str, path: str, text_of: TextOf) -> bool:
    if name == CONFTEST:
        return _only_fixtures(text_of(path))
    if name not in INI + TOML:
        return True
    try:
        settings = _ini_settings(text_of(path)) if name in INI else _toml_settings(text_of(path))
    except (ValueError, AttributeError, RecursionError):
        return False
    return all(_is_harmless(key, value) for key, value in settings.items())


def _ini_settings(text: str) -> Mapping[str, Any]:
    from configparser import Error, RawConfigParser

    parser = RawConfigParser()
    try:
        parser.read_string(text)
    except Error as problem:
        raise ValueError from problem
    found = [dict(parser[section]) for section in ("pytest", "tool:pytest") if section in parser]
    return {key: value for section in found for key, value in section.items()}


def _toml_settings(text: str) -> Mapping[str, Any]:
    import tomllib

    read: Any = tomllib.loads(text)
    section: Any = read.get("tool", {}).get("pytest", {}) or read.get("pytest", {})
    return {**section, **section.get("ini_options", {}), "ini_options": None} if section else {}


def _is_harmless(key: str, value: Any) -> bool:
    """Says whether a setting of pytest leaves no test out and changes no outcome."""
    words = value.split() if isinstance(value, str) else [str(word) for word in cast("list[Any]", value or [])]
    match key:
        case "addopts":
            return all(HARMLESS_OPTION.fullmatch(word) for word in words)
        case "testpaths":
            return all(PLAIN_FOLDER.fullmatch(word) and not word.endswith(".py") for word in words)
        case "ini_options":
            return True
        case _:
            return key in HARMLESS_KEYS


def _only_fixtures(text: str) -> bool:
    """Says whether a conftest.py has nothing but imports, plain values, functions and fixtures that tests ask for."""
    try:
        lines = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return all(map(_is_plain, lines))


def _is_plain(line: ast.stmt) -> bool:
    match line:
        case ast.Import() | ast.ImportFrom():
            return not any((alias.asname or alias.name).startswith(("pytest_", "_pytest", "*")) for alias in line.names)
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=called)):
            return ast.unparse(called) in PATH_CALLS
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            # Pytest reads some names, and all of them are small.
            return name.isupper() and not any(isinstance(node, ast.Call) for node in ast.walk(line))
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return not line.name.startswith("pytest_") and all(map(_is_fixture, line.decorator_list)) and _is_calm(line)
        case ast.ClassDef():
            return not line.decorator_list and _is_calm(line)
        case _:
            return False


def _is_fixture(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    options = decorator.keywords if isinstance(decorator, ast.Call) else []
    return bool(FIXTURE.fullmatch(ast.unparse(called))) and not any(option.arg == "autouse" for option in options)


def _is_calm(body: Definition | ast.ClassDef) -> bool:
    """Says whether it touches neither pytest itself nor what tests report."""
    return not NOT_CALM.search(ast.unparse(body))
