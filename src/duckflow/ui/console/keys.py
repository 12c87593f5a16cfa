"""The key bindings of the input line, and the user's editor."""

import asyncio
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, has_completions, is_searching
from prompt_toolkit.input import Input, create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from duckflow.programs.find import environment_outside, find_program
from duckflow.ui.console.line import HandlerKey
from duckflow.ui.console.pastes import Pastes


def keyboard() -> Input:
    """Returns the input that the line reads keys from."""
    if os.name != "posix" or not sys.stdin.isatty():
        return create_input()
    from prompt_toolkit.input.vt100 import Vt100Input, raw_mode

    class Unchanged(raw_mode):
        """Stands in for the context manager that would change the terminal's mode, and leaves the mode as it is."""

        def __enter__(self) -> None:
            return

    class Keyboard(Vt100Input):
        """A keyboard that stays in raw mode. prompt_toolkit would put the terminal into cooked mode for a moment when
        it prints. In that mode the terminal echoes keys, makes Enter a line feed and Ctrl+C a signal."""

        def cooked_mode(self) -> AbstractContextManager[None]:
            return Unchanged(self.fileno())

    return Keyboard(sys.stdin)


def cooked() -> AbstractContextManager[None]:
    """Puts the terminal into its normal mode while another program uses it."""
    if os.name != "posix" or not sys.stdin.isatty():
        return nullcontext()
    from prompt_toolkit.input.vt100 import cooked_mode

    return cooked_mode(sys.stdin.fileno())


def edit_text(text: str) -> str:
    """Returns the text after the user has edited it; the same text if no editor works."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "proposed.txt"
        file.write_text(text, encoding="utf-8")
        try:
            with cooked():
                # Editors start programs by their names, and some read settings of the folder that they start in.
                variables = environment_outside(Path.cwd())
                subprocess.run([*_editor(), str(file)], env=variables, cwd=folder, check=True)
        except (OSError, ValueError, subprocess.CalledProcessError):
            return text
        return file.read_text(encoding="utf-8", errors="replace")


def _editor() -> list[str]:
    """Returns the command of the user's editor. A program in the work folder is never used. Raises FileNotFoundError if
    there is no editor."""
    name, *options = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    program = find_program(name)
    if program is None:
        raise FileNotFoundError(name)
    return [program, *options]


AGAIN_SECONDS = 2.0
LOOK_SECONDS, MOST_LOOKS = 0.01, 500


class KeyActions(Protocol):
    """The actions that keys trigger on the input line and on the handler behind it."""

    pastes: Pastes

    def interrupt(self) -> bool: ...

    def leave(self) -> None: ...

    def hint(self, key: str, seconds: float) -> None: ...

    def comes_early(self) -> bool: ...

    def send_later(self) -> bool: ...

    def press(self, key: HandlerKey) -> None: ...

    def asks_about_jobs(self, command: str) -> bool: ...

    def next_page(self) -> bool: ...

    def go_back(self) -> bool: ...


class CtrlC:
    """Ctrl+C interrupts running work, else clears the line, else leaves. Leaving takes two presses in a row, so that
    nobody leaves by mistake."""

    def __init__(self, actions: KeyActions) -> None:
        self._actions = actions
        self._armed_until = 0.0

    def press(self, event: KeyPressEvent) -> None:
        buffer = event.app.current_buffer
        now = time.monotonic()
        if self._actions.interrupt():
            return
        if buffer.text:
            buffer.reset()
        elif now < self._armed_until:
            leave(self._actions)
            return
        self._actions.hint("chat.leave_hint", AGAIN_SECONDS)
        self._armed_until = now + AGAIN_SECONDS


class TwiceEscape:
    """Esc pressed twice in an empty line goes back to an earlier message."""

    def __init__(self, actions: KeyActions) -> None:
        self._actions = actions
        self._armed_until = 0.0

    def press(self, typed: str) -> None:
        now = time.monotonic()
        if typed:
            return
        if now < self._armed_until:
            self._armed_until = 0.0
            self._actions.go_back()
        else:
            self._armed_until = now + AGAIN_SECONDS


def leave(actions: KeyActions) -> None:
    """Leaves the chat. If a job is at work, the user first says what to do with it."""
    if not actions.asks_about_jobs("/quit"):
        actions.leave()


async def _complete_when_found(buffer: Buffer) -> None:
    """Inserts the first completion as soon as the running search has one, unless the user types on meanwhile. If no
    search is running, a search is started."""
    state = buffer.complete_state
    if state is None:
        buffer.start_completion(insert_common_part=True)
        return
    for _ in range(MOST_LOOKS):
        if buffer.complete_state is not state or state.completions:
            break
        await asyncio.sleep(LOOK_SECONDS)
    if buffer.complete_state is state and state.completions:
        buffer.complete_next()


def key_bindings(actions: KeyActions) -> KeyBindings:
    """Returns the bindings of Esc, Ctrl+C, Ctrl+J and others, in addition to the editor's own."""
    keys = KeyBindings()
    ctrl_c, twice_escape = CtrlC(actions), TwiceEscape(actions)
    is_typing = ~is_searching

    @Condition
    def continued() -> bool:
        from prompt_toolkit.application import get_app

        return get_app().current_buffer.document.text_before_cursor.endswith("\\")

    def on_escape(event: KeyPressEvent) -> None:
        buffer = event.app.current_buffer
        if buffer.complete_state:
            buffer.cancel_completion()
        elif not actions.interrupt() and not actions.asks_about_jobs("/tasks ask"):
            twice_escape.press(buffer.text)

    @Condition
    def nothing_found() -> bool:
        from prompt_toolkit.application import get_app

        state = get_app().current_buffer.complete_state
        return not (state and state.completions)

    def on_early_tab(event: KeyPressEvent) -> None:
        """Completes a word when Tab is pressed before its completions have been found."""
        event.app.create_background_task(_complete_when_found(event.app.current_buffer))

    def on_end(event: KeyPressEvent) -> None:
        leave(actions)

    @Condition
    def empty() -> bool:
        from prompt_toolkit.application import get_app

        return not get_app().current_buffer.text

    def on_newline(event: KeyPressEvent) -> None:
        if actions.comes_early():
            # Enter pressed before the line was up arrives as Ctrl+J from the terminal.
            event.app.current_buffer.validate_and_handle()
        else:
            event.app.current_buffer.insert_text("\n")

    def on_alt_enter(event: KeyPressEvent) -> None:
        """Queues the line until the running turn has ended. If no turn is running, a new line is begun."""
        if not actions.send_later():
            on_newline(event)

    def on_continued(event: KeyPressEvent) -> None:
        event.app.current_buffer.delete_before_cursor()
        event.app.current_buffer.insert_text("\n")

    def on_chosen(event: KeyPressEvent) -> None:
        """Takes the chosen entry of the menu: a command is carried out, a file is put into the line."""
        buffer = event.app.current_buffer
        state = buffer.complete_state
        if state and state.current_completion and not buffer.text.startswith(("/", "／")):
            buffer.complete_state = None
            buffer.insert_text(" ")
        else:
            buffer.validate_and_handle()

    def on_paste(event: KeyPressEvent) -> None:
        buffer, text = event.app.current_buffer, actions.pastes.take(event.data)
        needs_space = text.startswith("@") and buffer.document.char_before_cursor.strip()
        buffer.insert_text(f" {text}" if needs_space else text)

    def on_paste_picture(event: KeyPressEvent) -> None:
        paste_coroutine = actions.pastes.paste_picture(event.app.current_buffer.insert_text, actions.hint)
        event.app.create_background_task(paste_coroutine)

    def presses(key: HandlerKey) -> Callable[[KeyPressEvent], None]:
        return lambda event: actions.press(key)

    def on_space(event: KeyPressEvent) -> None:
        if not actions.next_page():
            event.app.current_buffer.insert_text(" ")

    keys.add("escape", filter=is_typing)(on_escape)
    keys.add(" ", filter=is_typing)(on_space)
    keys.add("tab", filter=is_typing & nothing_found)(on_early_tab)
    keys.add("c-c", filter=is_typing)(ctrl_c.press)
    keys.add("c-j")(on_newline)
    keys.add("escape", "enter", filter=is_typing)(on_alt_enter)
    keys.add("enter", filter=is_typing & continued)(on_continued)
    keys.add("enter", filter=is_typing & has_completions)(on_chosen)
    keys.add(Keys.BracketedPaste, filter=is_typing)(on_paste)
    keys.add("c-v", filter=is_typing)(on_paste_picture)
    keys.add("escape", "v", filter=is_typing)(on_paste_picture)
    keys.add("s-tab", filter=~has_completions)(presses("change_mode"))
    keys.add("c-t", filter=is_typing)(presses("pause_or_resume"))
    keys.add("c-d", filter=is_typing & empty)(on_end)
    keys.add("c-o", filter=is_typing)(presses("open_thoughts"))
    return keys
