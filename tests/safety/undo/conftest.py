"""A playground for every test that asks for one."""

from pathlib import Path

import pytest
from playground import Playground


@pytest.fixture
def ground(tmp_path: Path) -> Playground:
    return Playground(tmp_path)
