"""Duckflow for other programs: a conversation in a few lines, with or without asyncio.

    with Duckflow("path/to/project", mode="auto-edit") as duck:
        print(duck.say("Fix the failing test").result)

It is the same conversation that the terminal, the page and editors have. Questions to the user go to `answer`."""

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from duckflow.cli.build import BuiltConversation, build_conversation
from duckflow.cli.conversations import ChosenSession, new_session, resumed_session
from duckflow.cli.setup import Setup
from duckflow.config.load import load
from duckflow.errors import DuckflowError, UsageError
from duckflow.events.types import Event, QuestionAsked
from duckflow.events.views import Attachment
from duckflow.i18n.words import Words, language_of
from duckflow.state.question import NOBODY, Question
from duckflow.state.turn_summary import TurnSummary
from duckflow.store.paths import Paths
from duckflow.store.sessions import Sessions
from duckflow.ui.turn_report import TurnReport
from duckflow.view.view import View

Reply = str | None
Answer = Callable[[Question], Reply | Awaitable[Reply]]
"""A function that answers a question: by words, as a user would type them, or by the key of one of its choices. None
means that nobody can answer; the action in question is then not done."""
Result = TypeVar("Result")
ANSWER_TRIES = 3


class _Options(NamedTuple):
    folder: Path
    model: str
    mode: str
    language: str
    answer: Answer | None
    resume: str
    trust: bool
    settings: dict[str, Any]


class AsyncDuckflow:
    """A conversation for programs with an event loop. Use it with `async with`.

    `folder` is the work folder. `model` is a name as `-m` takes it; if it is empty, Duckflow looks for a model. `mode`
    is one of ask, plan, auto-edit, auto and full-auto; if it is empty, the mode in the user's settings counts. `answer`
    is called with every question. `resume` is the id of a session to continue. With `trust`, programs that the folder
    brings may run. `settings` are settings by their names, such as {"agent.max_tokens": 100_000}."""

    def __init__(
        self,
        folder: str | Path = ".",
        *,
        model: str = "",
        mode: str = "",
        language: str = "",
        answer: Answer | None = None,
        resume: str = "",
        trust: bool = False,
        settings: dict[str, Any] | None = None,
    ) -> None:
        resolved_folder = Path(folder).expanduser().resolve()
        self._options = _Options(resolved_folder, model, mode, language, answer, resume, trust, dict(settings or {}))
        self._chosen: ChosenSession | None = None
        self._built: BuiltConversation | None = None
        self._view: View | None = None
        self._answering: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Opens the conversation; `async with` does this. Raises UsageError, in words for people, if folder, mode or
        session cannot be used."""
        try:
            await self._open()
        except DuckflowError as problem:
            problem.args = (Words(language_of(self._options.language)).error(problem),)
            raise

    async def _open(self) -> None:
        options, paths = self._options, Paths.of_user()
        if not options.folder.is_dir():
            raise UsageError("editor.no_folder", folder=str(options.folder))
        flags = {"safety.mode": options.mode or None, "language": options.language or None, **options.settings}
        loaded = await asyncio.to_thread(load, paths.user_config, options.folder, flags)
        words = Words(language_of(loaded.settings.language))
        setup = Setup(loaded.settings, paths, options.folder, words, options.model, options.trust, by_client=True)
        setup = setup._replace(alone=options.answer is None)
        if options.resume:
            session_entry = Sessions(paths.sessions_of(options.folder)).find(options.resume)
            self._chosen = resumed_session(session_entry.path, setup, options.language)
        else:
            self._chosen = new_session(setup)
        self._built = build_conversation(setup, self._chosen.session)
        self._view = View(self._built.conversation.state)

    async def close(self) -> None:
        """Stops everything. A session in which nothing was said is removed."""
        if self._built is None or self._chosen is None:
            return
        open_conversation, session, self._built = self._built, self._chosen.session, None
        for task in self._answering:
            task.cancel()
        await open_conversation.close()
        session.close()
        if not session.state.messages:
            session.discard()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def session_id(self) -> str:
        return self._now.conversation.state.session_id

    async def say(self, text: str, attachments: Sequence[Attachment] = ()) -> TurnSummary:
        """Says something and waits until the turn and its background work have ended."""
        report: TurnSummary | None = None
        async for event in self.events(text, attachments):
            if isinstance(event, TurnSummary):
                report = event
        assert report
        return report

    async def events(self, text: str, attachments: Sequence[Attachment] = ()) -> AsyncIterator[Event | TurnSummary]:
        """Says something and yields every event as it happens. The last item is the summary of the turn."""
        conversation, chosen_session = self._now.conversation, self._chosen
        assert chosen_session and self._view
        report = TurnReport(conversation, chosen_session.setup.words, self._view)
        event_queue: asyncio.Queue[Event | None] = asyncio.Queue()

        def hear(number: int, event: Event) -> None:
            report.hear(number, event)
            if isinstance(event, QuestionAsked):
                self._put(event.question, report)
            event_queue.put_nowait(event)

        async def turn() -> None:
            try:
                await conversation.say(text, attachments)
                await conversation.work.jobs_over(alone=True)
            finally:
                event_queue.put_nowait(None)

        stop_hearing = conversation.hear(hear)
        turn_task = asyncio.create_task(turn())
        try:
            while event := await event_queue.get():
                yield event
            await turn_task
        finally:
            stop_hearing()
            if not turn_task.done():
                conversation.interrupt()
                await asyncio.gather(turn_task, return_exceptions=True)
        yield report.result(conversation.state)

    def interrupt(self) -> None:
        """Stops the running turn, as Esc does."""
        self._now.conversation.interrupt()

    @property
    def _now(self) -> BuiltConversation:
        if self._built is None:
            raise RuntimeError("use it with `with`, or call open() first")
        return self._built

    def _put(self, question: Question, report: TurnReport) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(question, report))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(self, question: Question, report: TurnReport) -> None:
        """Gets an answer to a question. If Duckflow does not understand it, `answer` is called again a few times."""
        conversation = self._now.conversation
        keys = {choice.key for choice in question.choices}
        for _ in range(ANSWER_TRIES):
            words = await self._words_for(question)
            if words is None:
                break
            answer_fields = {"choice": words} if words in keys else {"text": words}
            if (await conversation.answer(question.question_id, **answer_fields)).meaning != "unclear":
                return
        if question.kind == "gate":
            report.stopped_at = question
        choice = NOBODY if question.takes_nobody else question.choices[-1].key
        await conversation.answer(question.question_id, choice=choice)

    async def _words_for(self, question: Question) -> Reply:
        """Calls `answer` in a thread, since a plain function may wait for somebody who types."""
        answer = self._options.answer
        if answer is None:
            return None
        words = await asyncio.to_thread(answer, question)
        return await words if isinstance(words, Awaitable) else words


class Duckflow:
    """A conversation for programs without an event loop. Use it with `with`. It takes the same arguments as
    AsyncDuckflow."""

    def __init__(
        self,
        folder: str | Path = ".",
        *,
        model: str = "",
        mode: str = "",
        language: str = "",
        answer: Answer | None = None,
        resume: str = "",
        trust: bool = False,
        settings: dict[str, Any] | None = None,
    ) -> None:
        self._inner = AsyncDuckflow(
            folder,
            model=model,
            mode=mode,
            language=language,
            answer=answer,
            resume=resume,
            trust=trust,
            settings=settings,
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Opens the conversation; `with` does this."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="duckflow", daemon=True)
        self._thread.start()
        try:
            self._wait(self._inner.open())
        except BaseException:
            self._stop()
            raise

    def close(self) -> None:
        if self._loop:
            try:
                self._wait(self._inner.close())
            finally:
                self._stop()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def session_id(self) -> str:
        return self._inner.session_id

    def say(self, text: str, attachments: Sequence[Attachment] = ()) -> TurnSummary:
        """Says something and waits until the turn and its background work have ended."""
        return self._wait(self._inner.say(text, attachments))

    def events(self, text: str, attachments: Sequence[Attachment] = ()) -> Iterator[Event | TurnSummary]:
        """Says something and yields every event as it happens. The last item is the summary of the turn."""
        items: queue.SimpleQueue[Event | TurnSummary | None] = queue.SimpleQueue()

        async def fill() -> None:
            try:
                async for event in self._inner.events(text, attachments):
                    items.put(event)
            finally:
                items.put(None)

        assert self._loop
        fill_future = asyncio.run_coroutine_threadsafe(fill(), self._loop)
        try:
            while (event_or_summary := items.get()) is not None:
                yield event_or_summary
            fill_future.result()
        finally:
            fill_future.cancel()

    def interrupt(self) -> None:
        """Stops the running turn. It may be called from another thread or a signal handler."""
        if self._loop:
            self._loop.call_soon_threadsafe(self._inner.interrupt)

    def _wait(self, work: Coroutine[Any, Any, Result]) -> Result:
        if self._loop is None:
            work.close()
            raise RuntimeError("use it with `with`, or call open() first")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _stop(self) -> None:
        if self._loop and self._thread:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
        self._loop = self._thread = None
