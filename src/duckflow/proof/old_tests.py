"""Tests that existed before a change: whether they still exist and run, and whether they check the same things. A test
whose text has changed may have been bent until it passes."""

import ast
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import NamedTuple

from duckflow.errors import DuckflowError
from duckflow.proof.python_tests import UNREADABLE, only_words, shape_of, tests_of
from duckflow.proof.runners import runner_of, tests_by_runner
from duckflow.proof.settings import ProofSettings
from duckflow.proof.trial_folder import MakeLaunch, TrialFolder, Versions
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.safety.undo.facts import FileVersions
from duckflow.state.checks import TEST_SETTINGS, belongs_to_tests, is_code

ALIKE = 0.7
LEFT_OUT = re.compile(r"skip|xfail|expectedFailure", re.IGNORECASE)
UNCHANGED: Versions = {}
LeftOut = Callable[[Sequence[FileVersions], Iterable[str]], Iterable[str]]


class OldTests(NamedTuple):
    """Tests that existed before, by their names as in `tests/test_x.py::Class::test_y`."""

    gone: tuple[str, ...] = ()
    """Tests that are deleted, renamed so that they are no tests, or newly marked to be skipped."""
    watched: tuple[str, ...] = ()
    """Tests that still exist. The change has altered something that decides whether they run."""
    altered: tuple[str, ...] = ()
    """Tests whose own text has changed."""
    touched: tuple[str, ...] = ()
    """Tests that use helpers or fixtures whose text the change has altered."""
    renamed: tuple[tuple[str, str], ...] = ()
    """Tests that have another name now, and nearly the same text as before."""
    moved: tuple[tuple[str, str], ...] = ()
    """Tests that stand in another file now, each with its new name."""

    def joined(self, other: "OldTests") -> "OldTests":
        return OldTests(
            self.gone + other.gone,
            self.watched + other.watched,
            self.altered + other.altered,
            self.touched + other.touched,
            self.renamed + other.renamed,
            self.moved + other.moved,
        )

    def missing(self, passed: Collection[str]) -> tuple[str, ...]:
        """Returns the older tests that did not pass in a run of all tests. `passed` holds the names of tests that
        passed, as runners report them."""
        places = {**{name: name for name in self.watched}, **dict(self.moved)}
        reported_names = among(places.values(), passed)
        return (*self.gone, *(old_name for old_name, new_name in places.items() if new_name not in reported_names))


def among(names: Iterable[str], reported: Collection[str]) -> set[str]:
    """Returns the tests that a runner has reported, by the names that it gives them."""
    plain_names = [f".{name.partition('[')[0]}" for name in reported]
    return {name for name in names if any(plain_name.endswith(_tail(name)) for plain_name in plain_names)}


def _tail(name: str) -> str:
    """Returns the end of a test's name as a report shows it, such as `.test_x.Class::test_y`."""
    path, *class_names, test = name.split("::")
    return "." + ".".join((path.rpartition("/")[2].removesuffix(".py"), *class_names)) + f"::{test}"


def old_tests(
    changes: Sequence[FileVersions], texts_of: Callable[[], Mapping[str, str]], left_out: LeftOut | None = None
) -> OldTests:
    """Returns the tests that a change may have weakened. `texts_of` reads the files of the folder as they are now, and
    `left_out` says which of them the settings of the runner leave out since the change."""
    suspect_tests, added_names = OldTests(), dict[str, str]()
    for change in changes:
        names, names_before = _names(change.path, change.new), _names(change.path, change.old)
        added_names |= {
            bare_name: f"{change.path}::{name}" for bare_name, name in names.items() if bare_name not in names_before
        }
    for change in changes:
        if change.before is None or not belongs_to_tests(change.path):
            continue
        module = _read(change, added_names) if change.path.endswith(".py") else _read_by_runner(change, added_names)
        if names := _shared_names(change):
            texts = texts_of()
            users = _users(change.path, names, texts)
            if not users and not change.path.endswith(".py"):
                users = _users(change.path, [""], texts)
            module = OldTests(touched=tuple(users))
        suspect_tests = suspect_tests.joined(module)
    settings = [change for change in changes if "/" not in change.path and change.path in TEST_SETTINGS]
    texts = texts_of() if settings else dict[str, str]()
    left_out_paths = left_out(settings, texts) if left_out else ()
    return suspect_tests.joined(
        OldTests(watched=tuple(f"{path}::{name}" for path in left_out_paths for name in _qualified(texts[path])))
    )


def _read_by_runner(change: FileVersions, added: Mapping[str, str]) -> OldTests:
    old_texts, new_texts = tests_by_runner(change.path, change.old), tests_by_runner(change.path, change.new)
    gone_tests = tuple(f"{change.path}::{name}" for name in old_texts if name not in new_texts and name not in added)
    return OldTests(
        gone_tests,
        (),
        tuple(f"{change.path}::{name}" for name, text in old_texts.items() if new_texts.get(name, text) != text),
    )


def _names(path: str, text: str) -> dict[str, str]:
    """Returns the texts of a file's tests, by names without classes: a test may have moved to another class."""
    if not belongs_to_tests(path):
        return {}
    if not path.endswith(".py"):
        return {name: name for name in tests_by_runner(path, text)}
    return {name.rpartition("::")[2]: name for name in _qualified(text)}


def _read(change: FileVersions, added: Mapping[str, str]) -> OldTests:
    try:
        tree_before, tree_after = ast.parse(change.old), ast.parse(change.new)
    except UNREADABLE:
        return OldTests()
    tests_before, tests_after = tests_of(tree_before), tests_of(tree_after)
    new_texts = {name: ast.unparse(test) for name, test in tests_after.items() if name not in tests_before}
    decorators_after, decorators_before = _marks(tree_after), _marks(tree_before)
    surroundings_changed = _surroundings(tree_before) != _surroundings(tree_after)
    gone_tests, watched_tests, altered_tests, touched_tests = list[str](), list[str](), list[str](), list[str]()
    renamed_tests, moved_tests = list[tuple[str, str]](), list[tuple[str, str]]()
    for name, test in tests_before.items():
        full_name = f"{change.path}::{name}"
        if name not in tests_after:
            if similar_name := _most_like(ast.unparse(test), new_texts):
                del new_texts[similar_name]
                renamed_tests.append((full_name, f"{change.path}::{similar_name}"))
            elif place := added.get(name.rpartition("::")[2]):
                moved_tests.append((full_name, place))
            else:
                gone_tests.append(full_name)
            continue
        is_changed = shape_of(test) != shape_of(tests_after[name])
        if LEFT_OUT.search(decorators_after[name]) and not LEFT_OUT.search(decorators_before[name]):
            gone_tests.append(full_name)
        elif (
            is_changed or surroundings_changed or decorators_after[name] != decorators_before[name]
        ) and not LEFT_OUT.search(ast.unparse(test)):
            watched_tests.append(full_name)
        altered_tests += [full_name] if is_changed else []
        touched_tests += [full_name] if surroundings_changed and not is_changed else []
    return OldTests(
        tuple(gone_tests),
        tuple(watched_tests),
        tuple(altered_tests),
        tuple(touched_tests),
        tuple(renamed_tests),
        tuple(moved_tests),
    )


def _most_like(text: str, others: Mapping[str, str]) -> str:
    """Returns the name of the most similar text, if one is similar at all."""
    ratios = {name: SequenceMatcher(None, text, other, autojunk=False).ratio() for name, other in others.items()}
    best_name = max(ratios, key=lambda name: ratios[name], default="")
    return best_name if best_name and ratios[best_name] >= ALIKE else ""


def _marks(tree: ast.Module) -> dict[str, str]:
    """Returns the decorators of each test and of the classes around it."""
    decorators_by_test = dict[str, str]()
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    for name, test in tests_of(tree).items():
        class_decorators = [classes[part].decorator_list for part in name.split("::")[:-1] if part in classes]
        decorators_by_test[name] = " ".join(
            ast.unparse(decorator) for group in (*class_decorators, test.decorator_list) for decorator in group
        )
    return decorators_by_test


def _surroundings(tree: ast.Module) -> list[str]:
    """Returns the code of a test file without its tests and imports, including other code in its classes."""
    tests = {id(test) for test in tests_of(tree).values()}
    holders = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    nodes = [*tree.body, *(statement for holder in holders for statement in holder.body)]
    plain_nodes = [node for node in nodes if not isinstance(node, ast.Import | ast.ImportFrom | ast.ClassDef)]
    return [ast.dump(node) for node in plain_nodes if id(node) not in tests and not only_words(node)]


def _shared_names(change: FileVersions) -> set[str]:
    """Returns the names by which tests use this file, if it is a helper, a fixture or data for tests."""
    if not change.path.endswith(".py"):
        return set() if tests_by_runner(change.path, change.old) else {change.path.rpartition("/")[2]}
    try:
        tree = ast.parse(change.old)
    except UNREADABLE:
        return set()
    if tests_of(tree):
        return set()
    targets = (target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets)
    defined_names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return defined_names | {target.id for target in targets if isinstance(target, ast.Name)}


def _users(path: str, names: Collection[str], texts: Mapping[str, str]) -> list[str]:
    pattern = re.compile("|".join(rf"\b{re.escape(name)}\b" if name else "" for name in names))
    modules = (other for other in texts if other.endswith(".py") and belongs_to_tests(other) and other != path)
    return [
        f"{other}::{name}" for other in modules if pattern.search(texts[other]) for name in _qualified(texts[other])
    ]


def _qualified(text: str) -> Iterable[str]:
    try:
        return tests_of(ast.parse(text))
    except UNREADABLE:
        return ()


@dataclass
class OldTestTrial:
    """Tries old tests whose text has changed. A test is bent when its new version passes on the code before the change
    too, and its old version fails on the new code: then the change of the test alone has made it pass."""

    changes: Sequence[FileVersions]
    command: str
    settings: ProofSettings
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    """The new names of tests, by their old ones."""

    async def bent(self, sandbox: Sandbox, make_launch: MakeLaunch, names: Collection[str]) -> set[str] | None:
        """Returns those of the tests that are bent: they pass only because they were changed. Returns None if that
        cannot be found out."""
        if sandbox.kind != "bubblewrap":
            return None
        folder, deadline = TrialFolder(sandbox, make_launch, self.settings), time.monotonic() + self.settings.seconds
        current_names, suspect_names = {name: self.renamed.get(name, name) for name in names}, set(names)
        try:
            if versions_before := self._before(code=True):
                _, red_tests = await self._ends(folder, current_names.values(), versions_before, deadline)
                suspect_names = {name for name in suspect_names if current_names[name] not in red_tests}
            if suspect_names:
                suspect_names &= (await self._ends(folder, suspect_names, self._before(code=False), deadline))[1]
            if suspect_names:
                green_tests, _ = await self._ends(
                    folder, [current_names[name] for name in suspect_names], UNCHANGED, deadline
                )
                suspect_names = {name for name in suspect_names if current_names[name] in green_tests}
            return suspect_names
        except (TimeoutError, OSError, DuckflowError, RecursionError, MemoryError):
            return None

    async def bent_check(self, sandbox: Sandbox, make_launch: MakeLaunch, paths: Collection[str]) -> bool | None:
        """Says whether a command is bent: it passes only because its own files were changed. This is judged by its exit
        code. Returns None if it cannot be found out."""
        if sandbox.kind != "bubblewrap":
            return None
        folder, deadline = TrialFolder(sandbox, make_launch, self.settings), time.monotonic() + self.settings.seconds
        old_versions = {change.path: change.before for change in self.changes if change.path in paths}
        versions_before = {path: text for path, text in self._before(code=True).items() if path not in paths}
        try:
            if versions_before and await folder.exit_code(self.command, versions_before, deadline):
                return False
            return await folder.exit_code(self.command, old_versions, deadline) != 0
        except (TimeoutError, OSError, DuckflowError):
            return None

    async def stood_in(
        self, sandbox: Sandbox, make_launch: MakeLaunch, versions: Versions, names: Collection[str], passed: bool
    ) -> set[str] | None:
        """Returns the tests among these that pass only with files that stand in for the code. `versions` holds these
        files as they are without it, and `passed` says that the tests are known to pass with them. Returns None if it
        cannot be found out."""
        if sandbox.kind != "bubblewrap":
            return None
        folder, deadline = TrialFolder(sandbox, make_launch, self.settings), time.monotonic() + self.settings.seconds
        try:
            _, red_tests = await self._ends(folder, names, versions, deadline)
            if passed or not red_tests:
                return red_tests
            return (await self._ends(folder, red_tests, UNCHANGED, deadline))[0]
        except (TimeoutError, OSError, DuckflowError, RecursionError, MemoryError):
            return None

    def _before(self, code: bool) -> dict[str, bytes | None]:
        """Returns the old versions of the code, or, if `code` is false, of the tests and the files that belong to them.
        A test file that is new is left out."""
        return {
            change.path: change.before
            for change in self.changes
            if (is_code(change.path) if code else belongs_to_tests(change.path) and change.before is not None)
        }

    async def _ends(
        self, folder: TrialFolder, names: Collection[str], versions: Versions, deadline: float
    ) -> tuple[set[str], set[str]]:
        """Returns the tests that pass with these versions of some files, and the tests that fail."""
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        if runner := runner_of(self.command):
            by_name = {name.partition("::")[2]: name for name in names}
            names_read = runner.read(await folder.printed(runner.command(self.command, by_name), versions, deadline))
            passed_names, failed_names = (
                {by_name[name] for name in ended_names if name in by_name} for ended_names in names_read
            )
            return passed_names, failed_names
        tests_by_file = dict[str, set[str]]()
        for name in names:
            path, _, test = name.partition("::")
            tests_by_file.setdefault(path, set()).add(test)
        test_ends = await folder.run(self.command, tests_by_file, {}, versions, seconds)
        broken_files = {test_end.file for test_end in test_ends if test_end.outcome == "broken"}
        failed_names = {test_end.name for test_end in test_ends if test_end.outcome in ("failed", "begun")}
        failed_names |= {name for name in names if name.partition("::")[0] in broken_files}
        return {test_end.name for test_end in test_ends if test_end.outcome == "passed"} - failed_names, failed_names
