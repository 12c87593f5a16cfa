"""Checks the model: which model would be used, whether it has a key, and whether it answers in time."""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal

from duckflow.agent.connection import closable
from duckflow.config.settings import Settings
from duckflow.errors import DuckflowError, ProviderUnreachable
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.llm.connect import Places, connect
from duckflow.llm.discover import BY_ITSELF, NO_MODEL, ModelChoice, discover
from duckflow.llm.endpoints import KNOWN
from duckflow.llm.local.weights import Weights
from duckflow.llm.provider import Finished, Request
from duckflow.llm.settings import LlmSettings
from duckflow.state.data import Phrase, said, say
from duckflow.state.message import PromptMessage
from duckflow.store.paths import Paths

Part = Literal["settings", "machine", "terminal", "model"]
State = Literal["good", "note", "bad"]
MARKS: dict[State, str] = {"good": "✓", "note": "–", "bad": "✗"}


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """One line of the report, and how to fix its problem. A note is about something optional; a bad finding keeps
    Duckflow from working."""

    part: Part
    state: State
    what: Phrase
    fix: Phrase | None = None

    def lines(self, words: Words) -> list[str]:
        """Returns the lines of the finding. The first line names the fact; the other lines say how to fix it."""
        first_line, *fix_lines = words.phrase(self.what).split("\n")
        fix_lines += words.phrase(self.fix).split("\n") if self.fix else []
        return [plain(f"{MARKS[self.state]} {first_line}"), *(plain(f"    → {line}") for line in fix_lines)]

    def as_json(self, words: Words) -> dict[str, Any]:
        return {
            "part": self.part,
            "state": self.state,
            "what": words.phrase(self.what),
            "fix": words.phrase(self.fix) if self.fix else "",
        }


def good(part: Part, what: Phrase) -> DoctorFinding:
    return DoctorFinding(part, "good", what)


def judged(part: Part, fine: bool, what: Phrase, fix: Phrase, otherwise: State = "bad") -> DoctorFinding:
    """Makes a good finding if `fine`; otherwise a finding in the state `otherwise`, with the way to fix it."""
    return DoctorFinding(part, "good", what) if fine else DoctorFinding(part, otherwise, what, fix)


def broken(part: Part, problem: DuckflowError) -> DoctorFinding:
    """Makes a bad finding from an error, whose own text says what the user can do."""
    return DoctorFinding(part, "bad", said(problem))


SEARCH_SECONDS = 15.0
ANSWER_SECONDS = 20.0
HERE_SECONDS = 120.0
"""Seconds that a model on this machine gets to answer, since it may first have to be loaded."""


async def check_model(flag: str, settings: Settings, paths: Paths) -> list[DoctorFinding]:
    findings = [*_keys()]
    try:
        async with asyncio.timeout(SEARCH_SECONDS):
            choice = await discover(flag, settings.llm, os.environ)
    except TimeoutError:
        return [
            *findings,
            DoctorFinding("model", "bad", say("doctor.model_none"), say("fix.search", seconds=SEARCH_SECONDS)),
        ]
    except DuckflowError as problem:
        return [*findings, broken("model", problem)]
    if choice.why.key == BY_ITSELF and not Weights(paths.models, os.environ).holding(choice.model).complete:
        return [*findings, broken("model", ProviderUnreachable(NO_MODEL))]
    findings.append(good("model", say("doctor.model", model=choice.name)))
    findings.append(good("model", choice.why))
    findings += [DoctorFinding("model", "note", note) for note in choice.notes]
    if choice.key_source:
        findings.append(good("model", say("doctor.key", source=choice.key_source)))
    return [*findings, await _answer(choice, settings, paths)]


def _keys() -> Iterator[DoctorFinding]:
    """Reports the names of variables that hold keys, but not their values."""
    names = dict.fromkeys(name for endpoint in KNOWN for name in endpoint.key_names if os.environ.get(name))
    if names:
        yield good("model", say("doctor.keys", names=", ".join(names)))


async def try_out(choice: ModelChoice, settings: Settings, paths: Paths) -> float:
    """Asks the model for one word, and does not wait long. Returns the seconds until the word came; a DuckflowError
    says why none came."""
    is_local = choice.kind in ("embedded", "scripted") or (choice.endpoint is not None and choice.endpoint.is_loopback)
    start_time, seconds = time.monotonic(), HERE_SECONDS if is_local else ANSWER_SECONDS
    try:
        async with asyncio.timeout(seconds):
            await _ask(choice, _impatient(settings.llm, seconds), settings, paths)
    except TimeoutError:
        raise ProviderUnreachable("doctor.model_slow", model=choice.name, seconds=round(seconds)) from None
    return time.monotonic() - start_time


async def _answer(choice: ModelChoice, settings: Settings, paths: Paths) -> DoctorFinding:
    try:
        seconds = round(await try_out(choice, settings, paths), 1)
    except DuckflowError as problem:
        return broken("model", problem)
    return good("model", say("doctor.model_answers", model=choice.name, seconds=seconds))


async def _ask(choice: ModelChoice, llm: LlmSettings, settings: Settings, paths: Paths) -> None:
    places = Places(paths.models, paths.abilities, paths.local_log)
    provider = connect(choice, llm, settings.local, places, os.environ)
    try:
        request = Request((PromptMessage("user", "Say: ok"),), max_tokens=16)
        async with aclosing(closable(provider, request)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, Finished):
                    return
    finally:
        await provider.aclose()
    raise ProviderUnreachable("model.no_end", model=provider.model)


def _impatient(llm: LlmSettings, seconds: float) -> LlmSettings:
    wait_names = ("connect_seconds", "first_byte_seconds", "local_first_byte_seconds", "between_chunks_seconds")
    shorter_waits = {name: min(getattr(llm, name), seconds) for name in wait_names}
    return llm.model_copy(update={**shorter_waits, "tries": 1, "patience_seconds": 0.0})
