"""`duckflow demo`: a tour of two minutes with a scripted model, played by hand or by itself."""

import asyncio
import math
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from duckflow.agent.connection import Connected
from duckflow.agent.session import begin
from duckflow.cli.build import build_conversation
from duckflow.cli.demo.guide import Guide
from duckflow.cli.demo.model import TourModel
from duckflow.cli.parser import Options
from duckflow.cli.setup import Setup
from duckflow.cli.signals import ended_by_signals
from duckflow.config.load import load
from duckflow.config.settings import Settings
from duckflow.errors import UsageError
from duckflow.i18n.words import Words
from duckflow.state.phrase import say
from duckflow.store.paths import Paths
from duckflow.ui.console.chat import Chat
from duckflow.ui.console.line import Line, LineHandler
from duckflow.ui.console.plain_line import open_line
from duckflow.ui.settings import UiSettings
from duckflow.ui.streams import print_out

PRESS_SECONDS = 0.05


class Autoplay:
    """For a tour that nobody sits in front of."""

    def __init__(self) -> None:
        self._handler: LineHandler | None = None
        self._left = asyncio.Event()

    @contextmanager
    def printing(self) -> Generator[None]:
        yield

    async def run(self) -> None:
        while not self._left.is_set():
            await asyncio.sleep(PRESS_SECONDS)
            if self._handler and self._handler.ready():
                self._handler.take("", math.inf)

    async def lend_terminal(self, work: Callable[[], str]) -> str:
        return await asyncio.to_thread(work)

    async def shown(self) -> None:
        return

    def hand_to(self, handler: LineHandler | None) -> None:
        self._handler = handler

    def put_back(self, text: str) -> bool:
        return False

    def signal(self, sequence: str) -> None:
        return

    def redraw(self) -> None:
        return

    def leave(self) -> None:
        self._left.set()


DELAY = 0.02
SESSION = "demo"


def run_demo(options: Options, words: Words, paths: Paths) -> int:
    looks = _looks(paths)
    with tempfile.TemporaryDirectory(prefix="duckflow-demo-", ignore_cleanup_errors=True) as top:
        asyncio.run(_toured(Path(top), looks, words))
    print_out(words("demo.left"))
    return 0


def _looks(paths: Paths) -> UiSettings:
    """As the user likes it; a config that cannot be read is no reason not to show the tour."""
    try:
        return load(paths.user_config, Path.cwd(), {}).settings.ui
    except UsageError:
        return UiSettings()


async def _toured(top: Path, looks: UiSettings, words: Words) -> None:
    live = sys.stdin.isatty() and sys.stdout.isatty()
    line = open_line(None, words) if live else Autoplay()
    with line.printing(), ended_by_signals(line.leave):
        typing = asyncio.create_task(line.run())
        try:
            await _tour(top, line, typing, looks, words, DELAY if live else 0.0)
        finally:
            line.leave()
            await typing


async def _tour(
    top: Path, line: Line, typing: asyncio.Task[None], looks: UiSettings, words: Words, delay: float
) -> None:
    work = top / "ducks"
    work.mkdir()
    settings = Settings(language=words.language, ui=looks)
    setup = Setup(settings, Paths(top / "data", top / "config", top / "cache"), work, words)
    session = begin(top / "data/demo.db", SESSION, work, words.language)
    model = TourModel(words, delay)
    built = build_conversation(setup, session, partial(_connected, model))
    chat = Chat(built.conversation, line, words, looks)
    guide = Guide(built.conversation, chat, model, line, words)
    leading = asyncio.create_task(guide.lead())
    try:
        chat.open()
        line.hand_to(guide)
        await typing
    finally:
        leading.cancel()
        await built.close()
        chat.close()
        session.close()


async def _connected(model: TourModel, second: bool) -> Connected:
    return Connected(model, say("demo.chosen"))
