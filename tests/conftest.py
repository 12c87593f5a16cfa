"""What all tests share."""

import gc
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from inspect import iscoroutinefunction
from pathlib import Path

import pytest
from hypothesis import settings

from duckflow.programs.find import users_variables
from tests.forked_program import end_server
from tests.journeys.story import OPEN

# On a busy machine an example of hypothesis may take as long as it takes. `make test` tries the same ones each time, so
# that it says something about the change at hand; `make test-all` looks for new ones.
settings.register_profile("quick", deadline=None, max_examples=40, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=300)
settings.load_profile("quick")

# Commands of stories say `python` and `pytest`: those are the ones that run the tests, whatever the machine has.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"

# A suite that was started in the background of a script ignores SIGINT, and so would every program that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Thousands of tests are held from now to the end: the collector need not go through them again and again.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


def pytest_runtest_teardown() -> None:
    # Programs of later tests would get variables of this one, such as a place for temporary files that is gone.
    users_variables.clear()


def pytest_sessionfinish() -> None:
    end_server()


@pytest.fixture
async def ended_stories() -> AsyncIterator[None]:
    """What a story has open is closed where it was opened: in the event loop of its test."""
    yield
    while OPEN:
        await OPEN[-1].close()


TERMINALS, EVIDENCE = "tests/ui/console/", "tests/journeys/test_evidence.py"
TABLES = pytest.StashKey[dict[str, "Table"]]()
LONG_TESTS = Path(__file__).with_name("long_tests.txt")


def long_tests() -> dict[str, int]:
    """Returns the tests that need much processor time, with the number of cases that `make test` tries of each."""
    lines = (line.split() for line in LONG_TESTS.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    return {name: int(cases) for name, cases in lines}


def _leave_to_test_all(items: list[pytest.Item]) -> None:
    """Marks the cases of long tests that `make test` leaves out. Those it tries are spread over all cases."""
    kept = long_tests()
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        name, _, _ = item.nodeid.partition("[")
        if name in kept and not item.get_closest_marker("slow"):
            cases.setdefault(name, []).append(item)
    for name, of_test in cases.items():
        for place, item in enumerate(of_test):
            if (place + 1) * kept[name] // len(of_test) == place * kept[name] // len(of_test):
                item.add_marker(pytest.mark.long)


class Table:
    """The cases of a test that is marked `one_in`, each by its place in every dimension (a `parametrize` or a
    fixture each), and whether `make test` tries it."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._cases: dict[tuple[int, ...], bool] = {}
        self._places: dict[tuple[str, ...], dict[tuple[int, ...], int]] = {}

    def add(self, item: pytest.Item, params: dict[str, object]) -> None:
        dimensions = [_names(mark.args[0]) for mark in item.iter_markers("parametrize")]
        by_fixtures = params.keys() - {name for names in dimensions for name in names}
        case = tuple(self._place(names, params) for names in [*dimensions, *((name,) for name in sorted(by_fixtures))])
        # Another one in each row: of a table of attacks and sandboxes every attack is tried, and every sandbox.
        if sum(case) % self._size:
            item.add_marker(pytest.mark.slow)
        self._cases[case] = not item.get_closest_marker("slow")

    def never_tried(self) -> list[set[int]]:
        """The values of each dimension that no case of `make test` has. There are none where a table is so wide that
        one in `size` cases is one in every row."""
        values = [set(places) for places in zip(*self._cases, strict=True)]
        if len(values) == 1 or self._size > min(map(len, values)):
            return []
        tried = [set(places) for places in zip(*(case for case, quick in self._cases.items() if quick), strict=True)]
        return [every - some for every, some in zip(values, tried, strict=True) if every - some]

    def _place(self, names: tuple[str, ...], params: dict[str, object]) -> int:
        places = self._places.setdefault(names, {})
        return places.setdefault(tuple(id(params[name]) for name in names), len(places))


def _names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Returns the names that a `parametrize` gives values to, written as one text or as several."""
    return tuple(names.replace(" ", "").split(",")) if isinstance(names, str) else tuple(names)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What starts whole programs in both languages does so in English only in the long run."""
    tables = config.stash[TABLES] = dict[str, Table]()
    for item in items:
        if isinstance(item, pytest.Function) and iscoroutinefunction(getattr(item, "obj", None)):
            item.fixturenames.append("ended_stories")
        callspec = getattr(item, "callspec", None)
        values: tuple[object, ...] = tuple(callspec.params.values()) if callspec else ()
        if callspec and (matrix := item.get_closest_marker("one_in")):
            name, _, _ = item.nodeid.partition("[")
            tables.setdefault(name, Table(*matrix.args)).add(item, callspec.params)
        elif item.nodeid.startswith((TERMINALS, EVIDENCE)) and "en" in values:
            item.add_marker(pytest.mark.slow)
    # Whoever names a test wants to see it run.
    if not any("::" in argument for argument in config.args):
        _leave_to_test_all(items)
