"""Keeps what the user has said at Gates (questions before risky actions) and still holds: a no with a wish, and the
limit of a yes."""

from duckflow.agent.actor import Actor
from duckflow.agent.session import Session
from duckflow.events.types import ChangesLimited, Noticed
from duckflow.i18n.template import note
from duckflow.state.data import say
from duckflow.state.question import Answer
from duckflow.tools.tool import ChangeLimit


class SaidAtGates:
    """Keeps what still holds, whoever was at work when the user said it: the model chooses who acts.

    After a no with a wish, what is proposed next is asked about, even if a rule allows it, until the user says yes or,
    in the conversation, says something else. After a limited yes, changes of other files are asked about, even if the
    mode or a rule allows them, until the user allows more than one action, sets another limit or takes the limit away.
    Commands run where nothing else can be changed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._refused_in: dict[str, int] = {}
        """The turn of the user's no, by the id of the job whose Gate it was; the conversation has none."""

    def hear(self, actor: Actor, allowed: bool, answer: Answer) -> None:
        turn = self._session.state.turn
        if allowed:
            others = {job_id: refused for job_id, refused in self._refused_in.items() if refused != turn}
            self._refused_in = {job_id: refused for job_id, refused in others.items() if job_id != actor.job_id}
        elif answer.choice == "no" and answer.text:
            self._refused_in[actor.job_id] = turn
        if answer.choice in ("session", "always"):
            self.lift()
        elif answer.limit:
            self._session.emit(ChangesLimited(names=answer.limit))
            actor.emit(Noticed(what=say("gate.limited", limit=", ".join(answer.limit))))

    def owes(self, actor: Actor) -> bool:
        """Says whether the user has refused something, and is to be asked about what comes in its place."""
        refused_now = self._session.state.turn in self._refused_in.values()
        return refused_now or (bool(actor.job_id) and actor.job_id in self._refused_in)

    def limit(self) -> ChangeLimit | None:
        """Returns the limit that holds in this session."""
        state, limit = self._session.state, ChangeLimit(self._session.state.limited_to)
        return limit._replace(note=note(state.language, "limited", limit=limit.shown)) if limit.names else None

    def lift(self) -> None:
        """Takes the limit away, because the user wants it."""
        if self._session.state.limited_to:
            self._session.emit(ChangesLimited(names=()))

    def limit_for(self, actor: Actor) -> ChangeLimit | None:
        """Returns what the actor may change unasked, if there is a limit. A command that the user typed has none."""
        return None if actor.for_user else self.limit()
