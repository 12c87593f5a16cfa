"""The files that influence which tests run and how they end: a change of one of them can make any run pass."""

import ast
import asyncio
import json
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from duckflow.i18n.template import note
from duckflow.state.action import ActionResult
from duckflow.state.agent import AgentState
from duckflow.state.checks import CheckReport, left_out_of
from duckflow.state.plan import lies_in
from duckflow.tools.shell.checkers import SHOWING, recognised, text_in

if TYPE_CHECKING:
    from duckflow.safety.undo.facts import FileVersions

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
TEST_NAME = re.compile(r"test_.*\.py|.*_test\.py")
LOADS_PLUGINS = re.compile(r"\b(?:pytest_plugins|_pytest|load_tests)\b")
CHECKER_SETTINGS = re.compile(
    r"\.?(?:ruff|flake8|pylint|mypy|pyright|eslint|tsconfig|jsconfig|prettier|biome|stylelint|golangci|clippy|rubocop|"
    r"shellcheck|importlinter|bandit)[\w.-]*|pyrightconfig\.json|\.\w*ignore|go\.mod|Cargo\.toml|.*\.tsbuildinfo"
)
PATH_WORD = r"[\w./-]+"
MOST_NAMES = 10_000
PACKAGE_RUNNERS = frozenset(("npm", "pnpm", "yarn", "bun"))
HARMLESS_KEYS = frozenset((
    "pythonpath", "minversion", "markers", "asyncio_mode", "asyncio_default_fixture_loop_scope", "xfail_strict",
    "log_cli", "log_level", "log_cli_level", "cache_dir", "filterwarnings", "console_output_style", "required_plugins",
))  # fmt: skip
"""Settings of pytest that leave no test out."""
HARMLESS_OPTION = re.compile(rf"{SHOWING.pattern}|--import-mode=\w+|--cov\S*|--showlocals|--strict")
PLAIN_FOLDER = re.compile(r"[\w./-]+")
FIXTURE = re.compile(r"pytest\.fixture|fixture")
CONFTEST = "conftest.py"
SETTINGS = (*INI, *TOML, CONFTEST, PACKAGE)
PATH_CALLS = frozenset(("sys.path.insert", "sys.path.append"))
NOT_CALM = re.compile(r"\b(?:pytest\b(?!\.(?:raises|fixture|param)\b)|_pytest\b|request\.node|outcome)")
Definition = ast.FunctionDef | ast.AsyncFunctionDef


async def doubted(result: ActionResult, state: AgentState) -> ActionResult:
    """Marks a passing run as proving nothing if the same turn changed files that decide how the run ends, or if tests
    that failed before are no longer run."""
    assert result.check
    test_counts = [run.report.tests for run in state.check_runs if run.report.check == result.check.check]
    changed_paths = {path for path, turns in state.changed_in.items() if not turns or state.turn in turns}
    paths, text_of = sorted(changed_paths.union(result.changed)), partial(text_in, Path(state.folder))
    deciding_paths = await asyncio.to_thread(deciding_files, result.check, max(test_counts, default=0), paths, text_of)
    left_out_tests = left_out_of(state.check_runs, result.check, state.turn) if state.changed_in_turn else ()
    if not deciding_paths and not left_out_tests:
        return result
    key, names = ("check_doubted", deciding_paths) if deciding_paths else ("tests_left_out", left_out_tests)
    why = note(state.language, key, files=", ".join(names), check=result.check.check)
    doubted_check = result.check.model_copy(update={"ok": None, "left_out": () if deciding_paths else left_out_tests})
    return result.model_copy(update={"check": doubted_check, "for_model": f"{result.for_model}\n{why}"})


def deciding_files(report: CheckReport, before: int, changed: Iterable[str], text_of: TextOf) -> list[str]:
    """Returns the changed files that can decide how this run ends. `before` is the number of tests in the last run. If
    fewer tests run now, no change of the settings is harmless. `text_of` reads a file of the work folder."""
    words, ran_fewer = report.check.split(), report.tests < before
    return [path for path in changed if _decides(words, path, text_of) or (ran_fewer and _name(path) in SETTINGS)]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _decides(words: list[str], path: str, text_of: TextOf) -> bool:
    runner, name = words[0], _name(path)
    if _is_loaded(words, path):
        return True
    if name not in SETTINGS and (name.partition(".")[0] in (runner, f"_{runner}") or f"_{runner}/" in path):
        return True
    if runner in PACKAGE_RUNNERS or name == PACKAGE:
        return name == PACKAGE and not _plain_package(text_of(path), words)
    if runner in ("pytest", "python", "unittest"):
        loads_plugins = (TEST_NAME.fullmatch(name) or name == "__init__.py") and LOADS_PLUGINS.search(text_of(path))
        is_harmless_file = runner != "pytest" or _plain_for_pytest(name, path, text_of)
        return bool(PYTHON_START.fullmatch(name) or loads_plugins) or not is_harmless_file
    if runner in ("jest", "vitest", "mocha"):
        return bool(JAVASCRIPT.fullmatch(name))
    return bool(SCRIPTS.fullmatch(name))


def _is_loaded(words: list[str], path: str) -> bool:
    """Says whether an option of the call names this file, as a plug-in or as settings."""
    plain_path = path.removesuffix(".py").removesuffix("/__init__")
    for option, next_word in pairwise((*words, "")):
        if not option.startswith("-") or (TEST_NAME.fullmatch(_name(path)) and option[:2] not in ("-p", "-c")):
            continue
        joined_value = option.partition("=")[2] if option.startswith("--") else option[2:]
        option_value = (joined_value or next_word).removeprefix("./").removesuffix(".py").replace("\\", "/")
        names = {option_value, option_value.replace(".", "/")} if option_value else set[str]()
        if any(name in (plain_path, path) or plain_path.endswith(f"/{name}") for name in names):
            return True
    return False


def files_of_scripts(report: CheckReport, folder: Path) -> set[str]:
    """Returns all names in the script that a check runs through npm or make, and in the scripts that it runs."""
    return with_scripts(_names_in_script(report, folder), folder)


def is_checker_setting(path: str) -> bool:
    """Says whether a file can tell a checker of types or style, or a build, what to leave out."""
    name = _name(path)
    return name in SETTINGS or CHECKER_SETTINGS.fullmatch(name) is not None


def with_scripts(names: Iterable[str], folder: Path) -> set[str]:
    """Returns the names, and all names in shell scripts among them, and so on. Among them are the files that run."""
    found_names, waiting_names = set[str](), list(names)
    while waiting_names and len(found_names) < MOST_NAMES:
        name = waiting_names.pop()
        if name not in found_names and name.endswith((".sh", ".bash", ".mk")):
            waiting_names += re.findall(PATH_WORD, text_in(folder, name))
        found_names.add(name.removeprefix("./"))
    return found_names


def _names_in_script(report: CheckReport, folder: Path) -> set[str]:
    words = report.check.split()
    if words[0] == "make":
        rules = re.findall(r"(?m)^([\w.-]+):.*\n((?:\t.*\n?)*)", text_in(folder, "Makefile"))
        text = "\n".join(recipe for target, recipe in rules if target in words[1:])
    elif words[0] in PACKAGE_RUNNERS:
        try:
            package: dict[str, Any] = json.loads(text_in(folder, PACKAGE))
            text = "\n".join(str(package["scripts"][name]) for name in _scripts(package, words))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return set()
    else:
        return set()
    return {word.removeprefix("./") for word in re.findall(PATH_WORD, text)}


def _plain_package(text: str, words: list[str]) -> bool:
    """Says whether a package.json has no settings for test runners, and all scripts in it that the call runs are
    checks."""
    try:
        package: dict[str, Any] = json.loads(text)
        scripts: dict[str, str] = {name: package.get("scripts", {})[name] for name in _scripts(package, words)}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False
    return JAVASCRIPT_KEYS.isdisjoint(package) and all(recognised(script) for script in scripts.values())


def _scripts(package: dict[str, Any], words: list[str]) -> list[str]:
    if words[0] not in PACKAGE_RUNNERS:
        return []
    named_scripts = [word for word in words[1:] if word in package.get("scripts", {})]
    surrounding_scripts = [f"{when}{name}" for name in named_scripts for when in ("pre", "post")]
    return [*named_scripts, *(name for name in surrounding_scripts if name in package["scripts"])] or ["test"]


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


def left_out_by_settings(settings: "Iterable[FileVersions]", files: Iterable[str]) -> list[str]:
    """Returns the files of tests that pytest finds by itself, and that a changed `testpaths` leaves out."""
    changes = [(_testpaths(change.path, change.old), _testpaths(change.path, change.new)) for change in settings]
    tests = [
        file for file in files if TEST_NAME.fullmatch(_name(file)) and not file.startswith(".") and "/." not in file
    ]
    return [
        file
        for file in tests
        if any(after and _lies_in(file, before) and not _lies_in(file, after) for before, after in changes)
    ]


def _testpaths(name: str, text: str) -> list[str]:
    try:
        paths = (_ini_settings(text) if name in INI else _toml_settings(text)).get("testpaths", [])
    except (ValueError, AttributeError, RecursionError):
        return []
    return paths.split() if isinstance(paths, str) else [str(place) for place in cast("list[Any]", paths)]


def _lies_in(file: str, places: Sequence[str]) -> bool:
    return not places or any(lies_in(file, posixpath.normpath(place)) for place in places)


def _ini_settings(text: str) -> Mapping[str, Any]:
    from configparser import Error, RawConfigParser

    parser = RawConfigParser()
    try:
        parser.read_string(text)
    except Error as problem:
        raise ValueError from problem
    sections = [dict(parser[section]) for section in ("pytest", "tool:pytest") if section in parser]
    return {key: value for section in sections for key, value in section.items()}


def _toml_settings(text: str) -> Mapping[str, Any]:
    import tomllib

    document: Any = tomllib.loads(text)
    section: Any = document.get("tool", {}).get("pytest", {}) or document.get("pytest", {})
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
    """Says whether a conftest.py has only imports, plain values, functions and fixtures that tests ask for."""
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
            # Pytest reads some names, and all of these are in lower case.
            return name.isupper() and not any(isinstance(node, ast.Call) for node in ast.walk(line))
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return not line.name.startswith("pytest_") and all(map(_is_fixture, line.decorator_list)) and _is_calm(line)
        case ast.ClassDef():
            return not line.decorator_list and _is_calm(line)
        case _:
            return False


def _is_fixture(decorator: ast.expr) -> bool:
    decorator_function = decorator.func if isinstance(decorator, ast.Call) else decorator
    options = decorator.keywords if isinstance(decorator, ast.Call) else []
    return bool(FIXTURE.fullmatch(ast.unparse(decorator_function))) and not any(
        option.arg == "autouse" for option in options
    )


def _is_calm(body: Definition | ast.ClassDef) -> bool:
    """Says whether the code touches neither pytest itself nor what tests report."""
    return not NOT_CALM.search(ast.unparse(body))
