"""Tools of others: before a turn the toolbox says what their servers offer; what is mentioned of theirs is read."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from duckflow.agent.policies.policy import Policy, TurnSoFar
from duckflow.agent.session import Session
from duckflow.events.types import MessageAdded, Noticed, Waiting
from duckflow.rpc import RpcError
from duckflow.safety.secrets import mask
from duckflow.state.message import Message
from duckflow.state.phrase import say
from duckflow.state.picture import Picture
from duckflow.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from duckflow.tools.outside.servers import OutsideServers


class OfferOutsideTools(Policy):
    """In the middle of a turn nothing changes: what comes up then is there with the next one."""

    def __init__(self, session: Session, toolbox: Toolbox, start: "Callable[[], Awaitable[OutsideServers]]") -> None:
        self._session = session
        self._toolbox = toolbox
        self._start = start
        self._blind = ""
        """The name of the model, where it cannot see."""

    async def opening(self, turn: TurnSoFar) -> None:
        servers = await self._start()
        if names := servers.starting:
            self._session.emit(Waiting(why=say("mcp.starting", names=", ".join(names))))
            await servers.first_answers()
        profile = await turn.profile()
        self._blind = "" if profile.images else profile.name
        servers.offer(self._toolbox, profile.window)
        await self.heard(turn.request)

    async def heard(self, said: str) -> None:
        if "@" not in said and "＠" not in said:
            return
        from duckflow.agent.request_rules import mentions

        for mention in mentions(said):
            for source in mention.paths:
                if await self._bring(source):
                    break

    async def after(self, turn: TurnSoFar) -> None:
        """The model is told by itself that it cannot see; so is the user."""
        self._tell_blind(any(one.pictures for one in turn.last.done.results))

    async def _bring(self, source: str) -> bool:
        """Whether it names a server; a resource that cannot be read is told of."""
        try:
            found = await (await self._start()).read_resource(source)
        except (RpcError, TimeoutError, ValueError, TypeError, AttributeError) as problem:
            told = f"@{source}: {problem or type(problem).__name__}"
            self._add("system", "", told)
            self._session.emit(Noticed(what=say("mcp.no_resource", source=source, reason=str(problem))))
            return True
        if found is None:
            return False
        text, _ = mask(found.text)
        self._add("tool", f"@{source}", text, found.pictures)
        self._session.emit(Noticed(what=say("mention.attached", path=source, lines=text.count("\n") + 1)))
        self._tell_blind(bool(found.pictures))
        return True

    def _tell_blind(self, pictures: bool) -> None:
        if pictures and self._blind:
            self._session.emit(Noticed(what=say("model.blind", model=self._blind)))

    def _add(self, role: str, operation: str, text: str, pictures: tuple[Picture, ...] = ()) -> None:
        turn = self._session.state.turn
        given = {"role": role, "operation": operation, "text": text, "turn": turn, "pictures": pictures}
        self._session.emit(MessageAdded(message=Message.model_validate(given)))
