"""Keeps what the user has said at Gates (questions before risky actions) and still holds: a no with a wish, and the
limit of a yes."""

from collections.abc import Sequence
from pathlib import Path

from duckflow.agent.actor import Actor
from duckflow.agent.gate_question import written_by
from duckflow.agent.narrow_yes import within
from duckflow.agent.session import Session
from duckflow.events.types import Noticed
from duckflow.state.data import Phrase, say
from duckflow.state.question import Answer, FileImpact


class SaidAtGates:
    """Keeps what still holds, by the id of the job whose Gate it was; the id is empty for the conversation.

    After a no with a wish, what the model proposes next is asked about, even if a rule allows it, until the user says
    yes or, in the conversation, says something else. After a limited yes, edits of other files, and commands that name
    others as what they write, are asked about, even if the mode or a rule allows them, until the user allows more than
    one action. The limit of the conversation also holds for jobs."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._refused_in: dict[str, int] = {}
        """The turn of the user's no."""
        self._limits: dict[str, tuple[str, ...]] = {}
        """The files and folders that the user named."""

    def hear(self, actor: Actor, allowed: bool, answer: Answer) -> None:
        if allowed:
            self._refused_in.pop(actor.job_id, None)
        elif answer.choice == "no" and answer.text:
            self._refused_in[actor.job_id] = self._session.state.turn
        if answer.choice in ("session", "always"):
            self._limits.pop(actor.job_id, None)
            self._limits.pop("", None)
        elif answer.limit:
            self._limits[actor.job_id] = answer.limit
            actor.emit(Noticed(what=say("gate.limited", limit=", ".join(answer.limit))))

    def owes(self, actor: Actor) -> bool:
        """Says whether the user has refused something, and is to be asked about what comes in its place."""
        turn = self._refused_in.get(actor.job_id)
        return turn is not None and (bool(actor.job_id) or turn == self._session.state.turn)

    def limit_against(self, impacts: Sequence[FileImpact], command: str, job_id: str) -> Phrase | None:
        """Returns the reason to ask about changes of these files, or of those that the command names as what it
        writes, if a limit speaks against them."""
        limits = [limit for limit_id in {job_id, ""} if (limit := self._limits.get(limit_id))]
        if not limits:
            return None
        paths = [impact.path for impact in impacts]
        paths += written_by(command, Path(self._session.state.folder)) if command else []
        broken = [limit for limit in limits if any(not within(path, limit) for path in paths)]
        return say("risk.limited", limit=", ".join(broken[0])) if broken else None
