"""What is on the record of an agent: where it goes on, or how far it came before the program ended."""

from collections.abc import Iterator

from duckflow.agent.session import Session
from duckflow.events.types import ActionFinished, MessageAdded, PastForgotten
from duckflow.events.work import AgentEnded
from duckflow.i18n.template import note
from duckflow.state.action import evidence_of
from duckflow.state.message import Message
from duckflow.state.noun import holds
from duckflow.state.phrase import say
from duckflow.state.sub_agent import AgentReport, SubAgent


def messages_of(session: Session, agent_id: str) -> tuple[Message, ...]:
    """All that was said in its context, but for what the user wanted forgotten."""
    said: list[Message] = []
    for _, event in session.record():
        match event:
            case MessageAdded() if event.message.job == agent_id:
                said.append(event.message.model_copy(update={"job": ""}))
            case PastForgotten() if event.words:
                said = [one for one in said if not holds(one.whole, event.words)]
            case _:
                pass
    return tuple(said)


def mark_interrupted(session: Session) -> str:
    """The agents that were at work when the program ended: they are over, with what they had done. What the model is
    told of them."""
    state = session.state
    cut_off = [agent for agent in state.agents.values() if agent.status == "running"]
    for agent in cut_off:
        report = _so_far(agent, _results_of(session, agent.agent_id))
        session.emit(AgentEnded(agent_id=agent.agent_id, status="interrupted", report=report))
    return note(state.language, "agents_cut_off", agents=", ".join(one.agent_id for one in cut_off)) if cut_off else ""


def _results_of(session: Session, agent_id: str) -> Iterator[ActionFinished]:
    for _, event in session.record():
        if isinstance(event, ActionFinished) and event.job == agent_id:
            yield event


def _so_far(agent: SubAgent, finished: Iterator[ActionFinished]) -> AgentReport:
    changed, evidence = dict[str, None](), list[str]()
    for event in finished:
        changed |= dict.fromkeys(event.result.changed)
        if found := evidence_of(event.result):
            evidence.append(found.text)
    return AgentReport(
        asked=agent.task,
        outcome="interrupted",
        changed=tuple(changed),
        evidence=tuple(evidence[-4:]),
        open=say("agent.cut_off"),
    )
