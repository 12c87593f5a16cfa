"""A conversation that runs in another process, as a front end sees it: the same interface as a local one, over a
socket."""

import asyncio
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from duckflow.errors import DuckflowError, Outcome, UsageError
from duckflow.events.event import Event
from duckflow.events.ports import Hear
from duckflow.events.talking import ConversationLeft
from duckflow.events.types import Noticed
from duckflow.events.views import Attachment, ContextPart, JobWish, NextSession, Taken
from duckflow.remote.mirror import Mirror
from duckflow.remote.protocol import HEAR, LEAVE, Link
from duckflow.state.changes import DiffSide, Hunk, LineComment
from duckflow.state.data import Phrase, say
from duckflow.state.mode import OFFERED

ANSWER_SECONDS = 10.0
FIND_SECONDS = 2.0
TRY_SECONDS, TRIES, TRIES_WHILE_MOVING = 0.2, 5, 300
"""The pause between attempts to reconnect, and the number of attempts. There are more while the conversation moves to
another process."""
LEAVES, STAYS = ("quit", "exit"), ("resume", "fork", "new", "clear")
"""Commands that leave only this front end and not the conversation; and commands that only the conversation's own
terminal has."""

Call = Callable[..., asyncio.Future[Any]]


class RemoteWork:
    """The plan and jobs of the remote conversation."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def control(self, wish: JobWish, job_id: str = "") -> None:
        self._call("control", wish=wish, job_id=job_id)

    async def stop_agent(self, agent_id: str) -> None:
        await self._call("stop_agent", agent_id=agent_id)

    async def tell_agent(self, agent_id: str, text: str) -> None:
        await self._call("tell_agent", agent_id=agent_id, text=text)

    async def jobs_over(self, alone: bool = False) -> None:
        await self._call("jobs_over", alone=alone)

    def approve_plan(self, shown: str) -> Awaitable[Outcome]:
        return self._call("approve_plan", shown=shown)


class RemoteReview:
    """The changes of the remote conversation, and the user's review of them."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def hunks(self, turn: int = 0, job: str = "") -> Sequence[Hunk]:
        return [Hunk.model_validate(hunk) for hunk in await self._call("review_hunks", turn=turn, job=job)]

    async def comment(
        self, turn: int, path: str, line: int, text: str, side: DiffSide = "new", job: str = ""
    ) -> LineComment:
        comment = await self._call("review_comment", turn=turn, path=path, line=line, text=text, side=side, job=job)
        return LineComment.model_validate(comment)

    def drop(self, comment_id: str) -> None:
        self._call("review_drop", comment_id=comment_id)

    def mark(self, hunk_id: str, reviewed: bool = True) -> None:
        self._call("review_mark", hunk_id=hunk_id, reviewed=reviewed)

    async def take_back(self, turn: int, path: str, hunk_id: str = "", job: str = "") -> Phrase:
        phrase = await self._call("review_take_back", turn=turn, path=path, hunk_id=hunk_id, job=job)
        return Phrase.model_validate(phrase)

    async def put_back(self, hunk_id: str) -> Phrase:
        return Phrase.model_validate(await self._call("review_put_back", hunk_id=hunk_id))

    async def send(self, text: str = "") -> Outcome:
        return await self._call("review_send", text=text)


class RemoteChoices:
    """The settings of the remote conversation that the user may change."""

    def __init__(self, call: Call, mirror: Mirror) -> None:
        self._call = call
        self._mirror = mirror

    @property
    def mode(self) -> str:
        return self._mirror.mode

    @property
    def modes(self) -> tuple[str, ...]:
        return OFFERED

    def change_mode(self, mode: str) -> None:
        self._call("change_mode", mode=mode)

    async def change_model(self, name: str) -> str:
        return await self._call("change_model", name=name)

    def change_language(self, language: str) -> None:
        self._call("change_language", language=language)

    def rename(self, title: str) -> None:
        self._call("rename", title=title)


class FrontEndExit:
    """The ways to leave a conversation in another process. This front end leaves, and the conversation continues."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._left = asyncio.Event()

    @property
    def left(self) -> bool:
        return self._left.is_set()

    def leave(self, detached: bool = False) -> None:
        if not self.left:
            self._left.set()
            self._mirror.tell(0, ConversationLeft(where="out"))

    async def over(self) -> NextSession | None:
        await self._left.wait()
        return None


class RemoteConversation(Mirror):
    """A conversation in another process. After a broken connection it reconnects and hears the events that it has
    missed. Leaving does not stop the other process."""

    def __init__(self, path: Path, patience: float = ANSWER_SECONDS) -> None:
        super().__init__()
        self._patience = patience
        self._path = path
        self._loop = asyncio.get_running_loop()
        self._link = Link(self._told, self.welcome, self._cut)
        self._attached = self._moves = False
        self.ended = False
        """True if the conversation itself is over, not only this front end."""
        self.work = RemoteWork(self._call)
        self.review = RemoteReview(self._call)
        self.choices = RemoteChoices(self._call, self)
        self.sessions = FrontEndExit(self)

    async def attach(self, after: int | None = None) -> None:
        """Connects. Raises OSError when no process listens, and TimeoutError when a process listens but does not
        answer."""
        link = Link(self._told, self.welcome, self._cut)
        await link.open(self._path)
        self.catching_up = True
        try:
            async with asyncio.timeout(self._patience):
                await link.call(HEAR, after=after)
        except TimeoutError:
            await link.close()
            raise
        except DuckflowError as problem:
            await link.close()
            raise ConnectionError(str(problem)) from problem
        if not link.is_open:
            raise ConnectionError
        self._link, self._attached = link, True

    async def aclose(self) -> None:
        self.close()
        self._call(LEAVE)
        await self._link.close()

    def take(
        self, line: str, question_id: str | None = "", language: str = "", read: str | None = None
    ) -> Awaitable[Taken]:
        name = "" if question_id else _command(line)
        if name in LEAVES:
            self._loop.call_soon(self.sessions.leave)
        if name in (*LEAVES, *STAYS):
            messages = (say("attach.not_here", command=name),) if name in STAYS else ()
            return asyncio.ensure_future(_known(Taken("command", messages)))
        args = {"line": line, "question_id": question_id, "language": language, "read": read}
        return asyncio.ensure_future(_read(self._call("take", **args)))

    async def say(self, text: str, attachments: Sequence[Attachment] = (), *, read: str | None = None) -> Outcome:
        return await self._call("say", text=text, attachments=attachments, read=read)

    def queue(self, text: str, read: str | None = None) -> None:
        self._call("queue", text=text, read=read)

    def answer(self, question_id: str, text: str = "", choice: str = "") -> Awaitable[Taken]:
        return asyncio.ensure_future(_read(self._call("answer", question_id=question_id, text=text, choice=choice)))

    def interrupt(self) -> str:
        self._call("interrupt")
        return "\n".join(message.text for message in self.waiting)

    def hear(self, listener: Hear, after: int | None = None) -> Callable[[], None]:
        return self.listen(listener, after, lambda number: self._call("record", after=number))

    def find_files(self, wanted: str, most: int) -> Sequence[str]:
        async def find() -> list[str]:
            return await self._call("find_files", wanted=wanted, most=most)

        try:
            return asyncio.run_coroutine_threadsafe(find(), self._loop).result(FIND_SECONDS)
        except (DuckflowError, TimeoutError):
            return ()

    async def context(self) -> Sequence[ContextPart]:
        return [ContextPart(*part) for part in await self._call("context")]

    async def diff(self, turn: int) -> str:
        return await self._call("diff", turn=turn)

    async def run_command(self, line: str) -> str:
        name = _command(line)
        if name in LEAVES:
            self.sessions.leave()
            return ""
        if name in STAYS:
            raise UsageError("attach.not_here", command=name)
        return await self._call("run_command", line=line)

    async def run_own(self, command: str, is_typed: bool = False) -> int:
        return await self._call("run_own", command=command, is_typed=is_typed)

    def _call(self, name: str, /, **args: Any) -> asyncio.Future[Any]:
        return self._link.call(name, **args)

    def _told(self, number: int, event: Event) -> None:
        if not isinstance(event, ConversationLeft):
            self.tell(number, event)
        elif event.where == "detached":
            self._moves = True
            self.tell(0, Noticed(what=say("attach.moves")))
        else:
            self._end("attach.left")

    def _cut(self) -> None:
        if self._attached and not self.sessions.left:
            self._attached = False
            self.do(self._come_back())

    async def _come_back(self) -> None:
        for _ in range(TRIES_WHILE_MOVING if self._moves else TRIES):
            try:
                await self.attach(after=self.number)
                self._moves = False
                return
            except OSError:
                await asyncio.sleep(TRY_SECONDS)
        self._end("attach.ended")

    def _end(self, key: str) -> None:
        self.ended = True
        self.tell(0, Noticed(what=say(key, session=self.state.session_id)))
        self.sessions.leave()


def _command(line: str) -> str:
    """Returns the name of the command; empty for a line that is not a command."""
    first_word, *_ = unicodedata.normalize("NFKC", line).split() or [""]
    return first_word.removeprefix("/") if first_word.startswith("/") else ""


async def _known(taken: Taken) -> Taken:
    return taken


async def _read(called: asyncio.Future[Any]) -> Taken:
    meaning, messages, question_id = await called
    return Taken(meaning, tuple(map(Phrase.model_validate, messages)), question_id)
