"""A conversation over a socket: several front ends see the same, and a cut connection comes back."""

import asyncio
import stat
from pathlib import Path

import pytest

from duckflow.agent.session import Session
from duckflow.cli.build import BuiltConversation
from duckflow.errors import DuckflowError
from duckflow.events import talking
from duckflow.events import types as happened
from duckflow.events.types import MessageAdded
from duckflow.llm.scripted import Line
from duckflow.remote.conversation import RemoteConversation
from duckflow.remote.protocol import Link, connect_to, listen_at
from duckflow.remote.server import ConversationServer
from duckflow.rpc import line_of
from duckflow.state.message import Message
from tests.journeys.plans import PROPOSE, SNAKE, report, run_step, when, write_tasks
from tests.journeys.story import act, decide, respond
from tests.journeys.test_front_door import HELLO, FrontEnd, host, opened

WRITE = decide(act("file_ops.write_file", path="a.txt", content="one\n"), respond("Written."))
MANY = 2000


class Served:
    """A conversation on a socket, and the front ends that have joined it."""

    def __init__(self, top: Path, *replies: Line) -> None:
        self.session: Session = opened(top)
        self.built: BuiltConversation = host(top, self.session, replies)
        self.server = ConversationServer(self.built.conversation)
        self.path = top / ("deep" * 30) / "s.sock"
        self._joined: list[RemoteConversation] = []

    async def __aenter__(self) -> "Served":
        self.path.parent.mkdir()
        await self.server.serve(self.path)
        return self

    async def __aexit__(self, *_: object) -> None:
        for remote in self._joined:
            await remote.aclose()
        self.server.close()
        await self.built.close()
        self.session.close()

    async def join(self, after: int | None = None, path: Path | None = None) -> FrontEnd:
        remote = RemoteConversation(path or self.path)
        await remote.attach()
        self._joined.append(remote)
        return FrontEnd(remote, after)

    def kept(self) -> list[int]:
        return [number for number, _ in self.session.record()]


class Cable:
    """A proxy between a front end and the conversation, which can be cut at any byte."""

    def __init__(self, path: Path, target: Path) -> None:
        self._path = path
        self._target = target
        self._ends: list[asyncio.StreamWriter] = []
        self.cuts = 0

    async def lay(self) -> asyncio.Server:
        return await asyncio.start_unix_server(self._carry, self._path)

    def cut(self) -> None:
        self.cuts += bool(self._ends)
        for end in self._ends:
            end.transport.abort()
        self._ends.clear()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(sock=connect_to(self._target))
        self._ends += [writer, back]
        await asyncio.gather(_pump(reader, back), _pump(there, writer), return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(3000):
        writer.write(data)
        await writer.drain()
    writer.close()


async def test_two_front_ends_on_the_socket_see_the_same(tmp_path: Path) -> None:
    work = [when("content of game.py", "x = 1\n"), when("has ended", report())]
    replies = [WRITE, PROPOSE, SNAKE, run_step(1), write_tasks("game.py"), *work]
    async with Served(tmp_path, *replies) as served:
        assert stat.S_IMODE(served.path.stat().st_mode) == 0o600
        one, two = await served.join(after=0), await served.join(after=0)
        port = one.port
        assert {command.name for command in port.commands} >= {"plan", "tasks", "undo"}
        assert (await port.take("write a.txt")).meaning == "message"
        gate = await one.asked()
        assert gate == await two.asked() and gate.gate and "+one" in gate.gate.diff, "the whole question"
        assert port.reads_as("maybe later") == "answer"
        unclear = await port.take("maybe later")
        assert unclear.meaning == "unclear" and unclear.told
        await two.until(lambda: bool(two.all(talking.LineTaken)))

        # Both answer at once: the first one counts, and the other is told so.
        answers = await asyncio.gather(
            port.take("yes", gate.question_id), two.port.answer(gate.question_id, choice="no")
        )
        assert [answer.meaning for answer in answers] == ["answer", "closed"]
        assert [phrase.key for phrase in answers[1].told] == ["question.closed"]
        assert (await two.turn_over(1)).outcome == "done"
        assert (tmp_path / "work/a.txt").read_text() == "one\n"
        # An answer to a closed question neither goes to the model nor answers another question.
        assert (await two.port.take("yes", gate.question_id)).meaning == "closed"

        assert await port.say("make a snake game") == "pending_user"
        assert await one.told("/plan approve") == ""
        asked = await two.asked()
        assert asked.job and asked.job_name
        assert (await two.port.take("how far?")).told
        assert (await two.port.take("はい")).meaning == "answer"
        await port.work.jobs_over()
        await two.until(lambda: two.port.number == served.session.number)
        assert port.state.plans == served.session.state.plans
        assert "Snake game" in await one.told("/plan")

        port.choices.change_mode("auto-edit")
        await two.until(lambda: two.port.choices.mode == "auto-edit")
        await one.until(lambda: one.port.number == served.session.number)
        assert one.kept() == two.kept() == served.kept()
        assert one.port.state.jobs.keys() == served.session.state.jobs.keys()


async def test_leaving_ends_only_this_front_end(tmp_path: Path) -> None:
    async with Served(tmp_path, HELLO, HELLO) as served:
        one, two = await served.join(), await served.join()
        with pytest.raises(DuckflowError, match=r"attach\.not_here"):
            await one.port.run_command("/resume")
        assert (await one.port.take("/fork")).told[0].key == "attach.not_here"
        assert (await one.port.take("／quit")).meaning == "command"
        assert await one.port.sessions.over() is None
        assert [event.where for event in one.all(talking.ConversationLeft)] == ["out"]
        assert await two.port.say("hello") == "done" and not two.all(talking.ConversationLeft)
        # When the conversation itself is left, everybody is told.
        served.built.conversation.sessions.leave()
        await two.port.sessions.over()
        assert [event.what.key for event in two.all(happened.Noticed)][-1] == "attach.left"


async def test_refused_calls_raise_a_duckflow_error(tmp_path: Path) -> None:
    async with Served(tmp_path) as served:
        front_end = await served.join()
        with pytest.raises(DuckflowError):
            await front_end.port.choices.change_model("no:such")
        link = Link(lambda number, event: None, lambda how: None, lambda: None)
        await link.open(served.path)
        for name, args in (("no_such", {}), ("take", {"what": 1}), ("hear", {"since": 1})):
            with pytest.raises(DuckflowError, match=r"attach\.refused"):
                await link.call(name, **args)
        await link.close()
        assert await asyncio.to_thread(front_end.port.find_files, "zzz", 5) == []


async def test_a_cut_connection_comes_back_and_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    async with Served(tmp_path) as served:
        cable = Cable(tmp_path / "cable", served.path)
        laid = await cable.lay()
        front_ends = [await served.join(path=tmp_path / "cable"), await served.join(0, tmp_path / "cable")]
        begun = served.session.number
        for number in range(MANY):
            served.session.emit(MessageAdded(message=Message(role="system", text=f"event {number}", turn=0)))
            if number % 10 == 0:
                await asyncio.sleep(0.001)
            if number % 137 == 50:
                cable.cut()
        for front_end in front_ends:
            await front_end.until(lambda front_end=front_end: front_end.kept()[-1:] == [begun + MANY])
        expected = list(range(begun + 1, begun + MANY + 1))
        assert front_ends[0].kept() == expected and cable.cuts >= 5
        assert front_ends[1].kept() == [*range(1, begun + 1), *expected]
        texts = [event.message.text for event in front_ends[0].all(MessageAdded)]
        assert texts == [f"event {number}" for number in range(MANY)]
        laid.close()


async def test_the_others_go_on_when_a_slow_front_end_is_cut_off(tmp_path: Path) -> None:
    async with Served(tmp_path) as served:
        with connect_to(served.path) as slow:
            slow.send(line_of({"id": 1, "method": "hear"}))
            quick = await served.join()
            begun, long = served.session.number, Message(role="system", text="x" * 100_000, turn=0)
            for _ in range(300):
                served.session.emit(MessageAdded(message=long))
                await asyncio.sleep(0)
            await quick.until(lambda: quick.kept()[-1:] == [begun + 300])
            assert quick.kept() == list(range(begun + 1, begun + 301))


async def test_a_process_that_does_not_answer_is_not_taken_for_dead(tmp_path: Path) -> None:
    """A socket with a name listens already: who is refused takes the process for dead, and removes the name."""
    with listen_at(tmp_path / "s.sock"):
        assert [path.name for path in tmp_path.iterdir()] == ["s.sock"]
        with pytest.raises(TimeoutError):
            await RemoteConversation(tmp_path / "s.sock", patience=0.05).attach()


async def test_an_unreadable_state_counts_as_a_cut_connection(tmp_path: Path) -> None:
    async def welcome_badly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(line_of({"method": "welcome", "params": {"number": "none"}}) + line_of({"id": 1, "result": None}))

    async with await asyncio.start_unix_server(welcome_badly, sock=listen_at(tmp_path / "s.sock")):
        with pytest.raises(ConnectionError):
            await RemoteConversation(tmp_path / "s.sock").attach()


async def test_a_stale_socket_is_an_error_at_once(tmp_path: Path) -> None:
    async with Served(tmp_path) as served:
        pass
    assert served.path.exists()
    with pytest.raises(OSError):
        await RemoteConversation(served.path).attach()


async def test_comments_on_changed_lines_are_seen_by_every_front_end(tmp_path: Path) -> None:
    async with Served(tmp_path, WRITE, decide(respond("I see."))) as served:
        one, two = await served.join(after=0), await served.join(after=0)
        await one.port.take("write a.txt")
        gate = await one.asked()
        await one.port.answer(gate.question_id, choice="yes")
        await two.turn_over(1)
        (hunk,) = await one.port.review.hunks()
        made = await one.port.review.comment(1, "a.txt", 1, "why one?")
        one.port.review.mark(hunk.hunk_id)
        await two.until(lambda: two.port.state.reviewed == [hunk.hunk_id])
        assert two.port.state.comments == [made] and made.quote == "one"
        assert await two.port.review.send() == "done"
        assert one.port.state.comments == []
        assert (await two.port.review.take_back(1, "a.txt", hunk.hunk_id)).key == "comment.file_taken_back"
        assert not (tmp_path / "work/a.txt").exists()
