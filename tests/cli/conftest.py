"""What the tests of the command share."""

from pathlib import Path

import pytest

from tests.cli.shell import Shell


@pytest.fixture
def bare(tmp_path: Path) -> Shell:
    """A shell with an empty home."""
    return Shell(tmp_path)
