"""What a user should see of a session before going on with it."""

from duckflow.commands.plan_tree import plan_tree
from duckflow.i18n.figures import age, turns
from duckflow.i18n.words import Words
from duckflow.state.agent import AgentState
from duckflow.state.message import Message
from duckflow.state.noun import shorten
from duckflow.state.question import Question
from duckflow.store.headline import Headline
from duckflow.tools.toolbox import talk_operations

TITLE = 60
ASKED = 300
REPLIED = 600


def recap(state: AgentState, mode: str, now: float, words: Words) -> list[str]:
    """Made before the conversation is built: that closes the open turn and forgets the open question."""
    last = state.messages[-1].at if state.messages else now
    title = shorten(Headline.of(state).title, TITLE)
    told = words("recap.title", title=title, turns=turns(state.turn, words), age=age(last, now, words))
    lines = [told] if title else []
    if state.forked_from:
        lines.append(words("recap.fork", session=state.forked_from))
    lines += _exchange(state.messages, words)
    if state.turn_open:
        lines.append(words("turn.crashed"))
        cut_off = [one.agent_id for one in state.agents.values() if one.status == "running"]
        lines += [words("agent.interrupted", agent=agent) for agent in cut_off]
    if state.pending_gate:
        lines.append(_open_question(state.pending_gate, words))
    if state.plan and state.plan.status != "completed":
        lines.append(plan_tree(state.plan, words))
    if state.files_changed:
        lines.append(words("status.files", files=", ".join(state.files_changed)))
    if state.mode and state.mode != mode:
        lines.append(words("recap.mode", was=state.mode, mode=mode))
    if state.model:
        lines.append(words("recap.model", model=state.model))
    return lines


def _exchange(messages: list[Message], words: Words) -> list[str]:
    """What the user said last, and what came back."""
    asked = next((place for place in range(len(messages) - 1, -1, -1) if messages[place].role == "user"), None)
    if asked is None:
        return []
    decisions = [message.decision for message in messages[asked:] if message.decision]
    said = [text for decision in decisions for text in decision.said(*talk_operations())]
    lines = [f"› {shorten(messages[asked].text, ASKED)}"]
    return [*lines, shorten(said[-1], REPLIED)] if said else lines


def _open_question(question: Question, words: Words) -> str:
    if question.gate is None:
        return words("recap.duck", question=words.phrase(question.title))
    files = [impact.path for impact in question.gate.impacts]
    wanted = "; ".join((*question.gate.intent, *files)) or ", ".join(question.gate.operations)
    return words("recap.gate", what=shorten(wanted, ASKED))
