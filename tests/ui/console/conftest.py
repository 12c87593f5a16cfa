"""Terminals that are closed when their test ends."""

from collections.abc import Iterator

import pytest

from tests.ui.console.terminal import Terminal


@pytest.fixture
def opened() -> Iterator[list[Terminal]]:
    """Collects terminals and closes them after the test."""
    terminals: list[Terminal] = []
    yield terminals
    for terminal in terminals:
        terminal.close()
