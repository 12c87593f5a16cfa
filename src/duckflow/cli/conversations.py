"""Which session a conversation goes on in: a new one, the last one, a chosen one, or a branch."""

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
from duckflow.i18n.language import language_of
from duckflow.i18n.words import Words
from duckflow.state.mode import Mode
from duckflow.store.paths import Paths
from duckflow.store.sessions import SessionEntry, Sessions, new_session_id, read_headline
from duckflow.ui.streams import print_out

LISTED = 20


Here = Callable[[], Setup]
"""What a conversation in the folder one is in is built from."""


class ChosenSession(NamedTuple):
    """A session, what it runs in, and what the user should see before going on."""

    session: Session
    setup: Setup
    opening: tuple[str, ...] = ()
    damage: str = ""
    resume_jobs: bool = False
    """What another process has handed over goes on at once."""


class NothingChosen(Exception):
    """The user has looked at the list and chosen nothing."""


def wanted_session(options: Options, setup: Setup, here: Here) -> ChosenSession:
    """What the command line asks for. Another folder's session is gone on with in its folder."""
    sessions = Sessions(setup.paths.sessions_of(setup.folder))
    if options.resume is None and not (options.resume_last or options.fork):
        return new_session(setup)
    if options.resume is None:
        entry = sessions.latest()
    else:
        entry = sessions.find(options.resume) if options.resume else _picked(sessions, setup.words)
    if enter_folder(entry.path):
        setup = here()
    opening = forked_session if options.fork else resumed_session
    resumed = opening(entry.path, setup, options.lang or "")
    return resumed._replace(resume_jobs="resume_jobs" in options)


def switched(left: ChosenSession, wanted: NextSession, here: Here) -> ChosenSession:
    """From one conversation to another; back to the one that was left when the other cannot be opened."""
    folder = Path.cwd()
    try:
        model, origin = left.setup.model_flag, left.setup.model_origin
        if wanted.model:
            model, origin = wanted.model, "model.chosen.chat"
        if wanted.new:
            setup = here()._replace(model_flag=model, model_origin=origin)
            return new_session(_in_mode(setup, left.session.state.mode))
        enter_folder(wanted.journal)
        setup = here()._replace(model_flag=model, model_origin=origin)
        if not wanted.fork:
            return resumed_session(wanted.journal, setup)
        return forked_session(wanted.journal, _in_mode(setup, left.session.state.mode))
    except DuckflowError as problem:
        os.chdir(folder)
        told = left.setup.words.error(problem)
        journal = Sessions(left.setup.paths.sessions_of(left.setup.folder)).path(left.session.state.session_id)
        # Nothing had been said in the one that was left: it is gone.
        back = resumed_session(journal, here()) if journal.exists() else new_session(here())
        return back._replace(opening=(told,))


def _in_mode(setup: Setup, mode: str) -> Setup:
    """The user stays in the same conversation, so the mode that was chosen in it stays too."""
    if mode in ("", Mode.CONTAINED):
        return setup
    safety = setup.settings.safety.model_copy(update={"mode": Mode(mode)})
    return setup._replace(settings=setup.settings.model_copy(update={"safety": safety}))


def enter_folder(journal: Path) -> bool:
    """Go where the session belongs. Whether that is another folder."""
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
    """A branch; of a damaged session one of what could be saved."""
    sessions = Sessions(source.parent)
    try:
        return resumed_session(sessions.fork(source), setup, language)
    except JournalDamaged:
        from duckflow.store.salvage import salvage

        saved = salvage(source)
        return _gone_on_with(reopen(sessions.fork(source))._replace(salvaged=saved), setup, language)


def _gone_on_with(opened: Opened, setup: Setup, language: str) -> ChosenSession:
    from duckflow.commands.status import recap

    state, words, saved = opened.session.state, setup.words, opened.salvaged
    _believe_in_its_place(opened.session, setup.paths)
    if not state.session_id:
        # Its first event is among the lost ones.
        session_id, folder = opened.session.path.stem, str(setup.folder)
        opened.session.emit(SessionOpened(session_id=session_id, folder=folder, language=words.language))
    if language and language != state.language:
        opened.session.emit(LanguageChosen(language=language))
    words.language = language_of(state.language)
    damage = ""
    if saved:
        damage = words("journal.salvaged" if saved.kept else "journal.lost", kept=saved.kept, aside=str(saved.aside))
    opening = [*recap(state, setup.settings.safety.mode, time.time(), words), *filter(None, [damage])]
    return ChosenSession(opened.session, setup, tuple(opening), damage)


def _believe_in_its_place(session: Session, paths: Paths) -> None:
    """A container can write the journals of its own worktree. One of those speaks of no other folder, and of nothing
    that the user is to have allowed."""
    folder = Path(session.state.folder)
    if session.state.folder and session.path.parent != paths.sessions_of(folder):
        session.close()
        raise UsageError("sessions.other_place", folder=str(folder), journal=str(session.path))
    if folder.is_relative_to(paths.worktrees):
        for rule in tuple(session.state.allowed):
            session.emit(PermissionTaken(rule=rule))


def _picked(sessions: Sessions, words: Words) -> SessionEntry:
    """Let the user choose from the list."""
    entries = sessions.all()
    if not entries:
        raise UsageError("sessions.none")
    if not sys.stdin.isatty():
        raise UsageError("sessions.which")
    import shutil

    from duckflow.commands.session_rows import session_lines, session_rows
    from duckflow.ui.console.picker import can_pick, pick

    rows = session_rows([entry.summary() for entry in entries], words, time.time())
    if can_pick():
        row = asyncio.run(pick(rows, words))
        if row is None:
            raise NothingChosen
        return entries[row.number - 1]
    for line in session_lines(rows[:LISTED], shutil.get_terminal_size().columns - 1):
        print_out(line)
    return sessions.find(input(words("sessions.pick")).strip() or "1")
