"""Bodies: the raw text an action needs, asked for in a plain follow-up reply on the cached prefix."""

from duckflow.agent.calls import Caller, Reply
from duckflow.agent.session import Session
from duckflow.agent.thinker import Thinker
from duckflow.errors import ToolError
from duckflow.llm.bodies import clean_body
from duckflow.llm.provider import Request
from duckflow.prompts.compile import Compiler
from duckflow.state.action import Action
from duckflow.state.operation import Operation
from duckflow.state.prompt import PromptMessage

CONTINUATIONS = 2


class Hidden:
    """Bodies are not shown while they come: the diff shows them."""

    def feed(self, delta: str) -> str:
        return ""


class Bodies:
    """Gets a file's content or an edit from the model."""

    def __init__(self, session: Session, caller: Caller, compiler: Compiler, thinker: Thinker, max_tokens: int) -> None:
        self._session = session
        self._caller = caller
        self._compiler = compiler
        self._thinker = thinker
        self._max_tokens = max_tokens

    async def ask_for(self, action: Action, operation: Operation) -> str:
        state = self._session.state
        history, profile = await self._thinker.history(state), await self._thinker.profile()
        prompt = self._compiler.body(state, history, action, operation, profile)
        kind = operation.body if operation.body == "edits" else str(action.args.get("path", ""))
        text = ""
        for _ in range(CONTINUATIONS + 1):
            reply = await self._call(prompt if not text else (*prompt, *self._compiler.go_on(state.language, text)))
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

    async def _call(self, prompt: tuple[PromptMessage, ...]) -> Reply:
        room = max(256, min(self._max_tokens, (await self._caller.ready()).window // 2))
        return await self._caller.call(Request(prompt, max_tokens=room), Hidden, "body")
