"""One bus: whoever listens sees every event, in order."""

from collections import deque
from collections.abc import Callable

from duckflow.events.types import Event

Listener = Callable[[Event], None]


class Bus:
    """Publishes events to listeners in the order they subscribed."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._waiting: deque[Event] = deque()
        self._publishing = False

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; the returned function takes it away again."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def publish(self, event: Event) -> None:
        """An event that a listener itself causes comes after the one being told, for every listener."""
        self._waiting.append(event)
        if self._publishing:
            return
        self._publishing = True
        try:
            while self._waiting:
                told = self._waiting.popleft()
                for listener in tuple(self._listeners):
                    listener(told)
        finally:
            self._publishing = False
            self._waiting.clear()
