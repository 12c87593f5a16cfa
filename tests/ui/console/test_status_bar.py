import pytest

from duckflow.i18n.words import Words
from duckflow.state.agent import AgentState, Job
from duckflow.state.plan import Plan, Step, Task, TaskList, TaskStatus
from duckflow.ui.console.printer import Glyphs
from duckflow.ui.console.status_bar import job_bars, short_name


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("ollama:llama3.2:latest", "llama3.2"),
        ("ollama:me/duck:7b", "duck:7b"),
        ("openrouter:anthropic/claude-x", "claude-x"),
        ("openai:gpt-5", "gpt-5"),
        ("scripted", "scripted"),
    ],
)
def test_the_short_name_of_a_model_says_which_it_is(model: str, name: str) -> None:
    assert short_name(model) == name


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize(
    ("statuses", "count"),
    [
        ((), ""),
        (("in_progress", "pending"), "0/2 ░░"),
        (("completed", "in_progress"), "1/2 █░"),
        (("completed",), {"en": "1 task done", "ja": "1 件完了"}),
    ],
)
def test_a_job_of_one_step_has_a_bar_only_while_tasks_are_open(
    statuses: tuple[TaskStatus, ...], count: str | dict[str, str], language: str
) -> None:
    """While the next tasks are being prepared, a full bar would say that the job is done."""
    tasks = [Task(operation="edit", status=status) for status in statuses]
    step = Step(step_id="s", name="S", status="in_progress", task_list=TaskList(tasks=tasks))
    plan = Plan(plan_id="p", name="P", goal="g", status="in_progress", steps=[step])
    job = Job(job_id="j", name="core", plan_id="p", step_ids=["s"])
    state = AgentState(plans={"p": plan}, jobs={"j": job})
    [line] = job_bars(state, Words(language), Glyphs(), 100)
    shown_count = count if isinstance(count, str) else count[language]
    assert line.startswith(" ".join(filter(None, ("⚙ core", shown_count, "0s"))))
