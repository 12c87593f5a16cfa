"""Stands between a decision and its changes: grades, and asks where the mode says so."""

from collections.abc import Sequence
from dataclasses import dataclass

from duckflow.agent.session import Session
from duckflow.events.ports import Ask
from duckflow.events.types import GateAnswered, GateOpened
from duckflow.safety.gate import gate_question
from duckflow.safety.policy import Mode, judge
from duckflow.safety.risk import grade
from duckflow.state.action import Action
from duckflow.state.question import Answer, Preview, Risk


@dataclass(frozen=True, slots=True)
class Planned:
    """A change that is about to happen."""

    action: Action
    preview: Preview


ALLOWED = Answer(choice="yes")


class Gatekeeper:
    """One question for all changes of a list that need one."""

    def __init__(self, session: Session, ask: Ask, mode: Mode) -> None:
        self.mode = mode
        self._session = session
        self._ask = ask

    async def clear(self, changes: Sequence[Planned], rationale: str, doubtful: bool) -> Answer:
        """`yes`, or `no` with the reason."""
        risks: list[Risk] = [grade(True, change.preview) for change in changes]
        verdicts = [judge(self.mode, risk, doubtful) for risk in risks]
        if "refuse" in verdicts:
            return Answer(choice="no", text=f"mode {self.mode} is read-only: nothing may be changed")
        asked = [index for index, verdict in enumerate(verdicts) if verdict == "ask"]
        if not asked:
            return ALLOWED
        question = gate_question(
            [changes[index].action for index in asked],
            [changes[index].preview for index in asked],
            [risks[index] for index in asked],
            rationale,
            doubtful,
        )
        self._session.emit(GateOpened(question=question))
        answer = await self._ask(question)
        self._session.emit(GateAnswered(question_id=question.question_id, answer=answer))
        return answer
