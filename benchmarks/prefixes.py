"""What keeping the prompt's prefix on disk saves: `python -m benchmarks.prefixes [MODEL_FILE]`.

Starts the local model twice with the same long prefix, with nothing kept and with what the first start kept, and
prints the milliseconds from the request to the first piece of the reply (the model is loaded before), by turns."""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from duckflow.llm.connect import Places, connect
from duckflow.llm.discover import ModelChoice
from duckflow.llm.embedded import Embedded
from duckflow.llm.provider import Request
from duckflow.llm.settings import DEFAULT_MODEL, LlmSettings, LocalSettings
from duckflow.state.data import say
from duckflow.state.message import PromptMessage
from duckflow.store.paths import Paths

PREFIX = "The duck swims on the pond and looks at the reeds. " * 150
ROUNDS = 3


async def first_piece(model: str, top: Path) -> float:
    local = LocalSettings()
    choice = ModelChoice("embedded", model, say("model.chosen.flag"))
    provider = connect(choice, LlmSettings(), local, Places(top / "models"), os.environ)
    assert isinstance(provider, Embedded)
    await provider.warm()
    asked = Request((PromptMessage("system", PREFIX), PromptMessage("user", "Who swims?")), max_tokens=4)
    began, came = time.perf_counter(), 0.0
    async for _ in provider.stream(asked):
        came = came or time.perf_counter() - began
    await provider.aclose()
    return came * 1000


async def main() -> None:
    models = Paths.of_user().models
    given = sys.argv[1] if len(sys.argv) > 1 else ""
    model = given or str(next(models.glob(f"{DEFAULT_MODEL}*.gguf")))
    cold: list[float] = []
    kept: list[float] = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as top:
            cold.append(await first_piece(model, Path(top)))
            kept.append(await first_piece(model, Path(top)))
    before, after = statistics.median(cold), statistics.median(kept)
    print(f"{Path(model).stem}: nothing kept {before:.0f} ms, kept {after:.0f} ms, {before / after:.1f} times faster")


if __name__ == "__main__":
    asyncio.run(main())
