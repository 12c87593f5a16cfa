"""The protocol on the socket of a conversation: JSON-RPC, one message for each line.

A front end calls methods such as `take`, with their arguments by name. After it called `hear`, it gets a notification
`event` for every event, `{"number": N, "kind": …, "event": {…}}`. One notification `welcome` carries the state; it
comes after the past events and before those that happen from then on."""

import contextlib
import os
import socket
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from duckflow.events import talking, types
from duckflow.events.event import Event
from duckflow.state.agent import AgentState
from duckflow.state.data import FrozenData
from duckflow.state.phrase import Phrase
from duckflow.state.question import Question

SUFFIX = ".sock"
HEAR, LEAVE = "hear", "leave"
EVENT, WELCOME = "event", "welcome"
LONGEST_LINE = 64 * 1024 * 1024
LONGEST_NAME = 100
"""The number of bytes that the address of a socket may have on every system."""


class OfferedCommand(FrozenData):
    """A slash command as it is offered."""

    name: str
    help: Phrase
    words: tuple[str, ...]


class Welcome(FrozenData):
    """The state of the conversation after the event of this number. It comes with the last messages only."""

    number: int
    state: AgentState
    questions: tuple[Question, ...]
    now: talking.NowChanged
    mode: str
    commands: tuple[OfferedCommand, ...]
    process: int
    terminal: bool
    """The conversation has a terminal of its own."""


def _kinds(cls: type[Event]) -> Iterator[type[Event]]:
    for kind in cls.__subclasses__():
        if "kind" in vars(kind):
            yield kind
        yield from _kinds(kind)


@cache
def _kind(name: str) -> type[Event] | None:
    """Finds a kind of event by its name, among the stored and the live ones."""
    return types.BY_KIND.get(name) or next((cls for cls in _kinds(Event) if cls.kind == name), None)


def event_line(number: int, event: Event) -> bytes:
    """Writes an event as a notification. This is done once, however many front ends hear it."""
    params = f'{{"number":{number},"kind":"{event.kind}","event":{event.model_dump_json()}}}'
    return f'{{"jsonrpc":"2.0","method":"{EVENT}","params":{params}}}\n'.encode()


def read_event(params: dict[str, Any]) -> Event | None:
    """Returns the event, or nothing for an unknown kind: the other side may be newer."""
    kind = _kind(params["kind"])
    return kind.model_validate(params["event"]) if kind else None


def listen_at(path: Path) -> socket.socket:
    """Opens a socket that only its owner can connect to."""
    listener = socket.socket(socket.AF_UNIX)
    listener.setblocking(False)
    path.unlink(missing_ok=True)
    with _short(path) as name:
        listener.bind(name)
    # Nobody can connect before the socket listens.
    path.chmod(0o600)
    return listener


def connect_to(path: Path) -> socket.socket:
    """Connects to a socket. Raises OSError when nobody listens there."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        with _short(path) as name:
            connection.connect(name)
    except OSError:
        connection.close()
        raise
    connection.setblocking(False)
    return connection


@contextlib.contextmanager
def _short(path: Path) -> Generator[str]:
    """Yields a short address for the socket: a deep path is reached through its open folder."""
    if len(os.fsencode(path)) <= LONGEST_NAME:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/dev/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
