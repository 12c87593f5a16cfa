"""Terminals of a test, ended with it."""

from collections.abc import Iterator

import pytest

from tests.ui.console.terminal import Terminal


@pytest.fixture
def opened() -> Iterator[list[Terminal]]:
    """What a test puts in here is closed after it."""
    terminals: list[Terminal] = []
    yield terminals
    for terminal in terminals:
        terminal.close()
