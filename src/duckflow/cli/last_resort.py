"""Prints a short message when nothing else works, not even the imports. This module needs only the standard library."""

import json
import os
import re
import sys
import traceback
from pathlib import Path

import duckflow
from duckflow.whole_text import without_keys

CATALOGUES = Path(duckflow.__file__).parent / "i18n"


def report_crash(problem: BaseException) -> int:
    """Prints that the program has crashed, and where the details are."""
    from duckflow.installation import InstallCommands

    _say("internal.broken", problem=type(problem).__name__, log=write_traceback(problem), install=InstallCommands())
    return 1


def report_lost_output() -> int:
    _say("internal.output_lost")
    return 1


def write_traceback(problem: BaseException) -> str:
    """Writes the traceback into a new file when there is no log. Returns the file's path, or a dash if writing
    fails."""
    import tempfile

    try:
        file_descriptor, path = tempfile.mkstemp(prefix="duckflow-", suffix=".log")
        with os.fdopen(file_descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(without_keys("".join(traceback.format_exception(problem))))
    except OSError:
        return "–"
    return path


def _say(key: str, **values: object) -> None:
    locale = os.environ.get("DUCKFLOW_LANG") or os.environ.get("LC_ALL") or os.environ.get("LANG") or ""
    try:
        own_texts = _texts(re.split(r"[_.@-]", locale, maxsplit=1)[0])
        text = own_texts.get(key) or _texts(duckflow.DEFAULT_LANGUAGE)[key]
        sys.stderr.write(text.format_map(values) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError, KeyError):
        return


def _texts(language: str) -> dict[str, str]:
    path = CATALOGUES / language / "words.json"
    return json.loads(path.read_text("utf-8")) if language.isalpha() and path.is_file() else {}
