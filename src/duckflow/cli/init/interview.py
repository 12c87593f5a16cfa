"""The three questions of `duckflow init`: language, model, how much it may do. A model may be tried on the way."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from duckflow.cli.first_run import OWN
from duckflow.cli.init.own_model import LEAVE, OwnModelLeft, Setting, find_own_model
from duckflow.events.ports import Ask
from duckflow.i18n.language import facts_of, languages
from duckflow.i18n.words import Words
from duckflow.llm.endpoints import KEYED, KNOWN
from duckflow.state.mode import OFFERED
from duckflow.state.phrase import Phrase, quote, say
from duckflow.state.question import Choice, Question
from duckflow.store.paths import Paths

MOST_MODELS = 5
BY_ITSELF = "auto"


class InterviewLeft(Exception):
    """The user does not want to go on; nothing has been written."""


@dataclass(frozen=True, slots=True)
class InitAnswers:
    """The three answers."""

    language: str
    model: str
    mode: str
    settings: tuple[Setting, ...] = ()
    """What else leads to the model."""
    told: tuple[Phrase, ...] = ()
    """What happened when it was tried."""


async def interview(ask: Ask, given: Mapping[str, str | None], words: Words, paths: Paths) -> InitAnswers:
    """Asks what was not given already, in the language of the first answer. The first choice of each question is the
    one most people want."""
    codes = [words.language, *(code for code in languages() if code != words.language)]
    words.language = given.get("language") or await _asked(ask, "language", _languages(codes))
    answers = InitAnswers(words.language, given.get("model") or "", "")
    if "model" not in given:
        answers = await _with_model(answers, ask, paths)
    return replace(answers, mode=given.get("mode") or await _asked(ask, "mode", _modes()))


async def _with_model(answers: InitAnswers, ask: Ask, paths: Paths) -> InitAnswers:
    by_itself = Choice(key=BY_ITSELF, label=say("init.choice.model.auto"))
    named = [Choice(key=name, label=say("init.choice.model", model=name)) for name in models_at_hand()]
    chosen = await _asked(ask, "model", [by_itself, *named, *OWN])
    if chosen not in (choice.key for choice in OWN):
        return replace(answers, model="" if chosen == BY_ITSELF else chosen)
    try:
        own = await find_own_model(chosen, ask, paths)
    except OwnModelLeft:
        raise InterviewLeft from None
    return replace(answers, model=own.choice.name, settings=own.settings, told=own.told)


def _languages(codes: list[str]) -> list[Choice]:
    """Each as its speakers call it."""
    return [Choice(key=code, label=quote(facts_of(code).name)) for code in codes]


def _modes() -> list[Choice]:
    return [Choice(key=mode, label=say(f"init.choice.mode.{mode}")) for mode in map(str, OFFERED)]


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
