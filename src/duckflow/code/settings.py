"""Settings of the code map."""

from pydantic import Field

from duckflow.state.noun import Section

OUTLINE, FIND, CALLERS = "code.outline", "code.find", "code.callers"
OPERATIONS = (OUTLINE, FIND, CALLERS)


class CodeSettings(Section):
    """When the model is offered the map, and how long it is waited for."""

    map: bool = True
    """Whether there is a map at all."""
    from_files: int = Field(default=300, ge=1)
    """In a folder with at least so many source files the model is told of it; in smaller ones searching is as good."""
    seconds: float = Field(default=10.0, gt=0)
    """How long a question waits for the map, and how long uses are looked for."""
    diagnostics: bool = True
    """Whether the project's own checkers look at a turn's changes before it ends."""
    diagnostics_seconds: float = Field(default=20.0, gt=0)
    """For all of them together. One that takes longer is not asked again in this session."""


class LspServer(Section):
    """A language server. It runs as commands do: in the sandbox, where there is one."""

    command: str
    """Looked for in the work folder's `.venv/bin` and `node_modules/.bin`, then on the machine."""
    args: tuple[str, ...] = ()
    suffixes: tuple[str, ...]
    """Of the files it knows, such as `.py`."""
    language: str = ""
    """How the protocol calls the language, such as `python`."""
    seconds: float = Field(default=20.0, gt=0)
    """For its start."""
    enabled: bool = True


class LspSettings(Section):
    """The user's language servers, by name."""

    servers: dict[str, LspServer] = Field(default_factory=dict)
