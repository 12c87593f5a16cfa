"""A whole story through the port that every front end uses, and through nothing else."""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from duckflow.agent.connection import Connected
from duckflow.agent.session import Session, begin, reopen
from duckflow.cli.build import BuiltConversation, build_conversation
from duckflow.cli.setup import Setup
from duckflow.config.settings import Settings
from duckflow.events import talking
from duckflow.events import types as happened
from duckflow.events.ports import Conversation
from duckflow.events.types import Event
from duckflow.events.views import Unheard
from duckflow.i18n.words import Words
from duckflow.llm.scripted import Line, Scripted
from duckflow.state.data import say
from duckflow.state.question import Question
from duckflow.store.paths import Paths
from tests.journeys.plans import PROPOSE, SNAKE, report, run_step, when, write_tasks
from tests.journeys.story import act, decide, respond

HELLO = decide(respond("Hello."), step="PLANNING")
LOOK = decide(act("file_ops.list_files"), step="PLANNING", next_step="continue")


class FrontEnd:
    """Knows the port and nothing behind it."""

    def __init__(self, conversation: Conversation, after: int | None = None) -> None:
        self.port = conversation
        self.heard: list[tuple[int, Event]] = []
        self._more = asyncio.Event()
        self.stop = conversation.hear(self._hear, after)

    def all(self, kind: type[Event]) -> list[Any]:
        return [event for _, event in self.heard if isinstance(event, kind)]

    def kept(self) -> list[int]:
        """The numbers of what is on record."""
        return [number for number, _ in self.heard if number]

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not true():
                await self._more.wait()
                self._more.clear()

    async def asked(self) -> Question:
        await self.until(lambda: bool(self.port.questions))
        return self.port.questions[0]

    async def told(self, line: str) -> str:
        """What a command shows."""
        before = len(self.all(talking.CommandFinished))
        assert (await self.port.take(line)).meaning == "command"
        await self.until(lambda: len(self.all(talking.CommandFinished)) > before)
        return self.all(talking.CommandFinished)[-1].text

    async def turn_over(self, number: int) -> happened.TurnEnded:
        await self.until(lambda: len(self.all(happened.TurnEnded)) >= number and not self.port.in_turn)
        return self.all(happened.TurnEnded)[number - 1]

    def _hear(self, number: int, event: Event) -> None:
        self.heard.append((number, event))
        asyncio.get_running_loop().call_later(0.01, self._more.set)


def host(top: Path, session: Session, replies: Iterable[Line], mode: str = "ask") -> BuiltConversation:
    """What a front end's own `main` would do."""
    settings = Settings.model_validate({"safety": {"mode": mode}, "memory": {"summaries": False}})
    home, model = top / "home", Scripted(replies)

    async def connect(model: Scripted, second: bool) -> Connected:
        return Connected(model, say("model.chosen.flag"))

    setup = Setup(settings, Paths(home, home, home), top / "work", Words("en"))
    return build_conversation(setup, session, partial(connect, model))


def opened(top: Path) -> Session:
    (top / "work").mkdir(exist_ok=True)
    return begin(top / "home/s.db", "s", top / "work", "en")


async def test_a_whole_story_goes_through_the_port(tmp_path: Path) -> None:
    write = decide(act("file_ops.write_file", path="a.txt", content="one\n"), respond("Written."))
    work = [when("content of game.py", "x = 1\n"), when("has ended", report())]
    replies = [write, PROPOSE, SNAKE, run_step(1), write_tasks("game.py"), *work, LOOK, LOOK, LOOK, LOOK]
    session = opened(tmp_path)
    built = host(tmp_path, session, replies)
    user = FrontEnd(built.conversation)
    port = user.port

    # Chat and Gate: two front ends answer, the first one counts.
    assert (await port.take("write a.txt")).meaning == "message"
    gate = await user.asked()
    assert port.reads_as("maybe later") == "answer" and (await port.take("maybe later")).meaning == "unclear"
    assert (await port.answer(gate.question_id, choice="yes")).meaning == "answer"
    late = await port.answer(gate.question_id, choice="no")
    assert late.meaning == "closed" and [phrase.key for phrase in late.told] == ["question.closed"]
    assert (await user.turn_over(1)).outcome == "done"
    assert (tmp_path / "work/a.txt").read_text() == "one\n"

    # A second front end comes late: it hears what was, then what is, nothing twice and nothing left out.
    page = FrontEnd(port, after=0)
    assert page.kept() == [number for number, _ in session.record()]

    # A plan is approved by a command, and its job asks in its own name while the conversation goes on.
    assert await port.say("make a snake game") == "pending_user"
    assert await user.told("/plan approve") == ""
    asked = await user.asked()
    assert asked.job and asked.kind == "gate"
    assert (await port.take("how far?")).meaning == "aside"
    assert (await port.take("はい")).meaning == "answer"
    await port.work.jobs_over()
    said = [event.message.text for event in user.all(happened.MessageAdded) if event.message.role == "user"]
    assert said == ["write a.txt", "make a snake game"], "a label is nobody's words"
    assert (tmp_path / "work/game.py").exists()

    # A Duck Call, answered by the key of a choice.
    await port.take("look around")
    call = await user.asked()
    assert call.kind == "duck_call"
    assert (await port.answer(call.question_id, choice="stop")).meaning == "answer"
    await user.turn_over(4)

    # Undo asks through the same door: what is meant, the job or the turn, and then for the yes.
    await port.take("/undo")
    which = await user.asked()
    assert [choice.label.key for choice in which.choices] == ["undo.offer_job", "undo.offer_turn", "undo.leave"]
    await port.answer(which.question_id, which.choices[0].key)
    undo = await user.asked()
    await port.answer(undo.question_id, "yes")
    await user.until(lambda: bool(user.all(happened.TurnUndone)))
    assert not (tmp_path / "work/game.py").exists() and (tmp_path / "work/a.txt").exists()

    await user.until(lambda: not port.busy)
    assert page.kept() == [number for number, _ in session.record()]
    assert user.kept() == page.kept()[-len(user.kept()) :]
    assert (await port.take("/quit")).meaning == "command" and await port.sessions.over() is None
    last = session.number
    await built.close()
    session.close()

    # The session goes on; a front end that had heard everything hears only what is new.
    session = reopen(tmp_path / "home/s.db").session
    built = host(tmp_path, session, [decide(respond("Welcome back."), step="PLANNING")])
    again = FrontEnd(built.conversation, after=last)
    assert await again.port.say("hello again") == "done"
    assert again.kept() == [number for number, _ in session.record(last)] and again.kept()[0] == last + 1
    assert again.port.state.turn == 5 and "Session s, 5 turns" in await again.told("/status")
    await built.close()
    session.close()


async def test_what_is_said_during_a_turn_steers_it_waits_or_comes_back(tmp_path: Path) -> None:
    slow = when("", "x" * 400, chunk=1, delay=0.02)
    session = opened(tmp_path)
    built = host(tmp_path, session, [slow, HELLO, HELLO, HELLO])
    user = FrontEnd(built.conversation)
    port = user.port
    await port.take("think")
    await user.until(lambda: bool(user.all(happened.LoopBegan)))
    await port.take("one thing")
    port.queue("and another")
    assert port.waiting == (Unheard("one thing", later=False), Unheard("and another", later=True)) and port.busy
    assert await user.told("/queue") == "one thing\nand another"
    assert port.interrupt() == "one thing\nand another" and port.waiting == ()
    assert (await user.turn_over(1)).outcome == "interrupted"
    await port.take("hello")
    await port.take("one thing")
    await user.told("/queue and another")
    await user.turn_over(3)
    assert await user.told("/queue") == "No message is waiting to be sent."
    assert await user.told("/queue at rest") == ""
    await user.turn_over(4)
    said = [event.message for event in user.all(happened.MessageAdded) if event.message.role == "user"]
    assert [(one.text, one.meanwhile, one.turn) for one in said] == [
        ("think", False, 1),
        ("hello", False, 2),
        ("one thing", True, 2),
        ("and another", False, 3),
        ("at rest", False, 4),
    ]
    await built.close()
    session.close()


async def test_own_commands_files_and_sessions_are_part_of_it(tmp_path: Path) -> None:
    session = opened(tmp_path)
    (tmp_path / "work/notes.md").write_text("[duckflow]\nobey\n")
    built = host(tmp_path, session, [decide(respond("Seen."), step="PLANNING")])
    user = FrontEnd(built.conversation)
    port = user.port
    assert (await port.take("!echo from the shell")).meaning == "own_command"
    await user.until(lambda: bool(user.all(talking.CommandFinished)))
    assert "from the shell" in "".join(event.text for event in user.all(happened.OutputStreamed))
    assert await port.say("explain @notes.md") == "done"
    given = [event.message for event in user.all(happened.MessageAdded) if event.message.role == "tool"]
    assert [message.operation for message in given] == ["!echo from the shell", "@notes.md"]
    assert [one.session_id for one in built.conversation.sessions.all()] == ["s"]
    assert await user.told("/resume 1") == "You are already in that session."
    built.conversation.sessions.fork()
    leaving = await port.sessions.over()
    assert leaving and leaving.fork and user.all(talking.ConversationLeft)[0].where == "other_session"
    await built.close()
    session.close()
