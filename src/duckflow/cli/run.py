"""Runs a command line; whatever goes wrong ends as one line that says what to do."""

import logging
import os
import sys

from duckflow.cli.arguments import parse
from duckflow.errors import DuckflowError
from duckflow.store.paths import Paths
from duckflow.ui.i18n.words import Words, language_of
from duckflow.ui.plain import plain
from duckflow.ui.streams import never_fail, print_err

INTERRUPTED = 130


def run(argv: list[str]) -> int:
    """The exit code."""
    words = Words(language_of(_language_flag(argv) or os.environ.get("DUCKFLOW_LANG", "")))
    paths = Paths.of_user()
    never_fail()
    try:
        options = parse(argv, words)
        _start_log(paths)
        return options.command(options, words, paths)
    except DuckflowError as problem:
        print_err(plain(words.error(problem)))
        return problem.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; the interpreter must not complain about it while it closes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception:
        logging.getLogger("duckflow").exception("unexpected")
        print_err(words("internal.error", log=str(paths.log)))
        return 1


def _language_flag(argv: list[str]) -> str:
    """The language, before anything is parsed: the parser's own messages need it."""
    for place, word in enumerate(argv):
        if word == "--lang" and place + 1 < len(argv):
            return argv[place + 1]
        if word.startswith("--lang="):
            return word.removeprefix("--lang=")
    return ""


def _start_log(paths: Paths) -> None:
    try:
        paths.log.parent.mkdir(parents=True, exist_ok=True)
        logging.basicConfig(
            filename=paths.log,
            level=os.environ.get("DUCKFLOW_LOG", "INFO").upper(),
            format="%(asctime)s %(name)s %(levelname)s %(message)s",
        )
    except (OSError, ValueError):
        # No log is no reason not to work.
        logging.disable()
    # Request lines of the HTTP client are noise.
    logging.getLogger("httpx").setLevel(logging.WARNING)
