"""Prints above the input line without ever letting go of the keyboard."""

import asyncio

from prompt_toolkit.patch_stdout import StdoutProxy

EVERY_SECONDS = 0.02


class LiveStdout(StdoutProxy):
    """Stands in for stdout.

    The usual way actions the terminal back for every line that is printed. A key that falls into that moment is echoed
    by the terminal itself, and Enter becomes a new line: with a reply streaming in, one Enter in fifty. Nothing needs
    the terminal while text is written, so it is kept."""

    def __init__(self) -> None:
        super().__init__(sleep_between_writes=EVERY_SECONDS, raw=True)
        self._waiting: list[str] = []
        self._held = False
        self._printing: asyncio.Task[None] | None = None

    def hold(self) -> None:
        """Somebody else (an editor) has the screen: what is printed waits."""
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
            # Where the cursor was asked for: an answer that comes after something was printed would be wrong.
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
