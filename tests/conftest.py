"""What all tests share."""

import gc
import os

import pytest
from hypothesis import settings

# On a busy machine an example of hypothesis may take as long as it takes.
settings.register_profile("quick", deadline=None, max_examples=40)
settings.register_profile("thorough", deadline=None)
settings.load_profile("quick")

MORE = 200


class Handles:
    """What a story has open is closed when it is collected, and `select` knows no more than 1024 handles."""

    left = 0

    def pytest_runtest_teardown(self) -> None:
        if self._count() > self.left + MORE:
            gc.collect()
            self.left = self._count()

    def _count(self) -> int:
        try:
            return len(os.listdir("/proc/self/fd"))
        except OSError:
            return 0


TERMINALS, EVIDENCE = "tests/ui/console/", "tests/journeys/test_evidence.py"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What starts whole programs in both languages does so in English only in the long run."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        values: tuple[object, ...] = tuple(callspec.params.values()) if callspec else ()
        if item.nodeid.startswith((TERMINALS, EVIDENCE)) and "en" in values:
            item.add_marker(pytest.mark.slow)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Handles())
