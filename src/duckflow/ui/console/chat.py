"""The input line: always live, while the conversation scrolls above it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.patch_stdout import patch_stdout
from rich.console import Console

from duckflow import __version__
from duckflow.events.types import Event
from duckflow.safety.answers import read_answer
from duckflow.safety.policy import Mode
from duckflow.state.question import Question
from duckflow.ui.commands.table import Commands
from duckflow.ui.console.questions import Questions
from duckflow.ui.console.screen import Screen
from duckflow.ui.counter import Counter, Quit, Say
from duckflow.ui.desk import Desk
from duckflow.ui.i18n.words import Words
from duckflow.ui.plain import plain
from duckflow.ui.plan_tree import work_bar

REFRESH = 0.1
ESCAPE_SECONDS = 0.05


class Chat:
    """Reads lines and keys; what is typed answers an open question, or is the next message."""

    def __init__(self, words: Words, history: Path | None, color: bool, commands: Commands | None = None) -> None:
        self._words = words
        self._slash = commands or Commands()
        self._console = Console(no_color=not color or None, highlight=False)
        self.screen = Screen(self._console, words)
        self._history = history
        self._desk: Desk | None = None
        self.questions = Questions(self.screen, words)
        self._waiting: list[str] = []
        self._commands: set[asyncio.Task[None]] = set()
        self._turn: asyncio.Task[Any] | None = None
        self._session: PromptSession[str] | None = None
        self._leaving: Quit | None = None

    def hear(self, event: Event) -> None:
        self.screen.hear(event)
        self._redraw()

    async def _animate(self) -> None:
        """Keep the spinner turning while something is going on; an idle chat costs nothing."""
        while True:
            await asyncio.sleep(REFRESH)
            if self.screen.live():
                self._redraw()

    async def run(self, desk: Desk, first: str, opening: Sequence[str] = ()) -> Quit | None:
        """Until the user leaves; where to, if that was said. `opening` is what stands above the first prompt."""
        self._desk = desk
        prompt: PromptSession[str] = PromptSession(
            self._message,
            history=FileHistory(str(self._history)) if self._history else InMemoryHistory(),
            key_bindings=self._keys(),
            bottom_toolbar=self._toolbar,
            erase_when_done=True,
        )
        self._session = prompt
        # Esc must act at once; by default the editor waits to see whether it begins a longer key.
        prompt.app.ttimeoutlen = prompt.app.timeoutlen = ESCAPE_SECONDS
        self.screen.say(self._words("chat.hello", version=__version__, folder=desk.state.folder))
        for text in opening:
            self.screen.say(text)
        animation = asyncio.create_task(self._animate())
        for job in (job for job in desk.state.jobs.values() if job.status == "interrupted"):
            self.screen.note(self._words("job.interrupted", job=job.name))
        with patch_stdout(raw=True):
            if first:
                self._submit(first)
            while True:
                try:
                    text = await prompt.prompt_async()
                    self._take(text)
                except EOFError:
                    break
            animation.cancel()
            await self._stop()
        return self._leaving

    def _take(self, text: str) -> None:
        text = text.strip()
        if not text or self._desk is None:
            return
        shown = self.questions.shown
        if shown and not _beside(shown, text):
            self.questions.answer(text)
        elif text.startswith("/"):
            self.screen.user(text)
            self._commands.add(command := asyncio.create_task(self._command(text, self._desk)))
            command.add_done_callback(self._commands.discard)
        elif (told := self._desk.aside(text)) is not None:
            self.screen.user(text)
            for phrase in told:
                self.screen.say(self._words.phrase(phrase))
        else:
            self._submit(text)

    async def _command(self, text: str, desk: Desk) -> None:
        try:
            if shown := await self._slash.run(Counter(desk, self._words, self.questions.ask), text):
                self.screen.say(shown)
        except Say as wanted:
            self._submit(wanted.text)
        except Quit as leaving:
            self._leaving = leaving
            get_app().exit(exception=EOFError())
        self._redraw()

    def _submit(self, text: str) -> None:
        """Start a turn, or keep the message until the running one is over."""
        if self._turn and not self._turn.done():
            self._waiting.append(text)
            self.screen.note(self._words("chat.queued", text=text))
            return
        self.screen.user(text)
        self._turn = asyncio.create_task(self._run_turn(text))

    async def _run_turn(self, text: str) -> None:
        assert self._desk
        outcome = await self._desk.say(text)
        if outcome == "exit":
            get_app().exit(exception=EOFError())
        elif self._waiting and outcome != "interrupted":
            waiting, self._waiting = "\n".join(self._waiting), []
            asyncio.get_running_loop().call_soon(self._submit_next, waiting)
        self._redraw()

    def _submit_next(self, text: str) -> None:
        self._turn = None
        self._submit(text)

    async def _stop(self) -> None:
        if self._desk:
            self._desk.interrupt()
        if self._turn:
            await asyncio.wait([self._turn], timeout=2)

    def _interrupt(self) -> bool:
        if not self._desk:
            return False
        self._waiting.clear()
        return self._desk.interrupt()

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("escape")
        def on_escape(event: KeyPressEvent) -> None:
            self._interrupt()

        @keys.add("c-c")
        def on_ctrl_c(event: KeyPressEvent) -> None:
            buffer = event.app.current_buffer
            if self._interrupt():
                return
            if buffer.text:
                buffer.reset()
            else:
                event.app.exit(exception=EOFError())

        @keys.add("c-j")
        def on_newline(event: KeyPressEvent) -> None:
            event.app.current_buffer.insert_text("\n")

        @keys.add("s-tab")
        def on_mode(event: KeyPressEvent) -> None:
            if self._desk:
                modes = list(Mode)
                self._desk.change_mode(modes[(modes.index(self._desk.mode) + 1) % len(modes)])

        @keys.add("c-t")
        def on_tasks(event: KeyPressEvent) -> None:
            if self._desk:
                _pause_or_resume(self._desk)

        handlers = (on_escape, on_ctrl_c, on_newline, on_mode, on_tasks)
        assert all(handlers)
        return keys

    def _message(self) -> FormattedText:
        live = self.screen.live()
        parts = [("", f"{live}\n")] if live else []
        return FormattedText([*parts, ("bold", "› ")])

    def _toolbar(self) -> FormattedText:
        if not self._desk:
            return FormattedText()
        state = self._desk.state
        tokens = state.usage.prompt_tokens + state.usage.completion_tokens
        cost = f" · ${state.usage.cost_usd:.2f}" if state.usage.cost_usd else ""
        health = self._words.phrase(self._desk.health().bar())
        work = f"{bar} · " if (bar := work_bar(state, self._words)) else ""
        return FormattedText([("", plain(f"{health} {work}{self._desk.mode} · {state.model} · {tokens} tok{cost} "))])

    def _redraw(self) -> None:
        if self._session:
            self._session.app.invalidate()


def _pause_or_resume(desk: Desk) -> None:
    running = any(job.status == "running" for job in desk.state.jobs.values())
    desk.control("pause" if running else "resume")


def _beside(question: Question, text: str) -> bool:
    """Whether a line goes past an open question: a job's question does not stand in the way of the conversation."""
    if not question.job:
        return False
    offered = tuple(choice.key for choice in question.choices)
    return text.startswith("/") or (question.kind == "gate" and read_answer(text, offered) is None)
