"""The sandbox is looked for once, and beside the event loop."""

import asyncio
import time
from pathlib import Path

import pytest

from duckflow.agent.permissions import Permissions
from duckflow.cli.sandboxes import Sandboxes
from duckflow.cli.setup import Setup
from duckflow.config.settings import Settings
from duckflow.events.types import Event
from duckflow.i18n.words import Words
from duckflow.safety.sandbox import choose as choosing
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.safety.sandbox.settings import SandboxSettings
from duckflow.store.paths import Paths


async def test_looking_for_the_sandbox_does_not_block_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick, looked = choosing.choose, 0

    def slow(
        settings: SandboxSettings, folder: Path, private: list[Path], record: Path, added: tuple[Path, ...]
    ) -> Sandbox:
        nonlocal looked
        looked += 1
        time.sleep(0.5)
        return quick(settings, folder, private, record=record, added=added)

    monkeypatch.setattr(choosing, "choose", slow)
    noticed: list[Event] = []
    setup = Setup(Settings(), Paths(tmp_path, tmp_path, tmp_path), tmp_path, Words("en"))

    def hear(event: Event) -> None:
        noticed.append(event)

    sandboxes = Sandboxes(setup, hear, lambda: False, Permissions(tmp_path / "rules.json"))
    both = asyncio.gather(sandboxes.find(), sandboxes.find())
    beats = 0
    while not both.done():
        await asyncio.sleep(0.01)
        beats += 1
    first, second = await both
    assert beats >= 10
    assert looked == 1
    assert first is second
    assert len(noticed) == 1
    await sandboxes.aclose()
