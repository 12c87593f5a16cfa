"""Makes a playground for every test that asks for one."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playground import OPEN, Playground


@pytest.fixture
def ground(tmp_path: Path) -> Playground:
    return Playground(tmp_path)


@pytest.fixture(autouse=True)
async def closed() -> AsyncIterator[None]:
    yield
    while OPEN:
        await OPEN.pop().close()
