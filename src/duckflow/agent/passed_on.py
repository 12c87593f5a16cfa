"""Gives the conversation what the user said to it at the Gate of a job (the question before a risky action)."""

from collections.abc import Callable

from duckflow.agent.session import Session
from duckflow.events.talking import WordsPassedOn
from duckflow.events.types import Event, MessageAdded, Noticed
from duckflow.i18n.template import note
from duckflow.state.data import Phrase, shorten
from duckflow.state.message import Message

LONGEST_ASKED = 200


class PassedOnWords:
    """Takes words that were passed on from a Gate as if they were typed with no question open. The model is also told
    what the job had asked, because the words may point at it."""

    def __init__(
        self, session: Session, aside: Callable[[str], tuple[Phrase, ...] | None], hear: Callable[[str], None]
    ) -> None:
        """`aside` answers a line about running work; `hear` takes a message."""
        self._session = session
        self._aside = aside
        self._hear = hear
        session.subscribe(self._pass_on, WordsPassedOn)

    def _pass_on(self, event: Event) -> None:
        if not isinstance(event, WordsPassedOn):
            return
        question, gate, state = event.question, event.question.gate, self._session.state
        what = ("; ".join(gate.commands) or ", ".join(impact.path for impact in gate.impacts)) if gate else ""
        if (replies := self._aside(event.text)) is not None:
            for phrase in replies:
                self._session.emit(Noticed(what=phrase))
            return
        key, job = "gate_rest" if event.answered else "gate_rest_open", question.job_name or question.job
        text = note(state.language, key, job=job, what=shorten(what, LONGEST_ASKED))
        self._session.emit(MessageAdded(message=Message(role="system", text=text, turn=state.turn)))
        self._hear(event.text)
