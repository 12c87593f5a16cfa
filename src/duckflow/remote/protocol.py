"""What goes over the socket of a conversation: JSON-RPC, a message a line.

A front end calls methods such as `take`, with their arguments by name. After it called `hear`, it gets a notification
`event` for every event, `{"number": N, "kind": …, "event": {…}}`. One notification `welcome` carries the state; it
comes after the events of the past and before those that happen from then on.
"""

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
from duckflow.state.noun import Value
from duckflow.state.phrase import Phrase
from duckflow.state.question import Question

SUFFIX = ".sock"
HEAR, LEAVE = "hear", "leave"
EVENT, WELCOME = "event", "welcome"
LONGEST_LINE = 64 * 1024 * 1024
LONGEST_NAME = 100
"""Bytes that the address of a socket may have anywhere."""


class OfferedCommand(Value):
    """A slash command as it is offered."""

    name: str
    help: Phrase
    words: tuple[str, ...]


class Welcome(Value):
    """How things stand after the event of this number. Of the messages only the last ones come with the state."""

    number: int
    state: AgentState
    questions: tuple[Question, ...]
    now: talking.NowChanged
    mode: str
    commands: tuple[OfferedCommand, ...]
    process: int
    terminal: bool
    """Whether it runs behind a terminal of its own."""


def _kinds(cls: type[Event]) -> Iterator[type[Event]]:
    for kind in cls.__subclasses__():
        if "kind" in vars(kind):
            yield kind
        yield from _kinds(kind)


@cache
def _kind(name: str) -> type[Event] | None:
    """Those on record, and those that are only told."""
    return types.BY_KIND.get(name) or next((cls for cls in _kinds(Event) if cls.kind == name), None)


def event_line(number: int, event: Event) -> bytes:
    """The notification is written once, however many front ends hear it."""
    params = f'{{"number":{number},"kind":"{event.kind}","event":{event.model_dump_json()}}}'
    return f'{{"jsonrpc":"2.0","method":"{EVENT}","params":{params}}}\n'.encode()


def read_event(told: dict[str, Any]) -> Event | None:
    """Nothing for a kind that is not known here: the other side may be newer."""
    kind = _kind(told["kind"])
    return kind.model_validate(told["event"]) if kind else None


def listen_at(path: Path) -> socket.socket:
    """Nobody but the owner can connect."""
    made = socket.socket(socket.AF_UNIX)
    made.setblocking(False)
    path.unlink(missing_ok=True)
    with _short(path) as name:
        made.bind(name)
    # Nobody is listened to yet.
    path.chmod(0o600)
    return made


def connect_to(path: Path) -> socket.socket:
    """OSError when nobody listens there."""
    made = socket.socket(socket.AF_UNIX)
    try:
        with _short(path) as name:
            made.connect(name)
    except OSError:
        made.close()
        raise
    made.setblocking(False)
    return made


@contextlib.contextmanager
def _short(path: Path) -> Generator[str]:
    """An address that is not too long: through the folder, which may lie deep."""
    if len(os.fsencode(path)) <= LONGEST_NAME:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/dev/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
