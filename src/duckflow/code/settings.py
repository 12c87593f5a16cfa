"""Settings of the code map."""

from pydantic import Field

from duckflow.state.data import Section

OUTLINE, FIND, CALLERS = "code.outline", "code.find", "code.callers"
OPERATIONS = (OUTLINE, FIND, CALLERS)


class CodeSettings(Section):
    """Settings on when the model is offered the map, and how long a question waits for it."""

    map: bool = True
    """False turns the code map off completely."""
    from_files: int = Field(default=300, ge=1)
    """The least number of source files for which the model is told of the map. In smaller folders searching is as
    good."""
    seconds: float = Field(default=10.0, gt=0)
    """Seconds that a question waits for the map, and seconds that finding uses may take."""
    diagnostics: bool = True
    """True if the project's own checkers look at a turn's changes before the turn ends."""
    diagnostics_seconds: float = Field(default=20.0, gt=0)
    """Seconds for all checkers together. A checker that takes longer is not used again in this session."""


class LspServer(Section):
    """A language server. It runs as commands do: in the sandbox, where there is one."""

    command: str
    """The program, looked for in the work folder's `.venv/bin` and `node_modules/.bin`, then on the machine."""
    args: tuple[str, ...] = ()
    suffixes: tuple[str, ...]
    """The suffixes of files that the server knows, such as `.py`."""
    language: str = ""
    """The name of the language in the protocol, such as `python`."""
    seconds: float = Field(default=20.0, gt=0)
    """Seconds that the server may take to start."""
    enabled: bool = True


class LspSettings(Section):
    """The user's language servers, by name."""

    servers: dict[str, LspServer] = Field(default_factory=dict)
