"""Trying again: how often, after how long, and when not."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing

from duckflow.errors import ModelError
from duckflow.llm.provider import CallDelta, Chunk, Delta, Retrying, Thought
from duckflow.llm.settings import LlmSettings
from duckflow.state.phrase import Phrase

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
ASKED_IN_WORDS = r"(?i)(?:try again|retry)\s+(?:in|after)\s+((?:[\d.]+\s*(?:ms|h|m|s)\s*)+)"
ASKED_BY_GOOGLE = r'"retryDelay"\s*:\s*"([\d.]+s)"'
SPAN = r"(?i)([\d.]+)\s*(ms|h|m|s)"


class Setback(Exception):
    """One try failed. With `why` it may be tried again; `error` is raised when no try is left."""

    def __init__(self, error: ModelError, why: Phrase | None = None, wait: float | None = None) -> None:
        super().__init__(error.key)
        self.error = error
        self.why = why
        self.wait = wait


async def persist(
    attempt: Callable[[], AsyncGenerator[Chunk, None]], settings: LlmSettings
) -> AsyncGenerator[Chunk, None]:
    """Pass on the chunks of an attempt, and of the next when it fails, as far as the settings allow."""
    tries = 0
    while True:
        tries += 1
        length = 0
        try:
            async with aclosing(attempt()) as chunks:
                async for chunk in chunks:
                    length += len(chunk.text) if isinstance(chunk, Delta | CallDelta | Thought) else 0
                    if length > settings.max_reply_characters:
                        raise ModelError("model.reply_too_long", characters=settings.max_reply_characters)
                    yield chunk
            return
        except Setback as setback:
            if setback.why is None or tries >= settings.tries:
                raise setback.error from None
            retrying = Retrying(setback.why, pause(settings, tries, setback.wait))
        yield retrying
        await asyncio.sleep(retrying.seconds)


def pause(settings: LlmSettings, tries: int, asked: float | None) -> float:
    """Seconds until the next try: what the endpoint asked for, else twice as long each time, with some chance in it."""
    if asked is not None:
        return min(asked, settings.retry_after_max_seconds)
    from random import uniform

    longest = min(settings.backoff_max_seconds, settings.backoff_seconds * 2 ** (tries - 1))
    return longest * uniform(0.5, 1.0)


def asked_wait(headers: Mapping[str, str], answer: str) -> float | None:
    """How long the endpoint wants us to wait: by header (milliseconds, seconds, date), else in words."""
    if (milliseconds := _number(headers.get("retry-after-ms", ""))) is not None:
        return milliseconds / 1000
    given = headers.get("retry-after", "").strip()
    if (seconds := _number(given)) is not None:
        return seconds
    if given:
        from email.utils import parsedate_to_datetime

        try:
            return max(0.0, parsedate_to_datetime(given).timestamp() - time.time())
        except (ValueError, OverflowError):
            pass
    words = re.search(ASKED_BY_GOOGLE, answer) or re.search(ASKED_IN_WORDS, answer)
    if words is None:
        return None
    spans = re.findall(SPAN, words.group(1))
    return sum((_number(number) or 0.0) * UNITS[unit.lower()] for number, unit in spans)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
