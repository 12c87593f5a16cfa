"""What all tests share."""

import gc
from pathlib import Path

from hypothesis import settings

# On a busy machine an example of hypothesis may take as long as it takes.
settings.register_profile("quick", deadline=None, max_examples=40)
settings.register_profile("thorough", deadline=None)
settings.load_profile("quick")

HANDLES = Path("/proc/self/fd")
MANY = 250


def pytest_runtest_teardown() -> None:
    """What a story has open is closed when it is collected; `select` knows no more than 1024 handles."""
    if HANDLES.exists() and len(list(HANDLES.iterdir())) > MANY:
        gc.collect()
