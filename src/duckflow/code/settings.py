"""Settings of the code map."""

from pydantic import Field

from duckflow.state.data import Section

OUTLINE, FIND, CALLERS = "code.outline", "code.find", "code.callers"
OPERATIONS = (OUTLINE, FIND, CALLERS)


class CodeSettings(Section):
    """When the model is offered the map, and how long it is waited for."""

    map: bool = True
    """Switch for the whole map."""
    from_files: int = Field(default=300, ge=1)
    """The number of source files from which on the model is told of the map. In smaller folders searching is as
    good."""
    seconds: float = Field(default=10.0, gt=0)
    """Seconds that a question waits for the map, and that uses are looked for."""
    diagnostics: bool = True
    """Has the project's own checkers look at a turn's changes before it ends."""
    diagnostics_seconds: float = Field(default=20.0, gt=0)
    """Seconds for all checkers together. One that takes longer is not asked again in this session."""


class LspServer(Section):
    """A language server. It runs as commands do: in the sandbox, where there is one."""

    command: str
    """The program, looked for in the work folder's `.venv/bin` and `node_modules/.bin`, then on the machine."""
    args: tuple[str, ...] = ()
    suffixes: tuple[str, ...]
    """The endings of files that it knows, such as `.py`."""
    language: str = ""
    """The protocol's name of the language, such as `python`."""
    seconds: float = Field(default=20.0, gt=0)
    """Seconds for its start."""
    enabled: bool = True


class LspSettings(Section):
    """The user's language servers, by name."""

    servers: dict[str, LspServer] = Field(default_factory=dict)
