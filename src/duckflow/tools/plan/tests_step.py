"""The last step of a plan in a project that has tests: running them, when the model did not think of it."""

import re
from collections.abc import Sequence

from duckflow.prompts.template import render
from duckflow.state.plan import Plan, Step, Task, TaskList
from duckflow.tools.plan.folder import command_for_tests
from duckflow.tools.plan.ports import Folder

RUNS_TESTS = re.compile(
    r"\bpytest\b|\bunittest\b|\bnpm (?:run )?test\b|\bcargo test\b|\bgo test\b|\bmake (?:test|check)\b"
    r"|\b(?:run|running|execute)\b[^.]{0,30}\btests?\b|\btests? (?:all )?(?:pass|succeed)"
    r"|テスト[^。]{0,12}(?:実行|走らせ|流す|回す|通る|通す|通過|パスする|成功)",
    re.IGNORECASE,
)
ABOUT_TESTS = re.compile(r"\btest|テスト", re.IGNORECASE)


def with_tests(plan: Plan, folder: Folder, language: str) -> Plan:
    """The draft, with such a step at its end where it is missing. It is marked, and the user can drop it."""
    command = command_for_tests(folder)
    if not command or any(map(_runs_tests, plan.steps)):
        return plan
    name, description, success = render(language, "tests_step", command=command).split("\n")
    step = Step(
        name=name,
        description=description,
        success=success,
        depends_on=_last(plan.steps),
        added=True,
        task_list=TaskList(tasks=[Task(operation="shell.run", args={"command": command}, reasoning=description)]),
    )
    return plan.model_copy(update={"steps": [*plan.steps, step]})


def still_with_tests(revised: Plan, before: Plan, changes: str) -> Plan:
    """The revised plan does not lose the added step, unless the change was about tests or brings its own."""
    added = next((step for step in before.steps if step.added), None)
    kept = any(added is None or step.step_id == added.step_id or _runs_tests(step) for step in revised.steps)
    if added is None or kept or ABOUT_TESTS.search(changes):
        return revised
    step = added.copied()
    step.depends_on = _last(revised.steps)
    return revised.model_copy(update={"steps": [*revised.steps, step]})


def _runs_tests(step: Step) -> bool:
    return bool(RUNS_TESTS.search(f"{step.name}. {step.description}. {step.success}"))


def _last(steps: Sequence[Step]) -> list[str]:
    """The steps that no other waits for: when they are completed, all are."""
    needed = {need for step in steps for need in step.depends_on}
    return [step.step_id for step in steps if step.step_id not in needed]
