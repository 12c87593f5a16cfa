"""An exported session: its format, its file."""

import os
import secrets
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from duckflow.commands.export.transcript import Transcript
from duckflow.errors import UsageError
from duckflow.i18n.words import Words


class Format(StrEnum):
    MARKDOWN = "md"
    HTML = "html"


SUFFIXES = {".md": Format.MARKDOWN, ".markdown": Format.MARKDOWN, ".html": Format.HTML, ".htm": Format.HTML}


def chosen_format(wanted: str, file: str) -> Format:
    """What was said, else what the file's name says, else HTML."""
    return Format(wanted) if wanted else SUFFIXES.get(Path(file).suffix.lower(), Format.HTML)


def rendered(transcript: Transcript, words: Words, form: Format) -> str:
    if not transcript.turns:
        raise UsageError("export.empty")
    if form is Format.HTML:
        from duckflow.commands.export.html import as_html

        return as_html(transcript, words)
    from duckflow.commands.export.markdown import as_markdown

    return as_markdown(transcript, words)


def target(file: str, session_id: str, form: Format, folder: Path) -> Path:
    """A name of our own when none is given; a file that somebody named is not overwritten."""
    path = folder / (Path(file).expanduser() if file else f"duckflow-{session_id}.{form}")
    if path.is_dir():
        path /= f"duckflow-{session_id}.{form}"
    elif file and path.exists():
        raise UsageError("export.exists", path=str(path))
    return path


def save(path: Path, text: str) -> None:
    """Puts a new file in the place of whatever stands there. A link or a pipe is replaced, never written through."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        new.replace(path)
    except OSError as problem:
        with suppress(OSError):
            new.unlink()
        raise UsageError("export.unwritable", path=str(path), reason=problem.strerror or str(problem)) from None
