"""A story: a real folder, a real journal, the whole program, and a model that says what it was told to."""

import os
import shutil
import sys
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from duckflow.agent.connection import Connected
from duckflow.agent.conversation import ChatLoop
from duckflow.agent.session import Session, begin, reopen
from duckflow.cli.build import build_conversation
from duckflow.cli.setup import Setup
from duckflow.config.settings import Settings
from duckflow.events.types import ActionFinished, Event, Outcome, QuestionAsked, QuestionClosed, TurnEnded
from duckflow.i18n.words import Words
from duckflow.llm.provider import Provider
from duckflow.llm.scripted import WINDOW, Line, Scripted
from duckflow.state.data import say
from duckflow.state.question import Answer, Question
from duckflow.store.paths import Paths
from tests.journeys.calling import script_of


def act(operation: str, why: str = "needed", **args: Any) -> dict[str, Any]:
    return {"operation": operation, "args": args, "reasoning": why}


def respond(text: str) -> dict[str, Any]:
    return act("response", text=text)


def decide(*actions: dict[str, Any], next_step: str = "done", step: str = "EXECUTION", **other: Any) -> dict[str, Any]:
    """A Decision as a model would write it."""
    return {
        "rationale": "because it was asked for",
        "goal_consistency": "yes",
        "constraint_check": "yes",
        "confidence": 0.9,
        "task_profile": "FILE_OPERATION",
        "step": step,
        "state_delta": None,
        "actions": list(actions),
        "next_step": next_step,
        "prompt_pattern": "base_main",
    } | other


@contextmanager
def calls_into(place: str) -> Generator[list[str]]:
    """The names of all functions that are called meanwhile in files whose path holds this."""
    called: list[str] = []

    def hear(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and place in frame.f_code.co_filename:
            called.append(frame.f_code.co_qualname)

    sys.setprofile(hear)
    try:
        yield called
    finally:
        sys.setprofile(None)


KEEP_RECORDS = "DUCKFLOW_KEEP_RECORDS"
"""Names a folder in which every story leaves its record and its files, for whoever looks through all of them."""


def keep_record(home: Path, folder: Path, into: Path) -> None:
    place = into / f"{os.getpid()}-{time.monotonic_ns()}"
    shutil.copytree(home, place / "home", symlinks=True, ignore_dangling_symlinks=True, dirs_exist_ok=True)
    if folder.is_dir():
        shutil.copytree(folder, place / "work", symlinks=True, ignore_dangling_symlinks=True)


PLAIN_PYTEST = {"set_environment": {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}}
"""The runs of pytest in stories load none of this suite's plugins, which would be most of their time. A file that is
edited twice within a second must not be taken for its compiled form, either."""
PLUGINS: list[bytes] = []
"""The list of plugins that the first story has written: the others find it at home, and need not look for any."""
OPEN: "list[Story]" = []
"""What a test has begun and not ended: it is ended after the test."""


class Story:
    """One conversation. `answers` are given in order; without any left the Gate is refused and a Duck Call stops."""

    def __init__(
        self,
        top: Path,
        replies: Iterable[Line],
        mode: str = "full-auto",
        language: str = "en",
        settings: dict[str, Any] | None = None,
        window: int = WINDOW,
        native: bool = False,
        home: Path | None = None,
        by_client: bool = False,
    ) -> None:
        self.folder = top / "work"
        self.folder.mkdir(exist_ok=True)
        self._home = top / "home"
        self._user, self._by_client = home or top / "user", by_client
        self.model = script_of(replies, native, window)
        self.provider: Provider | None = None
        """Another one than the script, where it is given before the first word."""
        self.events: list[Event] = []
        self._failure: Exception | None = None
        self.questions: list[Question] = []
        self.answers: list[Answer] = []
        self.second = Scripted([], name="scripted:other")
        # A summary in the background would take a reply that was meant for a turn.
        quiet = {"safety": {"mode": mode}, "language": language, "memory": {"summaries": False}, "shell": PLAIN_PYTEST}
        self.settings = Settings.model_validate({**quiet, **(settings or {})})
        self._language = language
        journal = self._home / "s.db"
        self.session: Session = (
            reopen(journal).session if journal.exists() else begin(journal, "s", self.folder, language)
        )
        self.chat = self._built()
        OPEN.append(self)

    async def tell(self, text: str) -> Outcome:
        outcome = await self.chat.say(text)
        if self._failure:
            raise self._failure
        assert all("Duckflow" in request.messages[0].text for request in self.model.requests), (
            "Base is in every request"
        )
        return outcome

    def restart(self, replies: Iterable[Line]) -> "Story":
        """As after a crash: only what is on disk is left."""
        self.session.close()
        return Story(self.folder.parent, replies, self.settings.safety.mode, self._language)

    def all(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def gates(self) -> list[Question]:
        """Those that are on record."""
        return [question for question in self.questions if question.gate and question.on_record]

    def duck_calls(self) -> list[Question]:
        return [question for question in self.questions if question.kind == "duck_call"]

    def ending(self) -> TurnEnded:
        return self.all(TurnEnded)[-1]

    def said(self) -> list[str]:
        """What the user was told."""
        results = [event.result for event in self.events if isinstance(event, ActionFinished)]
        return [str(result.for_user.values["text"]) for result in results if result.for_user.key == "talk.said"]

    def prompt(self, number: int = -1) -> str:
        """What the model was sent, as one text."""
        return "\n".join(message.text for message in self.model.requests[number].messages)

    def _built(self) -> ChatLoop:
        home = self._home
        paths, words = Paths(home, home, home), Words(self._language)
        if PLUGINS and not paths.plugins.exists():
            paths.plugins.touch(mode=0o600)
            paths.plugins.write_bytes(PLUGINS[0])
        setup = Setup(self.settings, paths, self.folder, words, by_client=self._by_client, home=self._user)

        async def connect(second: bool) -> Connected:
            return Connected(self.second if second else self.provider or self.model, say("model.chosen.flag"))

        self.built = built = build_conversation(setup, self.session, connect)
        if not PLUGINS and paths.plugins.exists():
            PLUGINS.append(paths.plugins.read_bytes())
        self.toolbox = built.toolbox
        built.conversation.hear(self._hear)
        return built.conversation

    async def close(self) -> None:
        """End everything that was started for it."""
        OPEN.remove(self)
        await self.built.close()
        self.session.close()
        if folder := os.environ.get(KEEP_RECORDS):
            keep_record(self._home, self.folder, Path(folder))

    def _hear(self, _: int, event: Event) -> None:
        try:
            self._take(event)
        except Exception as problem:
            # A listener that raises is only logged, and the turn would wait for its answer for ever.
            self._failure = problem
            self.chat.interrupt()

    def _take(self, event: Event) -> None:
        if not isinstance(event, QuestionAsked | QuestionClosed) or event.journaled:
            self.events.append(event)
        if not isinstance(event, QuestionAsked):
            return
        self.questions.append(event.question)
        if answer := self.answer(event.question):
            taken = self.chat.answer(event.question.question_id, answer.text, answer.choice).result()
            assert taken.meaning == "answer", (event.question, answer)

    def answer(self, question: Question) -> Answer | None:
        """What the user says to it; nothing leaves it open."""
        if self.answers:
            return self.answers.pop(0)
        may_refuse = question.kind != "duck_call" and any(choice.key == "no" for choice in question.choices)
        return Answer(choice="no" if question.kind == "gate" or may_refuse else "stop")
