"""Settings of the tools, and names that every start needs. No tool is loaded here, so that a start is quick."""

from collections.abc import Mapping
from typing import Literal, NamedTuple, cast

from pydantic import Field

from duckflow.state.data import Section

KB = 1024
MB = 1024 * KB


class FileSettings(Section):
    """Limits on how much a file tool reads and shows at once."""

    read_bytes: int = Field(default=256 * KB, ge=1)
    read_lines: int = Field(default=2000, ge=1)
    outlined_lines: int = Field(default=200, ge=0)
    """Lines that are shown, with an outline, of a source file that is too long to be shown whole."""
    outline_characters: int = Field(default=12_000, ge=1)
    max_file_bytes: int = Field(default=16 * MB, ge=1)
    """Bytes above which a file is never read whole into memory, but refused."""
    list_entries: int = Field(default=400, ge=1)
    found_files: int = Field(default=200, ge=1)
    grep_matches: int = Field(default=200, ge=1)
    grep_line: int = Field(default=300, ge=1)
    grep_seconds: float = Field(default=20.0, gt=0)
    deleted_lines: int = Field(default=60, ge=0)
    """Lines that a preview shows of a file to be deleted."""
    quoted_text: int = Field(default=4000, ge=0)
    """Characters of a file's current text that may be quoted in an error for the model."""


class ShellSettings(Section):
    """Limits on the time of a command, its share of the machine, and how much of its output is kept."""

    timeout_seconds: int = Field(default=120, ge=1)
    """The time limit in seconds of a command for which the model gives none."""
    longest_seconds: int = Field(default=3600, ge=1)
    """The largest time limit that is ever granted; servers run in the background."""
    head_characters: int = Field(default=6000, ge=0)
    tail_characters: int = Field(default=14_000, ge=0)
    cause_characters: int = Field(default=4000, ge=0)
    """The number of characters, from the lines that say why a command failed, that the model gets besides the beginning
    and the end of the output."""
    first_output_seconds: float = Field(default=1.5, ge=0)
    """Seconds to watch a background command before going on."""
    max_processes: int = Field(default=2000, ge=1)
    max_memory_mib: int = Field(default=0, ge=0)
    """Memory of all processes of a command together; 0 means nine tenths of the machine's."""
    max_file_mib: int = Field(default=51_200, ge=1)
    """Largest size of a file that a command writes."""
    min_free_mib: int = Field(default=256, ge=0)
    """Free space below which a command is ended, on the disk of the work folder and of its temporary files."""
    max_temporary_mib: int = Field(default=20_480, ge=1)
    """Size of /tmp above which a command is ended."""
    background_jobs: int = Field(default=8, ge=0)
    environment: tuple[str, ...] = ()
    """Further variables that commands may see; `*` stands for any ending. A name that looks like a secret must be given
    in full."""
    set_environment: dict[str, str] = Field(default_factory=dict)
    """Variables that every command gets."""


FETCH, SEARCH = "web.fetch", "web.search"
KEYS = {"brave": ("BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY"), "tavily": ("TAVILY_API_KEY",)}
BRAVE = "https://api.search.brave.com/res/v1/web/search"
TAVILY = "https://api.tavily.com/search"


class SearchEngine(NamedTuple):
    """The search engine that is asked. The user gives the address of a SearXNG, so it may be on their own machine."""

    kind: Literal["brave", "tavily", "searxng"]
    url: str
    key: str = ""


class WebSettings(Section):
    """Settings of the web tools. A project's file cannot set them."""

    fetch: bool = True
    """True if the model may fetch pages at all; each host still needs a yes."""
    seconds: float = Field(default=30.0, gt=0)
    """Seconds for a whole page, redirects included."""
    max_bytes: int = Field(default=5 * MB, gt=0)
    """Largest size of a page, unpacked. Larger ones are not fetched."""
    proxy_looks_up: bool = False
    """True if a proxy named in the environment gets host names, not the IP addresses that were looked up here. This is
    for networks in which only the proxy can look names up. The proxy itself must then refuse private addresses."""
    page_characters: int = Field(default=20_000, ge=1000)
    """Characters of a text that are shown at once; the rest is kept for the next call."""
    search: Literal["auto", "brave", "tavily", "searxng", "off"] = "auto"
    """The search engine. `auto` takes the first that is set up, the user's own SearXNG before a key in the
    environment."""
    searxng_url: str = Field(default="", pattern=r"^(https?://\S+)?$")
    results: int = Field(default=8, ge=1, le=20)

    def engine(self, environ: Mapping[str, str]) -> SearchEngine | None:
        """Returns the search engine that is set up, or None."""
        if self.searxng_url and self.search in ("auto", "searxng"):
            return SearchEngine("searxng", self.searxng_url.rstrip("/") + "/search")
        for kind, url in (("brave", BRAVE), ("tavily", TAVILY)):
            key = next((environ[name].strip() for name in KEYS[kind] if environ.get(name, "").strip()), "")
            if key and self.search in ("auto", kind):
                return SearchEngine(cast('Literal["brave", "tavily"]', kind), url, key)
        return None

    def not_offered(self, environ: Mapping[str, str]) -> frozenset[str]:
        """Returns the operations that cannot be used here; the model is not told of them."""
        switched_off = () if self.fetch else (FETCH,)
        return frozenset(switched_off if self.engine(environ) else (*switched_off, SEARCH))


class ServerSettings(Section):
    """One server: a program with its arguments, or an address."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    """The variables of the server. Its program gets HOME, PATH, TERM, USER, SHELL, LOGNAME and these. `${NAME}` stands
    for a variable of yours, which must be set; `${NAME:-text}` stands for the text where it is not set."""
    cwd: str = ""
    """The folder in which the program is started: your home if empty; `.` is the work folder."""
    url: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    client_id: str = ""
    """Duckflow's client id at logins, or the address of a document about it. If empty, Duckflow registers itself."""
    client_secret: str = ""
    callback_port: int = Field(default=0, ge=0, le=65535)
    """The port of this machine to which the browser is sent after a login, if the server allows only one; 0 means any
    free port."""
    enabled: bool = True
    start_seconds: float = Field(default=30.0, gt=0)
    call_seconds: float = Field(default=300.0, gt=0)

    @property
    def texts(self) -> tuple[str, ...]:
        """Returns every text that may contain `${NAME}`."""
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
    """Tools that the model must not know of, so that it cannot call them."""
    wait_seconds: float = Field(default=5.0, ge=0)
    """Seconds that a message waits for servers that are still starting. Servers that come later are there with the next
    message."""
    prompt_share: float = Field(default=0.05, ge=0, le=1)
    """The share of the model's window that descriptions of tools may take; if they take more, the model searches for
    them."""
    output_characters: int = Field(default=20_000, ge=500)
    """Characters of a result that the model gets at once; the rest is kept."""
