"""Settings of the servers of the Model Context Protocol, and of what their tools may do."""

from pydantic import Field

from duckflow.state.data import Section


class ServerSettings(Section):
    """One server: a program with its arguments, or an address."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    """Its variables. It gets HOME, PATH, TERM, USER, SHELL, LOGNAME and these. `${NAME}` stands for a variable of
    yours, which must be set; `${NAME:-text}` stands for the text where it is not set."""
    cwd: str = ""
    """The folder it is started in: your home if empty; `.` is the work folder."""
    url: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    client_id: str = ""
    """Duckflow's client id at logins, or the address of a document about it. If empty, Duckflow registers itself."""
    client_secret: str = ""
    callback_port: int = Field(default=0, ge=0, le=65535)
    """The port where the browser ends, if only one is allowed; 0 means any free port."""
    enabled: bool = True
    start_seconds: float = Field(default=30.0, gt=0)
    call_seconds: float = Field(default=300.0, gt=0)

    @property
    def texts(self) -> tuple[str, ...]:
        """Returns every text in which `${NAME}` may stand."""
        return (self.command, *self.args, *self.env.values(), self.cwd, self.url, *self.headers.values())


def describe_entry(entry: ServerSettings) -> str:
    """Returns the command line or the address, without variables and headers, which may hold secrets."""
    return entry.url.partition("?")[0] or " ".join((entry.command, *entry.args))


class McpSettings(Section):
    """Settings of all servers. Names of tools are `server/tool`; `*` stands for anything."""

    servers: dict[str, ServerSettings] = Field(default_factory=dict)
    allow: tuple[str, ...] = ()
    """Tools that may be called without a question."""
    deny: tuple[str, ...] = ()
    """Tools that the model is not told of."""
    wait_seconds: float = Field(default=5.0, ge=0)
    """Seconds that a message waits for servers that are still starting. Servers that come later are there with the next
    message."""
    prompt_share: float = Field(default=0.05, ge=0, le=1)
    """The share of the model's window that descriptions of tools may take; if they take more, the model searches for
    them."""
    output_characters: int = Field(default=20_000, ge=500)
    """Characters of a result that the model gets at once; the rest is kept."""
