"""One owner of state: two loops emit at once, and nobody loses or reorders anything."""

import asyncio
import random
from contextlib import closing
from pathlib import Path

from duckflow.agent.session import begin, replay
from duckflow.events.types import Event, MessageAdded, Noticed, PlanChanged
from duckflow.events.work import JobStarted, TaskChanged
from duckflow.state.agent import Job
from duckflow.state.data import say
from duckflow.state.message import Message
from duckflow.state.plan import Plan, Step, Task, TaskList
from duckflow.store.journal import Journal

EVENTS = 2_000


async def test_two_thousand_interleaved_events_of_two_loops(tmp_path: Path) -> None:
    session = begin(tmp_path / "s.db", "s", tmp_path, "en")
    tasks = [Task(operation="file_ops.read_file", args={"path": f"{number}"}) for number in range(EVENTS // 2)]
    plan = Plan(name="p", goal="g", status="in_progress", steps=[Step(name="s", task_list=TaskList(tasks=tasks))])
    session.emit(PlanChanged(plan=plan))
    session.emit(JobStarted(job=Job(name="s", plan_id=plan.plan_id, step_ids=[plan.steps[0].step_id])))
    before = session.state.event_count
    views: list[list[tuple[str, int, int]]] = [[], [], []]

    def view(mine: list[tuple[str, int, int]]) -> None:
        def look(event: Event) -> None:
            if event.journaled:
                mine.append((event.kind, session.state.event_count, len(session.state.messages)))

        session.subscribe(look)

    for mine in views:
        view(mine)
    chance = random.Random(5)

    async def chat() -> None:
        for number in range(EVENTS // 2):
            session.emit(MessageAdded(message=Message(role="user", text=str(number))))
            if chance.random() < 0.5:
                await asyncio.sleep(0)

    async def work() -> None:
        step = plan.steps[0]
        for number, task in enumerate(tasks):
            session.emit(
                TaskChanged(
                    plan_id=plan.plan_id,
                    step_id=step.step_id,
                    task_id=task.task_id,
                    status="completed",
                    result=str(number),
                )
            )
            if chance.random() < 0.5:
                await asyncio.sleep(0)

    await asyncio.gather(chat(), work())
    state = session.state
    assert [message.text for message in state.messages] == [str(number) for number in range(EVENTS // 2)]
    assert [task.result for task in state.plans[plan.plan_id].steps[0].tasks] == [str(n) for n in range(EVENTS // 2)]
    assert views[0] == views[1] == views[2]
    assert [count for _, count, _ in views[0]] == list(range(before + 1, before + EVENTS + 1))
    assert {kind for kind, _, _ in views[0][:200]} == {"message_added", "task_changed"}, "they did interleave"
    assert plan.steps[0].tasks[0].status == "pending", "the event that brought the plan stays what it was"
    session.close()
    with closing(Journal(tmp_path / "s.db")) as journal:
        assert replay(journal) == replay(journal, from_snapshot=False) == state


def test_an_event_that_a_listener_causes_comes_after_the_current_one(tmp_path: Path) -> None:
    session = begin(tmp_path / "s.db", "s", tmp_path, "en")
    heard: list[str] = []

    def echo(event: Event) -> None:
        if isinstance(event, MessageAdded):
            session.emit(Noticed(what=say("talk.said", text="echo")))

    session.subscribe(echo)
    session.subscribe(lambda event: heard.append(event.kind))
    session.emit(MessageAdded(message=Message(role="user", text="hello")))
    session.close()
    assert heard == ["message_added", "noticed"]


def test_a_listener_that_raises_takes_no_event_from_the_others(tmp_path: Path) -> None:
    session = begin(tmp_path / "s.db", "s", tmp_path, "en")
    heard: list[str] = []

    def stumble(event: Event) -> None:
        raise ValueError(event.kind)

    session.subscribe(stumble)
    session.subscribe(lambda event: heard.append(event.kind))
    session.emit(MessageAdded(message=Message(role="user", text="hello")))
    session.emit(Noticed(what=say("talk.said", text="echo")))
    session.close()
    assert heard == ["message_added", "noticed"]
    assert [message.text for message in session.state.messages] == ["hello"]


def test_a_listener_may_leave_while_an_event_is_published(tmp_path: Path) -> None:
    session = begin(tmp_path / "s.db", "s", tmp_path, "en")
    heard: list[str] = []

    def first(event: Event) -> None:
        heard.append("first")
        leave_first()
        leave_second()

    leave_first = session.subscribe(first)
    leave_second = session.subscribe(lambda event: heard.append("second"))
    session.subscribe(lambda event: heard.append("third"))
    for text in ("hello", "again"):
        session.emit(MessageAdded(message=Message(role="user", text=text)))
    leave_first()
    session.close()
    assert heard == ["first", "third", "third"]
