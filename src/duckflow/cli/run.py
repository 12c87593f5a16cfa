"""Runs a command line. Every error ends as two lines: the first names the problem, the second says what to do."""

import contextlib
import errno
import importlib
import logging
import os
import re
import sys
import threading
from pathlib import Path
from types import ModuleType

from duckflow.cli.arguments import parse
from duckflow.cli.last_resort import write_traceback
from duckflow.errors import DuckflowError, exit_code_of
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words, language_of
from duckflow.store.paths import Paths, require_current_folder
from duckflow.ui.streams import never_fail, print_err
from duckflow.whole_file import make_private, private_folder

LARGEST = 5_000_000
LEVELS = frozenset({"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"})
NAME = "duckflow"
PACEMAKER = "duckflow.pacemaker"


class Discreet(logging.Formatter):
    """Hides keys and tokens in the log, even in a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        if record.name == PACEMAKER:
            # The Pacemaker's lines hold only its own names and numbers. They need no hiding, which would take time in
            # every turn.
            return text
        from duckflow.safety.secrets import redacted
        from duckflow.whole_text import without_keys

        return redacted(without_keys(text))


class Log:
    """The log file, open after `start`. If it cannot be written, nothing is logged, and the program works anyway."""

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
        """Writes a traceback to the log, or without a log to a new file. Returns the path of that file."""
        if not self._open:
            return write_traceback(problem)
        logging.getLogger(NAME).error("unexpected", exc_info=problem)
        return str(self._path)


def _put_aside(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.stat().st_size > LARGEST:
            path.replace(path.with_suffix(".old.log"))
    # A log that was put aside earlier may still be readable by everybody.
    if (old_log := path.with_suffix(".old.log")).exists():
        make_private(old_log)


def _catch_the_rest() -> None:
    """Logs errors in threads and in finalizers, which would otherwise be printed."""
    logger = logging.getLogger(NAME)

    def unraisable(broken: "sys.UnraisableHookArgs") -> None:
        logger.error("unraisable: %s", broken.err_msg, exc_info=broken.exc_value)

    def in_thread(broken: threading.ExceptHookArgs) -> None:
        logger.error("in thread %s", broken.thread, exc_info=broken.exc_value)

    sys.unraisablehook = unraisable
    threading.excepthook = in_thread
    logging.captureWarnings(True)


LANGUAGE = r"(?m)^\s*language\s*=\s*[\"'](\w+)[\"']"
TABLE = r"(?m)^\s*\["


def read_language(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    match = re.search(LANGUAGE, re.split(TABLE, text, maxsplit=1)[0])
    return match[1] if match else ""


COMMANDS = {
    "": "start:start",
    "models": "models:run_models",
    "doctor": "doctor.command:run_doctor",
    "sessions": "session_list:run_sessions",
    "audit": "audit:show_audit",
    "replay": "replay:run_replay",
    "review": "review:run_review",
    "jobs": "detached:list_jobs",
    "attach": "detached:attach",
    "web": "web:run_web",
    "acp": "acp:run_acp",
    "prompt": "prompt:show_prompt",
    "demo": "demo.command:run_demo",
    "fleet": "fleet:run_fleet",
    "init": "init.command:run_init",
    "config": "config:run_config",
    "mcp": "mcp:run_mcp",
    "pr": "review:run_pr",
    "plugins": "plugged:run_plugins",
    "completion": "completion:run_completion",
    "update": "doctor.command:tell_update",
}
"""The function that carries out each subcommand. Only the module of the wanted subcommand is loaded."""
PLUGIN_LOADER = "pydantic.plugin._loader"
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR})


class NoPlugins(ModuleType):
    """Replaces pydantic's loader of plugins, which reads the metadata of every installed package at each start (50 ms).
    The public switch, the variable PYDANTIC_DISABLE_PLUGINS, is no better way: every program that Duckflow starts would
    inherit it, and the loader would still be imported. If pydantic renames its loader, this class has no effect."""

    @staticmethod
    def get_plugins() -> tuple[()]:
        return ()


def run(argv: list[str]) -> int:
    """Runs the command line and returns the exit code."""
    never_fail()
    # The variable tells every program that we start who started it. It may still name a program that started us.
    os.environ["AI_AGENT"] = "duckflow"
    sys.modules.setdefault(PLUGIN_LOADER, NoPlugins(PLUGIN_LOADER))
    words = Words(language_of(_language_flag(argv) or os.environ.get("DUCKFLOW_LANG", "")))
    try:
        paths = Paths.of_user()
        paths.close_to_others()
        if not _language_flag(argv) and not os.environ.get("DUCKFLOW_LANG"):
            words.language = language_of(read_language(paths.user_config))
        return _carry_out(argv, words, paths)
    except DuckflowError as problem:
        print_err(plain(words.error(problem)))
        return problem.exit_code
    except KeyboardInterrupt:
        return exit_code_of("interrupted")


def _carry_out(argv: list[str], words: Words, paths: Paths) -> int:
    log = Log(paths)
    try:
        name, options = parse(argv, words)
        log.start()
        require_current_folder()
        module, _, function = COMMANDS[name].partition(":")
        return getattr(importlib.import_module(f"duckflow.cli.{module}"), function)(options, words, paths)
    except (DuckflowError, BrokenPipeError):
        raise
    except OSError as problem:
        # The current folder may have been removed meanwhile.
        require_current_folder()
        print_err(plain(_describe(problem, words, log.keep(problem))))
        return 1
    except Exception as problem:
        print_err(plain(words("internal.error", log=log.keep(problem))))
        return 1


def _describe(problem: OSError, words: Words, log: str) -> str:
    """Describes an error of the operating system, and what helps against it."""
    kind = "full" if problem.errno in FULL else "forbidden" if problem.errno in FORBIDDEN else "other"
    problem_text = f"{problem.filename}: {problem.strerror}" if problem.filename else str(problem)
    return words(f"system.{kind}", what=problem_text, log=log)


def _language_flag(argv: list[str]) -> str:
    """Returns the language flag before the command line is parsed: the parser's own messages need the language."""
    for index, word in enumerate(argv):
        if word == "--lang" and index + 1 < len(argv):
            return argv[index + 1]
        if word.startswith("--lang="):
            return word.removeprefix("--lang=")
    return ""
