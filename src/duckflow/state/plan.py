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
    reasoning: str = ""
    status: TaskStatus = "pending"
    result: str | None = None


class TaskList(Noun):
    tasks: list[Task] = Field(default_factory=list[Task])


class Step(Noun):
    step_id: str = Field(default_factory=new_id("step"))
    name: str
    description: str = ""
    status: StepStatus = "pending"
    success: str = ""
    """What shows that it is done."""
    depends_on: list[str] = Field(default_factory=list[str])
    evidence: str = ""
    """The recorded result by which it counts as completed; a step completed without one is unverified."""
    added: bool = False
    """Duckflow put it there, not the model."""
    task_list: TaskList = Field(default_factory=TaskList)

    @property
    def tasks(self) -> list[Task]:
        return self.task_list.tasks

    @property
    def unverified(self) -> bool:
        return self.status == "completed" and not self.evidence

    def copied(self) -> "Step":
        """A step of its own: what changes (status, tasks) is copied, what never does (arguments) is shared."""
        tasks = TaskList.model_construct(tasks=[task.model_copy() for task in self.tasks])
        return self.model_copy(update={"task_list": tasks, "depends_on": list(self.depends_on)})

    def tasks_done(self) -> int:
        return sum(task.status == "completed" for task in self.tasks)


class Plan(Noun):
    plan_id: str = Field(default_factory=new_id("plan"))
    name: str
    goal: str
    status: PlanStatus = "draft"
    risks: list[str] = Field(default_factory=list[str])
    steps: list[Step] = Field(default_factory=list[Step])

    @property
    def under_way(self) -> bool:
        """Approved, and not over."""
        return self.status in ("approved", "in_progress")

    def done(self) -> int:
        return sum(step.status == "completed" for step in self.steps)

    def current(self) -> Step | None:
        return next((step for step in self.steps if step.status == "in_progress"), None)

    def copied(self) -> "Plan":
        """A plan of its own; much faster than a deep copy, and plans can be long."""
        return self.model_copy(update={"steps": [step.copied() for step in self.steps]})

    def step(self, wanted: str) -> Step | None:
        """A step by its id, its number (from 1), or its name."""
        wanted = wanted.strip()
        for number, step in enumerate(self.steps, 1):
            if wanted in (step.step_id, str(number)) or wanted.casefold() == step.name.casefold():
                return step
        return None

    def next_step(self) -> Step | None:
        """The one in progress, else the first that may start."""
        completed = {step.step_id for step in self.steps if step.status == "completed"}
        open_steps = (s for s in self.steps if s.status != "completed" and completed.issuperset(s.depends_on))
        return self.current() or next(open_steps, None)
