"""One conversation in an editor: prompts go in, updates and permission requests come out."""

import asyncio
import re
import unicodedata
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import SplitResult, unquote, urlsplit

from duckflow.editor.questions import Asker
from duckflow.editor.tool_calls import Update, fenced
from duckflow.editor.updates import Updates, in_editor
from duckflow.errors import OUTCOMES, DuckflowError, Outcome
from duckflow.events.ports import Conversation
from duckflow.events.types import Event
from duckflow.events.views import Attachment
from duckflow.i18n.words import Words, facts_of, languages
from duckflow.rpc import BAD_PARAMS, INTERNAL, Peer, RpcError
from duckflow.view.items import ChosenItem, Item, QuestionItem, TurnItem
from duckflow.view.view import View

AUTO = "auto"
"""The value that stands for the model while no model is connected: Duckflow will look for one."""


def mode_state(conversation: Conversation, words: Words) -> dict[str, Any]:
    """Returns the modes in the protocol's older form, for editors that do not know config options yet."""
    modes = [
        {"id": value, "name": value, "description": description} for value, description in _modes(conversation, words)
    ]
    return {"currentModeId": str(conversation.choices.mode), "availableModes": modes}


def config_options(conversation: Conversation, models: Sequence[str], words: Words) -> list[dict[str, Any]]:
    current_model = conversation.state.model or AUTO
    model_names = list(dict.fromkeys([current_model, *models]))
    descriptions = {AUTO: words("init.choice.model.auto")}
    return [
        _select("mode", words("editor.mode"), str(conversation.choices.mode), _modes(conversation, words)),
        _select(
            "model", words("editor.model"), current_model, [(name, descriptions.get(name, "")) for name in model_names]
        ),
        _select("language", words("editor.language"), words.language, _languages()),
    ]


async def choose(conversation: Conversation, option: str, value: str) -> bool:
    """Sets an option, and says whether it exists."""
    match option:
        case "mode":
            conversation.choices.change_mode(value)
        case "model":
            if value not in (AUTO, conversation.state.model):
                await conversation.choices.change_model(value)
        case "language":
            conversation.choices.change_language(value)
        case _:
            return False
    return True


def _modes(conversation: Conversation, words: Words) -> list[tuple[str, str]]:
    """Returns the modes to choose from, including the current one even if it cannot be chosen otherwise."""
    offered_modes = dict.fromkeys(map(str, (*conversation.choices.modes, conversation.choices.mode)))
    return [(mode, words(f"init.choice.mode.{mode}").removeprefix(f"{mode}: ")) for mode in offered_modes]


def _languages() -> list[tuple[str, str]]:
    return [(language, facts_of(language).name) for language in languages()]


def _select(option: str, name: str, now: str, values: Sequence[tuple[str, str]]) -> dict[str, Any]:
    offered_values = [
        {"value": value, "name": value} | ({"description": description} if description else {})
        for value, description in values
    ]
    # Only these two options have a category that every editor knows.
    category = {"category": option} if option in ("mode", "model") else {}
    return {"id": option, "name": name, **category, "type": "select", "currentValue": now, "options": offered_values}


UNQUOTED = re.compile(r'["\x00-\x1f\x85\u2028\u2029]')
"""Characters that a mention in quotation marks cannot hold."""
AT_SIGN = re.compile(r"(?<![A-Za-z0-9_./+-])[@＠]")


class Prompt(NamedTuple):
    """The user's words, the texts and pictures that came with the words, and names of blocks that were refused."""

    text: str
    attachments: tuple[Attachment, ...]
    refused: tuple[str, ...]
    has_links: bool = False
    """True if names of files stand in the text that the user has not typed."""


def read_prompt(blocks: Any, root: Path) -> Prompt:
    """Reads a prompt. A link to a file of the work folder becomes a mention, so that the file is read like any
    other."""
    if not isinstance(blocks, list):
        raise RpcError(BAD_PARAMS, "prompt must be a list of content blocks")
    words, attachments, refused_names, has_links = list[str](), list[Attachment](), list[str](), False
    for block in cast("list[Any]", blocks):
        if not isinstance(block, dict):
            raise RpcError(BAD_PARAMS, "a content block is an object")
        fields = cast("dict[str, Any]", block)
        kind = str(fields.get("type", ""))
        if kind == "text":
            words.append(str(fields.get("text", "")))
        elif kind == "resource_link" and _split(uri := str(fields.get("uri", ""))).scheme:
            words.append(f" {_mention(uri, root)} ")
            has_links = True
        elif kind == "resource" and isinstance(resource := fields.get("resource"), dict):
            resource_fields = cast("dict[str, Any]", resource)
            name = _name(str(resource_fields.get("uri", "")), root)
            if isinstance(text := resource_fields.get("text"), str):
                words.append(f" {_no_mention(name)} ")
                attachments.append(Attachment(name, text))
            else:
                refused_names.append(name)
        elif kind == "image" and isinstance(picture_data := fields.get("data"), str) and picture_data:
            name = _name(str(fields.get("uri") or ""), root) or f"picture-{len(attachments) + 1}"
            attachments.append(Attachment(name, data=picture_data))
        else:
            refused_names.append(kind or "?")
    return Prompt("".join(words).strip(), tuple(attachments), tuple(refused_names), has_links)


def _mention(uri: str, root: Path) -> str:
    name = _name(uri, root)
    if "://" in name or UNQUOTED.search(name):
        return _no_mention(name)
    return f'@"{name}"' if " " in name or "@" in name else f"@{name}"


def _no_mention(name: str) -> str:
    """Returns a name in brackets, in which nothing reads as a mention: whoever named a file must not point at another
    one. Because of the brackets, no name begins like a command or reads as an answer."""
    plain_name = UNQUOTED.sub("\ufffd", AT_SIGN.sub("\ufffd", name))
    return f"[{plain_name}]"


def _name(uri: str, root: Path) -> str:
    """Returns the path of a file in the work folder; for any other URI the URI itself."""
    url_parts = _split(uri)
    if url_parts.scheme != "file":
        return uri
    path = Path(unquote(url_parts.path))
    for root_folder in (root, root.resolve()):
        if path.is_relative_to(root_folder):
            return str(path.relative_to(root_folder))
    return str(path)


def _split(uri: str) -> SplitResult:
    """Returns the parts of a URI; of one that cannot be read, nothing but its path."""
    try:
        return urlsplit(uri)
    except ValueError:
        return SplitResult("", "", uri, "", "")


OWN_WAYS = frozenset({"quit", "exit", "resume", "fork", "new", "clear"})
"""Commands that leave a conversation. They are not offered, because an editor has its own ways for that."""
SET_UP_NEEDED = -32000
"""The protocol's error after which an editor offers the `authMethods`: here `duckflow acp init` in a terminal."""
NO_MODEL = ("model.none_found", "local.no_weights", "model.key_missing")
STOP_REASONS: dict[Outcome, str] = {"interrupted": "cancelled", "budget": "max_tokens"}


class HeldConversation(NamedTuple):
    """A conversation that was opened for an editor: its words, models that can be named, and a function that closes
    it."""

    conversation: Conversation
    words: Words
    models: Sequence[str]
    close: Callable[[], Awaitable[None]]
    notes: tuple[str, ...] = ()
    """Texts that the user should see before anything else."""


class EditorSession:
    """One session. `root` is the editor's path of the work folder; `notify` sends an update to the editor."""

    def __init__(self, held: HeldConversation, root: Path, peer: Peer, notify: Callable[[str, Update], None]) -> None:
        self._held = held
        self._conversation = held.conversation
        self._words = held.words
        self._root = root
        self._peer = peer
        self._notify = notify
        self._updates = Updates(held.conversation, held.words, root, self.options)
        self._view = View(held.conversation.state)
        self._asker = Asker(held.conversation, held.words, root, self._say, self.cancel)
        self._turns: set[asyncio.Task[Outcome]] = set()
        self._commands_running: set[asyncio.Task[None]] = set()
        self._why = ""
        self._lacks_model = False
        self._past = False
        self._unhear: Callable[[], None] = lambda: None

    @property
    def session_id(self) -> str:
        return self._conversation.state.session_id

    def options(self) -> list[Update]:
        return config_options(self._conversation, self._held.models, self._words)

    def choices(self) -> dict[str, Any]:
        """Returns the modes and options for the answer to a new or loaded session."""
        return {"modes": mode_state(self._conversation, self._words), "configOptions": self.options()}

    def announce(self) -> None:
        """Sends the commands, the first notes, and the open questions. This follows the answer to a new or loaded
        session."""
        self._send(self._commands())
        for note in self._held.notes:
            self._say(note)
        for question in self._conversation.questions:
            self._asker.ask(question, self._request)

    def listen(self, from_start: bool) -> None:
        """Starts sending updates. With `from_start`, the whole past is sent first, in the order in which it
        happened."""
        self._unhear()
        self._past = from_start
        self._view = View(self._conversation.state)
        self._unhear = self._conversation.hear(self._hear, 0 if from_start else None)
        self._past = False
        if from_start:
            self._send(self._updates.at_rest())

    async def choose(self, option: str, value: str) -> None:
        try:
            if not await choose(self._conversation, option, value):
                raise RpcError(BAD_PARAMS, f"unknown option {option}")
        except DuckflowError as problem:
            raise RpcError(BAD_PARAMS, self._words.error(problem)) from None

    async def prompt(self, blocks: Any) -> dict[str, Any]:
        """Carries out a prompt. Returns the result when the turn has ended, or when a question needs the user's
        words."""
        prompt = read_prompt(blocks, self._root)
        for refused_name in prompt.refused:
            self._say(self._words("editor.refused", what=refused_name))
        waited_turns = set(self._turns)
        if not await self._asker.answered_by(prompt.text):
            turn = asyncio.create_task(self._carry_out(prompt))
            self._turns.add(turn)
            turn.add_done_callback(self._turns.discard)
            waited_turns = {turn}
        turn_outcome = await self._ended(waited_turns) if waited_turns else "done"
        if OUTCOMES[turn_outcome].kind == "failed":
            raise RpcError(SET_UP_NEEDED if self._lacks_model else INTERNAL, self._why)
        return {"stopReason": STOP_REASONS.get(turn_outcome, "end_turn"), "usage": self._usage()}

    async def _ended(self, turns: set[asyncio.Task[Outcome]]) -> Outcome:
        """Returns the outcome of the first turn that ends; `pending_user` when a question needs the user's words."""
        words_task = asyncio.create_task(self._asker.words_wanted.wait())
        try:
            await asyncio.wait({*turns, words_task}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            words_task.cancel()
        ended_turn = next((turn for turn in turns if turn.done()), None)
        return ended_turn.result() if ended_turn else "pending_user"

    def cancel(self) -> None:
        """Stops the turn and the commands."""
        self._conversation.interrupt()
        for command in self._commands_running:
            command.cancel()

    async def close(self) -> None:
        self.cancel()
        if self._turns:
            await asyncio.wait(set(self._turns))
        self._unhear()
        self._asker.close()
        await self._held.close()

    async def _carry_out(self, prompt: Prompt) -> Outcome:
        text, attachments = prompt.text, prompt.attachments
        match "message" if attachments else self._conversation.reads_as(text):
            case "nothing":
                return "done"
            case "command":
                return await self._interruptible(self._run_command(unicodedata.normalize("NFKC", text)))
            case "own_command" if not prompt.has_links:
                return await self._interruptible(self._run_own(text[1:].strip()))
            case _:
                # To a shell, the name of a linked file would be words of the command.
                return await self._conversation.say(text, attachments)

    async def _interruptible(self, work: Coroutine[Any, Any, None]) -> Outcome:
        """Runs a command of the user beside the turns, so that `cancel` can stop it."""
        command = asyncio.create_task(work)
        self._commands_running.add(command)
        try:
            await asyncio.wait({command})
        finally:
            self._commands_running.discard(command)
        if command.cancelled():
            return "interrupted"
        command.result()
        return "done"

    async def _run_command(self, line: str) -> None:
        name = line.split()[0][1:]
        if name in OWN_WAYS:
            self._say(self._words("editor.own_way", name=name))
        elif shown_text := await self._conversation.run_command(line):
            self._say(fenced(shown_text) if "\n" in shown_text else shown_text)

    async def _run_own(self, command: str) -> None:
        self._send(self._updates.own_command(command))
        await self._conversation.run_own(command, is_typed=True)

    def _usage(self) -> dict[str, int]:
        usage = self._conversation.state.usage
        return {
            "inputTokens": usage.prompt_tokens,
            "outputTokens": usage.completion_tokens,
            "cachedReadTokens": usage.cached_tokens,
            "totalTokens": usage.prompt_tokens + usage.completion_tokens,
        }

    def _hear(self, number: int, event: Event) -> None:
        for item in self._view.hear(number, event):
            self._draw(item)

    def _draw(self, item: Item) -> None:
        language = self._words.language
        self._send(self._updates.of(item, live=not self._past))
        match item:
            case QuestionItem(closed=False, question=question) if question and not self._past:
                self._asker.ask(question, self._request)
            case QuestionItem(closed=True):
                self._asker.closed(item.id)
            case TurnItem(outcome=outcome) if outcome:
                why = item.why
                self._why = self._words.phrase(in_editor(why)) if why else self._words(OUTCOMES[outcome].key)
                self._lacks_model = bool(item.why and item.why.key in NO_MODEL)
            case ChosenItem() if self._words.language != language:
                self._send(self._commands())
            case _:
                pass

    def _request(self, params: dict[str, Any]) -> Coroutine[Any, Any, Any]:
        return self._peer.request("session/request_permission", {"sessionId": self.session_id, **params})

    def _say(self, text: str) -> None:
        self._send(self._updates.say(text))

    def _send(self, updates: Sequence[Update]) -> None:
        for update in updates:
            self._notify(self.session_id, update)

    def _commands(self) -> list[Update]:
        offered_commands: list[Update] = []
        for command in self._conversation.commands:
            if command.name in OWN_WAYS:
                continue
            command_fields: Update = {"name": command.name, "description": self._words.phrase(command.help)}
            offered_commands.append(
                command_fields | ({"input": {"hint": " | ".join(command.words)}} if command.words else {})
            )
        return [{"sessionUpdate": "available_commands_update", "availableCommands": offered_commands}]
