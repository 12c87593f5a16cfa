"""Which session a conversation goes on in: a new one, the last one, a chosen one, or a branch."""

import asyncio
import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from duckflow.agent.session import Opened, Session, begin, reopen
from duckflow.cli.arguments import Options
from duckflow.cli.wire import Wiring
from duckflow.errors import UsageError
from duckflow.events.types import LanguageChosen
from duckflow.store.headline import read_headline
from duckflow.store.sessions import SessionEntry, Sessions, new_session_id
from duckflow.ui.headless import print_out
from duckflow.ui.i18n.words import Words, language_of
from duckflow.ui.recap import recap

LISTED = 20


@dataclass(frozen=True, slots=True)
class Conversation:
    """A session, what it runs in, and what the user should see before going on."""

    session: Session
    wiring: Wiring
    opening: tuple[str, ...] = ()
    salvaged: str = ""


class Left(Exception):
    """The user has looked at the list and chosen nothing."""


def wanted_session(options: Options, sessions: Sessions, words: Words) -> Path | None:
    """The journal to go on with, or nothing: a new one. Another folder's session is gone on with in its folder."""
    if options.resume is None and not (options.resume_last or options.fork):
        return None
    if options.resume is None:
        return sessions.latest().path
    entry = sessions.find(options.resume) if options.resume else _picked(sessions, words)
    enter_folder(entry.path)
    return entry.path


def enter_folder(journal: Path) -> None:
    """Go where the session belongs."""
    headline = read_headline(journal)
    if not headline or not headline.folder or Path(headline.folder) == Path.cwd():
        return
    try:
        os.chdir(headline.folder)
    except OSError:
        raise UsageError("sessions.folder_gone", folder=headline.folder) from None


def open_conversation(wiring: Wiring, entry: Path | None, fork: bool, language: str = "") -> Conversation:
    sessions = Sessions(wiring.paths.sessions_of(wiring.folder))
    if entry is None:
        session_id = new_session_id()
        session = begin(sessions.path(session_id), session_id, wiring.folder, wiring.words.language)
        return Conversation(session, wiring)
    opened = reopen(sessions.fork(entry) if fork else entry)
    state = opened.session.state
    if language and language != state.language:
        opened.session.emit(LanguageChosen(language=language))
    wiring.words.language = language_of(state.language)
    opening = recap(state, wiring.settings.safety.mode, time.time(), wiring.words)
    return Conversation(opened.session, wiring, tuple(opening), _damage(opened, wiring.words))


def _damage(opened: Opened, words: Words) -> str:
    saved = opened.salvaged
    return words("journal.salvaged", kept=saved.kept, aside=str(saved.aside)) if saved else ""


def _picked(sessions: Sessions, words: Words) -> SessionEntry:
    """Let the user choose from the list."""
    entries = sessions.all()
    if not entries:
        raise UsageError("sessions.none")
    if not sys.stdin.isatty():
        raise UsageError("sessions.which")
    from duckflow.ui.console.picker import can_pick, pick
    from duckflow.ui.session_rows import session_lines, session_rows

    rows = session_rows(entries, words, time.time())
    if can_pick():
        row = asyncio.run(pick(rows, words))
        if row is None:
            raise Left
        return entries[row.number - 1]
    for line in session_lines(rows[:LISTED], shutil.get_terminal_size().columns - 1):
        print_out(line)
    return sessions.find(input(words("sessions.pick")).strip() or "1")
