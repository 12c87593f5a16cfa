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


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Handles())
