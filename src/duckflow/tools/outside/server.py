"""One server while Duckflow runs: it is started in the background, watched, and started again when it ends."""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from duckflow.clock import PausableTimeout
from duckflow.programs.find import environment_outside, find_program, worked_in
from duckflow.programs.launch import Launch, on_lifeline
from duckflow.rpc import RpcError
from duckflow.safety.brought.own_programs import served_from
from duckflow.state.data import Phrase, say
from duckflow.tools.outside.client import Client, Elicit, Show, Table
from duckflow.tools.outside.http import LOGIN_NEEDED
from duckflow.tools.outside.stdio import child_environment, filled_in, unset_in
from duckflow.tools.settings import ServerSettings

log = logging.getLogger(__name__)

ServerState = Literal["off", "starting", "ready", "waiting", "failed", "login"]
KINDS = ("tools", "prompts", "resources")
TRIES = 5
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
STEADY_SECONDS = 60.0
PATIENCE_SECONDS = 10.0
ENDING_SECONDS = 1.0
"""Seconds that a server has to end by itself after it is told to."""
CALM_SECONDS = 0.5
"""Seconds to wait before a list that changed is read again."""

Tokens = Callable[[str, bool], Awaitable[str]]
"""A function that returns the token for an address from the keyring; empty if there is none. Its second argument is
True if the server refused the earlier token."""


class BroughtServer(NamedTuple):
    """The means to start a server that the work folder brought."""

    launch: Callable[[Sequence[str], Mapping[str, str], str], Awaitable[Launch]]
    """A function that makes a launch from a command line, variables and a folder. It raises OSError if the program
    cannot run as the user agreed."""
    variables: Mapping[str, str]
    """The user's variables that the server may ask for."""


async def no_token(url: str, refused: bool) -> str:
    """Returns no token, for callers that never log in."""
    return ""


class OutsideServer:
    """A server. It runs in a separate task, so that its end does not affect other servers. `brought` is set if the work
    folder brought the server."""

    def __init__(
        self,
        name: str,
        settings: ServerSettings,
        folder: Path,
        elicit: Callable[[str], Elicit],
        notice: Callable[[Phrase], None],
        tokens: Tokens = no_token,
        brought: BroughtServer | None = None,
    ) -> None:
        self.name = name
        self.settings = settings
        self.brought = brought
        self.state: ServerState = "off"
        self.why = ""
        self.lists: dict[str, list[Table]] = {kind: [] for kind in KINDS}
        self.tried = asyncio.Event()
        """Set when the server has answered, or failed, for the first time."""
        self.seconds = 0.0
        """The number of seconds that the server's last start took."""
        self.about = ""
        self._folder = folder
        self._ask = elicit(name)
        self._notice = notice
        self._tokens = tokens
        self._client: Client | None = None
        self._over = asyncio.Event()
        self._up = asyncio.Event()
        self._wants_login = False
        self._unset: list[str] = []
        """The user's variables that the server's entry needs and that have no value."""
        self._changed: set[str] = set()
        self._reading: asyncio.Task[None] | None = None
        self._living: asyncio.Task[None] | None = None
        self._timeouts: set[PausableTimeout] = set()

    def start(self, wait_seconds: float = 0.0) -> None:
        if self.settings.enabled and (self._living is None or self._living.done()):
            self.state = "starting"
            self.tried.clear()
            self._living = asyncio.create_task(self._live(wait_seconds))

    async def restart(self) -> None:
        await self.aclose()
        self.start()

    async def call(self, method: str, params: Table, show: Show | None = None) -> Table:
        """Calls the server. Raises RpcError when the server is not running, or refuses. A call waits a moment for a
        server that is just starting."""
        if self.state in ("starting", "waiting"):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._up.wait(), PATIENCE_SECONDS)
        if self._client is None or self.state != "ready":
            why = f"the server {self.name} is not running ({self.state}{f': {self.why}' if self.why else ''})"
            raise RpcError(-32000, why)
        return await self._client.request(method, params, show)

    @contextlib.contextmanager
    def timed(self, timeout: PausableTimeout) -> Generator[None]:
        """Makes the time limit stand still while the user answers a question of this server."""
        self._timeouts.add(timeout)
        try:
            yield
        finally:
            self._timeouts.discard(timeout)

    async def aclose(self) -> None:
        for task in (self._living, self._reading):
            if task:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        self.state = "off"

    async def _live(self, wait_seconds: float) -> None:
        """Runs the server until it is closed, or has failed too often."""
        failures, was_noticed = 0, False
        await asyncio.sleep(wait_seconds)
        while True:
            self.state, started_at = "starting", time.monotonic()
            try:
                await self._once()
                failures = 0 if time.monotonic() - started_at > STEADY_SECONDS else failures
            finally:
                self.tried.set()
            failures += 1
            if self._wants_login:
                self.state = "login"
                self._notice(say("mcp.login_needed", name=self.name))
                return
            if failures >= TRIES or self._unset:
                self.state = "failed"
                self._notice(say("mcp.failed", name=self.name, reason=self.why))
                return
            if not was_noticed:
                self._notice(say("mcp.ended", name=self.name, reason=self.why))
                was_noticed = True
            self.state = "waiting"
            await asyncio.sleep(min(FIRST_WAIT * 2**failures, LONGEST_WAIT))

    async def _once(self) -> None:
        """Runs the server once, from its start to its end."""
        self._over.clear()
        self._wants_login = False
        client = Client(self._folder, self._elicit, self._note_change, self._end)
        started_at = time.monotonic()
        try:
            async with asyncio.timeout(self.settings.start_seconds):
                await self._open(client)
                await client.connect()
                self._client = client
                await self._read_lists(KINDS)
            self.seconds = time.monotonic() - started_at
            self.about = " ".join(str(client.about.get(key, "")) for key in ("name", "version")).strip()
            self.state, self.why = "ready", ""
            self.tried.set()
            self._up.set()
            await self._over.wait()
        except TimeoutError:
            self.why = f"no answer within {self.settings.start_seconds:g} s"
        except RpcError as problem:
            self._wants_login = problem.code == LOGIN_NEEDED
            self.why = problem.message
        except (OSError, ValueError, TypeError, AttributeError) as problem:
            self.why = str(problem) or type(problem).__name__
        finally:
            self._client = None
            self._up.clear()
            # The shield makes sure that nothing is left of the server, even when this task is being cancelled.
            await asyncio.shield(client.aclose())

    async def _open(self, client: Client) -> None:
        settings, variables = self.settings, self._variables
        # A variable that is withheld from the server counts as empty, and the user was told so.
        self._unset = unset_in(settings.texts, os.environ)
        if self._unset:
            names = ", ".join(f"${{{name}}}" for name in self._unset)
            raise ValueError(f"{names}: not set here; ${{NAME:-}} in its entry would stand for nothing")
        if settings.url:
            client.over_http(filled_in(settings.url, variables), self._headers)
            return
        argv = [filled_in(word, variables) for word in (settings.command, *settings.args)]
        environment = child_environment(variables, settings.env)
        if self.brought:
            launch = await self.brought.launch(argv, environment, filled_in(settings.cwd, variables))
        else:
            # A program of the same name in the work folder is not the one that the user means.
            argv[0] = find_program(str(Path(argv[0]).expanduser()), self._folder) or argv[0]
            words = (served_from(argv, self._where(), top) for top in worked_in(self._folder))
            if name := next(filter(None, words), ""):
                raise ValueError(
                    f"{name}: this is of the work folder, where the model may have changed it; "
                    "in the folder's .mcp.json the server would run from a copy, in the sandbox"
                )
            environment = child_environment(environment_outside(self._folder), settings.env)
            launch = Launch(argv, self._where(), environment)
        await client.over_stdio(launch if launch.takes_along else on_lifeline(launch, ENDING_SECONDS))

    @property
    def _variables(self) -> Mapping[str, str]:
        return self.brought.variables if self.brought else os.environ

    def _where(self) -> Path:
        if self.settings.cwd:
            return (self._folder / Path(self.settings.cwd).expanduser()).resolve()
        return Path(os.environ.get("HOME") or "/")

    async def _headers(self, refused: bool) -> Mapping[str, str]:
        headers = {name.lower(): filled_in(value, self._variables) for name, value in self.settings.headers.items()}
        if "authorization" in headers:
            return headers
        token = await self._tokens(self.settings.url, refused)
        return headers | ({"authorization": f"Bearer {token}"} if token else {})

    async def _elicit(self, params: Table) -> Table:
        with contextlib.ExitStack() as exit_stack:
            for timeout in self._timeouts:
                exit_stack.enter_context(timeout.standing_still())
            return await self._ask(params)

    def _end(self, why: str) -> None:
        self.why = why
        self.state = "waiting"
        self._up.clear()
        self._over.set()

    def _note_change(self, kind: str) -> None:
        if kind in KINDS:
            self._changed.add(kind)
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(self._read_changed())

    async def _read_changed(self) -> None:
        while self._changed:
            await asyncio.sleep(CALM_SECONDS)
            kinds, self._changed = tuple(self._changed), set()
            with contextlib.suppress(RpcError, TimeoutError, TypeError, AttributeError):
                async with asyncio.timeout(self.settings.start_seconds):
                    await self._read_lists(kinds)

    async def _read_lists(self, kinds: tuple[str, ...]) -> None:
        client = self._client
        for kind in kinds if client else ():
            try:
                self.lists[kind] = await client.list(kind) if client else []
            except RpcError as problem:
                if kind == "tools":
                    raise
                log.info("%s of %s could not be listed: %s", kind, self.name, problem)
