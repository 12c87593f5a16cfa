"""The model of the tour: what it is asked for shows in the shape of the reply it is to give."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator
from typing import Any

from duckflow.cli.demo.stops import BODIES, Stop, answer, decided, drafted_plan, drafted_report, drafted_tasks
from duckflow.llm.provider import Chunk, Delta, Finished, Request
from duckflow.llm.windows import DEFAULT_WINDOW
from duckflow.state.usage import Usage
from duckflow.ui.i18n.words import Words

PIECE = 12


class TourModel:
    """Says what belongs to the stop; to anything else, that it is only a script."""

    def __init__(self, words: Words, delay: float) -> None:
        self._words = words
        self._delay = delay
        self._decisions = deque[dict[str, Any]]()
        self.model = words("demo.model")
        self.window = DEFAULT_WINDOW

    def begin(self, stop: Stop) -> None:
        self._decisions = deque(stop.replies)

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        text = self._reply(request)
        for start in range(0, len(text), PIECE):
            await asyncio.sleep(self._delay)
            yield Delta(text[start : start + PIECE])
        yield Finished("stop", Usage(calls=1))

    async def aclose(self) -> None:
        pass

    def _reply(self, request: Request) -> str:
        words, shape = self._words, (request.schema or {}).get("properties", {})
        if not shape:
            asked = request.messages[-1].text
            # The last one named is the one that is asked for.
            paths = sorted(BODIES, key=asked.rfind)
            return words(BODIES[paths[-1]])
        if "actions" in shape:
            off = decided(words("demo.off_script"), answer(words("demo.off_script")))
            return _json(self._decisions.popleft() if self._decisions else off)
        draft = drafted_plan if "steps" in shape else drafted_tasks if "tasks" in shape else drafted_report
        return _json(draft(words))


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
