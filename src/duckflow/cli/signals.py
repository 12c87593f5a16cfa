"""Signals from outside: a chat leaves as if the user had, so that the terminal is as it was and nothing is lost."""

import asyncio
import signal
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckflow.ui.console.line import Line


SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def interrupting_signals() -> tuple[signal.Signals, ...]:
    """What ends work that nobody watches; with `nohup` the terminal may go."""
    stays = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return (signal.SIGINT, signal.SIGTERM) if stays else (signal.SIGINT, *SIGNALS)


@contextmanager
def leave_on_signals(line: "Line") -> Generator[None]:
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, line.leave)
    try:
        yield
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
