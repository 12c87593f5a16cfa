"""The three questions of `duckflow init`: language, model, how much it may do."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from duckflow.events.ports import Ask
from duckflow.i18n.words import LANGUAGES
from duckflow.llm.endpoints import KEYED, KNOWN
from duckflow.state.mode import Mode
from duckflow.state.phrase import say
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
    languages = [language, *(one for one in LANGUAGES if one != language)]
    return InitAnswers(
        given.get("language") or await _asked(ask, "language", languages),
        given["model"] or "" if "model" in given else await _model(ask),
        given.get("mode") or await _asked(ask, "mode", [str(mode) for mode in Mode]),
    )


async def _model(ask: Ask) -> str:
    chosen = await _asked(ask, "model", [BY_ITSELF, *models_at_hand()])
    return "" if chosen == BY_ITSELF else chosen


async def _asked(ask: Ask, what: str, keys: list[str]) -> str:
    known = {"language": "init.choice.language", "mode": "init.choice.mode"}
    choices = [Choice(key=key, label=say(f"{known[what]}.{key}")) for key in keys] if what in known else _models(keys)
    leave = Choice(key=LEAVE, label=say("init.leave"))
    answer = await ask(Question(kind="choice", title=say(f"init.ask.{what}"), choices=(*choices, leave)))
    if answer.choice not in keys:
        raise InterviewLeft
    return answer.choice


def _models(keys: list[str]) -> list[Choice]:
    first, *named = keys
    return [
        Choice(key=first, label=say("init.choice.model.auto")),
        *(Choice(key=key, label=say("init.choice.model", model=key)) for key in named),
    ]


def models_at_hand() -> list[str]:
    """Those whose key lies in the environment, and the local one."""
    keyed = [
        f"{endpoint.name}:{endpoint.model}"
        for endpoint in KNOWN
        if endpoint.name in KEYED and any(os.environ.get(name) for name in endpoint.key_names)
    ]
    return [*keyed[:MOST_MODELS], "local"]
