"""What all tests share."""

import gc
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from inspect import iscoroutinefunction
from pathlib import Path

import pytest
from hypothesis import settings

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


def pytest_sessionfinish() -> None:
    end_server()


@pytest.fixture
async def ended_stories() -> AsyncIterator[None]:
    """What a story has open is closed where it was opened: in the event loop of its test."""
    yield
    while OPEN:
        await OPEN[-1].close()


TERMINALS, EVIDENCE = "tests/ui/console/", "tests/journeys/test_evidence.py"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What starts whole programs in both languages does so in English only in the long run."""
    cases = Counter[str]()
    for item in items:
        if isinstance(item, pytest.Function) and iscoroutinefunction(getattr(item, "obj", None)):
            item.fixturenames.append("ended_stories")
        callspec = getattr(item, "callspec", None)
        values: tuple[object, ...] = tuple(callspec.params.values()) if callspec else ()
        if item.nodeid.startswith((TERMINALS, EVIDENCE)) and "en" in values:
            item.add_marker(pytest.mark.slow)
        if matrix := item.get_closest_marker("one_in"):
            name, _, _ = item.nodeid.partition("[")
            if not _is_tried(cases[name], *matrix.args):
                item.add_marker(pytest.mark.slow)
            cases[name] += 1


def _is_tried(case: int, size: int) -> bool:
    """One case of every `size`, another one in each row: of a table of attacks and sandboxes every attack is tried, and
    every sandbox in its turn."""
    return case % size == case // size % size
