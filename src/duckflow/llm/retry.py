"""Trying again: how often, after how long, and when not."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing

from duckflow.errors import ModelError, ProviderRefused
from duckflow.llm.provider import CallDelta, Chunk, Delta, Retrying, Thought
from duckflow.llm.settings import LlmSettings
from duckflow.state.phrase import Phrase

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
ASKED_IN_WORDS = r"(?i)(?:try again|retry)\s+(?:in|after)\s+((?:[\d.]+\s*(?:ms|h|m|s)\s*)+)"
ASKED_BY_GOOGLE = r'"retryDelay"\s*:\s*"([\d.]+s)"'
SPAN = r"(?i)([\d.]+)\s*(ms|h|m|s)"


class Setback(Exception):
    """One try failed. With `why` it may be tried again; `error` is raised when no try is left. An endpoint that is only
    `busy` is tried as long as the user's patience lasts."""

    def __init__(
        self, error: ModelError, why: Phrase | None = None, wait: float | None = None, busy: bool = False
    ) -> None:
        super().__init__(error.key)
        self.busy = busy
        self.error = error
        self.why = why
        self.wait = wait


async def persist(
    attempt: Callable[[], AsyncGenerator[Chunk, None]], settings: LlmSettings
) -> AsyncGenerator[Chunk, None]:
    """Pass on the chunks of an attempt, and of the next when it fails, as far as the settings allow."""
    tries, waited = 0, 0.0
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
            if setback.why is None or (tries >= settings.tries and not setback.busy):
                raise setback.error from None
            seconds = pause(settings, tries, setback.wait)
            until = time.strftime("%H:%M:%S", time.localtime(time.time() + seconds))
            waited += seconds
            if waited > settings.patience_seconds:
                if setback.wait is None:
                    raise setback.error from None
                told = {"endpoint": setback.why.values["endpoint"], "limit": f"{settings.patience_seconds:g}"}
                raise ProviderRefused("model.busy_until", until=until, **told) from None
            why = setback.why.model_copy(update={"values": {**setback.why.values, "until": until}})
        yield Retrying(why, seconds)
        await asyncio.sleep(seconds)


def pause(settings: LlmSettings, tries: int, asked: float | None) -> float:
    """Seconds until the next try: what the endpoint asked for, else twice as long each time, with some chance in it. An
    endpoint that keeps asking for too little gets more."""
    if asked is not None and tries < settings.tries:
        return asked
    from random import uniform

    longest = min(settings.backoff_max_seconds, settings.backoff_seconds * 2 ** min(tries - 1, 30))
    return max(asked or 0.0, longest * uniform(0.5, 1.0))


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
