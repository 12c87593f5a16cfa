"""What an endpoint's refusal means: what people are told, whether another try may help, and when it is made."""

import asyncio
import importlib.util
import json
import re
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from duckflow.errors import ContextTooLong, ModelError, PicturesRefused, ProviderRefused, ProviderUnreachable
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.facts import nearest_names
from duckflow.llm.keys import KEYRING_SERVICE, Key, may_be_stored
from duckflow.llm.provider import CallDelta, Chunk, Delta, Retrying, Thought
from duckflow.llm.settings import LlmSettings
from duckflow.state.json_fields import as_table, first_table
from duckflow.state.known_keys import without_keys
from duckflow.state.noun import shorten
from duckflow.state.phrase import Phrase, say

DETAIL_LENGTH = 240

TOO_LONG = (
    r"(?is)context_length_exceeded|exceed_context|context (length|window|size|limit)|context the overflows"
    r"|maximum (context|prompt|model|input) length|prompt (is )?too long|in(put|puts?) (is|are)? ?too long"
    r"|too many (input )?tokens|reduce the length"
    r"|(token count|tokens?|input length|prompt).{0,60} exceeds?\b.{0,40}(maximum|limit|context)"
    r"|maximum number of tokens allowed|string_above_max_length|request (entity )?too large"
)
NEVER_FITS = r"(?i)request too large"
NO_CREDIT = r"(?i)insufficient.{0,12}(quota|balance|credit|fund)|billing_hard_limit|billing_not_active|credit balance"
PLACE_REFUSED = (
    r"(?i)unsupported_country|(country|region|territory|location).{0,40}(not |un)(supported|available|allowed)"
    r"|not (supported|available|allowed|offered) in your (country|region|territory|location)"
)
NAMES_KEY = (
    r"(?i)\b(api|access|secret|bearer)?[ _-]?(keys?|tokens?|credentials?)\b|authenticat|unauthori[sz]ed|unregistered"
)
BAD_KEY = r"(?i)api.?key.{0,20}(not valid|invalid|expired)|(invalid|incorrect|missing).{0,10}api.?key|api_key_invalid"
UNKNOWN_MODEL = (
    r"(?is)model_not_found|invalid_model|not_found_error"
    r"|\bmodels?\b.{0,120}(not found|not exist|no such|not available|not loaded|is unknown|not a valid)"
    r"|(unknown|invalid|no such|not a valid) model|no endpoints found|no model.{0,20}loaded"
)
CONTENT_REFUSED = r"(?i)content_filter|content_policy|content management policy|moderation|data_inspection_failed"
BAD_GENERATION = r"(?i)json_validate_failed|tool_use_failed|failed to generate json"
BUSY = r"(?i)rate.?limit|overloaded|too many requests|resource.?exhausted|throttl"

AGAIN = (408, 409, 425)
OVERLOADED = (503, 529)
PICTURES_NAMED = (
    r"(?is)image|vision|multi-?modal|picture|invalid type: sequence"
    r"|content.{0,40}(?:must|should) be (?:a |of type )?string"
)
PICTURE_SPOILT = (
    r"(?is)too (?:large|big|small|many)|exceed|at most [1-9]|maximum|dimension|pixel|decod|corrupt|truncated|mime"
    r"|media.?type|(?:could not|cannot|unable to|failed to) (?:process|read|load|open)"
    r"|(?:invalid|unsupported|valid) (?:image|base64)"
)
PICTURES_REFUSED = (400, 404, 413, 415, 422, 500, 501)
SAYS_BLIND = r"(?i)support|mmproj|multi-?modal|missing data"
"""What a server says that answers with an error of its own; any other such error may pass."""
BLIND = "model.blind"
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


class Failures:
    """Judges what one endpoint answered for one model."""

    def __init__(self, endpoint: Endpoint, model: str, key: Key | None) -> None:
        self._endpoint = endpoint
        self._model = model
        self._key = key

    def of_status(self, status: int, headers: Mapping[str, str], answer: str) -> Setback:
        detail = self.detail(answer)
        if self._is_too_long(status, answer):
            return Setback(ContextTooLong("model.too_long", model=self._name, detail=detail))
        if status == 402 or (status in (400, 403, 429) and re.search(NO_CREDIT, answer)):
            return Setback(ProviderRefused("model.no_credit", endpoint=self._endpoint.name, detail=detail))
        if status in (400, 403) and re.search(PLACE_REFUSED, answer):
            return Setback(ProviderRefused("model.place_refused", endpoint=self._endpoint.name, detail=detail))
        if self._is_about_key(status, answer):
            return Setback(key_refused(self._endpoint, self._key, detail))
        if status == 429:
            return self.busy(asked_wait(headers, answer), detail)
        if re.search(BAD_GENERATION, answer):
            return self.broken()
        if status in AGAIN or (status >= 500 and status not in (501, 505)):
            why = say("model.retry.server", endpoint=self._endpoint.name, status=status)
            error = ProviderUnreachable("model.server_failed", where=self._endpoint.where, status=status, detail=detail)
            return Setback(error, why, asked_wait(headers, answer), status in OVERLOADED)
        if status in (400, 404) and re.search(UNKNOWN_MODEL, answer):
            return Setback(self._unknown_model(detail))
        if status in (404, 405) or 300 <= status < 400:
            return Setback(self._wrong_address(status))
        if re.search(CONTENT_REFUSED, answer):
            return Setback(ProviderRefused("model.content_refused", model=self._name, detail=detail))
        if status == 403:
            return Setback(ProviderRefused("model.forbidden", model=self._name, detail=detail))
        return Setback(ProviderRefused("model.request_refused", model=self._name, status=status, detail=detail))

    def of_pictures(self, status: int, answer: str) -> Setback | None:
        """Where a request with pictures is refused for them: the model cannot see, or one of them cannot be used."""
        if status not in PICTURES_REFUSED or not re.search(PICTURES_NAMED, answer):
            return None
        if status == 500 and not re.search(SAYS_BLIND, answer):
            return None
        spoilt = status == 413 or re.search(PICTURE_SPOILT, answer)
        key = "model.picture_refused" if spoilt else BLIND
        return Setback(PicturesRefused(key, model=self._name, detail=self.detail(answer)))

    def of_error(self, error: Any, answer: str) -> Setback:
        """An error object that came in place of a reply, or in the middle of one."""
        code = as_table(error).get("code") or as_table(error).get("status")
        if isinstance(code, str) and code.isdecimal():
            code = int(code)
        if isinstance(code, int) and 400 <= code < 600:
            return self.of_status(code, {}, answer)
        if re.search(BUSY, answer):
            return self.of_status(429, {}, answer)
        # Whoever begins to answer and then fails has usually run into trouble of its own.
        kind = str(as_table(error).get("type") or "")
        return self.of_status(400 if "invalid" in kind else 500, {}, answer)

    def busy(self, wait: float | None, detail: str) -> Setback:
        error = ProviderRefused("model.busy", endpoint=self._endpoint.name, detail=detail)
        return Setback(error, say("model.retry.busy", endpoint=self._endpoint.name), wait, busy=True)

    def timed_out(self, seconds: float) -> Setback:
        waited = f"{seconds:g}"
        error = ProviderUnreachable("model.timed_out", model=self._name, where=self._endpoint.where, seconds=waited)
        return Setback(error, say("model.retry.timed_out", endpoint=self._endpoint.name, seconds=waited))

    def broken(self) -> Setback:
        error = ProviderUnreachable("model.broken_reply", model=self._name, where=self._endpoint.where)
        return Setback(error, say("model.retry.broken", endpoint=self._endpoint.name))

    def garbage(self, answer: str) -> Setback:
        return Setback(ModelError("model.no_model_there", where=self._endpoint.where, detail=self.detail(answer)))

    def no_connection(self, key: str, detail: str = "", again: bool = True) -> Setback:
        error = ProviderUnreachable(key, where=self._endpoint.where, detail=self.detail(detail))
        return Setback(error, say("model.retry.connection", endpoint=self._endpoint.name) if again else None)

    def detail(self, answer: str) -> str:
        """One line of what the endpoint said, without keys and without what a terminal would obey."""
        text = without_keys(_message(answer)).rstrip(" .。\n")
        return shorten("".join(c if c.isprintable() else " " for c in text), DETAIL_LENGTH)

    def _unknown_model(self, detail: str) -> ProviderRefused:
        endpoint, model = self._endpoint.name, self._model
        near = nearest_names(f"{endpoint}:{model}", (endpoint,)) if self._endpoint.key_needed else []
        names = ", ".join(near) or f"{endpoint}:MODEL"
        return ProviderRefused("model.unknown", model=model, endpoint=endpoint, detail=detail, near=names)

    @property
    def _name(self) -> str:
        return f"{self._endpoint.name}:{self._model}"

    def _is_too_long(self, status: int, answer: str) -> bool:
        # Rate limits are about tokens too: there, only a request that can never pass is too long.
        pattern = NEVER_FITS if status in (401, 403, 429) else TOO_LONG
        return status == 413 or re.search(pattern, answer) is not None

    def _is_about_key(self, status: int, answer: str) -> bool:
        """A 403 is about the key only where there is none, or where the answer names it."""
        if status == 403:
            return self._key is None or re.search(NAMES_KEY, answer) is not None
        return status == 401 or (status == 400 and re.search(BAD_KEY, answer) is not None)

    def _wrong_address(self, status: int) -> ModelError:
        """Says where else it might be: most wires want a version at the end of the address, Anthropic's wants none."""
        where = self._endpoint.where
        versioned = re.search(r"/v\d\w*(/|$)", where)
        if self._endpoint.wire == "anthropic":
            other = where.removesuffix("/v1") if where.endswith("/v1") else ""
        else:
            other = "" if versioned else f"{where}/v1"
        key = "model.wrong_address_maybe" if other else "model.wrong_address"
        return ProviderRefused(key, where=where, status=status, other=other)


def key_refused(endpoint: Endpoint, key: Key | None, detail: str = "") -> ModelError:
    """Says which variable to set; `source` is where the refused key came from, empty when there was none. The keyring
    is only named where it would be looked into."""
    if may_be_stored(endpoint) and importlib.util.find_spec("keyring"):
        text = "model.key_refused" if key else "model.key_missing"
    else:
        text = "model.key_refused_alone" if key else "model.key_missing_alone"
    return ProviderRefused(
        text,
        endpoint=endpoint.name,
        source=key.source if key else "",
        variable=endpoint.key_names[0] if endpoint.key_names else f"llm.endpoints.{endpoint.name}.key_env",
        entry=f"{KEYRING_SERVICE} {endpoint.name}",
        detail=f": {detail}" if detail else "",
    )


def _message(answer: str) -> str:
    try:
        value: Any = json.loads(answer)
    except (ValueError, RecursionError):
        title = re.search(r"<title>(.*?)</title>", answer, re.I | re.S)
        return title.group(1) if title else re.sub(r"<[^>]*>", " ", answer[:4000])
    value = as_table(value) or first_table(value)
    error = value.get("error", value)
    if isinstance(error, str):
        return error
    error = as_table(error)
    raw = as_table(error.get("metadata")).get("raw")
    message = error.get("message") or error.get("detail") or error.get("type") or answer
    return f"{message}: {raw}" if isinstance(raw, str) else str(message)
