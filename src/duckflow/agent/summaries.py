"""Summaries of messages that left the context. The model writes them in the background, and nobody waits for them."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing

from duckflow.agent.connection import ModelConnection
from duckflow.agent.session import Session
from duckflow.errors import DuckflowError
from duckflow.events.types import ContextPruned, Event, PastSummarised, UsageReported
from duckflow.i18n.words import begins
from duckflow.llm.provider import CallDelta, Delta, Finished, Remark, Request, Retrying, Thought
from duckflow.memory.settings import MemorySettings
from duckflow.memory.tokens import clip, estimate
from duckflow.prompts.compile import Compiler
from duckflow.state.agent import SUMMARY_LENGTH, PastSummary
from duckflow.state.data import shorten
from duckflow.state.message import Message

log = logging.getLogger(__name__)


SUMMARY_TOKENS = 300
SHOWN_TOKENS = 2500
EACH_TOKENS = 250
LEAST_MESSAGES = 12
FAILURES = 2
"""After this number of failures in a row no more summaries are tried: the digest that needs no model is good enough."""


class Summarizer:
    """Writes one summary at a time. Messages that leave the context meanwhile wait for the next summary."""

    def __init__(
        self, session: Session, connection: ModelConnection, compiler: Compiler, settings: MemorySettings
    ) -> None:
        self._session = session
        self._connection = connection
        self._compiler = compiler
        self._settings = settings
        self._waiting: list[int] = []
        self._running: asyncio.Task[None] | None = None
        self._failures = 0
        session.subscribe(self._hear, ContextPruned)

    def _hear(self, event: Event) -> None:
        if not isinstance(event, ContextPruned) or not event.dropped:
            return
        self._waiting += event.dropped
        if self._settings.summaries and self._failures < FAILURES and len(self._waiting) >= LEAST_MESSAGES:
            self._start()

    async def aclose(self) -> None:
        if self._running:
            self._running.cancel()
            await asyncio.wait([self._running])

    def _start(self) -> None:
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._summarise())

    async def _summarise(self) -> None:
        numbers, self._waiting = self._waiting, []
        context = self._session.state.context
        numbers = [number for number in numbers if number not in set(context.forgotten)]
        messages = [self._session.state.messages[number] for number in numbers]
        text = ""
        try:
            async with asyncio.timeout(self._settings.summary_timeout):
                answer = await self._asked(_material(messages))
                text = _checked(answer, messages, self._session.state.language)
            if text and not set(numbers).intersection(context.forgotten):
                summary = PastSummary(first=numbers[0] + 1, last=numbers[-1] + 1, text=text)
                self._session.emit(PastSummarised(summary=summary))
        except (DuckflowError, TimeoutError) as problem:
            log.info("summary failed: %s", type(problem).__name__)
        self._failures = 0 if text else self._failures + 1

    async def _asked(self, text: str) -> str:
        model = await self._connection.ready()
        provider = model.provider
        if model.profile.local:
            # A model on this machine does one thing at a time, so the user would have to wait for it.
            self._failures = FAILURES
            return ""
        request = Request(self._compiler.summary(self._session.state, text), max_tokens=SUMMARY_TOKENS)
        summary_pieces: list[str] = []
        async with aclosing(self._connection.streamed(provider, request)) as chunks:
            async for chunk in chunks:
                match chunk:
                    case Delta():
                        summary_pieces.append(chunk.text)
                    case Retrying():
                        summary_pieces.clear()
                    case Finished():
                        self._session.emit(UsageReported(model=provider.model, usage=chunk.usage))
                        return "".join(summary_pieces) if chunk.reason == "stop" else ""
                    case CallDelta() | Thought() | Remark():
                        pass
        return ""


def _material(messages: Sequence[Message]) -> str:
    """Returns the messages that the model is to sum up, each shortened, as many as fit within a limit."""
    from duckflow.memory.digest import gist

    lines: list[str] = []
    tokens_left = float(SHOWN_TOKENS)
    for message in messages:
        text = gist(message) if message.role == "assistant" else message.text
        line = f"{message.operation or message.role}: {clip(text, EACH_TOKENS)}"
        tokens_left -= estimate(line) + 1
        if tokens_left < 0:
            break
        lines.append(line)
    return "\n".join(lines)


def _checked(text: str, messages: Sequence[Message], language: str) -> str:
    """Returns the summary in one line; an empty text if it is empty, a refusal, or longer than half of the messages."""
    text = " ".join(text.replace("```", " ").split())
    if not text or text.startswith("{") or begins("memory.refusal", text, language):
        return ""
    if estimate(text) * 2 > sum(estimate(message.whole) for message in messages):
        return ""
    return shorten(text, SUMMARY_LENGTH)
