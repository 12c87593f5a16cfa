"""Plan → Step → Task: long goal, named stage with dependencies, one concrete operation."""

from typing import Any, Literal

from pydantic import Field

from duckflow.state.noun import Noun, new_id

PlanStatus = Literal["draft", "approved", "in_progress", "completed", "failed"]
StepStatus = Literal["pending", "in_progress", "completed", "failed"]
TaskStatus = Literal["pending", "in_progress", "completed", "failed", "interrupted", "cancelled"]


class Task(Noun):
    task_id: str = Field(default_factory=new_id("task"))
    operation: str
    args: dict[str, Any] = Field(default_factory=dict[str, Any])
    status: TaskStatus = "pending"
    result: str | None = None


class TaskList(Noun):
    tasks: list[Task] = Field(default_factory=list[Task])


class Step(Noun):
    step_id: str = Field(default_factory=new_id("step"))
    name: str
    description: str = ""
    status: StepStatus = "pending"
    depends_on: list[str] = Field(default_factory=list[str])
    task_list: TaskList = Field(default_factory=TaskList)


class Plan(Noun):
    plan_id: str = Field(default_factory=new_id("plan"))
    name: str
    goal: str
    status: PlanStatus = "draft"
    steps: list[Step] = Field(default_factory=list[Step])

    def done(self) -> int:
        return sum(step.status == "completed" for step in self.steps)

    def current(self) -> Step | None:
        return next((step for step in self.steps if step.status == "in_progress"), None)
