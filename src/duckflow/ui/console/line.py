"""Who reads what is typed, as the input line sees it."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completion
    from prompt_toolkit.document import Document

Fragments = list[tuple[str, str]]
"""Pieces of text with their styles."""

HandlerKey = Literal["change_mode", "pause_or_resume", "open_thoughts"]
"""What a key does by the handler alone."""


class LineHandler(Protocol):
    """The conversation behind the input line."""

    def above(self, columns: int) -> Fragments:
        """What stands right above the line: what is being written or waited for."""
        ...

    def prompt_sign(self) -> str:
        """What stands before the line."""
        ...

    def bar(self, columns: int) -> str:
        """The status bar, made to fit."""
        ...

    def take(self, text: str, begun: float) -> None:
        """A line, and when its first character was typed (by the monotonic clock)."""
        ...

    def take_later(self, text: str) -> bool:
        """A message for after the running turn; whether it is taken as one."""
        ...

    def reads_on(self) -> bool:
        """Whether there is a next page to be shown."""
        ...

    def worth_keeping(self, text: str) -> bool:
        """Whether it goes into the history: an answer to a question does not."""
        ...

    def hides(self) -> bool:
        """Whether what is typed is a secret, which the line does not show."""
        ...

    def busy(self) -> bool: ...

    def ready(self) -> bool:
        """Whether it is the user's turn to say something."""
        ...

    def interrupt(self) -> str:
        """Stop what is going on; gives back what was waiting to be sent."""
        ...

    def change_mode(self) -> None: ...

    def pause_or_resume(self) -> None: ...

    def open_thoughts(self) -> None:
        """Show what the model thinks, or fold it again."""
        ...

    def asks_about_jobs(self, command: str) -> bool:
        """Whether jobs run, and the user is asked about them by this command."""
        ...

    def hint(self, key: str) -> str: ...

    def completions(self, document: "Document") -> "Iterable[Completion]":
        """Called in a thread of its own."""
        ...


class Line(Protocol):
    """Where lines are typed."""

    def printing(self) -> AbstractContextManager[None]:
        """What is printed meanwhile does not get in the way of what is being typed."""
        ...

    async def run(self) -> None: ...

    async def lend_terminal(self, work: Callable[[], str]) -> str:
        """Let somebody else have the terminal until they are done."""
        ...

    async def shown(self) -> None:
        """Until it stands on the screen."""
        ...

    def hand_to(self, handler: LineHandler | None) -> None:
        """What is typed goes to this one; while there is none, it is kept for the next."""
        ...

    def put_back(self, text: str) -> bool:
        """Into the line, for the user to send again; whether that can be done."""
        ...

    def signal(self, sequence: str) -> None:
        """To the terminal itself: a bell, a note."""
        ...

    def redraw(self) -> None: ...

    def leave(self) -> None: ...
