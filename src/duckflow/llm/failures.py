"""Interprets an endpoint's refusal: the message for people, whether a retry may help, and when the retry is made."""

import asyncio
import importlib.util
import json
import re
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import cache
from pathlib import Path
from typing import Any

from duckflow.errors import ContextTooLong, ModelError, PicturesRefused, ProviderRefused, ProviderUnreachable
from duckflow.llm.endpoints import TYPED, Endpoint, Key, may_be_stored
from duckflow.llm.facts import nearest_names
from duckflow.llm.provider import CallDelta, Chunk, Delta, Retrying, Thought
from duckflow.llm.settings import LlmSettings
from duckflow.state.data import Phrase, as_table, first_table, say, shorten
from duckflow.system_keyring import KEYRING_SERVICE
from duckflow.whole_text import read_json, without_keys

DETAIL_LENGTH = 240
WRONG_ADDRESS = "model.wrong_address"
WRONG_ADDRESS_MAYBE = "model.wrong_address_maybe"
NO_MODEL_THERE = "model.no_model_there"
NONE_LISTED = "model.none_listed"
BLIND = "model.blind"
BUSY = r"(?i)rate.?limit|overloaded|too many requests|resource.?exhausted|throttl"
OVERLOADED = (503, 529)
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
ASKED_IN_WORDS = r"(?i)(?:try again|retry)\s+(?:in|after)\s+((?:[\d.]+\s*(?:ms|h|m|s)\s*)+)"
ASKED_BY_GOOGLE = r'"retryDelay"\s*:\s*"([\d.]+s)"'
SPAN = r"(?i)([\d.]+)\s*(ms|h|m|s)"


class Setback(Exception):
    """Raised when one attempt failed. With `why`, the request may be tried again; `error` is raised when no attempt is
    left. A `busy` endpoint is tried until `patience_seconds` have passed."""

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
    """Passes on the chunks of an attempt. When an attempt fails, another one follows, as often as the settings
    allow."""
    attempt_count, waited_seconds = 0, 0.0
    while True:
        attempt_count += 1
        reply_length = 0
        try:
            async with aclosing(attempt()) as chunks:
                async for chunk in chunks:
                    reply_length += len(chunk.text) if isinstance(chunk, Delta | CallDelta | Thought) else 0
                    if reply_length > settings.max_reply_characters:
                        raise ModelError("model.reply_too_long", characters=settings.max_reply_characters)
                    yield chunk
            return
        except Setback as setback:
            if setback.why is None or (attempt_count >= settings.tries and not setback.busy):
                raise setback.error from None
            seconds = pause(settings, attempt_count, setback.wait)
            retry_time = time.strftime("%H:%M:%S", time.localtime(time.time() + seconds))
            waited_seconds += seconds
            if waited_seconds > settings.patience_seconds:
                if setback.wait is None or not settings.patience_seconds:
                    raise setback.error from None
                values = {"endpoint": setback.why.values["endpoint"], "limit": f"{settings.patience_seconds:g}"}
                raise ProviderRefused("model.busy_until", until=retry_time, **values) from None
            reason = setback.why.model_copy(update={"values": {**setback.why.values, "until": retry_time}})
        yield Retrying(reason, seconds)
        await asyncio.sleep(seconds)


def pause(settings: LlmSettings, tries: int, asked: float | None) -> float:
    """Returns the seconds until the next attempt: the time that the endpoint asked for, else twice as long each time,
    with some randomness. After the usual number of attempts, the longer of these two times counts."""
    if asked is not None and tries < settings.tries:
        return asked
    from random import uniform

    longest_pause = min(settings.backoff_max_seconds, settings.backoff_seconds * 2 ** min(tries - 1, 30))
    return max(asked or 0.0, longest_pause * uniform(0.5, 1.0))


def asked_wait(headers: Mapping[str, str], answer: str) -> float | None:
    """Returns the seconds that the endpoint asks us to wait: by header (milliseconds, seconds, date), else in words."""
    if (milliseconds := _number(headers.get("retry-after-ms", ""))) is not None:
        return milliseconds / 1000
    retry_after = headers.get("retry-after", "").strip()
    if (seconds := _number(retry_after)) is not None:
        return seconds
    if retry_after:
        from email.utils import parsedate_to_datetime

        try:
            return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
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


class Failures:
    """Turns failures of one endpoint, when asked for one model, into Setbacks."""

    def __init__(self, endpoint: Endpoint, model: str, key: Key | None) -> None:
        self._endpoint = endpoint
        self._model = model
        self._key = key

    def of_status(self, status: int, headers: Mapping[str, str], answer: str) -> Setback:
        detail, refusal_kind = self.detail(answer), self._meaning("requests", status, answer)
        values = {"model": self._name, "endpoint": self._endpoint.name, "status": status, "detail": detail}
        match refusal_kind:
            case "too_long":
                return Setback(ContextTooLong("model.too_long", **values))
            case "key":
                return Setback(key_refused(self._endpoint, self._key, detail))
            case "busy":
                error = ProviderRefused("model.busy", endpoint=self._endpoint.name, detail=detail)
                reason = say("model.retry.busy", endpoint=self._endpoint.name)
                return Setback(error, reason, asked_wait(headers, answer), busy=True)
            case "broken":
                return self.broken()
            case "server_failed":
                reason = say("model.retry.server", endpoint=self._endpoint.name, status=status)
                address = self._endpoint.where
                error = ProviderUnreachable("model.server_failed", where=address, status=status, detail=detail)
                return Setback(error, reason, asked_wait(headers, answer), status in OVERLOADED)
            case "unknown":
                return Setback(self._unknown_model(detail))
            case "wrong_address":
                return Setback(ProviderRefused(WRONG_ADDRESS, where=self._endpoint.where, status=status))
            case _:
                return Setback(ProviderRefused(f"model.{refusal_kind}", **values))

    def of_pictures(self, status: int, answer: str) -> Setback | None:
        """Returns a Setback (the failure of an attempt) if pictures are the reason for the refusal: the model cannot
        see, or one of the pictures cannot be used. Otherwise returns None."""
        refusal_kind = self._meaning("pictures", status, answer)
        error = PicturesRefused(f"model.{refusal_kind}", model=self._name, detail=self.detail(answer))
        return Setback(error) if refusal_kind else None

    def _meaning(self, table: str, status: int, answer: str) -> str:
        """Returns the meaning of a refusal: that of the first row of the table that fits the status and the words of
        the answer. Rows for requests without a key are skipped if a key was sent."""
        return next(
            row["means"]
            for row in refusals()[table]
            if re.fullmatch(row.get("status", "..."), str(status))
            and re.search(row.get("words", ""), answer, re.IGNORECASE | re.DOTALL)
            and not (row.get("keyless") and self._key)
        )

    def of_error(self, error: Any, answer: str) -> Setback:
        """Judges an error object that came in place of a reply, or in the middle of a reply."""
        code = as_table(error).get("code") or as_table(error).get("status")
        if isinstance(code, str) and code.isdecimal():
            code = int(code)
        if isinstance(code, int) and 400 <= code < 600:
            return self.of_status(code, {}, answer)
        if re.search(BUSY, answer):
            return self.of_status(429, {}, answer)
        # An endpoint that begins to answer and then fails usually has a problem of its own, not with the request.
        kind = str(as_table(error).get("type") or "")
        return self.of_status(400 if "invalid" in kind else 500, {}, answer)

    def timed_out(self, seconds: float) -> Setback:
        waited_seconds = f"{seconds:g}"
        error = ProviderUnreachable(
            "model.timed_out", model=self._name, where=self._endpoint.where, seconds=waited_seconds
        )
        return Setback(error, say("model.retry.timed_out", endpoint=self._endpoint.name, seconds=waited_seconds))

    def broken(self) -> Setback:
        error = ProviderUnreachable("model.broken_reply", model=self._name, where=self._endpoint.where)
        return Setback(error, say("model.retry.broken", endpoint=self._endpoint.name))

    def garbage(self, answer: str) -> Setback:
        return Setback(ModelError(NO_MODEL_THERE, where=self._endpoint.where, detail=self.detail(answer)))

    def no_connection(self, key: str, detail: str = "", again: bool = True) -> Setback:
        error = ProviderUnreachable(key, where=self._endpoint.where, detail=self.detail(detail))
        return Setback(error, say("model.retry.connection", endpoint=self._endpoint.name) if again else None)

    def detail(self, answer: str) -> str:
        """Returns one line of the endpoint's message, without keys and without control characters."""
        text = without_keys(_message(answer)).rstrip(" .。\n")
        return shorten("".join(character if character.isprintable() else " " for character in text), DETAIL_LENGTH)

    def _unknown_model(self, detail: str) -> ProviderRefused:
        endpoint, model = self._endpoint.name, self._model
        near_names = nearest_names(f"{endpoint}:{model}", (endpoint,)) if self._endpoint.key_needed else []
        names = ", ".join(near_names) or f"{endpoint}:MODEL"
        return ProviderRefused("model.unknown", model=model, endpoint=endpoint, detail=detail, near=names)

    @property
    def _name(self) -> str:
        return f"{self._endpoint.name}:{self._model}"


@cache
def refusals() -> dict[str, list[dict[str, Any]]]:
    tables: dict[str, list[dict[str, Any]]] = json.loads(Path(__file__).with_name("refusals.json").read_text("utf-8"))
    return tables


def key_refused(endpoint: Endpoint, key: Key | None, detail: str = "") -> ModelError:
    """Returns an error that names the variable to set, and the source of the refused key if there was one. The error
    mentions the keyring only if the keyring would be asked."""
    if key and key.source == TYPED:
        text = "model.key_refused_typed"
    elif may_be_stored(endpoint) and importlib.util.find_spec("keyring"):
        text = "model.key_refused" if key else "model.key_missing"
    else:
        text = "model.key_refused_alone" if key else "model.key_missing_alone"
    return ProviderRefused(
        text,
        endpoint=endpoint.name,
        where=endpoint.where,
        source=key.source if key else "",
        variable=endpoint.key_names[0] if endpoint.key_names else f"llm.endpoints.{endpoint.name}.key_env",
        entry=f"{KEYRING_SERVICE} {endpoint.name}",
        detail=f" {detail}" if detail else "",
    )


def _message(answer: str) -> str:
    value = read_json(answer)
    if value is None:
        title = re.search(r"<title>(.*?)</title>", answer, re.I | re.S)
        return title.group(1) if title else re.sub(r"<[^>]*>", " ", answer[:4000])
    value = as_table(value) or first_table(value)
    error = value.get("error", value)
    if isinstance(error, str):
        return error
    error = as_table(error)
    raw_message = as_table(error.get("metadata")).get("raw")
    message = error.get("message") or error.get("detail") or error.get("type") or answer
    return f"{message}: {raw_message}" if isinstance(raw_message, str) else str(message)
