"""The three questions of `duckflow init`: language, model, how much it may do."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from duckflow.events.ports import Ask
from duckflow.i18n.language import facts_of, languages
from duckflow.llm.endpoints import KEYED, KNOWN
from duckflow.state.mode import Mode
from duckflow.state.phrase import quote, say
from duckflow.state.question import Choice, Question

MOST_MODELS = 5
BY_ITSELF = "auto"
LEAVE = "leave"


class InterviewLeft(Exception):
    """The user does not want to go on; nothing has been written."""


@dataclass(frozen=True, slots=True)
class InitAnswers:
    """The three answers."""

    language: str
    model: str
    mode: str


async def interview(ask: Ask, given: Mapping[str, str | None], language: str) -> InitAnswers:
    """Asks what was not given already. The first choice of each is the one most people want."""
    codes = [language, *(code for code in languages() if code != language)]
    return InitAnswers(
        given.get("language") or await _asked(ask, "language", _languages(codes)),
        given["model"] or "" if "model" in given else await _model(ask),
        given.get("mode") or await _asked(ask, "mode", _modes()),
    )


async def _model(ask: Ask) -> str:
    by_itself = Choice(key=BY_ITSELF, label=say("init.choice.model.auto"))
    named = [Choice(key=name, label=say("init.choice.model", model=name)) for name in models_at_hand()]
    chosen = await _asked(ask, "model", [by_itself, *named])
    return "" if chosen == BY_ITSELF else chosen


def _languages(codes: list[str]) -> list[Choice]:
    """Each as its speakers call it."""
    return [Choice(key=code, label=quote(facts_of(code).name)) for code in codes]


def _modes() -> list[Choice]:
    return [Choice(key=mode, label=say(f"init.choice.mode.{mode}")) for mode in map(str, Mode)]


async def _asked(ask: Ask, what: str, choices: list[Choice]) -> str:
    leave = Choice(key=LEAVE, label=say("init.leave"))
    answer = await ask(Question(kind="choice", title=say(f"init.ask.{what}"), choices=(*choices, leave)))
    if answer.choice not in (choice.key for choice in choices):
        raise InterviewLeft
    return answer.choice


def models_at_hand() -> list[str]:
    """Those whose key lies in the environment, and the local one."""
    keyed = [
        f"{endpoint.name}:{endpoint.model}"
        for endpoint in KNOWN
        if endpoint.name in KEYED and any(os.environ.get(name) for name in endpoint.key_names)
    ]
    return [*keyed[:MOST_MODELS], "local"]
