"""The sessions there are, and the way from this one to another."""

import asyncio
import unicodedata
from collections.abc import Sequence

from duckflow.agent.session import Session
from duckflow.errors import UsageError
from duckflow.events.talking import ConversationLeft
from duckflow.events.views import NextSession, SessionSummary
from duckflow.store.sessions import Sessions


class OtherSessions:
    """Those beside the session one is in. Whoever built the conversation waits for `over`, and builds the next one."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._kept = Sessions(session.path.parent)
        self._left = asyncio.Event()
        self._next: NextSession | None = None

    def all(self) -> Sequence[SessionSummary]:
        return [entry.summary() for entry in self._kept.all()]

    def switch(self, wanted: str) -> None:
        self._refuse_in_turn()
        entry = self._kept.find(unicodedata.normalize("NFKC", wanted).strip())
        if entry.session_id == self._session.state.session_id:
            raise UsageError("resume.same")
        self._leave_for(NextSession(entry.path))

    def fork(self) -> None:
        self._refuse_in_turn()
        if self._session.state.turn == 0:
            raise UsageError("fork.nothing")
        self._leave_for(NextSession(self._session.path, fork=True))

    def leave(self, detached: bool = False) -> None:
        self._leave_for(NextSession(self._session.path, detached=True) if detached else None)

    async def over(self) -> NextSession | None:
        await self._left.wait()
        return self._next

    def _refuse_in_turn(self) -> None:
        if self._session.state.turn_open:
            raise UsageError("resume.busy")

    def _leave_for(self, other: NextSession | None) -> None:
        if not self._left.is_set():
            self._next = other
            self._left.set()
            self._session.emit(ConversationLeft(where="other_session" if other and not other.detached else "out"))
