"""Asks the model for texts in separate replies: contents of files, plans, tasks and reports. A request for a file's
content usually begins like other requests, so that the endpoint's cache helps."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from duckflow.agent.actor import Actor
from duckflow.agent.connection import ModelConnection
from duckflow.agent.session import Session
from duckflow.agent.settings import AgentSettings
from duckflow.agent.thinker import Thinker
from duckflow.errors import DuckflowError, ReplyUnusable, ToolError
from duckflow.events.types import Noticed
from duckflow.forms.bodies import EDITS, clean_body
from duckflow.llm.provider import Reply, Request
from duckflow.pacemaker.detectors import RepeatedLines
from duckflow.prompts.compact import is_code
from duckflow.prompts.compile import BodyMoment, Compiler
from duckflow.state.action import Action
from duckflow.state.agent import AgentState
from duckflow.state.data import say
from duckflow.state.message import PromptMessage
from duckflow.tools.files.soundness import fault_in
from duckflow.tools.tool import AnyTool

CONTINUATIONS = 2


class NotShown:
    """Shows nothing of a file's text while it streams in, because the diff shows it later."""

    def feed(self, delta: str) -> str:
        return ""

    def end(self) -> str:
        return ""


class RepetitionGuard(NotShown):
    """Stops a reply with code that repeats its lines: the model would go on repeating them up to its last token."""

    def __init__(self) -> None:
        self._rounds = RepeatedLines()

    def feed(self, delta: str) -> str:
        if self._rounds.hear(delta):
            raise ToolError(
                "the text repeated itself over and over and nothing was written; put a loop or a table in its place",
                "model.body_round",
            )
        return ""


class Written(NamedTuple):
    """The text that the model wrote last, with its request, so that the next request can reuse the cached prefix."""

    path: str
    prompt: tuple[PromptMessage, ...]
    text: str
    current: str


class Bodies:
    """Gets a file's content or an edit from the model."""

    def __init__(
        self, session: Session, connection: ModelConnection, compiler: Compiler, thinker: Thinker, max_tokens: int
    ) -> None:
        self._session = session
        self._connection = connection
        self._compiler = compiler
        self._thinker = thinker
        self._max_tokens = max_tokens
        self._last: Written | None = None

    async def ask_for(self, action: Action, tool: AnyTool, actor: Actor) -> str:
        """Asks the model for the text that an action still needs: a file's content, or edits. A text with a mistake
        that can be seen without running it is sent back once."""
        state, path = self._session.state, str(action.args.get("path", ""))
        history, model = await self._thinker.history(state, actor), await self._connection.ready()
        current_text = tool.standing(action.args)
        moment = BodyMoment(model.form.for_texts(), model.profile, current_text, _purpose(state, actor))
        prompt = self._compiler.body(state, history, action, tool.body, moment)
        if tool.body == EDITS:
            return await self._whole(prompt, EDITS)
        text = await self._sound(prompt, path, current_text)
        self._last = Written(path, prompt, text, current_text)
        return text

    async def _sound(self, prompt: tuple[PromptMessage, ...], path: str, current: str) -> str:
        text = await self._whole(prompt, path)
        if not (fault := fault_in(path, text, current)):
            return text
        return await self._mend(Written(path, prompt, text, current), fault) or text

    async def _mend(self, written: Written, fault: str) -> str:
        """Returns the text without the mistake; an empty text if the model's new text has a visible mistake too."""
        path = written.path
        self._session.emit(Noticed(what=say("body.mended", path=path, fault=fault)))
        request = self._compiler.mend(self._session.state.language, f"```\n{written.text}```", path, fault)
        try:
            mended_text = await self._whole((*written.prompt, *request), path)
        except DuckflowError:
            return ""
        return "" if fault_in(path, mended_text, written.current) else mended_text

    def last_for(self, path: str) -> Written | None:
        """Returns the text that the model wrote last, if it was written for this file."""
        return self._last if self._last and self._last.path == path else None

    async def mended(self, path: str, fault: str) -> str:
        """Asks the model for its last text again, without the fault that a try-out has shown. Returns an empty text if
        the model wrote no better one."""
        last_body = self.last_for(path)
        if last_body is None or not (text := await self._mend(last_body, fault)) or text == last_body.text:
            return ""
        self._last = last_body._replace(text=text)
        return text

    async def _whole(self, prompt: tuple[PromptMessage, ...], kind: str) -> str:
        text, language = "", self._session.state.language
        for _ in range(CONTINUATIONS + 1):
            reply = await self.call(prompt if not text else (*prompt, *self._compiler.go_on(language, text)), kind)
            text += reply.text
            if reply.broke_off:
                raise ToolError("the model refused to write this text", "model.refused_body")
            cleaned_body = clean_body(text, kind)
            if reply.finish == "stop" and cleaned_body.text.strip():
                return cleaned_body.text
        raise ToolError(
            "the text was cut off or empty and nothing was written; write a shorter file, or several small ones",
            "model.body_cut",
        )

    async def call(self, prompt: tuple[PromptMessage, ...], kind: str, most: int = 0) -> Reply:
        """Returns one plain reply of at most `most` tokens; 0 means the usual limit. `kind` is `edits` or the name of
        the file. If the text is code, a reply that repeats its lines is stopped."""
        token_limit = most or max(256, min(self._max_tokens, (await self._connection.ready()).profile.window // 2))
        guard = RepetitionGuard if is_code(kind) else NotShown
        return await self._connection.call(Request(prompt, max_tokens=token_limit), guard, "body")


def _purpose(state: AgentState, actor: Actor) -> str:
    """Returns the plan's goal for a job, since the user's last message may be about something else."""
    return state.plan.goal if actor.job_id and state.plan else ""


class ProcedureCalls:
    """Implements the `think` port, by which the plan tools ask the model for a text."""

    def __init__(
        self, state: AgentState, connection: ModelConnection, compiler: Compiler, settings: AgentSettings
    ) -> None:
        self._state = state
        self._connection = connection
        self._compiler = compiler
        self._settings = settings

    async def think(
        self, procedure: str, values: Mapping[str, str], schema: dict[str, Any], failures: Sequence[tuple[str, str]]
    ) -> str:
        messages = self._compiler.procedure(self._state, procedure, dict(values), failures)
        window, settings = (await self._connection.ready()).profile.window, self._settings
        most_tokens = settings.inline_tokens if procedure == "tasks" else settings.plan_tokens
        token_limit = max(256, min(most_tokens, window // 2))
        reply = await self._connection.call(Request(messages, schema=schema, max_tokens=token_limit), NotShown, "body")
        if reply.broke_off:
            raise ReplyUnusable("the model refused")
        if reply.finish == "length":
            raise ReplyUnusable(
                "it was cut off; make it shorter, and leave long texts out: they are asked for one by one"
            )
        return reply.text
