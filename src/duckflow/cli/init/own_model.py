"""Sets up the user's own model, by a key or the address of a server: asks, tries the model, and saves it."""

import asyncio
import os
import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from duckflow.cli.doctor.model import try_out
from duckflow.config.edit import read_text, set_value, write_text
from duckflow.config.settings import Settings
from duckflow.errors import DuckflowError, ModelError, UsageError
from duckflow.events.ports import Ask
from duckflow.llm.discover import ModelChoice, fetch_models, likely_addresses
from duckflow.llm.endpoints import (
    KEYED,
    TYPED,
    Endpoint,
    Key,
    catalogue,
    checked_address,
    keep_in_memory,
    may_be_stored,
    usable_key,
)
from duckflow.llm.facts import facts_of
from duckflow.llm.failures import NONE_LISTED, WRONG_ADDRESS, WRONG_ADDRESS_MAYBE, Failures
from duckflow.state.data import Phrase, quote, said, say
from duckflow.state.question import Answer, Choice, Question
from duckflow.store.paths import Paths
from duckflow.system_keyring import write_keyring
from duckflow.whole_text import key_in, read_json

MOST_LISTED = 8
LISTING_SECONDS = 15.0
NOT_IMPLEMENTED = 501
LEAVE, OTHER = "leave", "other"
ASK_KEY = "own.ask.key"
OWN = Choice(key="key", label=say("own.by_key")), Choice(key="address", label=say("own.by_address"))
"""The two ways to use the user's own model, as choices of a question."""
WHILE_SETTING_UP = {
    "model.no_connection": "own.no_connection",
    "model.nothing_listens": "own.nothing_listens",
}
Setting = tuple[tuple[str, ...], str]


class OwnModelLeft(Exception):
    """The user has stopped answering the questions; nothing has been saved."""


class Kept(NamedTuple):
    """The settings that lead to a model (the first makes it the default), and notes for the user on its key."""

    settings: tuple[Setting, ...]
    notes: tuple[Phrase, ...] = ()
    variable: str = ""
    """The variable that passes on the key, if only this process has the key."""


class OwnModel(NamedTuple):
    """A model that has answered, and the settings that lead to it."""

    choice: ModelChoice
    kept: Kept


def way_of(answer: Answer) -> str:
    """Returns the way to the user's own model that they have chosen, or for which they have already typed a key or an
    address; an empty text for any other answer."""
    if answer.choice == "text":
        return "key" if key_in(answer.text) else "address"
    return answer.choice if answer.choice in (way.key for way in OWN) else ""


async def find_own_model(answer: Answer, ask: Ask, paths: Paths, tell: Callable[[Phrase], None]) -> OwnModel:
    """Asks until a model has answered or the user leaves. `answer` chooses the way, and may contain the key or the
    address already. `tell` hears what is being tried. A key is stored in the keyring where there is one."""
    endpoint, key = await _place(answer, ask, tell)
    choice: ModelChoice | None = None
    while True:
        try:
            if endpoint.name in KEYED and not choice:
                tell(say("own.trying", model=endpoint.name))
            choice = choice or await _chosen_model(ask, endpoint, key)
            tell(say("own.trying", model=choice.name))
            seconds = await try_out(choice, Settings(), paths)
            break
        except DuckflowError as problem:
            # Some endpoints list their models for any key, so a wrong key may show only here.
            remedy = "key" if _about_key(problem) else await _remedy(ask, _here(problem), choice is not None)
            if remedy == "key":
                key = await typed_key(ask, endpoint.where, said(problem) if _about_key(problem) else None)
            elif remedy == "elsewhere":
                endpoint, key = await _place(await _asked_way(ask), ask, tell)
            choice = choice._replace(key=key) if choice and remedy not in ("model", "elsewhere") else None
    tell(say("own.answers", model=choice.name, seconds=round(seconds, 1)))
    return OwnModel(choice, keep(endpoint, choice))


async def _remedy(ask: Ask, problem: Phrase, model_chosen: bool) -> str:
    """Asks what to do about a problem that another key need not solve."""
    ways = ("again", "model", "key", "elsewhere") if model_chosen else ("again", "key", "elsewhere")
    title = say("own.ask.remedy" if model_chosen else "own.ask.remedy_server")
    return await _choose(ask, title, [Choice(key=way, label=say(f"own.{way}")) for way in ways], problem)


def save_settings(settings: tuple[Setting, ...], paths: Paths) -> None:
    """Writes the settings into the user's config; all other settings in it stay."""
    text = read_text(paths.user_config)
    for name, value in settings:
        text = set_value(text, name, value)
    write_text(paths.user_config, text)


def from_home(path: Path) -> str:
    """Returns the path as people write it, with `~` for their home folder."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def _here(problem: DuckflowError) -> Phrase:
    """Returns the sentence on a problem without hints that lead nowhere while the model is set up."""
    phrase = said(problem)
    return phrase.model_copy(update={"key": WHILE_SETTING_UP.get(phrase.key, phrase.key)})


async def _asked_way(ask: Ask) -> Answer:
    leave_choice = Choice(key=LEAVE, label=say("own.leave"))
    question = Question(kind="choice", title=say("first_run.title"), choices=(*OWN, leave_choice), takes_access=True)
    answer = await ask(question)
    if not way_of(answer):
        raise OwnModelLeft
    return answer


async def _place(answer: Answer, ask: Ask, tell: Callable[[Phrase], None]) -> tuple[Endpoint, Key | None]:
    """Returns the endpoint, with its key if it needs one."""
    if way_of(answer) == "key":
        return await _keyed(ask, usable_key(answer.text, TYPED) if answer.text else None)
    return await _addressed(ask, tell, answer.text)


async def _keyed(ask: Ask, key: Key | None) -> tuple[Endpoint, Key]:
    """Asks for the provider and the key, unless it was typed already. A key in place of the provider's name says by its
    form whose it is, or else is kept until the provider is named."""
    endpoints = catalogue({}, os.environ)
    providers = tuple(Choice(key=name, label=quote(name)) for name in KEYED)
    leave_choice = Choice(key=LEAVE, label=say("own.leave"))
    question = Question(
        kind="choice", title=say("own.ask.provider"), choices=(*providers, leave_choice), takes_access=True
    )
    answer = Answer(choice="text", text=key.secret) if key else await ask(question)
    while answer.choice == "text":
        key = usable_key(answer.text, TYPED)
        owners = [name for name in KEYED if key.secret.startswith(endpoints[name].key_starts or ("\0",))]
        answer = Answer(choice=owners[0]) if owners else await ask(question)
    if answer.choice not in KEYED:
        raise OwnModelLeft
    endpoint = endpoints[answer.choice]
    return endpoint, key or await typed_key(ask, endpoint.where, None)


async def _addressed(ask: Ask, tell: Callable[[Phrase], None], address: str) -> tuple[Endpoint, Key | None]:
    """Asks for an address, unless it was typed already, until the server there lists its models. Returns its endpoint,
    and its key if it wants one. A key that is typed in place of the address is kept for the server."""
    problem: Phrase | None = None
    typed_early: Key | None = None
    while True:
        address = address or await _typed(ask, say("own.ask.address"), problem, takes_access=True)
        if key_in(address):
            address, problem, typed_early = "", say("own.address_first"), usable_key(address, TYPED)
            continue
        key = typed_early
        try:
            while True:
                tell(say("own.trying", model=address))
                endpoint, refusal = await reach(address, key)
                if refusal is None:
                    return endpoint, key
                key_reason = said(refusal) if key else say("own.wants_key")
                key = await typed_key(ask, endpoint.where, key_reason)
        except DuckflowError as error:
            address, problem = "", _here(error)


async def reach(address: str, key: Key | None = None) -> tuple[Endpoint, DuckflowError | None]:
    """Returns the endpoint at an address, and its error if it wants a key or refuses this key. The address may also be
    another one of the same server, such as one without the `/v1` below which servers list their models."""
    base_url = checked_address(address if "://" in address else f"http://{address}", "address")
    parts = urlsplit(base_url)
    if "@" in parts.netloc or parts.query:
        # An address is stored unencrypted, and a key never is.
        raise UsageError("own.secret_in_address")
    endpoint = Endpoint(_name_of(base_url), base_url, (), key_needed=False)
    problem = await _problem_at(endpoint, key)
    if problem and problem.key == WRONG_ADDRESS_MAYBE:
        endpoint = endpoint._replace(base_url=str(problem.values["other"]))
        problem = await _problem_at(endpoint, key)
    if problem and problem.key == WRONG_ADDRESS:
        endpoint, problem = await _where_chats_go(endpoint, key) or (endpoint, problem)
    if problem and not _about_key(problem) and problem.key != NONE_LISTED:
        raise problem
    return endpoint, problem if problem and _about_key(problem) else None


async def _problem_at(endpoint: Endpoint, key: Key | None) -> DuckflowError | None:
    try:
        await fetch_models(endpoint, key, LISTING_SECONDS)
    except DuckflowError as problem:
        return problem
    return None


async def _where_chats_go(endpoint: Endpoint, key: Key | None) -> tuple[Endpoint, DuckflowError | None] | None:
    """Returns the endpoint at the address that takes chats although it lists no models, and its error if it wants a key
    or refuses this one. The request is empty, so no model answers it; the refusal says enough."""
    # Both modules are slow to load, and few servers need them here.
    from duckflow.http import HttpError
    from duckflow.llm.endpoint_model import open_client
    from duckflow.llm.wires.wire import wire_named

    for place in (endpoint, *likely_addresses(endpoint)):
        try:
            async with open_client(place, key, LISTING_SECONDS) as client, asyncio.timeout(LISTING_SECONDS):
                headers = {"content-type": "application/json"}
                answer = await client.send("POST", wire_named(place.wire).path(""), b"{}", headers)
                text = (await answer.body()).decode("utf-8", "replace")
        except (TimeoutError, HttpError):
            continue
        problem = None if answer.is_success else Failures(place, "", key).of_status(answer.status, {}, text).error
        if problem and _about_key(problem):
            return place, problem
        says_no_such_place = answer.status == NOT_IMPLEMENTED or (problem and problem.key == WRONG_ADDRESS)
        if not says_no_such_place and isinstance(read_json(text), dict):
            return place, None
    return None


async def typed_key(ask: Ask, where: str, problem: Phrase | None) -> Key:
    """Asks until the user types a key that can be sent. The key is shown nowhere."""
    while True:
        title = say(ASK_KEY, endpoint=where)
        typed_text = await _typed(ask, title, problem, secret=True)
        try:
            return usable_key(typed_text, TYPED)
        except UsageError as error:
            problem = said(error)


async def _chosen_model(ask: Ask, endpoint: Endpoint, key: Key | None) -> ModelChoice:
    reason = say("model.chosen.config")
    try:
        listed_models = await fetch_models(endpoint, key, LISTING_SECONDS)
    except ModelError as problem:
        if problem.key not in (NONE_LISTED, WRONG_ADDRESS):
            raise
        # Not every server lists its models, and one that lists none may still serve some.
        name = await _typed(ask, say("own.ask.name", endpoint=endpoint.where), None)
        return ModelChoice("endpoint", name, reason, endpoint, key)
    names = [model.model for model in listed_models]
    if len(listed_models) == 1:
        endpoint = endpoint._replace(window=endpoint.window or listed_models[0].window)
    if len(names) == 1:
        return ModelChoice("endpoint", names[0], reason, endpoint, key)
    best_names = best_first(endpoint, names)
    choices = [Choice(key=name, label=_described(endpoint, name)) for name in best_names[:MOST_LISTED]]
    other_choice = Choice(key=OTHER, label=say("own.other"))
    prices_note = say("own.prices") if any(choice.label.key == "own.priced" for choice in choices) else None
    name = await _choose(ask, say("own.ask.model"), [*choices, other_choice], prices_note)
    if name == OTHER:
        name = await _typed(ask, say("own.ask.name", endpoint=endpoint.name), None)
    return ModelChoice("endpoint", name, reason, endpoint, key)


def best_first(endpoint: Endpoint, names: Sequence[str]) -> list[str]:
    return sorted(names, key=lambda name: (name != endpoint.model, not _suits(endpoint, name)))


def _suits(endpoint: Endpoint, model: str) -> bool:
    """Says whether the model is known to call tools."""
    facts = facts_of(endpoint.name, model)
    return facts.known and bool(facts.has("t"))


def _described(endpoint: Endpoint, model: str) -> Phrase:
    facts = facts_of(endpoint.name, model)
    if not facts.known or not facts.price:
        return quote(model)
    return say("own.priced", model=model, input=f"{facts.price.input:g}", output=f"{facts.price.output:g}")


def keep(endpoint: Endpoint, choice: ModelChoice) -> Kept:
    """Puts the key into the keyring, or else keeps it until the program ends. Without a keyring the notes say how to
    pass on the key."""
    settings: list[Setting] = [(("llm", "model"), choice.name)]
    is_in_catalogue = endpoint.name in catalogue({}, os.environ)
    if not is_in_catalogue:
        settings.append((("llm", "endpoints", endpoint.name, "base_url"), endpoint.base_url))
    if choice.key is None:
        return Kept(tuple(settings))
    if may_be_stored(endpoint) and write_keyring(endpoint.name, choice.key.secret):
        return Kept(tuple(settings), (say("own.in_keyring"),))
    keep_in_memory(endpoint.where, choice.key)
    variable = endpoint.key_names[0] if endpoint.key_names else f"{_variable_name(endpoint.name)}_API_KEY"
    if not is_in_catalogue:
        settings.append((("llm", "endpoints", endpoint.name, "key_env"), variable))
    lacks_keyring = may_be_stored(endpoint) and find_spec("keyring") is None
    note = say("own.export_or_keyring" if lacks_keyring else "own.export", variable=variable)
    return Kept(tuple(settings), (note,), variable)


def _name_of(address: str) -> str:
    """Returns a name for the endpoint in the config: the first word of the host, changed where that name is taken."""
    host = re.sub(r"^\w+://", "", address).split("/")[0].split(":")[0]
    word = "" if re.fullmatch(r"[\d.]+", host) else host.split(".")[0].lower()
    name = re.sub(r"[^a-z0-9-]", "", word) or "server"
    return f"my-{name}" if name in catalogue({}, {}) or name in ("local", "scripted", "localhost") else name


def _variable_name(name: str) -> str:
    return re.sub(r"\W", "_", name).upper()


def _about_key(error: DuckflowError) -> bool:
    return error.key.startswith("model.key_")


async def _choose(ask: Ask, title: Phrase, choices: list[Choice], detail: Phrase | None = None) -> str:
    leave_choice = Choice(key=LEAVE, label=say("own.leave"))
    details = (detail,) if detail else ()
    answer = await ask(Question(kind="choice", title=title, details=details, choices=(*choices, leave_choice)))
    if answer.choice not in (choice.key for choice in choices):
        raise OwnModelLeft
    return answer.choice


async def _typed(
    ask: Ask, title: Phrase, problem: Phrase | None, secret: bool = False, takes_access: bool = False
) -> str:
    leave_choice = Choice(key=LEAVE, label=say("own.leave"))
    details = (problem,) if problem else ()
    question = Question(
        kind="text", title=title, details=details, choices=(leave_choice,), secret=secret, takes_access=takes_access
    )
    answer = await ask(question)
    if answer.choice != "text":
        raise OwnModelLeft
    return answer.text.strip()
