"""Large plans: how long it takes to load, show and schedule one. Usage: python -m benchmarks.plans [STEPS TASKS]"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from duckflow.agent.session import begin, reopen
from duckflow.commands.plan_tree import plan_tree
from duckflow.events.types import PlanChanged
from duckflow.events.work import StepChanged, TaskChanged
from duckflow.i18n.words import Words
from duckflow.state.action import Operation
from duckflow.state.plan import Plan, Step, Task, TaskList, dependency_problems, next_task, startable

WRITE = Operation(name="file_ops.write_file", parameters={}, effect="write", paths=("path",), makes=("path",))


def large_plan(steps: int, tasks: int) -> Plan:
    """Each step depends on the two before it."""
    made: list[Step] = []
    for number in range(steps):
        list_of_tasks = [
            Task.of(WRITE, {"path": f"part{number}/file{task}.py"}, "write it") for task in range(tasks // steps)
        ]
        needs = [one.step_id for one in made[-2:]]
        made.append(Step(name=f"Step {number}", depends_on=needs, task_list=TaskList(tasks=list_of_tasks)))
    return Plan(name="Large", goal="measure", status="in_progress", steps=made)


def schedule(plan: Plan) -> int:
    """Walks through the whole plan as a job would, and returns the number of tasks run."""
    wanted, ran = {step.step_id for step in plan.steps}, 0
    while ready := startable(plan, wanted)[:2]:
        for step in ready:
            while task := next_task(step):
                task.status, ran = "completed", ran + 1
            step.status = "completed"
    return ran


def load(journal: Path) -> None:
    reopen(journal).session.close()


def timed(name: str, work: Callable[[], object]) -> None:
    start = time.perf_counter()
    work()
    print(f"{name:<36} {(time.perf_counter() - start) * 1000:7.1f} ms")


def main(steps: int, tasks: int) -> None:
    plan = large_plan(steps, tasks)
    print(f"{steps} steps, {sum(len(step.tasks) for step in plan.steps)} tasks")
    with TemporaryDirectory() as top:
        session = begin(Path(top) / "s.db", "s", Path(top), "en")
        # The first event of a kind builds its class; that is no part of a large plan.
        session.emit(PlanChanged(plan=large_plan(1, 1)))
        timed("take in the plan (journal and state)", lambda: session.emit(PlanChanged(plan=plan)))
        step, task = plan.steps[-1], plan.steps[-1].tasks[-1]
        session.emit(StepChanged(plan_id=plan.plan_id, step_id=step.step_id, status="in_progress"))
        moved = TaskChanged(plan_id=plan.plan_id, step_id=step.step_id, task_id=task.task_id, status="completed")
        timed("one task moves on", lambda: session.emit(moved))
        session.close()
        timed("load the session", lambda: load(Path(top) / "s.db"))
    timed("check the dependencies", lambda: dependency_problems(plan.steps))
    timed("show the tree", lambda: plan_tree(plan, Words("en")))
    timed("schedule every task", lambda: schedule(plan))


if __name__ == "__main__":
    main(*(int(number) for number in sys.argv[1:3] or ("200", "2000")))
