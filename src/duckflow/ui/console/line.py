"""The two sides of the input line: the line itself, and the handler that takes typed lines."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completion
    from prompt_toolkit.document import Document

Fragments = list[tuple[str, str]]
"""Pieces of text with their styles."""

HandlerKey = Literal["change_mode", "pause_or_resume", "open_thoughts"]
"""The actions of keys that concern only the handler and not the text in the line."""


class LineHandler(Protocol):
    """The conversation behind the input line."""

    def above(self, columns: int) -> Fragments:
        """Returns the text right above the line: the reply that is being written, or the work that is waited for."""
        ...

    def prompt_sign(self) -> str:
        """Returns the sign that stands before the line."""
        ...

    def bar(self, columns: int) -> str:
        """Returns the status bar, cut to fit the columns."""
        ...

    def take(self, text: str, begun: float) -> None:
        """Takes a line. `begun` says when its first character was typed, by the monotonic clock."""
        ...

    def take_later(self, text: str) -> bool:
        """Takes a message that waits until the running turn has ended. Says whether the message was taken."""
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
        """Stops the running work, and returns the messages that waited to be sent."""
        ...

    def change_mode(self) -> None: ...

    def pause_or_resume(self) -> None: ...

    def open_thoughts(self) -> None:
        """Shows the model's thoughts, or folds them again."""
        ...

    def asks_about_jobs(self, command: str) -> bool:
        """Has this command ask the user about the jobs at work. Returns False if no job is at work, or if the
        conversation asks something already."""
        ...

    def hint(self, key: str) -> str: ...

    def completions(self, document: "Document") -> "Iterable[Completion]":
        """Returns the completions. This method is called in a thread of its own."""
        ...


class Line(Protocol):
    """The place where lines are typed."""

    def printing(self) -> AbstractContextManager[None]:
        """Keeps printed text away from the text that is being typed."""
        ...

    async def run(self) -> None: ...

    async def lend_terminal(self, work: Callable[[], str]) -> str:
        """Lets another program have the terminal until it is done."""
        ...

    async def shown(self) -> None:
        """Waits until the line is on the screen."""
        ...

    def hand_to(self, handler: LineHandler | None) -> None:
        """Passes lines to this handler. Without a handler, lines wait for the next."""
        ...

    def put_back(self, text: str) -> bool:
        """Puts text into the line for the user to send again. Says whether the line can do that."""
        ...

    def signal(self, sequence: str) -> None:
        """Sends a sequence to the terminal itself: a bell, a note."""
        ...

    def redraw(self) -> None: ...

    def leave(self) -> None: ...
