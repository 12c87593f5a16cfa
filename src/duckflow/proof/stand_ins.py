"""Files that stand in for the code under test: modules of the same name, fixtures of the same name, changed imports and
tests that patch something while they are loaded. With them, tests can pass that never see the code."""

import ast
import posixpath
import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from duckflow.proof.python_tests import UNREADABLE, tests_of
from duckflow.proof.runners import tests_by_runner
from duckflow.proof.trial_folder import Versions
from duckflow.safety.undo.facts import FileVersions
from duckflow.state.checks import belongs_to_tests, is_code
from duckflow.state.plan import lies_in

MODULE = re.compile(r"\.(?:py|pyc|so|pyd)$|(?:^|/)[^./]+$")
"""Matches modules, and links to packages."""
TEST_MODULE = re.compile(r"(?:.*/)?(?:test_[^/]*|[^/]*_test)\.py")
REACHES_RUNNER = re.compile(
    r"\b_pytest\b|PYTEST_|DUCKFLOW_REPORTS|(?:\bunittest|\bpytest|\bTestCase)(?:\.\w+)+ *=(?!=)"
    r"|\bsetattr\( *(?:unittest|pytest|TestCase)\b|['\"](?:pytest|unittest)['\"] (?:not )?in sys\.modules"
)
"""Matches code that patches the runner of its tests, or asks whether tests are run."""
LEAVES = re.compile(r"\b_exit\b|\babort\(|\bSIGKILL\b")
"""Matches code that ends its own process at once, so that the runner cannot say how the tests ended."""
PATCHES = re.compile(
    r"(?<![.\w])(?:setattr|delattr|vars|globals|exec|eval|__import__)\(|\b(?:__dict__|__code__|builtins|importlib|autouse)\b"
    r"|\bsys\.(?:modules|meta_path|path_hooks)\b|\bpatch\b.*\.start\(|\bMonkeyPatch\("
)
"""Matches ways to change a module from outside that last longer than one test."""
SETS_PATH = re.compile(r"\bpythonpath\b|\bsys\.path\b")
PATH_VARIABLE = re.compile(r"\bPYTHONPATH=(\S+)")
SCRIPT_IMPORT = re.compile(
    r"""([\w{}, *]+?)\s*(?:=\s*(?:await\s+import|require)\(|\bfrom)\s*['"](\.{1,2}/[^'"]+)['"]"""
)
INIT = "__init__"
Name = tuple[str, ...]
"""The parts of a dotted name."""


class StandIns(NamedTuple):
    """The files that may stand in for code, and the tests that show it by failing without them."""

    versions: Versions
    """The files as they are without the stand-ins, by path."""
    tests: frozenset[str] = frozenset()
    certain: bool = False
    """True if the files stand in for code by their names, so that only a trial can clear them."""

    def joined(self, other: "StandIns") -> "StandIns":
        if not other.tests:
            return self
        versions = {**self.versions, **other.versions}
        return StandIns(versions, self.tests | other.tests, self.certain or other.certain)


def stand_ins(changes: Sequence[FileVersions], texts: Mapping[str, str], command: str) -> StandIns:
    """Returns what a change, or the command that runs the tests, has put between the tests and the code. `texts` holds
    the files of the folder as they are now."""
    folder = _Folder(changes, texts)
    found_stand_ins = folder.modules().joined(folder.imports()).joined(folder.fixtures()).joined(folder.patches())
    return found_stand_ins.joined(folder.script_imports()).joined(folder.paths(command))


def reaching(changes: Sequence[FileVersions], reported: bool) -> list[str]:
    """Returns files of the code that take part in how their tests are run since the change. `reported` says that the
    runner itself has written a report."""
    patterns = (REACHES_RUNNER,) if reported else (REACHES_RUNNER, LEAVES)
    code = [change for change in changes if change.path.endswith(".py") and is_code(change.path)]
    return [
        change.path
        for change in code
        if any(pattern.search(change.new) and not pattern.search(change.old) for pattern in patterns)
    ]


class _Folder:
    """The files of a folder as modules of Python, and the changes of the work."""

    def __init__(self, changes: Sequence[FileVersions], texts: Mapping[str, str]) -> None:
        self._changed = {change.path: change for change in changes}
        self._new = {path for path, change in self._changed.items() if change.before is None}
        self._gone = {path for path, change in self._changed.items() if change.after is None}
        self._all_texts = texts
        self._texts = {path: text for path, text in texts.items() if path.endswith(".py")}
        self._texts |= {path: self._changed[path].old for path in self._gone if path.endswith(".py")}
        self._old_texts = {
            path: self._changed[path].old if path in self._changed else text
            for path, text in self._texts.items()
            if path not in self._new
        }
        self._packages = {path.rpartition("/")[0] for path in self._texts if path.endswith(f"{INIT}.py")}
        self._tests = [path for path in texts if TEST_MODULE.fullmatch(path)]
        self._old_tests = [path for path in self._tests if path not in self._new]

    def modules(self) -> StandIns:
        """Finds new modules that have the name of a module of the code."""
        found_stand_ins = StandIns({})
        code = {path: self._names(path) for path in self._texts if is_code(path)}
        for path in sorted(self._new - self._gone):
            if not MODULE.search(path) or TEST_MODULE.fullmatch(path):
                continue
            among_tests, names = belongs_to_tests(path), self._names(path)
            for other_path in code:
                # A new module in the place of one that is gone, or beside another new one, has only been moved there.
                if other_path == path or (not among_tests and other_path in self._gone | self._new):
                    continue
                shared = {
                    name[0] for name in names if any(code_name[: len(name)] == name for code_name in code[other_path])
                }
                importing = self._texts if other_path in self._new else self._old_texts
                shared = {name for name in shared if any(_imports(text, name) for text in importing.values())}
                versions = {path: None, **{gone: self._changed[gone].before for gone in self._gone & {other_path}}}
                tests = self._users(shared, self._tests if among_tests else self._old_tests)
                found_stand_ins = found_stand_ins.joined(StandIns(versions, tests, True))
        packages = tuple(
            f"{path.rpartition('/')[0]}/" for path in found_stand_ins.versions if f"/{INIT}." in f"/{path}"
        )
        inner_paths = [
            path for path in self._new - self._gone if path.startswith(packages) and not TEST_MODULE.fullmatch(path)
        ]
        return found_stand_ins._replace(versions={**found_stand_ins.versions, **dict.fromkeys(inner_paths)})

    def imports(self) -> StandIns:
        """Finds older tests that import something from elsewhere now, though the code still has it."""
        found_stand_ins = StandIns({})
        code = {name: path for path in self._texts if is_code(path) for name in self._names(path)}
        for path in self._old_tests:
            change = self._changed.get(path)
            if change is None or change.after is None:
                continue
            after = _bound(change.new)
            redirected = [source for name, source in _bound(change.old).items() if after.get(name, source) != source]
            if any(
                module in code and (not name or _defines(self._texts[code[module]], name))
                for module, name in redirected
            ):
                tests = frozenset(_tests_in(path, change.new) & _tests_in(path, change.old))
                found_stand_ins = found_stand_ins.joined(StandIns({path: change.before}, tests, True))
        return found_stand_ins

    def script_imports(self) -> StandIns:
        """Finds the same in tests in JavaScript, where files are imported by their relative paths."""
        found_stand_ins = StandIns({})
        for change in self._changed.values():
            tests = tests_by_runner(change.path, change.old).keys() & tests_by_runner(change.path, change.new)
            if change.path.endswith(".py") or not tests:
                continue
            targets_after = dict(SCRIPT_IMPORT.findall(change.new))
            for names, target in SCRIPT_IMPORT.findall(change.old):
                if targets_after.get(names, target) == target:
                    continue
                place = posixpath.normpath(posixpath.join(posixpath.dirname(change.path), target))
                files = [text for path, text in self._all_texts.items() if path.rpartition(".")[0] in (place, target)]
                files += [self._all_texts[place]] if place in self._all_texts else []
                if any(re.search(rf"\b{name}\b", text) for text in files for name in re.findall(r"\w+", names)):
                    test_names = frozenset(f"{change.path}::{name}" for name in tests)
                    found_stand_ins = found_stand_ins.joined(StandIns({change.path: change.before}, test_names, True))
        return found_stand_ins

    def fixtures(self) -> StandIns:
        """Finds new fixtures that have the name of an older one."""
        older_fixtures = {name for text in self._old_texts.values() for name in _fixtures(text)}
        found_stand_ins = StandIns({})
        for path in self._new:
            folder, _, name = path.rpartition("/")
            if name == "conftest.py" and (names := _fixtures(self._changed[path].new) & older_fixtures):
                below = [test for test in self._old_tests if test.startswith(f"{folder}/" if folder else "")]
                using = [test for test in below if any(re.search(rf"\b{word}\b", self._texts[test]) for word in names)]
                found_stand_ins = found_stand_ins.joined(StandIns({path: None}, self._all_of(using)))
        return found_stand_ins

    def patches(self) -> StandIns:
        """Finds files among the tests that may change other modules now, and did not before."""
        changes = [change for change in self._changed.values() if change.path.endswith(".py")]
        content_by_path = {
            change.path: change.before
            for change in changes
            if belongs_to_tests(change.path) and change.after is not None and change.path not in self._old_tests
            if _acts(change.new) and not _acts(change.old)
        }
        return StandIns(content_by_path, self._all_of(self._old_tests)) if content_by_path else StandIns({})

    def paths(self, command: str) -> StandIns:
        """Finds changed settings, and folders in a command, that decide between two modules of one name."""
        providers = dict[Name, list[str]]()
        for path in filter(is_code, self._texts.keys() - self._gone):
            for name in self._names(path):
                providers.setdefault(name, []).append(path)
        double = {name[0]: paths for name, paths in providers.items() if len(name) == 1 and len(paths) > 1}
        tests = self._users([name for name in double if self._is_imported(name)], self._old_tests)
        settings = {
            change.path: change.before
            for change in self._changed.values()
            if not is_code(change.path) and SETS_PATH.search(change.new) and change.new != change.old
        }
        folders = [folder for value in PATH_VARIABLE.findall(command) for folder in value.strip("'\"").split(":")]
        named_paths = {
            path for paths in double.values() for path in paths if any(lies_in(path, top) for top in folders)
        }
        other_paths = {
            path for paths in double.values() for path in paths if not named_paths.isdisjoint(paths)
        } - named_paths
        shadowing = dict[str, bytes | None]()
        if not other_paths.isdisjoint(self._changed) and named_paths.isdisjoint(self._changed):
            shadowing = dict.fromkeys(named_paths)
        versions = {**settings, **shadowing}
        return StandIns(versions, tests, True) if versions else StandIns({})

    def _is_imported(self, name: str) -> bool:
        return any(_imports(text, name) for text in self._old_texts.values())

    def _names(self, path: str) -> list[Name]:
        """Returns the names by which a module can be imported: one for each folder around it that is no package."""
        *folders, file = path.split("/")
        module_parts = () if file.startswith(f"{INIT}.") else (file.partition(".")[0],)
        places = [(folders[:depth], (*folders[depth:], *module_parts)) for depth in range(len(folders) + 1)]
        return [name for place, name in places if name and "/".join(place) not in self._packages]

    def _users(self, names: Collection[str], paths: Sequence[str]) -> frozenset[str]:
        """Returns the tests that import one of these names, or all tests where the code imports it."""
        if any(_imports(text, name) for path, text in self._texts.items() if is_code(path) for name in names):
            return self._all_of(paths)
        return self._all_of([path for path in paths if any(_imports(self._texts[path], name) for name in names)])

    def _all_of(self, paths: Sequence[str]) -> frozenset[str]:
        return frozenset(test for path in paths for test in _tests_in(path, self._texts[path]))


def _tests_in(path: str, text: str) -> set[str]:
    tree = _parsed(text)
    return {f"{path}::{name}" for name in tests_of(tree)} if tree else set()


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except UNREADABLE:
        return None


def _bound(text: str) -> dict[str, tuple[Name, str]]:
    """Returns what a file imports absolutely, by the names that it has there: a module, or a name of a module."""
    import_by_name = dict[str, tuple[Name, str]]()
    for node in ast.walk(_parsed(text) or ast.Module([], [])):
        match node:
            case ast.Import(names=names):
                import_by_name |= {alias.asname or alias.name: (tuple(alias.name.split(".")), "") for alias in names}
            case ast.ImportFrom(module=str(module), names=names, level=0):
                source = tuple(module.split("."))
                import_by_name |= {alias.asname or alias.name: (source, alias.name) for alias in names}
            case _:
                pass
    return import_by_name


def _imports(text: str, name: str) -> bool:
    return name in text and any(module[0] == name for module, _ in _bound(text).values())


def _defines(text: str, name: str) -> bool:
    return re.search(rf"(?m)^(?:(?:async )?def|class)\s+{name}\b|^{name}\b", text) is not None


def _fixtures(text: str) -> set[str]:
    if "fixture" not in text:
        return set()
    functions = (node for node in ast.walk(_parsed(text) or ast.Module([], [])) if isinstance(node, ast.FunctionDef))
    return {
        node.name for node in functions if any("fixture" in ast.unparse(decorator) for decorator in node.decorator_list)
    }


def _acts(text: str) -> bool:
    """Says whether a file may change modules that it imports, also for other tests than its own."""
    if PATCHES.search(text):
        return True
    tree = _parsed(text) or ast.Module([], [])
    imported_names, changed_names = set[str](), set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                imported_names |= {(alias.asname or alias.name).partition(".")[0] for alias in names}
            case (
                ast.Attribute(value=inner, ctx=ast.Store() | ast.Del())
                | ast.Subscript(value=inner, ctx=ast.Store() | ast.Del())
            ):
                changed_names |= {name.id for name in ast.walk(inner) if isinstance(name, ast.Name)}
            case _:
                pass
    return not imported_names.isdisjoint(changed_names)
