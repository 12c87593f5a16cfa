"""Actions become steps."""

import pytest

from duckflow.pacemaker.signatures import step_of, user_spoke
from duckflow.state.action import Action, ActionResult, StepKind
from duckflow.state.data import say
from duckflow.tools.toolbox import packaged_operations

KINDS: dict[str, StepKind] = {operation.name: operation.kind for operation in packaged_operations()}


def finished(operation: str, *, ok: bool = True, changed: tuple[str, ...] = ()) -> tuple[Action, ActionResult]:
    action = Action(operation=operation, args={"text": "hi"}, reasoning="because")
    result = ActionResult(
        action_id=action.action_id,
        operation=operation,
        ok=ok,
        for_model="what came",
        for_user=say("x"),
        changed=changed,
        kind=KINDS.get(operation, "other"),
    )
    return action, result


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ("file_ops.read_file", "read"),
        ("file_ops.grep", "search"),
        ("file_ops.edit_file", "edit"),
        ("shell.run", "run"),
        ("response", "talk"),
        ("duck_call", "ask"),
        ("exit", "submit"),
        ("plan_tool.propose", "other"),
        ("something.unknown", "other"),
    ],
)
def test_the_kind_follows_the_operation(operation: str, kind: StepKind) -> None:
    assert step_of(*finished(operation)).kind == kind


def test_a_command_that_changed_files_is_an_edit() -> None:
    assert step_of(*finished("shell.run", changed=("a.py",))).kind == "edit"


def test_a_step_has_all_that_the_pacemaker_needs() -> None:
    step = step_of(*finished("response", ok=False), tokens=12)
    assert (step.name, step.args, step.result) == ("response", {"text": "hi"}, "what came")
    assert (step.is_error, step.text, step.tokens) == (True, "hi", 12)
    assert user_spoke("hello").kind == "user"
