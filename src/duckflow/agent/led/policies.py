"""The policies that guide a small model, in the order in which they run. The short ones are defined here."""

import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from duckflow.agent.actor import Actor
from duckflow.agent.bodies import Bodies
from duckflow.agent.dispatcher import Dispatcher
from duckflow.agent.led.errand import PATH, errand, greets
from duckflow.agent.led.owed_parts import OwedParts, held_to
from duckflow.agent.led.parts import parts
from duckflow.agent.led.plain_answer import PlainAnswer
from duckflow.agent.led.tryout import Trial, TryOut
from duckflow.agent.phases import Phases
from duckflow.agent.policies.policy import Ending, Guidance, Policy, TurnSoFar
from duckflow.forms.form import ParsedReply
from duckflow.i18n.words import search
from duckflow.safety.secrets import secret_name
from duckflow.safety.workspace import Workspace
from duckflow.state.action import PROPOSE_PLAN, READ_FILE, RESPOND, Action, Decision, Operation, TaskProfile
from duckflow.state.agent import AgentState
from duckflow.state.message import last_request
from duckflow.state.phase import Phase
from duckflow.tools.plan.folder import WorkFolder, command_for_tests


class ReadNamedFiles(Policy):
    """Reads the files that a request names, if they exist and are not secret. If the request only wants files to be
    read, the model is then told to answer."""

    def __init__(self, dispatcher: Dispatcher, actor: Actor) -> None:
        self._actor = actor
        self._dispatcher = dispatcher
        self._read: list[str] = []

    async def opening(self, turn: TurnSoFar) -> None:
        self._read = []
        names, folder = errand(turn.request, turn.state.language).names, Path(turn.state.folder)
        if existing_names := [name for name in names if not secret_name(name) and (folder / name).is_file()]:
            await self._dispatcher.run(_reading(turn, existing_names), self._actor)
            self._read = existing_names

    async def before(self, turn: TurnSoFar) -> Guidance | None:
        is_first_loop = not turn.loops and turn.state.plan is None
        if not is_first_loop or not self._read or errand(turn.request, turn.state.language).writes:
            return None
        if any(part.kind in ("look", "deed") for part in parts(turn.wish, turn.state.language).owed):
            return None
        return Guidance(turn.note("files_given", files=", ".join(self._read)))


def _reading(turn: TurnSoFar, names: list[str]) -> ParsedReply:
    why = turn.note("files_named")
    actions = [Action(operation=READ_FILE, args={"path": name}, reasoning=why) for name in names]
    return ParsedReply(Decision.made_up(why, actions, TaskProfile.FILE_OPERATION, Phase.PLANNING))


class HoldToPlan(Policy):
    """Lets a small model do nothing but propose a plan as its first action, if the user wants a plan."""

    async def before(self, turn: TurnSoFar) -> Guidance | None:
        if turn.loops or not wants_plan(turn.state):
            return None
        return Guidance(turn.note("plan_wanted"), partial(_held_to_planning, state=turn.state))


def wants_plan(state: AgentState) -> bool:
    """Says whether the user asks for a plan and there is none yet. The word "plan" in a file's name does not count."""
    plan_wish = search("requests.wants_plan", re.sub(PATH, "", last_request(state.messages)), state.language)
    return state.plan is None and plan_wish is not None


def _held_to_planning(operations: Iterable[Operation], state: AgentState) -> list[Operation]:
    """Returns only the operation that proposes a plan, with the user's request as its text: a small model would put it
    in worse words."""
    request = last_request(state.messages)
    return [held_to(operation, text=[request]) for operation in operations if operation.name == PROPOSE_PLAN]


class AnswerEnds(Policy):
    """Ends the turn with the answer if the user only asks a question or greets: a small model would only talk on."""

    def __init__(self, phases: Phases) -> None:
        self._phases = phases

    async def before(self, turn: TurnSoFar) -> Guidance | None:
        """Offers only an answer to a greeting. Otherwise a small model would look for the file that the prompt names as
        an example."""
        if turn.loops or not greets(turn.request, turn.state.language):
            return None
        return Guidance("", _answering)

    async def after(self, turn: TurnSoFar) -> Ending | None:
        dispatched, request, language = turn.last.done, turn.request, turn.state.language
        if dispatched.stop or not dispatched.ran(RESPOND):
            return None
        if not errand(request, language).only_asks and not greets(request, language):
            return None
        self._phases.finish()
        return Ending("done")


def _answering(operations: Sequence[Operation]) -> list[Operation]:
    return [operation for operation in operations if operation.name == RESPOND]


def leading_policies(
    dispatcher: Dispatcher, bodies: Bodies, actor: Actor, phases: Phases, workspace: Workspace
) -> tuple[Policy, ...]:
    """Returns the policies in their order: a try-out comes before the policies that look at its result."""
    trial, plain_answer = Trial(dispatcher, bodies, actor), PlainAnswer(dispatcher, bodies, actor)
    return (
        HoldToPlan(),
        ReadNamedFiles(dispatcher, actor),
        TryOut(bodies, trial),
        OwedParts(trial, plain_answer, actor, phases, partial(command_for_tests, WorkFolder(workspace))),
        AnswerEnds(phases),
    )
