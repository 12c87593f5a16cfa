"""`duckflow demo`: a tour of two minutes with a scripted model, played by hand or by itself."""

import asyncio
import math
import sys
import tempfile
from functools import partial
from pathlib import Path

from duckflow.agent.connection import Connected
from duckflow.agent.session import begin
from duckflow.cli.build import build_conversation
from duckflow.cli.demo.model import Stop, TourModel, stops
from duckflow.cli.parser import Options
from duckflow.cli.setup import Setup
from duckflow.cli.signals import ended_by_signals
from duckflow.config.load import load
from duckflow.config.settings import Settings
from duckflow.errors import UsageError
from duckflow.events.ports import Conversation
from duckflow.i18n.width import fitted
from duckflow.i18n.words import Words
from duckflow.state.data import say
from duckflow.store.paths import Paths
from duckflow.ui.console.chat import Chat
from duckflow.ui.console.line import Fragments, Line
from duckflow.ui.console.plain_line import PlainLine, open_line
from duckflow.ui.settings import UiSettings
from duckflow.ui.streams import print_out

LOOK_SECONDS = 0.1
FIRST = "1"


class Guide(Chat):
    """A chat that leads through the tour by suggesting what to type."""

    def __init__(
        self, conversation: Conversation, line: Line, words: Words, settings: UiSettings, model: TourModel
    ) -> None:
        super().__init__(conversation, line, words, settings)
        self._state = conversation.state
        self._model = model
        self._left = [*stops(words)]
        self._stop: Stop | None = None
        self._said = False

    async def lead(self) -> None:
        """Goes through the stops of the tour. A stop lasts until the work that was begun there is over."""
        while True:
            if self._stop is None or (self._idle() and self._over(self._stop)):
                self._advance()
            self._line.redraw()
            await asyncio.sleep(LOOK_SECONDS)

    def suggestion(self) -> str:
        """Returns the line that is sent when the user only presses Enter; an empty text while work is going on."""
        if self._stop is None:
            return ""
        question = next(iter(self._conversation.questions), None)
        if question and not question.job:
            return FIRST
        if not self._said:
            return self._stop.line if self._idle() else ""
        # A job's question is answered at the stop that waits for the job.
        return FIRST if question and not self._over(self._stop) else ""

    def take(self, text: str, begun: float) -> None:
        if not text.strip() and self.reads_on():
            super().take(text, begun)
            return
        text = text.strip() or self.suggestion()
        if not text:
            return
        answers = not self.worth_keeping(text)
        # A slash command, other than the stop's own line, does not count as the stop's message.
        is_command = text.startswith("/") and not (self._stop and text == self._stop.line)
        self._said = self._said or not (answers or is_command)
        super().take(text, begun)

    def above(self, columns: int) -> Fragments:
        fragments = super().above(columns)
        line = self.suggestion()
        if not line:
            return fragments
        hint = fitted(self._words("demo.enter", line=line), columns - 1)
        return [*fragments, *([("", "\n")] if fragments else []), ("fg:ansicyan", hint)]

    def _over(self, stop: Stop) -> bool:
        """Says whether this stop of the tour is over: its work has ended, or things that it needs are missing."""
        return (self._said and stop.over(self._state)) or not stop.needed(self._state)

    def _idle(self) -> bool:
        """Says whether the conversation waits for the user. The question of a background job does not count."""
        question = next(iter(self._conversation.questions), None)
        return not self.busy() and (question is None or bool(question.job))

    def _advance(self) -> None:
        while self._left:
            stop = self._left.pop(0)
            if stop.needed(self._state):
                self._stop, self._said = stop, False
                self._model.begin(stop)
                self.screen.warn("\n" + self._words(f"demo.{stop.name}"))
                return
        # At the last stop the user may stay as long as they like.
        self._said = False


PRESS_SECONDS = 0.05


class Autoplay(PlainLine):
    """An input line that presses Enter by itself, for a tour without a person."""

    async def run(self) -> None:
        while not self._left.is_set():
            await asyncio.sleep(PRESS_SECONDS)
            if self._handler and self._handler.ready():
                self._handler.take("", math.inf)

    def signal(self, sequence: str) -> None:
        return

    def redraw(self) -> None:
        return


DELAY = 0.02
SESSION = "demo"


def run_demo(options: Options, words: Words, paths: Paths) -> int:
    ui_settings = _looks(paths)
    with tempfile.TemporaryDirectory(prefix="duckflow-demo-", ignore_cleanup_errors=True) as temporary_folder:
        asyncio.run(_toured(Path(temporary_folder), ui_settings, words))
    print_out(words("demo.left"))
    return 0


def _looks(paths: Paths) -> UiSettings:
    """Returns the user's own settings of the screen. If the config cannot be read, the tour starts with the
    defaults."""
    try:
        return load(paths.user_config, Path.cwd(), {}).settings.ui
    except UsageError:
        return UiSettings()


async def _toured(top: Path, looks: UiSettings, words: Words) -> None:
    is_live = sys.stdin.isatty() and sys.stdout.isatty()
    line = open_line(None, words) if is_live else Autoplay()
    with line.printing(), ended_by_signals(line.leave):
        type_task = asyncio.create_task(line.run())
        try:
            await _tour(top, line, type_task, looks, words, DELAY if is_live else 0.0)
        finally:
            line.leave()
            await type_task


async def _tour(
    top: Path, line: Line, typing: asyncio.Task[None], looks: UiSettings, words: Words, delay: float
) -> None:
    work_folder = top / "ducks"
    work_folder.mkdir()
    settings = Settings(language=words.language, ui=looks)
    setup = Setup(settings, Paths(top / "data", top / "config", top / "cache"), work_folder, words)
    session = begin(top / "data/demo.db", SESSION, work_folder, words.language)
    model = TourModel(words, delay)
    built_conversation = build_conversation(setup, session, partial(_connected, model))
    guide = Guide(built_conversation.conversation, line, words, looks, model)
    lead_task = asyncio.create_task(guide.lead())
    try:
        guide.open()
        await typing
    finally:
        lead_task.cancel()
        await built_conversation.close()
        guide.close()
        session.close()


async def _connected(model: TourModel, second: bool) -> Connected:
    return Connected(model, say("demo.chosen"))
