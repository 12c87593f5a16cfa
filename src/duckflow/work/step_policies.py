"""How the agent of a step ends its turn: once results show that the step is done, and the user has been answered."""

import re
from collections.abc import Callable, Sequence

from duckflow.agent.policies.policy import Ending, Policy, TurnSoFar
from duckflow.i18n.terms import telling, terms
from duckflow.state.action import RESPOND, succeeded
from duckflow.state.data import say

REMINDERS = 2
"""An agent is reminded at most this many times to answer what the user said to its step."""
LEAST_TELLING = 0.8
"""The weight that a word needs to count as one that the line and the user's words share."""
PASSING = re.compile(r"\d+(?:\.\d+)?\s?m?s\b|0x[0-9a-f]+")
"""A pattern for times and addresses, which differ even when the same failure happens again."""


class StepEnds(Policy):
    """Ends an agent's turn without another request if all calls succeeded and their results show that the step is done.
    A failure goes back to the agent with its cause; the same failure again ends the turn, too."""

    def __init__(self, lacking: Callable[[], str]) -> None:
        """`lacking` returns the parts of the step's criterion that no result shows."""
        self._lacking = lacking
        self._cause = ""
        self._asked_for_proof = False

    async def after(self, turn: TurnSoFar) -> str | Ending | None:
        results = turn.last.done.results
        failed_results = [result for result in results if not succeeded(result)]
        if causes := [result.for_model for result in failed_results if result.effect != "read"]:
            previous_cause, self._cause = self._cause, PASSING.sub("", causes[0])
            return Ending("failed", say("agent.fails_again")) if self._cause == previous_cause else None
        has_acted = not failed_results and any(result.effect not in ("read", "talk") for result in results)
        if not turn.ending and (not has_acted or _more_follows(turn)):
            return None
        lacking_proof = self._lacking()
        if not lacking_proof or self._asked_for_proof:
            return turn.ending or Ending("done")
        self._asked_for_proof = True
        return turn.note("step_not_shown", lacking=lacking_proof)


class AnswersUser(Policy):
    """Keeps a step from ending before its agent has read what the user said to the step, and has answered: in a text,
    or in the line before its last calls, if that line is about the user's words."""

    def __init__(self, unheard: Callable[[], str], words: Callable[[], Sequence[str]]) -> None:
        """`words` returns all that the user has said to the step."""
        self._unheard = unheard
        self._words = words
        self._reminders = 0
        self._has_answered = False
        self._line = ""

    async def ending(self, turn: TurnSoFar, ending: Ending) -> str | None:
        if ending.outcome != "done" or not self._words():
            return None
        self._has_answered = turn.last.done.ran(RESPOND) and not self._unheard()
        self._line = "" if self._unheard() else _about(turn.last.decision.rationale, self._words())
        if self._has_answered or self._line or self._reminders == REMINDERS:
            return None
        self._reminders += not self._unheard()
        return turn.note("step_answer")

    def answer(self, found: str) -> str:
        """Returns the agent's answer to the user; empty if it gave none. `found` is the text with which it ended."""
        return found if self._has_answered else self._line


def _about(line: str, messages: Sequence[str]) -> str:
    """Returns the line if it shares a word that says something with each of the user's messages; otherwise an empty
    text."""
    own_terms = {term for term in terms(line) if telling(term) >= LEAST_TELLING}
    return "" if any(own_terms.isdisjoint(terms(message)) for message in messages) else line


def _more_follows(turn: TurnSoFar) -> bool:
    """Says whether the model itself has said `continue`: calls alone do not mean that more work follows."""
    decision = turn.last.decision
    return decision.next_step == "continue" and "next_step" in decision.declared
