"""A folder with all file tools over it."""

from pathlib import Path

import pytest
from acting import Hands

from duckflow.tools.settings import FileSettings


@pytest.fixture
def hands(tmp_path: Path) -> Hands:
    folder = tmp_path / "work"
    folder.mkdir()
    return Hands(folder, FileSettings())
