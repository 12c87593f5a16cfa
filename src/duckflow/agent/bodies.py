"""Texts asked for in a reply of their own: bodies of files, on the cached prefix; plans, tasks and reports."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from duckflow.agent.actor import Actor
from duckflow.agent.connection import ModelConnection, Reply
from duckflow.agent.session import Session
from duckflow.agent.settings import AgentSettings
from duckflow.agent.thinker import Thinker
from duckflow.errors import DuckflowError, ReplyUnusable, ToolError
from duckflow.events.types import Noticed
from duckflow.llm.bodies import EDITS, clean_body
from duckflow.llm.provider import Request
from duckflow.pacemaker.repetition import RepeatedLines
from duckflow.prompts.body import is_code
from duckflow.prompts.compile import BodyMoment, Compiler
from duckflow.state.action import Action
from duckflow.state.agent import AgentState
from duckflow.state.message import PromptMessage
from duckflow.state.phrase import say
from duckflow.tools.files.soundness import fault_in
from duckflow.tools.tool import AnyTool

CONTINUATIONS = 2
SCRIPT = "try.py"
SCRIPT_TOKENS = 500


class NotShown:
    """Bodies are not shown while they come: the diff shows them."""

    def feed(self, delta: str) -> str:
        return ""

    def end(self) -> str:
        return ""


class RepetitionGuard(NotShown):
    """A small model's code: one that goes round would do so up to its last token."""

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
    """The text given last, and the request that brought it: what follows can build on the same cached prefix."""

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
        """The complete text. One with a mistake that can be seen without running it is sent back once."""
        state, path = self._session.state, str(action.args.get("path", ""))
        history, profile = await self._thinker.history(state, actor), await self._connection.ready_profile()
        if profile.native_tools and not actor.job_id:
            raise ToolError(f"bad args for {action.operation}: {tool.body} is missing. Call it again with all of it.")
        # A small model is shown the file as it is now; a large one has read it in the conversation.
        current = tool.standing(action.args) if profile.led else ""
        moment = BodyMoment(profile, current, _purpose(state, actor))
        prompt = self._compiler.body(state, history, action, tool.body, moment)
        if tool.body == EDITS:
            return await self._whole(prompt, EDITS)
        text = await self._sound(prompt, path, current)
        self._last = Written(path, prompt, text, current)
        return text

    async def _sound(self, prompt: tuple[PromptMessage, ...], path: str, current: str) -> str:
        text = await self._whole(prompt, path)
        if not (fault := fault_in(path, text, current)):
            return text
        return await self._mend(Written(path, prompt, text, current), fault) or text

    async def _mend(self, written: Written, fault: str) -> str:
        """The text without the mistake, as far as can be seen; nothing when there is one again."""
        path = written.path
        self._session.emit(Noticed(what=say("body.mended", path=path, fault=fault)))
        told = self._compiler.mend(self._session.state.language, f"```\n{written.text}```", path, fault)
        try:
            mended = await self._whole((*written.prompt, *told), path)
        except DuckflowError:
            return ""
        return "" if fault_in(path, mended, written.current) else mended

    async def mended(self, path: str, fault: str) -> str:
        """The text written last, with what a try-out has shown put right; nothing when that did not work."""
        last = self._last
        if last is None or last.path != path or not (text := await self._mend(last, fault)) or text == last.text:
            return ""
        self._last = last._replace(text=text)
        return text

    async def script_for(self, path: str) -> str:
        """A script that tries the text written last, or nothing when that was another file's or a large model's."""
        if self._last is None or self._last.path != path or not (await self._connection.ready_profile()).led:
            return ""
        told = self._compiler.try_out(self._session.state.language, self._last.text, path)
        reply = await self._call((*self._last.prompt, *told), SCRIPT, SCRIPT_TOKENS)
        return clean_body(reply.text, SCRIPT).text if reply.finish == "stop" else ""

    async def _whole(self, prompt: tuple[PromptMessage, ...], kind: str) -> str:
        text, language = "", self._session.state.language
        for _ in range(CONTINUATIONS + 1):
            reply = await self._call(prompt if not text else (*prompt, *self._compiler.go_on(language, text)), kind)
            text += reply.text
            if reply.finish == "refusal":
                raise ToolError("the model refused to write this text", "model.refused_body")
            body = clean_body(text, kind)
            if reply.finish == "stop" and body.text.strip():
                return body.text
        raise ToolError(
            "the text was cut off or empty and nothing was written; write a shorter file, or several small ones",
            "model.body_cut",
        )

    async def _call(self, prompt: tuple[PromptMessage, ...], kind: str, most: int = 0) -> Reply:
        room = most or max(256, min(self._max_tokens, (await self._connection.ready_profile()).window // 2))
        heard = is_code(kind) and (await self._connection.ready_profile()).led
        return await self._connection.call(
            Request(prompt, max_tokens=room), RepetitionGuard if heard else NotShown, "body"
        )


def _purpose(state: AgentState, actor: Actor) -> str:
    """In a job the user's last word is about something else: the plan says what the text is for."""
    return state.plan.goal if actor.job_id and state.plan else ""


class ProcedureCalls:
    """The `think` port of the plan tools."""

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
        profile, settings = await self._connection.ready_profile(), self._settings
        inline = procedure == "tasks" and profile.bodies == "inline"
        room = max(256, min(settings.inline_tokens if inline else settings.plan_tokens, profile.window // 2))
        reply = await self._connection.call(Request(messages, schema=schema, max_tokens=room), NotShown, "body")
        if reply.finish == "refusal":
            raise ReplyUnusable("the model refused")
        return reply.text
