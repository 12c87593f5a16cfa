"""The user's review of changes: comments on lines, marks for what was seen, and hunks and files that are taken back."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from duckflow.agent.session import Session
from duckflow.agent.undo import UndoKeeper, hunks_in
from duckflow.errors import DuckflowError, Outcome, UsageError
from duckflow.events.talking import CommentsLeft, HunkMarked, LineCommented
from duckflow.events.views import Attachment
from duckflow.i18n.template import note
from duckflow.safety.secret_diffs import leads_to_secret
from duckflow.safety.secrets import BLOT
from duckflow.state.changes import LATEST, DiffSide, Hunk, LineComment, UndoScope
from duckflow.state.data import Phrase, say

QUOTED = "diff"
"""The name under which the commented lines are quoted beside the message: they are not the user's own words."""


class LineReview:
    """Keeps comments and marks in the session, so that every front end shows the same ones."""

    def __init__(
        self,
        session: Session,
        undo: UndoKeeper,
        send: "Callable[[str, Sequence[Attachment], str], Awaitable[Outcome]]",
    ) -> None:
        """`send` sends a message; its other arguments are the quotations, and the user's own words in the message."""
        self._session = session
        self._undo = undo
        self._send = send

    async def hunks(self, turn: int = 0, job: str = "") -> Sequence[Hunk]:
        if not turn and not job:
            author = (await self._undo.diff(LATEST)).authors[-1]
            turn, job = author.turn, author.job
        versions = await self._undo.versions(UndoScope(job=job) if job else UndoScope(turn=turn))
        return hunks_in(turn, job, versions)

    async def comment(
        self, turn: int, path: str, line: int, text: str, side: DiffSide = "new", job: str = ""
    ) -> LineComment:
        quotes = (hunk.line(line, side) for hunk in await self.hunks(turn, job) if hunk.path == path)
        quote = next((quote for quote in quotes if quote is not None), None)
        if quote is None or not text.strip():
            raise UsageError("comment.no_line", place=f"{path}:{line}")
        comment = LineComment(
            turn=turn, job=job, path=path, line=line, side=side, text=text.strip(), quote=quote.rstrip("\r")
        )
        self._session.emit(LineCommented(comment=comment))
        return comment

    def drop(self, comment_id: str) -> None:
        if any(comment.comment_id == comment_id for comment in self._session.state.comments):
            self._session.emit(CommentsLeft(comment_ids=(comment_id,), sent=False))

    def mark(self, hunk_id: str, reviewed: bool = True) -> None:
        if (hunk_id in self._session.state.reviewed) != reviewed:
            self._session.emit(HunkMarked(hunk_id=hunk_id, reviewed=reviewed))

    async def take_back(self, turn: int, path: str, hunk_id: str = "", job: str = "") -> Phrase:
        self._refuse_in_turn()
        hunks = [hunk for hunk in await self.hunks(turn, job) if hunk.path == path]
        hunk = next((hunk for hunk in hunks if hunk.hunk_id == hunk_id), None)
        if hunk_id and hunk is None:
            raise DuckflowError("comment.hunk_gone", path=path)
        if hunk and not hunk.whole:
            await self._undo.move_hunk(hunk, back=True)
            return say("comment.taken_back", path=path)
        scope = UndoScope(job=job, paths=(path,)) if job else UndoScope(turn=turn, paths=(path,))
        undo_result = await self._undo.restore(True, True, scope)
        if not undo_result.changed:
            raise DuckflowError("comment.hunk_gone", path=path)
        return say("comment.file_taken_back", path=path)

    async def put_back(self, hunk_id: str) -> Phrase:
        self._refuse_in_turn()
        hunk = next((hunk for hunk in self._session.state.taken_back if hunk.hunk_id == hunk_id), None)
        if hunk is None:
            raise UsageError("comment.not_taken_back")
        await self._undo.move_hunk(hunk, back=False)
        return say("comment.put_back", path=hunk.path)

    async def send(self, text: str = "") -> Outcome:
        comments = sorted(self._session.state.comments, key=lambda comment: (comment.path, comment.line))
        if not comments:
            raise UsageError("comment.none")
        language = self._session.state.language
        lines = [f"- {_place(comment)}: {comment.text}" for comment in comments]
        message = "\n".join([*([text.strip()] if text.strip() else []), note(language, "comments"), *lines])
        folder = Path(self._session.state.folder)
        quotes = "\n".join(
            f"{_place(comment)}: {BLOT if leads_to_secret(comment.path, folder) else comment.quote}"
            for comment in comments
        )
        wish = "\n".join([text, *(comment.text for comment in comments)]).strip()
        self._session.emit(CommentsLeft(comment_ids=tuple(comment.comment_id for comment in comments), sent=True))
        return await self._send(message, (Attachment(QUOTED, quotes),), wish)

    def _refuse_in_turn(self) -> None:
        if self._session.state.turn_open:
            raise UsageError("undo.busy")


def _place(comment: LineComment) -> str:
    return f"{comment.path}:{'-' if comment.side == 'old' else ''}{comment.line}"
