"""The sessions of this machine, as the page's server needs them."""

import asyncio
import re
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from duckflow.agent.session import replay
from duckflow.cli.audit import without_secrets
from duckflow.cli.host_process import What, flag_words, start_host
from duckflow.commands.audit import list_audit
from duckflow.errors import UsageError
from duckflow.events.views import SessionSummary
from duckflow.i18n.words import Words
from duckflow.remote.conversation import RemoteConversation
from duckflow.remote.protocol import SUFFIX
from duckflow.state.agent import AgentState
from duckflow.store.journal import JournalReader, Row, read_event
from duckflow.store.paths import Paths
from duckflow.store.pictures import PictureStore
from duckflow.store.sessions import SessionEntry, Sessions, new_session_id
from duckflow.web.ports import Joined, KeptEvent

NAME = re.compile(r"[0-9A-Za-z-]{1,80}")
MOST_FOLDERS, RECENT = 500, 8


class SessionShelf:
    """Finds, starts and reads sessions for the page. With `only`, it shows these sessions and begins no new ones."""

    def __init__(self, paths: Paths, only: Iterable[str] | None = None) -> None:
        self._paths = paths
        self._only = None if only is None else dict.fromkeys(only)

    def show(self, session_ids: Iterable[str]) -> None:
        """Adds these sessions to those that are shown, if only some sessions are shown."""
        if self._only is not None:
            self._only |= dict.fromkeys(session_ids)

    def alone(self) -> str:
        return next(reversed(self._only), "") if self._only else ""

    def _shows(self, session_id: str) -> bool:
        return self._only is None or session_id in self._only

    def all(self) -> Sequence[SessionSummary]:
        entries = [entry.summary() for entry in self._sessions.all()]
        visible_entries = [
            entry for entry in entries if self._shows(entry.session_id) and not self.is_of_fleet(entry.folder)
        ]
        return sorted(visible_entries, key=lambda entry: entry.updated, reverse=True)

    def is_of_fleet(self, folder: str) -> bool:
        return Path(folder).is_relative_to(self._paths.worktrees)

    def mark(self) -> object:
        """Returns the paths and times of all journals and sockets, so that a caller notices changes. Reading a journal
        leaves an empty write-ahead file behind, which does not count as a change."""
        file_times: set[tuple[str, int]] = set()
        for path in self._folder.glob("*/*"):
            if path.suffix in (".db", ".db-wal", SUFFIX):
                with suppress(OSError):
                    file = path.stat()
                    file_times |= {(str(path), file.st_mtime_ns)} if file.st_size or path.suffix == SUFFIX else set()
        return file_times, frozenset(self._only or ())

    def running(self) -> frozenset[str]:
        names = (path.stem for path in self._folder.glob(f"*/*{SUFFIX}"))
        return frozenset(name for name in names if self._shows(name))

    async def join(self, session_id: str) -> Joined | None:
        path = self._find(session_id, SUFFIX)
        remote = RemoteConversation(path)
        try:
            await remote.attach()
        except TimeoutError:
            raise UsageError("attach.silent", session=session_id) from None
        except OSError:
            path.unlink(missing_ok=True)
            return None
        return Joined(remote, remote.aclose)

    async def begin(self, folder: str, mode: str, model: str, language: str) -> str:
        if self._only is not None:
            raise UsageError("serve.alone")
        try:
            session_folder = (Path(folder).expanduser() if folder else Path.cwd()).resolve(strict=True)
        except (OSError, ValueError, RuntimeError):
            raise UsageError("editor.no_folder", folder=folder) from None
        if not session_folder.is_dir():
            raise UsageError("editor.no_folder", folder=folder)
        session_id = new_session_id()
        journal = Sessions(self._paths.sessions_of(session_folder)).path(session_id)
        await self._start(
            journal, "new", flag_words({"--mode": mode, "--model": model, "--lang": language}), session_folder
        )
        return session_id

    async def go_on(self, session_id: str) -> None:
        if session_id not in self.running():
            journal = self._find(session_id)
            if self.is_of_fleet(self.state(session_id)[1].folder):
                raise UsageError("serve.of_fleet")
            await self._start(journal, "again", [], None)

    async def _start(self, journal: Path, what: What, flags: list[str], folder: Path | None) -> None:
        has_host = await asyncio.to_thread(start_host, journal, what, flags, folder)
        if not has_host or not journal.with_suffix(SUFFIX).exists():
            raise UsageError("serve.not_begun", log=str(self._paths.log))

    def rename(self, session_id: str, title: str) -> None:
        self._sessions.rename(self._entry(session_id), title)

    def fork(self, session_id: str) -> str:
        return self._sessions.fork(self._entry(session_id).path).stem

    def archive(self, session_id: str, away: bool) -> None:
        self._sessions.archive(self._entry(session_id), away)

    def remove(self, session_id: str) -> None:
        self._sessions.remove(self._entry(session_id))

    def export(self, session_id: str, form: str, words: Words) -> str:
        from duckflow.commands.export.document import Format, rendered
        from duckflow.commands.export.transcript import Transcript

        with closing(self._open(session_id)) as journal:
            return rendered(Transcript().hear_all(journal.events()), words, Format(form))

    def search(self, question: str, words: Words) -> list[dict[str, Any]]:
        from duckflow.commands.sessions import places_where_said

        shown_sessions = self.all()
        hits = places_where_said(question, self._paths.archives(None), shown_sessions, words)
        return [
            {
                "id": hit.session_id,
                "title": hit.session.title or hit.session.asked,
                "folder": hit.session.folder,
            }
            | {"at": hit.at, "who": hit.who, "excerpt": hit.excerpt}
            for hit in hits
            if hit.session
        ]

    def folders(self, at: str) -> dict[str, Any]:
        with suppress(OSError, ValueError, RuntimeError):
            home = Path.home().resolve()
            folder = (home / Path(at).expanduser()).resolve()
            if self._only is not None or not _is_browsed(folder, home):
                raise UsageError("serve.no_browsing", folder=at)
            inner_names = sorted(
                path.name
                for path in folder.iterdir()
                if path.name[0] != "." and _is_folder(path) and _is_browsed(path.resolve(), home)
            )
            recent_folders = dict.fromkeys(entry.folder for entry in self.all() if _is_folder(Path(entry.folder)))
            parent_folder = str(folder.parent) if folder != home else ""
            return {
                "at": str(folder),
                "above": parent_folder,
                "folders": inner_names[:MOST_FOLDERS],
                "recent": [*recent_folders][:RECENT],
            }
        raise UsageError("serve.no_browsing", folder=at)

    def _entry(self, session_id: str) -> SessionEntry:
        self._find(session_id)
        return self._sessions.find(session_id)

    @property
    def _sessions(self) -> Sessions:
        return Sessions(self._paths.sessions_of(Path.cwd()))

    def first(self, session_id: str, most: int, after: int) -> Sequence[KeptEvent]:
        with closing(self._open(session_id)) as journal:
            return list(map(_kept, journal.first(most, after)))

    def last(self, session_id: str, most: int, before: int) -> Sequence[KeptEvent]:
        with closing(self._open(session_id)) as journal:
            return list(map(_kept, journal.last(most, before)))

    def of_kinds(self, session_id: str, kinds: Sequence[str]) -> Sequence[KeptEvent]:
        with closing(self._open(session_id)) as journal:
            return list(map(_kept, journal.of_kinds(kinds)))

    def state(self, session_id: str) -> tuple[int, AgentState]:
        with closing(self._open(session_id)) as journal:
            state = replay(journal)
            return journal.number, state

    def picture(self, session_id: str, digest: str) -> bytes:
        return PictureStore(self._find(session_id)).find(digest)

    def audit(self, session_id: str) -> Sequence[dict[str, Any]]:
        with closing(self._open(session_id)) as journal:
            entries = list_audit(journal.events())
        return [without_secrets(audit_entry.as_json()) for audit_entry in entries]

    def _open(self, session_id: str) -> JournalReader:
        return JournalReader.open(self._find(session_id))

    def _find(self, session_id: str, suffix: str = ".db") -> Path:
        if NAME.fullmatch(session_id) and self._shows(session_id):
            for path in self._folder.glob(f"*/{session_id}{suffix}"):
                return path
        raise UsageError("sessions.unknown", wanted=session_id)

    @property
    def _folder(self) -> Path:
        return self._paths.data / "sessions"


def _is_browsed(folder: Path, home: Path) -> bool:
    """Says whether a folder is the home or lies in it, and neither it nor a folder around it is hidden."""
    return folder.is_relative_to(home) and not any(name[0] == "." for name in folder.relative_to(home).parts)


def _is_folder(path: Path) -> bool:
    """Says whether the path is a folder. A link to itself, or into a folder that may not be read, is none."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _kept(row: Row) -> KeptEvent:
    return KeptEvent(row.seq, read_event(row))
