"""The log file: where the details of everything unexpected go, since nobody wants them on the screen."""

import contextlib
import logging
import os
import sys
import threading
from pathlib import Path

from duckflow.cli.last_resort import write_traceback
from duckflow.store.paths import Paths, make_private, private_folder

LARGEST = 5_000_000
LEVELS = frozenset({"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"})
NAME = "duckflow"
PACEMAKER = "duckflow.pacemaker"


class Discreet(logging.Formatter):
    """Keys and tokens are no part of a log, not even in a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        if record.name == PACEMAKER:
            # Only its own names and numbers: nothing to hide, and every turn has such lines.
            return text
        from duckflow.safety.secrets import redacted
        from duckflow.state.known_keys import without_keys

        return redacted(without_keys(text))


class Log:
    """Open after `start`; without a place for it nothing is logged, and that is no reason not to work."""

    def __init__(self, paths: Paths) -> None:
        self._path = paths.log
        self._open = False

    def start(self) -> None:
        try:
            private_folder(self._path.parent)
            _put_aside(self._path)
            make_private(self._path)
            level = os.environ.get("DUCKFLOW_LOG", "").upper()
            handler = logging.FileHandler(self._path, encoding="utf-8", errors="backslashreplace")
            handler.setFormatter(Discreet("%(asctime)s %(name)s %(levelname)s %(message)s"))
            logging.basicConfig(level=level if level in LEVELS else "INFO", handlers=[handler])
            self._open = True
        except OSError:
            logging.disable()
        # A full disk must not print the logger's own complaints over the screen.
        logging.raiseExceptions = False
        # Request lines of the HTTP client are noise.
        logging.getLogger("httpx").setLevel(logging.WARNING)
        _catch_the_rest()

    def keep(self, problem: BaseException) -> str:
        """Write down a traceback; where it is."""
        if not self._open:
            return write_traceback(problem)
        logging.getLogger(NAME).error("unexpected", exc_info=problem)
        return str(self._path)


def _put_aside(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.stat().st_size > LARGEST:
            path.replace(path.with_suffix(".old.log"))
    # One that was put aside before may still be open to everybody.
    if (old := path.with_suffix(".old.log")).exists():
        make_private(old)


def _catch_the_rest() -> None:
    """What breaks in a thread or while something is taken apart is written down, not printed."""
    logger = logging.getLogger(NAME)

    def unraisable(broken: "sys.UnraisableHookArgs") -> None:
        logger.error("unraisable: %s", broken.err_msg, exc_info=broken.exc_value)

    def in_thread(broken: threading.ExceptHookArgs) -> None:
        logger.error("in thread %s", broken.thread, exc_info=broken.exc_value)

    sys.unraisablehook = unraisable
    threading.excepthook = in_thread
    logging.captureWarnings(True)
