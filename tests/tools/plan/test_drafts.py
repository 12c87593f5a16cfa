"""Reading a model's drafts: harmless variations are accepted, real problems are named."""

import json
from typing import Any

import pytest

from duckflow.errors import ReplyUnusable
from duckflow.state.action import Operation
from duckflow.state.plan import Plan, Step, Task
from duckflow.tools.plan.drafting import usable_in_tasks
from duckflow.tools.plan.drafts import plan_from, revised_from
from duckflow.tools.plan.task_check import task_problems
from duckflow.tools.toolbox import packaged_operations


def drafted(*steps: dict[str, Any], **other: Any) -> str:
    return json.dumps({"name": "p", "steps": list(steps), "risks": [], **other})


@pytest.mark.parametrize("need", [1, "1", "step 1", "A", "ステップ1", ["1"], [1, "A"]])
def test_a_dependency_may_be_a_number_or_a_name(need: Any) -> None:
    plan = plan_from(drafted({"name": "A"}, {"name": "B", "depends_on": need}), "g")
    assert plan.steps[1].depends_on == [plan.steps[0].step_id]


def test_fences_prose_and_missing_fields_are_no_problem() -> None:
    plan = plan_from('Here it is:\n```json\n{"name": "p", "steps": [{"name": "A"}]}\n```', "the goal")
    assert (plan.goal, plan.status, plan.steps[0].depends_on) == ("the goal", "draft", [])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("I would rather not.", "no JSON"),
        (drafted(), "steps"),
        (drafted({"name": ""}), "steps.0.name"),
        (drafted({"name": "A", "depends_on": [9]}), "'9', which is no step"),
        (drafted({"name": "A", "depends_on": [2]}, {"name": "B", "depends_on": [1]}), "circle"),
    ],
)
def test_problems_of_a_draft_are_reported(text: str, problem: str) -> None:
    with pytest.raises(ReplyUnusable) as refused:
        plan_from(text, "g")
    assert problem in refused.value.correction


def test_a_step_that_depends_on_itself_depends_on_nothing() -> None:
    assert plan_from(drafted({"name": "A", "depends_on": [1]}), "g").steps[0].depends_on == []


def now() -> Plan:
    return Plan(name="p", goal="g", steps=[Step(name="A", status="completed", evidence="x"), Step(name="B")])


def test_revised_steps_keep_what_they_are() -> None:
    plan = now()
    new = revised_from(drafted({"name": "A", "was": 1}, {"name": "B2", "was": 2}, {"name": "C", "was": None}), plan)
    assert [step.step_id for step in new.steps[:2]] == [step.step_id for step in plan.steps]
    assert (new.steps[0].status, new.steps[0].evidence, new.steps[1].name) == ("completed", "x", "B2")
    assert new.plan_id == plan.plan_id


def test_a_completed_step_cannot_be_revised_away_and_none_is_taken_twice() -> None:
    with pytest.raises(ReplyUnusable, match="must stay: A"):
        revised_from(drafted({"name": "B", "was": 2}), now())
    with pytest.raises(ReplyUnusable, match="two steps"):
        revised_from(drafted({"name": "A", "was": 1}, {"name": "A", "was": 1}), now())


WRITE = Operation(
    name="file_ops.write_file",
    parameters={"properties": {"path": {}, "content": {}}, "required": ["path", "content"]},
    effect="write",
    body="content",
)
TALK = Operation(
    name="response", parameters={"properties": {"text": {}}, "required": ["text"]}, effect="talk", in_tasks=False
)


def test_tasks_need_real_operations_and_their_arguments_but_no_bodies() -> None:
    operations = usable_in_tasks(
        [WRITE, TALK, Operation(name="task_loop.run", parameters={}, effect="plan", in_tasks=False)]
    )
    assert [one.name for one in operations] == ["file_ops.write_file"]
    assert task_problems([Task(operation="file_ops.write_file", args={"path": "a"})], operations) == []
    wrong = [
        Task(operation="response", args={"text": "x"}),
        Task(operation="file_ops.write_file", args={"file": "a"}),
    ]
    told = "; ".join(task_problems(wrong, operations))
    assert "task 1: there is no operation 'response'" in told
    assert "task 2 (file_ops.write_file): the argument path is missing" in told
    assert "takes no argument file" in told


def test_tasks_that_cannot_work_where_they_stand_are_named() -> None:
    operations = [one for one in packaged_operations() if one.name.startswith("file_ops.")]
    folder = Task(operation="file_ops.make_folder", args={"path": "todo.py"})
    read = Task(operation="file_ops.read_file", args={"path": "store.py"})
    write = Task(operation="file_ops.write_file", args={"path": "store.py"})
    outside = Task(operation="file_ops.write_file", args={"path": "/elsewhere/store.py"})
    told = task_problems([folder, read, write, read, outside], operations, lambda path: False)
    assert [problem.partition(":")[0] for problem in told] == [
        "task 1 (file_ops.make_folder)",
        "task 2 (file_ops.read_file)",
        "task 5 (file_ops.write_file)",
    ]
