"""The files that a request names are read before a small model is asked: it is spared the question what to read."""

from pathlib import Path

from duckflow.agent.actor import Actor
from duckflow.agent.dispatcher import Dispatcher
from duckflow.agent.led.errand import errand
from duckflow.agent.policies.policy import Guidance, Policy, TurnSoFar
from duckflow.forms.form import Reading
from duckflow.safety.secrets import secret_name
from duckflow.state.action import READ_FILE, Action, Decision, TaskProfile
from duckflow.state.phase import Phase


class ReadNamedFiles(Policy):
    """Reads what is there and is no secret. A request that only wants files read is then told to be answered."""

    def __init__(self, dispatcher: Dispatcher, actor: Actor) -> None:
        self._actor = actor
        self._dispatcher = dispatcher
        self._read: list[str] = []

    async def opening(self, turn: TurnSoFar) -> None:
        self._read = []
        names, folder = errand(turn.request).names, Path(turn.state.folder)
        if there := [name for name in names if not secret_name(name) and (folder / name).is_file()]:
            await self._dispatcher.run(_reading(turn, there), self._actor)
            self._read = there

    async def before(self, turn: TurnSoFar) -> Guidance | None:
        first = not turn.loops and turn.state.plan is None
        if not first or not self._read or errand(turn.request).writes:
            return None
        return Guidance(turn.note("files_given", files=", ".join(self._read)))


def _reading(turn: TurnSoFar, names: list[str]) -> Reading:
    why = turn.note("files_named")
    actions = [Action(operation=READ_FILE, args={"path": name}, reasoning=why) for name in names]
    return Reading(Decision.made_up(why, actions, TaskProfile.FILE_OPERATION, Phase.PLANNING))
