"""One bus: whoever listens sees every event, in order."""

from collections.abc import Callable

from duckflow.events.types import Event

Listener = Callable[[Event], None]


class Bus:
    """Publishes events to listeners in the order they subscribed."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; the returned function takes it away again."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def publish(self, event: Event) -> None:
        for listener in tuple(self._listeners):
            listener(event)
