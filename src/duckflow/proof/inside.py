"""Runs inside the project's own Python, as a plugin of pytest or in place of `python -m unittest`.

It runs only the tests in question, and writes for each how it ended, with which error, and which of the watched lines
it ran. It imports nothing of Duckflow. Its orders are in a file that an environment variable names, which the tests do
not see."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
import unittest
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType, TracebackType

    import pytest

VARIABLE = "DUCKFLOW_TRIAL"
MODULE = "duckflow_trial"
MESSAGE = 400
SKIPPED = ("Skipped", "SkipTest", "XFailed")
EXPECTED = "__unittest_expecting_failure__"


def _nothing(frame: FrameType, event: str, argument: Any) -> None:
    """A trace function for code of which no line is watched."""


class Orders:
    """The tests by file, the lines to watch by file, and where the report goes."""

    def __init__(self) -> None:
        with open(os.environ.pop(VARIABLE), encoding="utf-8") as file:
            orders: dict[str, Any] = json.load(file)
        self._forget(str(orders["place"]))
        self.folder = str(orders["folder"])
        self.tests: dict[str, set[str]] = {name: set(tests) for name, tests in orders["tests"].items()}
        lines: dict[str, list[int]] | None = orders["lines"]
        self._everywhere = lines is None
        self._watched: dict[str, set[int]] = {
            str(Path(self.folder, name)): set(numbers) for name, numbers in (lines or {}).items()
        }
        self._report = str(orders["report"])
        self.deadline = time.time() + float(orders["seconds"])
        self._ran: dict[tuple[str, int], int] = {}
        """The watched lines that the test ran, each with the number of its last run."""
        self._runs = count()
        self.ends: dict[str, tuple[str, BaseException | None]] = {}

    @staticmethod
    def _forget(place: str) -> None:
        """Removes this module from the environment variables, so that tests and their programs see the usual values."""
        options = os.environ.get("PYTEST_ADDOPTS", "").removesuffix(f"-p {MODULE}").strip()
        places = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry not in (place, "")]
        for name, value in (("PYTEST_ADDOPTS", options), ("PYTHONPATH", os.pathsep.join(places))):
            os.environ[name] = value
            if not value:
                del os.environ[name]

    def name(self, path: object) -> str:
        return os.path.relpath(os.path.realpath(str(path)), self.folder)

    def wants(self, path: object, test: str) -> bool:
        """Says whether a test is to be run. `test` is its name in the file, as in `Class::function[parameters]`."""
        return test.partition("[")[0] in self.tests.get(self.name(path), ())

    def begin(self, path: object, test: str) -> None:
        """Notes that a test begins. So the report can name a test that never ends, or that ends the whole process."""
        self._append({"file": self.name(path), "test": test, "outcome": "begun"})

    def write(self, path: object, test: str, outcome: str, error: BaseException | None = None) -> None:
        row: dict[str, Any] = {"file": self.name(path), "test": test, "outcome": outcome, "ran": self._latest()}
        if error is not None:
            row.update(self._about(error, row["file"], test))
        self._append(row)
        self._ran = {}

    def _append(self, row: dict[str, Any]) -> None:
        with open(self._report, "a", encoding="utf-8") as report:
            report.write(json.dumps(row) + "\n")

    def _latest(self) -> list[tuple[str, int]]:
        """Returns the lines that the test ran, the last one first."""
        return sorted(self._ran, key=lambda place: -self._ran[place])

    def _about(self, error: BaseException, name: str, test: str) -> dict[str, Any]:
        """Returns the classes of an error, its message, and the last line of the test's own file that it came through.
        An error in a fixture, in `setUp` or in a file that is being loaded has no such line, because the test's own
        code did not cause it."""
        line, in_test, function = 0, False, test.partition("[")[0].rpartition("::")[2]
        trace: TracebackType | None = error.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            if self.name(code.co_filename) == name:
                line = trace.tb_lineno
                in_test = in_test or code.co_name == function
            elif code.co_name == "<module>" and code.co_filename.endswith(".py"):
                in_test = False
            trace = trace.tb_next
        message = ""
        with contextlib.suppress(Exception):
            message = str(error)[:MESSAGE]
        class_names = [kind.__name__ for kind in type(error).__mro__]
        return {"kinds": class_names, "message": message, "line": line if in_test else 0}

    def watch(self) -> None:
        if self._watched or self._everywhere:
            threading.settrace(self._trace)
            sys.settrace(self._trace)

    def unwatch(self) -> None:
        if self._watched or self._everywhere:
            sys.settrace(None)
            threading.settrace(_nothing)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        path = frame.f_code.co_filename
        lines = self._watched.get(path)
        if lines is None:
            if not self._everywhere:
                return None
            lines = self._watched[path] = self._all_lines(path)
        if not lines:
            return None
        name = self.name(path)

        def local(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "line" and frame.f_lineno in lines:
                self._ran[name, frame.f_lineno] = next(self._runs)
            return local

        return local

    def _all_lines(self, path: str) -> set[int]:
        """Returns the numbers of all lines of a file of the project; none for other files, or for a file with tests in
        question."""
        is_project_file = path.startswith(self.folder + os.sep) and "site-packages" not in path
        if not is_project_file or self.name(path) in self.tests:
            return set()
        with open(path, "rb") as file:
            return set(range(1, file.read().count(b"\n") + 2))


def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    """Names the files of the tests in question, so that pytest looks for no others. Options make sure that all tests
    are tried: there are no worker processes, no coverage, no selection by name, and no end at a failure or a file that
    cannot be loaded. Failures are not printed in detail, because nobody reads that."""
    plugins = early_config.pluginmanager
    args += ["--maxfail=0", "--continue-on-collection-errors", "--tb=no", "-k", ""]
    args += [str(Path(ORDERS.folder, name)) for name in ORDERS.tests]
    args += ["-n0"] if plugins.hasplugin("xdist") else []
    args += ["--no-cov"] if plugins.hasplugin("_cov") else []


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Skips files without a test in question, so that they are not even read."""
    return True if collection_path.is_file() and ORDERS.name(collection_path) not in ORDERS.tests else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if ORDERS.wants(item.path, _test_of(item))]


def pytest_exception_interact(node: Any, call: pytest.CallInfo[Any]) -> None:
    """Reports a file that cannot be loaded, because none of its tests can run and report it."""
    if not hasattr(node, "runtest") and hasattr(node, "path") and call.excinfo:
        ORDERS.write(node.path, "", "broken", call.excinfo.value)


def pytest_runtest_protocol(item: pytest.Item) -> None:
    if time.time() > ORDERS.deadline:
        item.session.shouldstop = "time"
    ORDERS.begin(item.path, _test_of(item))


def pytest_runtest_setup(item: pytest.Item) -> None:
    ORDERS.watch()


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> None:
    outcome, error = ORDERS.ends.get(item.nodeid, ("passed", None))
    if call.excinfo is not None and outcome == "passed":
        outcome, error = "skipped" if call.excinfo.typename in SKIPPED else "failed", call.excinfo.value
        ORDERS.ends[item.nodeid] = outcome, error
    if call.when != "setup":
        ORDERS.unwatch()
    if call.when == "teardown":
        is_expected_to_fail = item.get_closest_marker("xfail") is not None
        ORDERS.write(item.path, _test_of(item), "skipped" if is_expected_to_fail else outcome, error)


def _test_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[2]


class OnlyWanted:
    """A runner for unittest that runs only the tests in question, and records the error that each test raised."""

    def run(self, tests: unittest.TestSuite | unittest.TestCase) -> unittest.TestResult:
        for test in _each(tests):
            if test.id().startswith("unittest.loader."):
                self._broken(test)
            elif ORDERS.wants(*_place(test)) and time.time() < ORDERS.deadline:
                self._one(test)
        return unittest.TestResult()

    def _one(self, test: unittest.TestCase) -> None:
        path, name = _place(test)
        method: Any = getattr(test, name.rpartition("::")[2])
        outcome, raised_error = "passed", None
        ORDERS.begin(path, name)
        ORDERS.watch()
        try:
            unittest.TestSuite([test]).debug()
        except unittest.SkipTest:
            outcome = "skipped"
        except Exception as error:
            outcome, raised_error = "failed", error
        finally:
            ORDERS.unwatch()
        expects_failure = getattr(test, EXPECTED, False) or getattr(method, EXPECTED, False)
        ORDERS.write(path, name, "skipped" if expects_failure else outcome, raised_error)

    def _broken(self, test: unittest.TestCase) -> None:
        """Reports a file that could not be loaded: unittest replaces its tests by one that raises the reason."""
        module = test.id().rpartition("_FailedTest.")[2]
        try:
            test.debug()
        except Exception as error:
            for name in ORDERS.tests:
                if name.removesuffix(".py").replace("/", ".").endswith(module):
                    ORDERS.write(Path(ORDERS.folder, name), "", "broken", error)


def _each(tests: unittest.TestSuite | unittest.TestCase) -> Iterator[unittest.TestCase]:
    if isinstance(tests, unittest.TestCase):
        yield tests
        return
    for test in tests:
        yield from _each(test)


def _place(test: unittest.TestCase) -> tuple[str, str]:
    path = str(sys.modules[type(test).__module__].__file__)
    return path, type(test).__qualname__ + "::" + test.id().rpartition(".")[2]


if VARIABLE in os.environ:
    ORDERS = Orders()
    if __name__ == "__main__":
        sys.path.insert(0, str(Path.cwd()))
        sys.argv[0] = "python -m unittest"
        unittest.main(module=None, testRunner=OnlyWanted(), exit=False)
