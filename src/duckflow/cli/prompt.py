"""`duckflow prompt`: prints the request for a message. A real first loop runs, but its request is not sent."""

import asyncio
import json
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from duckflow.agent.connection import Connected
from duckflow.agent.session import Session, begin
from duckflow.cli.build import build_conversation
from duckflow.cli.connect import find_model
from duckflow.cli.parser import Options
from duckflow.cli.setup import Setup, facts_of
from duckflow.commands.command import layer_lines
from duckflow.config.load import load
from duckflow.errors import DuckflowError, ModelError
from duckflow.events.types import DecisionMade, PhaseMoved
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words, language_of
from duckflow.llm.facts import DEFAULT_WINDOW
from duckflow.llm.provider import Chunk, Request, WithoutTools
from duckflow.state.action import Decision, TaskProfile
from duckflow.state.data import say
from duckflow.state.phase import Phase
from duckflow.store.paths import Paths
from duckflow.ui.streams import print_err, print_out


@dataclass
class RequestCatcher(WithoutTools):
    """A model that keeps the request and gives an empty reply."""

    model: str = ""
    window: int = DEFAULT_WINDOW
    takes_tools: bool = False
    takes_pictures: bool | None = False
    taken: list[Request] = field(default_factory=list[Request])

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        self.taken.append(request)
        for chunk in ():
            yield chunk
        raise ModelError("model.no_end", model=self.model)

    async def aclose(self) -> None:
        pass


def show_prompt(options: Options, words: Words, paths: Paths) -> int:
    folder = Path.cwd()
    flags = {"language": options.lang, "prompts.profile": options.profile}
    settings = load(paths.user_config, folder, flags).settings
    words.language = language_of(settings.language)
    message = options.message or words("prompt.message")
    # The setup is that of `duckflow -p`, so the same request is shown.
    setup = Setup(settings, paths, folder, words, options.model or "", alone=True)
    return asyncio.run(_show(options, setup, message))


async def _show(options: Options, setup: Setup, message: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        # The files of this conversation are stored in this temporary folder, which is removed afterwards.
        copied_setup = setup._replace(paths=setup.paths._replace(data=Path(folder)))
        _copy_facts(facts_of(setup), facts_of(copied_setup))
        session = begin(Path(folder) / "s.db", "preview", setup.folder, setup.words.language)
        catcher = await _make_catcher(setup, session)
        built_conversation = build_conversation(copied_setup, session, lambda second: _connect(catcher))
        _set_phase(session, Phase(options.step), options.pattern)
        await built_conversation.conversation.say(message)
        if options.json:
            print_out(json.dumps(_as_json(catcher.taken[0]), ensure_ascii=False, indent=1))
        else:
            for prompt_message in catcher.taken[0].messages:
                print_out(plain(f"=== {prompt_message.role} ===\n{prompt_message.text}\n"))
            for tool in catcher.taken[0].tools:
                print_out(plain(f"=== tool {tool.name} ===\n{tool.description}\n{json.dumps(tool.parameters)}\n"))
            print_err("\n".join(layer_lines(await built_conversation.conversation.context(), setup.words)))
        await built_conversation.close()
        session.close()
    return 0


def _set_phase(session: Session, phase: Phase, pattern: Any) -> None:
    if phase is not session.state.phase:
        session.emit(PhaseMoved(source=session.state.phase, target=phase))
    decision = Decision.made_up("preview", [], TaskProfile.GENERAL_CHAT, phase, "done", prompt_pattern=pattern)
    session.emit(DecisionMade(decision=decision))


def _copy_facts(source: Path, target: Path) -> None:
    """Copies the facts from earlier sessions, since they are part of the prompt."""
    if source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())


async def _make_catcher(setup: Setup, session: Session) -> RequestCatcher:
    """Makes a catcher with the name and window of the model that would be used, or of any model if there is none."""
    try:
        provider = (await find_model(setup, session, second=False, needs_weights=False)).provider
    except DuckflowError:
        return RequestCatcher()
    try:
        return RequestCatcher(provider.model, provider.window, provider.takes_tools, provider.takes_pictures)
    finally:
        await provider.aclose()


async def _connect(catcher: RequestCatcher) -> Connected:
    return Connected(catcher, say("model.chosen.flag"))


def _as_json(request: Request) -> dict[str, Any]:
    messages = [{"role": message.role, "content": message.text} for message in request.messages]
    fields = {"messages": messages, "schema": request.schema, "max_tokens": request.max_tokens}
    return fields | ({"tools": [tool._asdict() for tool in request.tools]} if request.tools else {})
