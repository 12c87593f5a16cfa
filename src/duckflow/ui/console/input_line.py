"""The input line with its history, keys, pastes and completion."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO, cast

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Always, Condition
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.patch_stdout import StdoutProxy
from prompt_toolkit.styles import Style

from duckflow.i18n.words import Words
from duckflow.ui.console.keys import key_bindings, keyboard
from duckflow.ui.console.line import HandlerKey, LineHandler
from duckflow.ui.console.pastes import Pastes
from duckflow.ui.console.reflow import ReflowedOutput, output_for
from duckflow.whole_file import write_whole

KEPT_BYTES = 1_000_000
LONGEST_ENTRY = 10_000


class InputHistory(FileHistory):
    """The history of typed lines, in a file that only its owner can read. When the file gets too long, its oldest half
    is cut off."""

    def __init__(self, path: Path, worth: Callable[[str], bool], expand: Callable[[str], str]) -> None:
        self._worth = worth
        self._expand = expand
        self._cut(path)
        super().__init__(str(path))

    def append_string(self, string: str) -> None:
        if self._worth(string) and string != next(iter(self._loaded_strings), None):
            super().append_string(string)

    def store_string(self, string: str) -> None:
        """Writes a line to the file. A paste is written in full unless it is very long, because its mark means nothing
        to another session."""
        expanded_text = self._expand(string)
        try:
            super().store_string(expanded_text if len(expanded_text) <= LONGEST_ENTRY else string)
        except (OSError, UnicodeError):
            # A history that cannot be written is no reason to stop.
            return

    def load_history_strings(self) -> Iterable[str]:
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    @staticmethod
    def _cut(path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            path.chmod(0o600)
            if path.stat().st_size > KEPT_BYTES:
                recent_bytes = path.read_bytes()[-KEPT_BYTES // 2 :]
                start = recent_bytes.find(b"\n# ") + 1
                write_whole(path, recent_bytes[start:])
        except OSError:
            return


def input_history(
    path: Path | None, worth: Callable[[str], bool], expand: Callable[[str], str]
) -> InputHistory | InMemoryHistory:
    return InputHistory(path, worth, expand) if path else InMemoryHistory()


EVERY_SECONDS = 0.02


class LiveStdout(StdoutProxy):
    """A stand-in for stdout that prints above the input line. The stand-in of prompt_toolkit gives the terminal back
    for every line that it prints. The terminal itself then echoes a key pressed in that moment, and turns Enter into a
    line feed: while a reply streams in, one Enter in fifty. So this class prints without giving the terminal back."""

    def __init__(self) -> None:
        super().__init__(sleep_between_writes=EVERY_SECONDS, raw=True)
        self._waiting: list[str] = []
        self._held = False
        self._printing: asyncio.Task[None] | None = None

    def hold(self) -> None:
        """Lets printed text wait while another program (an editor) has the screen."""
        self._held = True

    def release(self) -> None:
        self._held = False
        self._take("")

    def _write_and_flush(self, loop: asyncio.AbstractEventLoop | None, text: str) -> None:
        if loop is None:
            super()._write_and_flush(loop, text)
        else:
            loop.call_soon_threadsafe(self._take, text)

    def _take(self, text: str) -> None:
        self._waiting.append(text)
        if not self._held and (self._printing is None or self._printing.done()):
            self._printing = asyncio.get_running_loop().create_task(self._print())

    async def _print(self) -> None:
        app = self.app_session.app
        if app is not None and app.is_running:
            # The cursor's position may have been asked for: an answer that comes after printing would be wrong.
            await app.renderer.wait_for_cpr_responses()
        text, self._waiting = "".join(self._waiting), []
        if app is None or not app.is_running:
            super()._write_and_flush(None, text)
            return
        app.renderer.erase()
        super()._write_and_flush(None, text)
        app.renderer.reset()
        app.renderer.request_absolute_cursor_position()
        app.invalidate()


ESCAPE_SECONDS = 0.04
MENU_LINES = 8
COMPLETED = ("/", "!", "／", "！")
# The style sets no colours: which ones are readable depends on the user's terminal background.
STYLE = Style.from_dict(
    {
        "completion-menu": "noinherit",
        "completion-menu.completion": "noinherit",
        "completion-menu.completion.current": "noinherit reverse",
        "completion-menu.meta.completion": "noinherit dim",
        "completion-menu.meta.completion.current": "noinherit reverse",
        "scrollbar.background": "noinherit",
        "scrollbar.button": "noinherit reverse",
    }
)


class InputLine:
    """The input line. Lines that are typed before there is a handler wait for one."""

    def __init__(self, history: Path | None, words: Words) -> None:
        self.pastes = Pastes(words)
        self._handler: LineHandler | None = None
        self._early: list[tuple[str, float]] = []
        self._begun = 0.0
        self._hint = ("", 0.0)
        self._stdout: LiveStdout | None = None
        output = output_for(os.environ)
        self._session: PromptSession[str] = PromptSession(
            self._message,
            history=input_history(history, self._worth_keeping, self.pastes.expand),
            key_bindings=key_bindings(self),
            bottom_toolbar=self._bar,
            completer=_Completions(self),
            complete_while_typing=Condition(self._completes),
            reserve_space_for_menu=MENU_LINES,
            prompt_continuation="  ",
            is_password=Condition(lambda: self._handler is not None and self._handler.hides()),
            erase_when_done=True,
            enable_suspend=True,
            search_ignore_case=True,
            style=STYLE,
            input=keyboard(),
            output=output,
        )
        if isinstance(output, ReflowedOutput):
            self._session.app.after_render += output.remember
        self._session.default_buffer.accept_handler = self._accept
        self._session.default_buffer.on_text_changed += self._note_begin
        # The status bar stands right below the line, not at the bottom of an empty screen.
        self._session.layout.current_window.dont_extend_height = Always()
        # Esc must act at once. By default the editor waits twice to see whether Esc begins a longer key sequence. Once
        # is enough: the bytes of one key arrive together.
        self._session.app.ttimeoutlen, self._session.app.timeoutlen = ESCAPE_SECONDS, 0.0

    @contextmanager
    def printing(self) -> Generator[None]:
        """Makes text that is printed inside the context appear above the line."""
        streams = sys.stdout, sys.stderr
        stdout = self._stdout = LiveStdout()
        with stdout:
            sys.stdout = sys.stderr = cast("TextIO", stdout)
            try:
                yield
            finally:
                self._stdout = None
                sys.stdout, sys.stderr = streams

    async def lend_terminal(self, work: Callable[[], str]) -> str:
        """Lets another program have the terminal until it is done. Printed text waits meanwhile."""
        if self._stdout:
            self._stdout.hold()
        try:
            return await run_in_terminal(work, in_executor=True)
        finally:
            if self._stdout:
                self._stdout.release()

    async def run(self) -> None:
        """Reads lines until the user leaves."""
        try:
            # Exceptions of tasks go to the log, not onto the screen. Ctrl+C is a key here: SIGINT comes from somebody
            # else, who wants the program to end.
            await self._session.prompt_async(set_exception_handler=False, handle_sigint=False)
        except EOFError:
            return

    async def shown(self) -> None:
        app, drawn_event = self._session.app, asyncio.Event()

        def on_render(_: Application[str]) -> None:
            drawn_event.set()

        app.after_render += on_render
        if not app.render_counter:
            await drawn_event.wait()
        app.after_render -= on_render

    def hand_to(self, handler: LineHandler | None) -> None:
        """Passes lines to this handler from now on, beginning with the lines that waited. Without a handler, lines wait
        for the next."""
        self._handler = handler
        while self._handler and self._early:
            self._handler.take(*self._early.pop(0))
        self.redraw()

    def redraw(self) -> None:
        self._session.app.invalidate()

    def leave(self) -> None:
        if self._session.app.is_running and not self._session.app.is_done:
            self._session.app.exit(exception=EOFError())

    def interrupt(self) -> bool:
        """Interrupts the running work; returns False if there is none. Messages that waited to be sent come back into
        the line."""
        if not self._handler or not self._handler.busy():
            return False
        if waiting_text := self._handler.interrupt():
            buffer = self._session.default_buffer
            buffer.document = Document("\n".join(text for text in (waiting_text, buffer.text) if text))
        return True

    def hint(self, key: str, seconds: float) -> None:
        """Shows a hint in place of the status bar for a moment."""
        if self._handler:
            self._hint = (self._handler.hint(key), time.monotonic() + seconds)
            if loop := self._session.app.loop:
                loop.call_later(seconds, self.redraw)
        self.redraw()

    def comes_early(self) -> bool:
        """Says whether a key is pressed before there is a handler that takes lines."""
        return self._handler is None

    def send_later(self) -> bool:
        """Queues the typed message until the running turn has ended. Returns False if there is no running turn; then
        nothing is queued."""
        buffer = self._session.default_buffer
        text = self.pastes.expand(buffer.text)
        if not self._handler or not text.strip() or not self._handler.take_later(text):
            return False
        buffer.append_to_history()
        buffer.reset()
        return True

    def put_back(self, text: str) -> bool:
        self._session.default_buffer.document = Document(text)
        # The line counts as begun when it is sent again.
        self._begun = 0.0
        return True

    def signal(self, sequence: str) -> None:
        output = self._session.app.output
        output.write_raw(sequence)
        output.flush()

    def go_back(self) -> bool:
        """Offers to go back to an earlier message, unless a text is typed or work is going on."""
        if not self._handler or self._session.default_buffer.text or not self._handler.ready():
            return False
        self._handler.take("/back", time.monotonic())
        return True

    def next_page(self) -> bool:
        """Shows the next page of the question, and says whether there was one."""
        if self._handler is None or self._session.default_buffer.text or not self._handler.reads_on():
            return False
        self._handler.take("", time.monotonic())
        return True

    def press(self, key: HandlerKey) -> None:
        if self._handler:
            getattr(self._handler, key)()
            self.redraw()

    def asks_about_jobs(self, command: str) -> bool:
        return bool(self._handler and self._handler.asks_about_jobs(command))

    def completions(self, document: Document) -> Iterable[Completion]:
        return self._handler.completions(document) if self._handler else ()

    def _accept(self, buffer: Buffer) -> bool:
        text, begin_time = self.pastes.expand(buffer.text), self._begun or time.monotonic()
        buffer.append_to_history()
        buffer.reset()
        self._begun = 0.0
        if self._handler:
            self._handler.take(text, begin_time)
        else:
            self._early.append((text, begin_time))
        return True

    def _note_begin(self, buffer: Buffer) -> None:
        """Notes when typing of the line began: an answer must be begun after its question was shown."""
        self._begun = (self._begun or time.monotonic()) if buffer.text else 0.0

    def _worth_keeping(self, text: str) -> bool:
        return bool(text.strip()) and (self._handler is None or self._handler.worth_keeping(text))

    def _completes(self) -> bool:
        document = self._session.default_buffer.document
        word = document.get_word_before_cursor(WORD=True)
        return document.text.startswith(COMPLETED) or word.startswith(("@", "＠"))

    def _columns(self) -> int:
        return self._session.app.output.get_size().columns

    def _message(self) -> FormattedText:
        lines_above = self._handler.above(self._columns()) if self._handler else []
        return FormattedText([*lines_above, *([("", "\n")] if lines_above else []), ("bold", self._sign())])

    def _sign(self) -> str:
        if self._handler:
            return self._handler.prompt_sign()
        return "› " if self._session.app.output.encoding().lower().startswith("utf") else "> "

    def _bar(self) -> FormattedText:
        text, end_time = self._hint
        if time.monotonic() < end_time:
            return FormattedText([("", text)])
        return FormattedText([("", self._handler.bar(self._columns()) if self._handler else "")])


class _Completions(Completer):
    """Finds completions in a thread, so that typing goes on however long the search takes."""

    def __init__(self, line: InputLine) -> None:
        self._line = line

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        return self._line.completions(document)

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        for completion in await asyncio.to_thread(list, self._line.completions(document)):
            yield completion
