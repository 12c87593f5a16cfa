"""The two sides of the input line: the line itself, and the handler of what is typed."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completion
    from prompt_toolkit.document import Document

Fragments = list[tuple[str, str]]
"""Pieces of text with their styles."""

HandlerKey = Literal["change_mode", "pause_or_resume", "open_thoughts"]
"""The keys that only concern the handler."""


class LineHandler(Protocol):
    """The conversation behind the input line."""

    def above(self, columns: int) -> Fragments:
        """Returns the text right above the line: what is being written or waited for."""
        ...

    def prompt_sign(self) -> str:
        """Returns the sign that stands before the line."""
        ...

    def bar(self, columns: int) -> str:
        """Returns the status bar, made to fit."""
        ...

    def take(self, text: str, begun: float) -> None:
        """Takes a line. `begun` says when its first character was typed, by the monotonic clock."""
        ...

    def take_later(self, text: str) -> bool:
        """Takes a message that waits until the running turn has ended. Says whether it was taken as one."""
        ...

    def reads_on(self) -> bool:
        """Says whether there is a next page to show."""
        ...

    def worth_keeping(self, text: str) -> bool:
        """Says whether a line goes into the history. Answers to questions do not."""
        ...

    def hides(self) -> bool:
        """Says whether a secret is being typed, which the line does not show."""
        ...

    def busy(self) -> bool: ...

    def ready(self) -> bool:
        """Says whether it is the user's turn to say something."""
        ...

    def interrupt(self) -> str:
        """Stops what is going on, and returns the messages that waited to be sent."""
        ...

    def change_mode(self) -> None: ...

    def pause_or_resume(self) -> None: ...

    def open_thoughts(self) -> None:
        """Shows what the model thinks, or folds it again."""
        ...

    def asks_about_jobs(self, command: str) -> bool:
        """Asks the user about running jobs by this command. Says whether there were any."""
        ...

    def hint(self, key: str) -> str: ...

    def completions(self, document: "Document") -> "Iterable[Completion]":
        """Returns the completions. It is called in a thread of its own."""
        ...


class Line(Protocol):
    """The place where lines are typed."""

    def printing(self) -> AbstractContextManager[None]:
        """Keeps printed text out of the way of what is being typed."""
        ...

    async def run(self) -> None: ...

    async def lend_terminal(self, work: Callable[[], str]) -> str:
        """Lets another program have the terminal until it is done."""
        ...

    async def shown(self) -> None:
        """Waits until the line is on the screen."""
        ...

    def hand_to(self, handler: LineHandler | None) -> None:
        """Passes lines to this handler. Without one they are kept for the next."""
        ...

    def put_back(self, text: str) -> bool:
        """Puts text into the line for the user to send again. Says whether the line can do that."""
        ...

    def signal(self, sequence: str) -> None:
        """Sends a sequence to the terminal itself: a bell, a note."""
        ...

    def redraw(self) -> None: ...

    def leave(self) -> None: ...
