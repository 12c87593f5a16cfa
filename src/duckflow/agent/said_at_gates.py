"""Keeps what the user has said at Gates (questions before risky actions) and still holds: a no with a wish, and the
limit of a yes."""

from duckflow.agent.actor import Actor
from duckflow.agent.narrow_yes import within
from duckflow.agent.session import Session
from duckflow.events.types import Noticed
from duckflow.i18n.template import note
from duckflow.state.data import say
from duckflow.state.question import Answer
from duckflow.tools.tool import ChangeLimit


class SaidAtGates:
    """Keeps what still holds, by the id of the job whose Gate it was; the id is empty for the conversation.

    After a no with a wish, what the model proposes next is asked about, even if a rule allows it, until the user says
    yes or, in the conversation, says something else. After a limited yes, changes of other files are asked about, even
    if the mode or a rule allows them, until the user allows more than one action or takes the limit away. Commands run
    where nothing else can be changed. The limit of the conversation also holds for jobs."""

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

    def limits(self) -> tuple[ChangeLimit, ...]:
        """Returns the limits that hold, each once."""
        return tuple(ChangeLimit(names) for names in dict.fromkeys(self._limits.values()))

    def lift(self, limit: ChangeLimit) -> None:
        """Takes a limit away, because the user wants it."""
        self._limits = {job_id: names for job_id, names in self._limits.items() if names != limit.names}

    def limit_for(self, actor: Actor) -> ChangeLimit | None:
        """Returns what the actor may change unasked: what every limit that holds for it names. Returns None if no limit
        holds. A command that the user typed has none."""
        held = [names for job_id in dict.fromkeys((actor.job_id, "")) if (names := self._limits.get(job_id))]
        if not held or actor.for_user:
            return None
        names = tuple(name for names in held for name in names if all(within(name, other) for other in held))
        limit = ChangeLimit(tuple(dict.fromkeys(names)))
        return limit._replace(note=note(self._session.state.language, "limited", limit=limit.shown))
