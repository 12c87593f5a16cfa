"""The beginning of a prompt that was read once is restored at the next start."""

import os
from pathlib import Path

import pytest

from duckflow.llm.connect import Places, connect
from duckflow.llm.discover import ModelChoice
from duckflow.llm.provider import Delta, Finished, Provider, Request
from duckflow.llm.settings import LlmSettings, LocalSettings
from duckflow.state.data import say
from duckflow.state.message import PromptMessage

LONG = "The duck swims on the pond and looks at the reeds. " * 60


def request(text: str) -> Request:
    return Request((PromptMessage("system", LONG), PromptMessage("user", text)), max_tokens=8)


def started(weights: Path, top: Path, disk: int = 1024) -> Provider:
    choice = ModelChoice("embedded", str(weights), say("model.chosen.flag"))
    local = LocalSettings(context=2048, threads=1, prefix_disk_mib=disk)
    return connect(choice, LlmSettings(), local, Places(top / "models"), os.environ)


async def read_tokens(weights: Path, top: Path, text: str, disk: int = 1024) -> int:
    """Returns the number of prompt tokens that were not restored."""
    provider = started(weights, top, disk)
    assert provider.model == f"local:{weights.stem}" and provider.window == 2048
    chunks = [chunk async for chunk in provider.stream(request(text))]
    await provider.aclose()
    assert any(isinstance(chunk, Delta) for chunk in chunks)
    end = chunks[-1]
    assert isinstance(end, Finished)
    return end.usage.prompt_tokens - end.usage.cached_tokens


@pytest.mark.slow
async def test_the_second_start_reads_only_what_is_new(tmp_path: Path, smollm2: Path) -> None:
    before = await read_tokens(smollm2, tmp_path, "Who swims?")
    [slot] = (tmp_path / "prefixes").iterdir()
    assert slot.stat().st_mode & 0o077 == 0
    after = await read_tokens(smollm2, tmp_path, "Where is the duck?")
    assert before > 500 and after < before / 5
    slot.write_bytes(b"damaged")
    assert await read_tokens(smollm2, tmp_path, "Who swims?") == before


@pytest.mark.slow
async def test_nothing_is_saved_where_the_user_wants_that(tmp_path: Path, smollm2: Path) -> None:
    await read_tokens(smollm2, tmp_path, "Who swims?", disk=0)
    assert not (tmp_path / "prefixes").exists()
