"""Tools of MCP servers: before a turn the toolbox learns which tools the servers offer, and resources that the message
mentions are read."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from duckflow.agent.policies.material import mentions
from duckflow.agent.policies.policy import Policy, TurnSoFar
from duckflow.agent.session import Session
from duckflow.events.types import MessageAdded, Noticed, Waiting
from duckflow.rpc import RpcError
from duckflow.safety.secrets import mask
from duckflow.state.data import say
from duckflow.state.message import Message
from duckflow.state.picture import Picture
from duckflow.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from duckflow.tools.outside.servers import OutsideServers


class OfferOutsideTools(Policy):
    """Offers the tools of MCP servers. Nothing changes in the middle of a turn: new tools are offered with the next
    one."""

    def __init__(self, session: Session, toolbox: Toolbox, start: "Callable[[], Awaitable[OutsideServers]]") -> None:
        self._session = session
        self._toolbox = toolbox
        self._start = start
        self._blind = ""
        """The name of the model, if it cannot see pictures."""

    async def opening(self, turn: TurnSoFar) -> None:
        servers = await self._start()
        if names := servers.starting:
            self._session.emit(Waiting(why=say("mcp.starting", names=", ".join(names))))
            await servers.first_answers()
        profile = await turn.profile()
        self._blind = "" if profile.images else profile.name
        servers.offer(self._toolbox, profile.window)
        # A file, a program or a server may have written the rest of the request.
        await self.heard(turn.wish)

    async def heard(self, message: str) -> None:
        if "@" not in message and "＠" not in message:
            return
        for mention in mentions(message):
            for source in mention.paths:
                if await self._bring(source):
                    break

    async def after(self, turn: TurnSoFar) -> None:
        """Tells the user if a tool has returned pictures that the model cannot see. The model is told elsewhere."""
        self._tell_blind(any(result.pictures for result in turn.last.done.results))

    async def _bring(self, source: str) -> bool:
        """Quotes a mentioned resource. Says whether the mention names a server; a resource that cannot be read is
        reported."""
        try:
            resource = await (await self._start()).read_resource(source)
        except (RpcError, TimeoutError, ValueError, TypeError, AttributeError) as problem:
            message = f"@{source}: {problem or type(problem).__name__}"
            self._add("system", "", message)
            self._session.emit(Noticed(what=say("mcp.no_resource", source=source, reason=str(problem))))
            return True
        if resource is None:
            return False
        text, _ = mask(resource.text)
        self._add("tool", f"@{source}", text, resource.pictures)
        self._session.emit(Noticed(what=say("mention.attached", path=source, lines=text.count("\n") + 1)))
        self._tell_blind(bool(resource.pictures))
        return True

    def _tell_blind(self, pictures: bool) -> None:
        if pictures and self._blind:
            self._session.emit(Noticed(what=say("model.blind", model=self._blind)))

    def _add(self, role: str, operation: str, text: str, pictures: tuple[Picture, ...] = ()) -> None:
        turn = self._session.state.turn
        fields = {"role": role, "operation": operation, "text": text, "turn": turn, "pictures": pictures}
        self._session.emit(MessageAdded(message=Message.model_validate(fields)))
