"""Makes a yard for every test that asks for one."""

from collections.abc import Generator

import pytest
from yard import Yard, yard


@pytest.fixture
def place() -> Generator[Yard]:
    with yard() as made:
        yield made
