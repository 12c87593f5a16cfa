"""The first run: without a key and a model, it explains the ways to get a model and offers the local one."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

from duckflow.agent.session import Session
from duckflow.errors import DuckflowError, ModelError, ProviderRefused, ProviderUnreachable
from duckflow.events.ports import Ask
from duckflow.events.talking import LineOffered
from duckflow.events.types import Event, MessagesSetAside, Noticed, Waiting
from duckflow.llm.discover import BY_ITSELF, NO_MODEL, ModelChoice
from duckflow.llm.endpoints import TYPED, Key
from duckflow.state.data import said, say
from duckflow.state.question import Answer, Question
from duckflow.state.question import Choice as Way
from duckflow.store.paths import Paths

MB, GB = 10**6, 10**9
KEY_WANTED = ("model.key_missing", "model.key_missing_alone", "model.key_refused_typed")
Result = TypeVar("Result")
Search = Callable[[Mapping[str, Key]], Awaitable[ModelChoice]]
"""A function that looks for a model, with the keys that the user has typed so far."""


class Stopped(Exception):
    """The user has stopped waiting for the download. The next download continues where this one stopped."""


async def find_with_weights(search: Search, paths: Paths, session: Session, ask: Ask | None) -> ModelChoice:
    """Finds a model, and downloads its weights if they are missing. The user is asked before the download, and only
    while a message waits for the model. If no message waits, an error says that the user will be asked. Where `ask` is
    None, nobody can be asked, and the error says what to do instead."""

    async def ask_in_turn(question: Question) -> Answer:
        return await _while_turn_lasts(ask(question), session) if ask else Answer(choice="no")

    unready_key = "first_run.model_later" if ask and not session.state.turn_open else NO_MODEL
    try:
        choice = await (
            _with_key(search, paths, session, ask_in_turn)
            if ask
            else _accepted(await search({}), False, paths, session)
        )
    except ProviderUnreachable as problem:
        if problem.key != NO_MODEL:
            raise
        if not session.state.turn_open:
            raise ProviderUnreachable(unready_key) from None
        from duckflow.llm.settings import DEFAULT_MODEL

        choice = ModelChoice("embedded", DEFAULT_MODEL, say(BY_ITSELF))
    if choice.kind != "embedded":
        return choice
    from duckflow.llm.local.runtime import install_runtime, runtime_missing
    from duckflow.llm.local.weights import Weights

    weights = Weights(paths.models, os.environ)
    weights_file = weights.holding(choice.model)
    model, is_downloaded = weights_file.model, weights_file.complete
    if is_downloaded and not runtime_missing():
        return choice
    chosen_automatically = choice.why.key == BY_ITSELF
    answer = Answer(choice="no")
    if ask and session.state.turn_open:
        answer = await _ask_way(ask_in_turn, f"{model.size / GB:.1f}", runtime_missing(), chosen_automatically)
    if ask and answer.choice not in ("fetch", "no"):
        return await _own(answer, ask, paths, session)
    if answer.choice != "fetch":
        if ask and session.state.turn_open:
            unready_key = _left(session)
        problem_key = unready_key if chosen_automatically else "local.no_weights"
        raise ProviderUnreachable(problem_key, name=choice.model, path=str(paths.models))
    if runtime_missing():
        session.emit(Waiting(why=say("first_run.installing")))
        await install_runtime()
    if not is_downloaded:
        path = await _pull(lambda progress: weights.pull(choice.model, progress), session)
        session.emit(Noticed(what=say("models.ready", name=choice.model, path=str(path))))
    return choice


async def _with_key(search: Search, paths: Paths, session: Session, ask: Ask) -> ModelChoice:
    """Finds a model, with a key where its endpoint wants one. The user is asked for the key only while a message waits
    for the model."""
    typed_keys: dict[str, Key] = {}
    while True:
        try:
            return await _accepted(await search(typed_keys), bool(typed_keys), paths, session)
        except ProviderRefused as problem:
            if problem.key not in KEY_WANTED:
                raise
            endpoint = str(problem.values["endpoint"])
            if not session.state.turn_open:
                raise ProviderRefused("first_run.key_later", endpoint=endpoint) from None
            from duckflow.cli.init.own_model import OwnModelLeft, typed_key

            prompt = said(problem) if typed_keys else say("own.wants_key")
            try:
                typed_keys[endpoint] = await typed_key(ask, str(problem.values["where"]), prompt)
            except OwnModelLeft:
                _left(session)
                raise problem from None


async def _accepted(choice: ModelChoice, key_is_new: bool, paths: Paths, session: Session) -> ModelChoice:
    """Returns the choice if its endpoint accepts it without a key or with the key that was just typed, which is then
    stored."""
    if choice.endpoint and choice.key is None:
        from duckflow.llm.discover import CHECK_SECONDS, fetch_models
        from duckflow.llm.failures import key_refused

        if choice.endpoint.key_needed:
            raise key_refused(choice.endpoint, None)
        try:
            await fetch_models(choice.endpoint, None, CHECK_SECONDS)
        except ModelError as problem:
            if problem.key in KEY_WANTED:
                raise
    if choice.endpoint and key_is_new and choice.key_source == TYPED:
        from duckflow.cli.doctor.model import try_out
        from duckflow.cli.init.own_model import keep
        from duckflow.config.settings import Settings

        await try_out(choice, Settings(), paths)
        kept = await asyncio.to_thread(keep, choice.endpoint, choice)
        for phrase in kept.notes:
            session.emit(Noticed(what=phrase))
    return choice


def _left(session: Session) -> str:
    """Puts the message that has no model back into the line. Returns the key of the sentence that says so."""
    messages = session.state.messages
    if message := next((message for message in reversed(messages) if message.role == "user"), None):
        session.emit(MessagesSetAside(first=messages.index(message), last=len(messages)))
        session.emit(LineOffered(text=message.text))
    return "first_run.left"


def require_weights(name: str, paths: Paths) -> None:
    from duckflow.llm.local.weights import Weights

    if Weights(paths.models, os.environ).path(name) is None:
        raise ProviderUnreachable("local.no_weights", name=name, path=str(paths.models))


async def _while_turn_lasts(work: Coroutine[Any, Any, Result], session: Session) -> Result:
    """Returns the result of the work, which is stopped when the turn is interrupted. The search for a model goes on
    after the turn, and the next line that the user types must not become an answer to a question of this turn."""
    task = asyncio.ensure_future(work)

    def hear(_event: Event) -> None:
        if not session.state.turn_open:
            task.cancel()

    stop_hearing = session.subscribe(hear)
    try:
        return await task
    except asyncio.CancelledError:
        if session.state.turn_open:
            raise
        raise ProviderUnreachable(_left(session)) from None
    finally:
        stop_hearing()


async def _ask_way(ask: Ask, gigabytes: str, runtime: bool, chosen_automatically: bool) -> Answer:
    """Asks how to get a model for the message. If the user has named the local model, only that is offered."""
    from duckflow.cli.init.own_model import OWN

    label = say("first_run.fetch_all" if runtime else "first_run.fetch", gigabytes=gigabytes)
    ways_to_model = (
        *(OWN if chosen_automatically else ()),
        Way(key="fetch", label=label),
        Way(key="no", label=say("first_run.no")),
    )
    title, about_phrase = say("first_run.title"), say("first_run.about")
    question = Question(
        kind="choice",
        title=title,
        details=(about_phrase,),
        choices=ways_to_model,
        takes_access=chosen_automatically,
    )
    return await ask(question)


async def _own(answer: Answer, ask: Ask, paths: Paths, session: Session) -> ModelChoice:
    """Sets up the model that the user names, with the key that they type, and saves it in the config."""
    from duckflow.cli.init.own_model import OwnModelLeft, find_own_model, from_home, save_settings

    try:
        asking = find_own_model(answer, ask, paths, lambda phrase: session.emit(Waiting(why=phrase)))
        own_model = await _while_turn_lasts(asking, session)
    except OwnModelLeft:
        raise ProviderUnreachable(_left(session)) from None
    save_settings(own_model.kept.settings, paths)
    for phrase in (
        *own_model.kept.notes,
        say("own.saved", model=own_model.choice.name, path=from_home(paths.user_config)),
    ):
        session.emit(Noticed(what=phrase))
    return own_model.choice


async def _pull(pull: Callable[[Callable[[int, int, str], None]], Path], session: Session) -> Path:
    """Downloads in a daemon thread, which does not delay the end of the program. It stops when the turn is over."""
    loop = asyncio.get_running_loop()
    path_future: asyncio.Future[Path] = loop.create_future()
    stop_event = threading.Event()

    def progress(fetched: int, total: int, stage: str) -> None:
        if stop_event.is_set() or not session.state.turn_open:
            raise Stopped
        message = say(
            "first_run.fetching",
            done=fetched // MB,
            total=total // MB,
            percent=100 * fetched // max(total, 1),
            bar=_bar(fetched / max(total, 1)),
        )
        loop.call_soon_threadsafe(session.emit, Waiting(why=message))

    def work() -> None:
        try:
            path = pull(progress)
            loop.call_soon_threadsafe(_settle, path_future, path, None)
        except (DuckflowError, Stopped) as problem:
            loop.call_soon_threadsafe(_settle, path_future, None, problem)

    threading.Thread(target=work, daemon=True).start()
    try:
        return await path_future
    except Stopped:
        raise ProviderUnreachable("first_run.stopped") from None
    finally:
        stop_event.set()


def _settle(done: asyncio.Future[Path], path: Path | None, problem: Exception | None) -> None:
    if done.done():
        return
    if problem or path is None:
        done.set_exception(problem or Stopped())
    else:
        done.set_result(path)


def _bar(share: float, width: int = 20) -> str:
    filled_width = int(share * width)
    return "█" * filled_width + "░" * (width - filled_width)
