"""Chooses the session of a conversation: a new session, the last one, a chosen one, or a branch of one."""

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from duckflow.agent.session import Opened, Session, begin, reopen
from duckflow.cli.parser import Options
from duckflow.cli.setup import Setup
from duckflow.errors import DuckflowError, JournalDamaged, UsageError
from duckflow.events.types import LanguageChosen, PermissionTaken, SessionOpened
from duckflow.events.views import NextSession
from duckflow.i18n.words import Words, language_of
from duckflow.state.mode import Mode
from duckflow.store.paths import Paths
from duckflow.store.sessions import SessionEntry, Sessions, new_session_id, read_headline
from duckflow.ui.streams import print_out
from duckflow.view.items import TextItem

LISTED = 20


Here = Callable[[], Setup]
"""A function that makes the setup of a conversation in the current folder."""


class ChosenSession(NamedTuple):
    """A session, its setup, and lines that the user should see before going on."""

    session: Session
    setup: Setup
    opening: tuple[str | TextItem, ...] = ()
    damage: str = ""
    resume_jobs: bool = False
    """True if jobs that another process has handed over continue immediately."""


class NothingChosen(Exception):
    """The user has closed the list of sessions without choosing one."""


def wanted_session(options: Options, setup: Setup, here: Here) -> ChosenSession:
    """Opens the session that the command line asks for. For a session of another folder, changes to that folder."""
    sessions = Sessions(setup.paths.sessions_of(setup.folder))
    if options.resume is None and not (options.resume_last or options.fork):
        return new_session(setup)
    if options.resume is None:
        session_entry = sessions.latest()
    else:
        session_entry = sessions.find(options.resume) if options.resume else _picked(sessions, setup.words)
    if enter_folder(session_entry.path):
        setup = here()
    open_session = forked_session if options.fork else resumed_session
    chosen_session = open_session(session_entry.path, setup, options.lang or "")
    return chosen_session._replace(resume_jobs="resume_jobs" in options)


def switched(previous: ChosenSession, wanted: NextSession, here: Here) -> ChosenSession:
    """Switches to another conversation. If that conversation cannot be opened, the previous one is opened again."""
    folder = Path.cwd()
    try:
        model, model_origin = previous.setup.model_flag, previous.setup.model_origin
        if wanted.model:
            model, model_origin = wanted.model, "model.chosen.chat"
        if wanted.new:
            setup = here()._replace(model_flag=model, model_origin=model_origin)
            return new_session(_in_mode(setup, previous.session.state.mode))
        enter_folder(wanted.journal)
        setup = here()._replace(model_flag=model, model_origin=model_origin)
        if not wanted.fork:
            return resumed_session(wanted.journal, setup)
        return forked_session(wanted.journal, _in_mode(setup, previous.session.state.mode))
    except DuckflowError as problem:
        os.chdir(folder)
        message = previous.setup.words.error(problem)
        journal = Sessions(previous.setup.paths.sessions_of(previous.setup.folder)).path(
            previous.session.state.session_id
        )
        # A previous session in which nothing was said has been removed.
        session_before = resumed_session(journal, here()) if journal.exists() else new_session(here())
        return session_before._replace(opening=(message,))


def _in_mode(setup: Setup, mode: str) -> Setup:
    """Returns the setup with the mode of the previous session: for the user the same conversation goes on."""
    if mode in ("", Mode.CONTAINED):
        return setup
    safety = setup.settings.safety.model_copy(update={"mode": Mode(mode)})
    return setup._replace(settings=setup.settings.model_copy(update={"safety": safety}))


def enter_folder(journal: Path) -> bool:
    """Changes to the session's folder. Says whether the current folder has changed."""
    headline = read_headline(journal)
    if not headline or not headline.folder or Path(headline.folder) == Path.cwd():
        return False
    try:
        os.chdir(headline.folder)
    except OSError:
        raise UsageError("sessions.folder_gone", folder=headline.folder) from None
    return True


def new_session(setup: Setup, session_id: str = "") -> ChosenSession:
    session_id = session_id or new_session_id()
    journal = Sessions(setup.paths.sessions_of(setup.folder)).path(session_id)
    return ChosenSession(begin(journal, session_id, setup.folder, setup.words.language), setup)


def resumed_session(journal: Path, setup: Setup, language: str = "") -> ChosenSession:
    return _gone_on_with(reopen(journal), setup, language)


def forked_session(source: Path, setup: Setup, language: str = "") -> ChosenSession:
    """Opens a branch of a session. From a damaged session, the part that could be saved is branched."""
    sessions = Sessions(source.parent)
    try:
        return resumed_session(sessions.fork(source), setup, language)
    except JournalDamaged:
        from duckflow.store.salvage import salvage

        salvaged_journal = salvage(source)
        return _gone_on_with(reopen(sessions.fork(source))._replace(salvaged=salvaged_journal), setup, language)


def _gone_on_with(opened: Opened, setup: Setup, language: str) -> ChosenSession:
    from duckflow.commands.status import recap

    state, words, salvaged_journal = opened.session.state, setup.words, opened.salvaged
    _believe_in_its_place(opened.session, setup.paths)
    if not state.session_id:
        # The session's first event is among those that were lost.
        session_id, folder = opened.session.path.stem, str(setup.folder)
        opened.session.emit(SessionOpened(session_id=session_id, folder=folder, language=words.language))
    if language and language != state.language:
        opened.session.emit(LanguageChosen(language=language))
    words.language = language_of(state.language)
    damage_note = ""
    if salvaged_journal:
        damage_note = words(
            "journal.salvaged" if salvaged_journal.kept else "journal.lost",
            kept=salvaged_journal.kept,
            aside=str(salvaged_journal.aside),
        )
    opening_lines = [*recap(state, setup.settings.safety.mode, time.time(), words), *filter(None, [damage_note])]
    return ChosenSession(opened.session, setup, tuple(opening_lines), damage_note)


def _believe_in_its_place(session: Session, paths: Paths) -> None:
    """Refuses a journal that lies among the journals of another folder. In the journal of a worktree, permissions are
    taken back, because a container can write the journals of its worktree."""
    folder = Path(session.state.folder)
    if session.state.folder and session.path.parent != paths.sessions_of(folder):
        session.close()
        raise UsageError("sessions.other_place", folder=str(folder), journal=str(session.path))
    if folder.is_relative_to(paths.worktrees):
        for rule in tuple(session.state.allowed):
            session.emit(PermissionTaken(rule=rule))


def _picked(sessions: Sessions, words: Words) -> SessionEntry:
    """Lets the user choose a session from the list."""
    entries = sessions.all()
    if not entries:
        raise UsageError("sessions.none")
    if not sys.stdin.isatty():
        raise UsageError("sessions.which")
    import shutil

    from duckflow.commands.session_rows import session_lines, session_rows
    from duckflow.ui.console.picker import can_pick, pick

    rows = session_rows([session_entry.summary() for session_entry in entries], words, time.time())
    if can_pick():
        row = asyncio.run(pick(rows, words))
        if row is None:
            raise NothingChosen
        return entries[row.number - 1]
    for line in session_lines(rows[:LISTED], shutil.get_terminal_size().columns - 1):
        print_out(line)
    return sessions.find(input(words("sessions.pick")).strip() or "1")
