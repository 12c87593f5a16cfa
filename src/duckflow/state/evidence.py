"""Results on the record: how commands ended, and what that shows."""

from duckflow.state.action import ActionResult
from duckflow.state.noun import Line100, Value, shorten

FAILED_CODE = "code"
OUTPUT = 2000
DOCUMENTS = (".md", ".rst", ".adoc")


class Evidence(Value):
    """A command since the last change that concerns it."""

    command: str = ""
    code: int = 0
    ok: bool
    text: Line100
    output: str = ""
    """The end of what it printed."""

    def outdated_by(self, path: str) -> bool:
        """Whether a change of this file makes it worthless. A document that the command does not name does not."""
        return not path.casefold().endswith(DOCUMENTS) or path.rpartition("/")[2] in self.command


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
    values = result.for_user.values
    command = str(values.get("whole") or values.get("command", ""))
    shown = f"{shorten(command, 70)}: exit code {code}"
    return Evidence(command=command, code=code, ok=code == 0, text=shown, output=result.for_model[-OUTPUT:])
