"""Which servers of the Model Context Protocol there are, and what their tools may do."""

from pydantic import Field

from duckflow.state.noun import Section


class ServerSettings(Section):
    """One server: a program with its arguments, or an address."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    """It gets HOME, PATH, TERM, USER, SHELL, LOGNAME and these; `${NAME}` stands for a variable of yours, which must be
    set, `${NAME:-text}` for the text where it is not."""
    cwd: str = ""
    """Where it is started: your home; `.` is the work folder."""
    url: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    client_id: str = ""
    """For logins: as whom Duckflow is known there, or the address of a document about it. Not said: it registers."""
    client_secret: str = ""
    callback_port: int = Field(default=0, ge=0, le=65535)
    """Where the browser ends, if only one port is allowed; 0: any that is free."""
    enabled: bool = True
    start_seconds: float = Field(default=30.0, gt=0)
    call_seconds: float = Field(default=300.0, gt=0)

    @property
    def texts(self) -> tuple[str, ...]:
        """Everything in which `${NAME}` may stand."""
        return (self.command, *self.args, *self.env.values(), self.cwd, self.url, *self.headers.values())


def describe_entry(entry: ServerSettings) -> str:
    """What is started, or where it is; no variables and no headers, which may hold secrets."""
    return entry.url.partition("?")[0] or " ".join((entry.command, *entry.args))


class McpSettings(Section):
    """Names of tools are `server/tool`; `*` stands for anything."""

    servers: dict[str, ServerSettings] = Field(default_factory=dict)
    allow: tuple[str, ...] = ()
    """Tools that may be called without a question."""
    deny: tuple[str, ...] = ()
    """Tools the model is not told of."""
    wait_seconds: float = Field(default=5.0, ge=0)
    """How long a message waits for servers that are still starting; what comes later is there with the next one."""
    prompt_share: float = Field(default=0.05, ge=0, le=1)
    """The part of the model's window that descriptions of tools may take; beyond it they are searched for."""
    output_characters: int = Field(default=20_000, ge=500)
    """How much of a result the model is given at once; the rest is kept."""
