"""Results on the record: what shows that something works, and what a step's criterion wants to have shown."""

import re
from typing import NamedTuple

from duckflow.state.action import ActionResult
from duckflow.state.noun import Line100, Value

FAILED_CODE = "code"
FILE = (
    r"(?<![A-Za-z0-9_/.-])(?![A-Z][a-z]+\.js\b)(?:[A-Za-z0-9_.-]+/)*[A-Za-z0-9_-]+\.(?:py|md|txt|json|toml|ya?ml|cfg|ini|csv"
    r"|html?|css|[jt]sx?|go|rs|java|kt|c|h|cpp|cs|rb|php|swift|sh|sql|lock|ipynb)(?![A-Za-z0-9])"
)
COMMAND = (
    r"(?:python3? (?:-m [A-Za-z0-9_.]+|[A-Za-z0-9_./-]+\.py)|pytest|npm (?:run [a-z:-]+|test|ci|install)|go test|mypy"
    r"|ruff check|cargo (?:test|build|run|check|clippy)|make (?:test|check|build|lint|all)|node [A-Za-z0-9_./-]+\.js)"
    r"(?![A-Za-z0-9_])"
)
QUOTED = r"`([^`\n]+)`"
GONE = r"(?i)\b(?:delet|remov|gone|no longer|absent|without)|削除|なくな|消え|消す|存在しない|含まない|移動"


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


class Named(NamedTuple):
    """Files that must be there, commands that must have ended well: the exit code of something else shows neither."""

    files: tuple[str, ...]
    commands: tuple[str, ...]

    def told(self) -> str:
        return ", ".join((*self.files, *self.commands))


def named_in(success: str) -> Named:
    """What a success criterion names. A file that is to be gone is none that must be there."""
    quoted = [one.strip() for one in re.findall(QUOTED, success) if re.match(COMMAND, one)]
    commands = [*quoted, *re.findall(COMMAND, re.sub(QUOTED, " ", success))]
    files = [] if re.search(GONE, success) else re.findall(FILE, success)
    return Named(tuple(dict.fromkeys(files)), tuple(dict.fromkeys(commands)))
