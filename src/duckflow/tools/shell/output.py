"""What a command prints: to the screen as it comes, and an excerpt for the model."""

from duckflow.tools.shell.cleaner import Cleaner
from duckflow.tools.shell.excerpt import Excerpt
from duckflow.tools.shell.live import Live, OnOutput


class Output:
    """Takes bytes as they come; memory is bounded, however many there are."""

    def __init__(self, head: int, tail: int, on_output: OnOutput) -> None:
        self._cleaner = Cleaner()
        self._excerpt = Excerpt(head, tail)
        self._live = Live(on_output)

    def take(self, data: bytes, last: bool = False) -> None:
        text = self._cleaner.clean(data, last)
        self._excerpt.add(text)
        self._live.add(text)

    def text(self) -> str:
        return self._excerpt.text().rstrip()

    def leave_screen(self) -> None:
        """From now on the screen is not bothered any more."""
        self._live.close()
