"""File locks: steps wait for each other and for agents; agents are refused the files of others."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from duckflow.agent.session import Session, begin
from duckflow.events.types import Noticed, PlanChanged
from duckflow.events.work import TaskChanged
from duckflow.state.plan import Plan, Step, Task, TaskList
from duckflow.work.file_locks import FileLocks

JOB = "the job"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "lib").symlink_to("src")
    session = begin(tmp_path / "session.db", "session", folder, "en")
    yield session
    session.close()


def step(name: str, *paths: str) -> Step:
    tasks = [Task(task_id=f"{name} {path}", operation="edit", effect="write", touches=(path,)) for path in paths]
    return Step(step_id=name, name=name, task_list=TaskList(tasks=tasks))


def planned(session: Session, *steps: Step) -> FileLocks:
    session.emit(PlanChanged(plan=Plan(plan_id="plan", name="plan", goal="goal", steps=list(steps))))
    return FileLocks(session)


def finish(session: Session, name: str, path: str) -> None:
    session.emit(TaskChanged(plan_id="plan", step_id=name, task_id=f"{name} {path}", status="completed"))


class Lists:
    """Runs a step's list of tasks until it is let go, and notes the order in which lists begin."""

    def __init__(self, locks: FileLocks) -> None:
        self._locks = locks
        self.begun: list[str] = []

    async def run(self, name: str, may_end: asyncio.Event) -> None:
        async with self._locks.when_free(name):
            self.begun.append(name)
            await may_end.wait()


def path_shown(path: str) -> str:
    return path.replace("lib/", "src/")


async def moment() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize("path", ["src/a.py", "./src/../src/a.py", "lib/a.py", "src", "src/*.py", "**/*.py"])
async def test_an_agent_is_refused_a_file_of_a_step_however_its_path_is_written(session: Session, path: str) -> None:
    locks = planned(session, step("one", "src/a.py"))
    with locks.holding("one", JOB):
        taken = locks.claim("work-1", [path])
        assert taken and taken.owner == JOB
        assert locks.claim("work-1", ["other.py"]) is None
        finish(session, "one", "src/a.py")
        assert locks.claim("work-1", [path]), "what it has changed stays its own until it is over"
    assert locks.claim("work-1", [path]) is None


async def test_an_agent_takes_all_of_its_files_or_none(session: Session) -> None:
    locks = planned(session)
    assert locks.claim("work-1", ["src/*.py"]) is None
    taken = locks.claim("work-2", ["free.py", "lib/a.py"])
    assert taken and (taken.path, taken.owner) == ("src/a.py", "work-1")
    assert locks.claim("work-3", ["free.py"]) is None, "it was not taken with the other"
    locks.release("work-1")
    assert locks.claim("work-2", ["lib/a.py"]) is None


@pytest.mark.parametrize("path", ["src/a.py", "lib/a.py", "src"])
async def test_a_step_waits_for_the_files_of_an_agent_and_says_so(session: Session, path: str) -> None:
    locks = planned(session, step("one", path), step("two", "b.py"))
    lists, ends, notices = Lists(locks), asyncio.Event(), list[Noticed]()
    session.subscribe(lambda event: notices.append(event) if isinstance(event, Noticed) else None)
    assert locks.claim("work-1", ["src/a.py"]) is None
    with locks.holding("one", JOB), locks.holding("two", JOB):
        running = [asyncio.create_task(lists.run(name, ends)) for name in ("one", "two")]
        await moment()
        assert lists.begun == ["two"]
        assert [dict(notice.what.values) for notice in notices] == [
            {"step": "one", "other": "work-1", "file": path_shown(path)}
        ]
        locks.release("work-1")
        await moment()
        assert lists.begun == ["two", "one"]
        ends.set()
        await asyncio.gather(*running)


@pytest.mark.parametrize(("first", "second"), [("a.py", "./a.py"), ("src", "src/a.py"), ("src/a.py", "lib/a.py")])
async def test_two_lists_with_one_file_run_one_after_the_other(session: Session, first: str, second: str) -> None:
    locks = planned(session, step("one", first), step("two", second))
    lists, ends = Lists(locks), asyncio.Event()
    with locks.holding("one", JOB), locks.holding("two", JOB):
        running = asyncio.create_task(lists.run("one", ends))
        await moment()
        other = asyncio.create_task(lists.run("two", asyncio.Event()))
        await moment()
        assert lists.begun == ["one"]
        ends.set()
        await running
        await moment()
        assert lists.begun == ["one", "two"]
        other.cancel()


async def test_a_step_that_waits_says_once_for_which_command(session: Session) -> None:
    command = Task(task_id="run", operation="shell.run", effect="run", subject="command", args={"command": "pytest -q"})
    running = Step(step_id="tests", name="Tests", task_list=TaskList(tasks=[command]))
    locks, notices = planned(session, step("README", "README.md", "b.md"), running), list[Noticed]()
    session.subscribe(lambda event: notices.append(event) if isinstance(event, Noticed) else None)
    with locks.holding("README", JOB), locks.holding("tests", JOB):
        for _ in range(2):
            async with locks.when_free("README"):
                waiting = asyncio.create_task(Lists(locks).run("tests", asyncio.Event()))
                await moment()
                waiting.cancel()
                await moment()
    values = {"step": "Tests", "other": "README", "runner": "Tests", "command": "shell.run pytest -q"}
    assert [(notice.what.key, dict(notice.what.values)) for notice in notices] == [("job.step_waits_command", values)]


async def test_the_first_of_steps_that_wait_for_each_other_goes_on(session: Session) -> None:
    locks = planned(session, step("one", "a.py", "b.py"), step("two", "b.py", "a.py"))
    finish(session, "one", "a.py")
    finish(session, "two", "b.py")
    lists, ends = Lists(locks), asyncio.Event()
    with locks.holding("one", JOB), locks.holding("two", JOB):
        running = [asyncio.create_task(lists.run(name, ends)) for name in ("two", "one")]
        await moment()
        assert lists.begun == ["one"]
        for task in running:
            task.cancel()


async def test_a_command_of_an_agent_runs_while_no_other_agent_changes_anything(session: Session) -> None:
    locks, inside = planned(session), list[str]()

    async def change(agent: str, paths: tuple[str, ...], may_end: asyncio.Event) -> None:
        async with locks.changing(agent, paths, None):
            inside.append(agent)
            await may_end.wait()

    ends, later = asyncio.Event(), asyncio.Event()
    running = [asyncio.create_task(change(f"work-{number}", (f"{number}.py",), ends)) for number in (1, 2)]
    await moment()
    command = asyncio.create_task(change("work-3", (), later))
    await moment()
    assert inside == ["work-1", "work-2"], "edits of different files go on side by side"
    ends.set()
    await asyncio.gather(*running)
    await moment()
    after = asyncio.create_task(change("work-1", ("1.py",), later))
    await moment()
    assert inside == ["work-1", "work-2", "work-3"]
    later.set()
    await asyncio.gather(command, after)
    assert inside[-1] == "work-1"
