"""The policies that lead a small model."""

from duckflow.agent.actor import Actor
from duckflow.agent.bodies import Bodies
from duckflow.agent.dispatcher import Dispatcher
from duckflow.agent.led.answered import AnswerEnds
from duckflow.agent.led.asked_summary import AskedSummary
from duckflow.agent.led.named_files import ReadNamedFiles
from duckflow.agent.led.owed_files import OwedFiles
from duckflow.agent.led.tryout import TryOut
from duckflow.agent.led.wanted_plan import HoldToPlan
from duckflow.agent.phases import Phases
from duckflow.agent.policies.policy import Policy


def leading_policies(dispatcher: Dispatcher, bodies: Bodies, actor: Actor, phases: Phases) -> tuple[Policy, ...]:
    """In this order: a try-out comes before what looks at its result."""
    return (
        HoldToPlan(),
        ReadNamedFiles(dispatcher, actor),
        TryOut(dispatcher, bodies, actor),
        OwedFiles(phases),
        AskedSummary(),
        AnswerEnds(phases),
    )
