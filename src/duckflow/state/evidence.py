"""Results on the record: what shows that something works."""

from collections.abc import Callable, Sequence

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


def recorded(evidence: Sequence[Evidence], files: Sequence[str], there: Callable[[str], bool]) -> str:
    """What is on the record since the last change, in one line for the model."""
    lines = [one.text for one in evidence] or ["no command was run since the last change"]
    present = [path for path in files if there(path)]
    gone = [path for path in files if path not in present]
    lines += [f"files there: {', '.join(present)}"] if present else []
    lines += [f"files not there: {', '.join(gone)}"] if gone else []
    return "; ".join(lines)
