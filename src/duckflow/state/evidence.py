"""Results on the record: what shows that something works."""

from duckflow.state.action import ActionResult
from duckflow.state.noun import Line100, Value

FAILED_CODE = "code"


class Evidence(Value):
    """One result from after the last change."""

    operation: str
    ok: bool
    text: Line100


def exit_code(result: ActionResult) -> int | None:
    """What a command ended with; nothing for other operations."""
    code = result.for_user.values.get(FAILED_CODE)
    return int(code) if result.effect == "run" and isinstance(code, int) else None


def succeeded(result: ActionResult) -> bool:
    """A command that ran but ended with an error has not succeeded."""
    return result.ok and not exit_code(result)


def evidence_of(result: ActionResult) -> Evidence | None:
    """What a result proves: only a command, with its exit code, proves that something works."""
    code = exit_code(result)
    if code is None:
        return None
    command = result.for_user.values.get("command", "")
    return Evidence(operation=result.operation, ok=code == 0, text=f"{command}: exit code {code}")
