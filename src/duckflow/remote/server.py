"""Serves a conversation on a socket, to any number of front ends."""

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from duckflow.errors import DuckflowError
from duckflow.events.ports import InnerConversation
from duckflow.events.talking import NowChanged
from duckflow.events.types import Event
from duckflow.events.views import Attachment
from duckflow.remote.protocol import (
    HEAR,
    LEAVE,
    LONGEST_LINE,
    WELCOME,
    OfferedCommand,
    Welcome,
    event_line,
    listen_at,
)
from duckflow.rpc import BAD_PARAMS, INTERNAL, Peer, RpcError, line_of
from duckflow.state.agent import AgentState

PAGE = 200
MESSAGES = 40
UNREAD = 16 * 1024 * 1024
"""The most bytes that may wait for a front end. A front end that reads too slowly is cut off; it can reconnect and ask
for the events it missed."""
LINGER_SECONDS = 10.0
"""Seconds in which a front end that was cut off may reconnect."""
Args = dict[str, Any]


class FrontEnd:
    """A connected front end. Its running calls continue after it has left."""

    def __init__(self, writer: asyncio.StreamWriter, answer: "Callable[[FrontEnd, str, Args], Awaitable[Any]]") -> None:
        self.writer = writer
        self.hears = self.leaves = False
        self.peer = Peer(lambda message: self.send(line_of(message, _plain)), partial(answer, self), _ignore)

    def send(self, line: bytes) -> None:
        if self.writer.is_closing():
            return
        self.writer.write(line)
        if self.writer.transport.get_write_buffer_size() > UNREAD:
            self.writer.transport.abort()


class ConversationServer:
    """One conversation with any number of front ends. Every front end sees the input of all of them."""

    def __init__(self, conversation: InnerConversation, terminal: bool = False) -> None:
        self._conversation = conversation
        self._terminal = terminal
        self._front_ends: set[FrontEnd] = set()
        self._answering: set[asyncio.Task[Any]] = set()
        self._moved = asyncio.Event()
        self._cut_at = float("-inf")
        self._server: asyncio.Server | None = None
        self._unhear = conversation.hear(self._tell)
        self._calls: dict[str, Callable[..., Any]] = {
            "take": conversation.take,
            "say": self._say,
            "queue": conversation.queue,
            "answer": conversation.answer,
            "interrupt": conversation.interrupt,
            "run_command": conversation.run_command,
            "run_own": conversation.run_own,
            "find_files": self._find_files,
            "change_mode": conversation.choices.change_mode,
            "change_model": conversation.choices.change_model,
            "change_language": conversation.choices.change_language,
            "rename": conversation.choices.rename,
            "control": conversation.work.control,
            "stop_agent": conversation.work.stop_agent,
            "tell_agent": conversation.work.tell_agent,
            "approve_plan": conversation.work.approve_plan,
            "jobs_over": conversation.work.jobs_over,
            "record": self._record,
            "context": self._context,
            "diff": conversation.diff,
            "review_hunks": conversation.review.hunks,
            "review_comment": conversation.review.comment,
            "review_drop": conversation.review.drop,
            "review_mark": conversation.review.mark,
            "review_take_back": conversation.review.take_back,
            "review_put_back": conversation.review.put_back,
            "review_send": conversation.review.send,
        }

    async def serve(self, path: Path, expecting: bool = False) -> None:
        """Serves until `close` is called. `expecting` means that a front end is about to connect."""
        if expecting:
            self._cut_at = asyncio.get_running_loop().time()
        self._server = await asyncio.start_unix_server(self._talk, sock=listen_at(path), limit=LONGEST_LINE)

    def close(self) -> None:
        """Closes all connections. The front ends have got every event by then."""
        self._unhear()
        if self._server:
            self._server.close()
        for front_end in list(self._front_ends):
            front_end.writer.close()

    async def until_alone(self) -> None:
        """Waits until no front end is connected, and none may reconnect in a moment."""
        while True:
            self._moved.clear()
            seconds_left = self._cut_at + LINGER_SECONDS - asyncio.get_running_loop().time()
            if not self._front_ends and seconds_left <= 0:
                return
            try:
                async with asyncio.timeout(None if self._front_ends else seconds_left):
                    await self._moved.wait()
            except TimeoutError:
                pass

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        front_end = FrontEnd(writer, self._answer)
        self._front_ends.add(front_end)
        try:
            while line := await reader.readline():
                front_end.peer.take_line(line)
        except (OSError, ValueError, asyncio.CancelledError):
            pass
        finally:
            self._front_ends.discard(front_end)
            if front_end.hears and not front_end.leaves:
                self._cut_at = asyncio.get_running_loop().time()
            self._moved.set()
            writer.close()

    async def _answer(self, front_end: FrontEnd, name: str, args: Args) -> Any:
        self._keep_running()
        try:
            if name == HEAR:
                return await self._welcome(front_end, **args)
            if name == LEAVE:
                front_end.leaves = True
                return None
            call_result = self._calls[name](**args)
            return await call_result if inspect.isawaitable(call_result) else call_result
        except DuckflowError as problem:
            raise RpcError(INTERNAL, problem.key, {"key": problem.key, "values": problem.values}) from None
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise RpcError(BAD_PARAMS, f"{type(problem).__name__}: {problem}") from None

    def _keep_running(self) -> None:
        """Stores a reference to the running task, because the event loop has only a weak one, and the front end may
        leave."""
        if task := asyncio.current_task():
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def _welcome(self, front_end: FrontEnd, after: int | None = None) -> None:
        """Sends the stored events after that number, then the present state, then all new events. There is no gap,
        since nothing can happen between the last empty page and the welcome."""
        conversation = self._conversation
        while after is not None and (page := list(islice(conversation.record(after), PAGE))):
            for number, event in page:
                front_end.send(event_line(number, event))
            after = page[-1][0]
            await front_end.writer.drain()
        welcome = Welcome(
            number=conversation.number,
            state=_without_past(conversation.state),
            questions=conversation.questions,
            now=NowChanged(
                in_turn=conversation.in_turn,
                busy=conversation.busy,
                waiting=conversation.waiting,
                health_bar=conversation.health_bar(),
            ),
            mode=conversation.choices.mode,
            commands=tuple(
                OfferedCommand(name=command.name, help=command.help, words=tuple(map(str, command.words)))
                for command in conversation.commands
            ),
            process=os.getpid(),
            terminal=self._terminal,
        )
        front_end.peer.notify(WELCOME, welcome.model_dump(mode="json"))
        front_end.hears = True

    def _tell(self, number: int, event: Event) -> None:
        hearing_front_ends = [front_end for front_end in self._front_ends if front_end.hears]
        if hearing_front_ends:
            line = event_line(number, event)
            for front_end in hearing_front_ends:
                front_end.send(line)

    def _say(self, text: str, attachments: Sequence[Sequence[str]] = (), read: str | None = None) -> Awaitable[str]:
        return self._conversation.say(text, [Attachment(*attachment) for attachment in attachments], read=read)

    def _find_files(self, wanted: str, most: int) -> Awaitable[Sequence[str]]:
        return asyncio.to_thread(self._conversation.find_files, wanted, most)

    async def _context(self) -> list[tuple[str, int, int]]:
        return [(part.name, part.tokens, part.budget) for part in await self._conversation.context()]

    def _record(self, after: int) -> list[dict[str, Any]]:
        """Returns a page of stored events."""
        page = islice(self._conversation.record(after), PAGE)
        return [{"number": number, "kind": event.kind, "event": event} for number, event in page]


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json")


def _ignore(method: str, params: Args) -> None:
    """Ignores notifications: a front end only sends calls."""


def _without_past(state: AgentState) -> AgentState:
    jobs = {key: job.model_copy(update={"messages": []}) for key, job in state.jobs.items()}
    return state.model_copy(update={"messages": state.messages[-MESSAGES:], "jobs": jobs})
