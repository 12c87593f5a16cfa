"""Records how the work folder is before and after a change or a command."""

import contextlib
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from duckflow.errors import ToolError
from duckflow.safety.files import Presence
from duckflow.safety.repository import find_repository
from duckflow.safety.secret_index import around, secret_index
from duckflow.safety.started_files import programs_of
from duckflow.safety.undo.facts import Change, Seen, UndoWork
from duckflow.safety.undo.ledger import Contents, Database, UndoLedger, Window, WindowKind
from duckflow.safety.undo.marks import Marks, marks_in, what_moved
from duckflow.safety.undo.places import Baseline, FilePlaces, origins_of
from duckflow.safety.undo.settings import MB, UndoSettings
from duckflow.safety.undo.tree import (
    FAN_OUT,
    GIT,
    Tree,
    adds_only,
    git_folder,
    is_guarded_pack,
    left_out_of,
    same_index,
    upwards,
)
from duckflow.safety.undo.walk import FolderWalk, Rules, Survey
from duckflow.safety.undo.writers import Owns, Writer, Writers, near, owns_paths, running, without_git
from duckflow.safety.workspace import Workspace
from duckflow.state.changes import WorkAuthor

SLACK = 5
"""Turns are forgotten once they exceed the allowed number by this fraction of it (a fifth)."""


class Recorder:
    """Compares the work folder with how it was last seen (the baseline), and notes the differences as somebody's work.
    A window is opened before a change or command and closed after it. What is needed to close it is on disk."""

    def __init__(self, workspace: Workspace, data: Path, settings: UndoSettings) -> None:
        self.settings = settings
        self._work = workspace.root
        self.database = Database(data)
        self.ledger = UndoLedger(self.database)
        with self.database.transaction():
            self.presence = Presence(data / "alive")
        self.contents = Contents(self.database, settings.copied_mb * MB)
        self.tree = Tree(self._work, self.contents, settings.largest_file_mb * MB, self.presence.token)
        private_stats = (private_path.stat() for private_path in (data, *workspace.private) if private_path.exists())
        self._own = frozenset((file_stat.st_dev, file_stat.st_ino) for file_stat in private_stats)
        self._version = self.database.version
        self.baseline = Baseline(self.database)
        self.places = FilePlaces(self.database)
        self._survey: Survey | None = None
        self._open: set[int] = set()
        self._changed: list[Change] = []
        self.paths_of_crashed_undo = set[str]()
        self._commanded: tuple[str, WorkAuthor, Rules | None] | None = None

    @contextlib.contextmanager
    def transaction(self, closing: int = 0) -> Generator[None]:
        """Runs a transaction: it has its full effect or none, and other processes wait. Windows that a crash left open
        are closed first, except for the window `closing`."""
        try:
            with self.database.transaction():
                if self.database.version != self._version:
                    self._version = self.database.version
                    self._read_again()
                self.contents.begin()
                self._recover(closing)
                yield
        except BaseException:
            # The cache may hold data that the database has rolled back.
            self._read_again()
            raise

    def _read_again(self) -> None:
        self.baseline.read_again()
        self.contents.look_again()
        self.places.read_again()
        self.ledger.read_again()

    def open_change(self, session: str, author: WorkAuthor, paths: Sequence[str]) -> int:
        """Opens a window, which records Duckflow's own change. If a path is a folder, everything in it belongs to the
        change, ignored files too."""
        with self.transaction():
            work = self.ledger.work(session, author)
            entries_now, survey, writers = self._look_at(work, paths), self._survey, running(self.ledger, work)
            known_entries = self.baseline.entries
            if survey and any((entry is None) == (path in known_entries) for path, entry in entries_now.items()):
                # The file came or went: somebody may have moved it.
                self._sync(writers)
                self._survey = survey
            self._compare(entries_now, writers)
            if work.left_out:
                self.ledger.save(work)
            return self._opened(work, "change", paths)

    def open_command(
        self, session: str, author: WorkAuthor, left_running: str, writes: Sequence[str], leaves: Sequence[str] | None
    ) -> int:
        """Opens a window, which records what a command does."""
        with self.transaction():
            work = self.ledger.work(session, author)
            if left_running:
                work.leave_out("background", {left_running: 1})
                self.ledger.save(work)
            survey = _with_own_files(self, self._work, self._sync(running(self.ledger, work)))
            if survey.crowded:
                work.leave_out("too_many", {".": self.settings.files})
                self.ledger.save(work)
            marks = marks_in(self._work, survey.repositories)
            others_run = any(window.kind in ("command", "watch") for window in self.ledger.windows().values())
            paths = [path for path in writes if path != GIT or not others_run]
            return self._opened(work, "command", paths, marks, None if left_running else leaves)

    def open_watch(self, session: str) -> int:
        """Opens a window, which records a command of the user's own. Its changes belong to no turn or job."""
        with self.transaction():
            self._sync(running(self.ledger))
            return self._opened(UndoWork(session, WorkAuthor(0), 0.0), "watch")

    def open_restore(self, session: str, paths: Sequence[str]) -> int:
        return self._opened(UndoWork(session, WorkAuthor(0), 0.0), "restore", paths)

    def unkept(self, paths: Sequence[str]) -> frozenset[str] | None:
        """Returns the files at these paths, or in the whole folder, whose contents are not kept, and the folders whose
        files are not known; None if there are too many files."""
        work = UndoWork("", WorkAuthor(0), 0.0)
        with self.transaction():
            survey = None if paths else self._sync(running(self.ledger))
            entries = survey.covered if survey else self._look_at(work, paths)
            facts = [(path, entry.fact) for path, entry in entries.items() if entry]
            unkept = [path for path, fact in facts if fact.kind == "file" and not fact.kept]
            if not work.left_out and not (survey and survey.crowded):
                return frozenset((*unkept, *(survey.blind if survey else ())))
        return None

    def close(self, window_id: int) -> list[Change]:
        """Closes a window and returns its changes. Changes that could not be noted now are found later, as after a
        crash."""
        self._open.discard(window_id)
        self._changed = []
        with self.transaction(closing=window_id):
            if window := self.ledger.windows().get(window_id):
                self._close(window_id, window, sure=True)
        self.database.execute("PRAGMA incremental_vacuum")
        return self._changed

    def restored(self, paths: Iterable[str]) -> None:
        """Notes that an undo or redo changed these paths."""
        self.baseline.write({path: self.tree.look(path) for path in paths if not is_guarded_pack(path)})

    def _opened(
        self,
        work: UndoWork,
        kind: WindowKind,
        paths: Sequence[str] = (),
        marks: Marks | None = None,
        leaves: Sequence[str] | None = None,
    ) -> int:
        window = Window(work.session, work.author, self.presence.token, kind, paths, marks or {}, leaves)
        self._open.add(window_id := self.ledger.open(window))
        return window_id

    def _recover(self, closing: int) -> None:
        """Closes windows that a crash left open. It is not certain who made the changes since the crash."""
        for window_id, window in self.ledger.windows().items():
            is_alive = window_id in self._open if window.token == self.presence.token else None
            if window_id != closing and not (self.presence.alive(window.token) if is_alive is None else is_alive):
                self._close(window_id, window, sure=False)

    def _close(self, window_id: int, window: Window, sure: bool) -> None:
        work = self.ledger.work(window.session, window.author)
        [(newest_id,)] = self.database.execute("SELECT seq FROM sqlite_sequence WHERE name = 'windows'")
        if window.kind == "command" and newest_id != window_id:
            # What began meanwhile, in this session or in another one, may have committed too.
            window = without_git(window)
        if window.kind == "change":
            entries_now = self._look_at(work, window.paths)
            self._compare(entries_now, Writers([Writer(work)], owns_paths(window if sure else None)))
            self.baseline.write({path: None for path in entries_now if is_guarded_pack(path)})
        elif window.kind == "command":
            self._close_command(window, work, owns_paths(window if sure else None))
        elif window.kind == "watch":
            self._sync(running(self.ledger))
        else:
            self.tree.clean_up(window.token, window.paths)
            self.paths_of_crashed_undo.update(() if sure else window.paths)
        self.ledger.close(window_id)
        if window.kind in ("change", "command"):
            forget_oldest(self, (work.session, work.author.name))

    def _close_command(self, window: Window, work: UndoWork, owns: Owns) -> None:
        survey_before, last, author = self._survey, self._commanded, (window.session, window.author)
        rules = last[2] if last and last[0] == window.session else survey_before and survey_before.rules
        self._commanded = (*author, rules)
        covered_folders = [folder for folder, marks in window.marks.items() if marks[-1] in self.baseline.entries]
        survey_after = self._sync(running(self.ledger, work, window, owns), rules)
        self._changed += survey_after.running_later(survey_before, self._work) if survey_before else ()
        marks = marks_in(self._work, {*window.marks, *survey_after.repositories})
        for kind, name in what_moved(self._work, window.marks, marks, covered_folders):
            work.leave_out(kind, {name: 1})
            self._changed += _programs_made(self, self._work, kind, name)
        work.leave_out("too_many", {".": self.settings.files} if survey_after.crowded else {})
        work.leave_out("ignored", survey_after.touched_since(survey_before) if survey_before else {})
        work.leave_out("blind", dict.fromkeys(survey_after.blind.values(), 1))
        self.ledger.save(work)

    def _sync(self, writers: Writers, rules: Rules | None = None) -> Survey:
        """Compares the folder with how it was last seen. Without writers, the differences belong to no turn. `rules`
        are git's rules before the commands of the session, where one of them has ended."""
        known, earlier_survey = self.baseline.entries, self._survey
        kept = known if earlier_survey else ()
        walk = FolderWalk(self.tree, known, self.settings, self._own, kept, self.ledger.held(), rules)
        survey = walk.walk("", self._work)
        now: dict[str, Seen | None] = {}
        now |= {path: seen for path, seen in survey.covered.items() if known.get(path) is not seen}
        for path in known.keys() - survey.covered.keys():
            # The file is gone, or ignored by now.
            if not writers.works or survey.watched.get(path) != known[path].stamp:
                now[path] = self.tree.look(path) if writers.works else None
        # Paths that a change of Duckflow's own is about to touch are noted with that change.
        windows = self.ledger.windows().values()
        own_paths = [path for window in windows if window.kind == "change" for path in window.paths]
        now = {path: seen for path, seen in now.items() if not near(path, own_paths)}
        if writers.works and earlier_survey:
            # A file that an earlier survey left out is not new.
            left_out_paths = [path for path in now if path not in known and earlier_survey.left_out(path)]
            self.baseline.write({path: now[path] for path in left_out_paths})
        if writers.works:
            staying_paths = [path for path in now if _stays(self, writers.works, path, now)]
            self.baseline.write({path: now[path] for path in staying_paths})
        self._compare(now, writers)
        self._survey = survey
        return survey

    def catch_up(self, session: str) -> None:
        """Notes what a running command and the user have done so far, before somebody's work is taken back, and what
        became of git's objects: the author of the last command counts as the one who damaged them."""
        survey = self._survey
        if self.baseline.entries:
            self._sync(running(self.ledger))
            self._survey = survey
        if damaged_entries := _damaged_objects(self.tree, self.baseline.entries):
            authors = [work.author for work in self.ledger.works(session)] or [WorkAuthor(0)]
            author = self._commanded[1] if self._commanded and self._commanded[0] == session else authors[-1]
            self._compare(damaged_entries, Writers([Writer(self.ledger.work(session, author))]))

    def _compare(self, now: Mapping[str, Seen | None], writers: Writers) -> None:
        """Notes how these paths differ from the baseline as changes of these writers, and updates the baseline."""
        known_entries = self.baseline.entries
        changed_entries = {path: seen for path, seen in now.items() if known_entries.get(path) != seen}
        entry_changes = [(path, known_entries.get(path), seen) for path, seen in changed_entries.items()]
        changes = [
            Change(path, old and old.fact, new and new.fact, writers.owns(path)) for path, old, new in entry_changes
        ]
        changes = [change for change in changes if change.before != change.after]
        self._changed += changes
        origins = origins_of(entry_changes)
        if writers.works:
            order = self.ledger.next_order()
            changes = self.places.named([change._replace(order=order) for change in changes], origins)
            _record(self, writers, changes, known_entries | changed_entries if len(writers.all) > 1 else {})
        else:
            self.places.follow(changes, origins)
        self.baseline.write(changed_entries, by_command=bool(writers.works))

    def _look_at(self, work: UndoWork, paths: Iterable[str]) -> dict[str, Seen | None]:
        """Returns the state of these paths, of the folders above, and of what is or was beneath, if it is not much."""
        known_entries = self.baseline.entries
        entries_now: dict[str, Seen | None] = {}
        for path in paths:
            for parent in upwards(path):
                entries_now[parent] = self.tree.look(parent)
            inner_entries = {inner_path: None for inner_path in known_entries if inner_path.startswith(f"{path}/")}
            seen_entry = entries_now[path]
            if seen_entry and seen_entry.fact.kind == "folder":
                survey = FolderWalk(self.tree, known_entries, self.settings, self._own).walk(path)
                inner_entries |= survey.covered
                work.leave_out("too_many", {path: self.settings.files} if survey.crowded else {})
                work.leave_out("blind", dict.fromkeys(survey.blind.values(), 1))
            entries_now |= inner_entries
        return entries_now


def _record(
    recorder: Recorder, writers: Writers, changes: Sequence[Change], entries_now: Mapping[str, Seen | None]
) -> None:
    for sharers, shared_changes in writers.told_apart(changes, entries_now):
        shared_changes = [change._replace(sharers=len(sharers)) for change in shared_changes]
        for work in [writer.work for writer in sharers if writer.work]:
            work.record(shared_changes)
            for kind, name in left_out_of(shared_changes, recorder.settings.largest_file_mb):
                work.leave_out(kind, {name: 1})
            recorder.ledger.save(work)


def _stays(recorder: Recorder, works: Sequence[UndoWork], path: str, now: Mapping[str, Seen | None]) -> bool:
    """Says whether undo leaves this change of git's own files as it is. It leaves new objects, everything in a
    repository that the work made, and an index that still stages the same files."""
    folder, entries = git_folder(path), recorder.baseline.entries
    if not folder:
        return False
    old_entry, new_entry = entries.get(path), now[path]
    top = folder.removesuffix(GIT).rstrip("/") or "."
    if folder not in entries or any(top in work.left_out.get("git_made", {}) for work in works):
        return True
    if old_entry is None or new_entry is None:
        return old_entry is None and adds_only(path)
    return same_index(recorder.contents, path, old_entry.fact, new_entry.fact)


def _damaged_objects(tree: Tree, known_entries: Mapping[str, Seen]) -> dict[str, Seen | None]:
    """Returns the git objects that were changed in place. Git never does that, so a survey skips them."""
    folders = (path for path in known_entries if FAN_OUT.search(path) and git_folder(path))
    stamps = {path: stamp for folder in folders for path, stamp in tree.stamps(folder).items() if path in known_entries}
    return {path: tree.look(path) for path, new in stamps.items() if known_entries[path].stamp.written != new.written}


def _with_own_files(recorder: Recorder, work: Path, survey: Survey) -> Survey:
    """Gives the folder its own copy of each file that is a hard link to a file elsewhere. A command that wrote to such
    a file in place would change the other file too, and undo would not restore it."""
    if not (paths := survey.lead_out()):
        return survey
    top = around(work)
    # A secret file stays a link: only the link shows under which other names it exists.
    secret_paths = {top / path for path in secret_index(top).look().paths}
    for path in paths:
        if survey.covered[path].fact.kept and work / path not in secret_paths:
            with contextlib.suppress(OSError, ToolError):
                recorder.baseline.write({path: recorder.tree.make_own(path, survey.covered[path])})
    return survey


def _programs_made(recorder: Recorder, work: Path, kind: str, folder: str) -> Iterator[Change]:
    """Yields a change for the settings of a new repository if these settings or its hooks start programs. The user is
    told of it, although undo leaves new repositories in place."""
    repository = find_repository(work / folder) if kind == "git_made" else None
    if (
        repository
        and repository.common.is_relative_to(work)
        and (repository.runs_programs() or programs_of(repository))
    ):
        path = (repository.common / "config").relative_to(work).as_posix()
        if seen_file := recorder.tree.look(path):
            yield Change(path, None, seen_file.fact, own=False)


def sweep(recorder: Recorder) -> None:
    """Drops contents that neither an undo nor the next command's undo needs."""
    needed_blobs = {seen_entry.fact.blob for seen_entry in recorder.baseline.entries.values()}
    recorder.contents.forget_all_but(needed_blobs | recorder.ledger.blobs())


def forget_oldest(recorder: Recorder, current: tuple[str, str]) -> None:
    """Forgets the oldest work, but never the current work, to keep within the allowed number and the allowed size of
    the database. The number may first be exceeded by a fifth (`SLACK`)."""
    ledger, database, settings = recorder.ledger, recorder.database, recorder.settings
    older_works = [work for work in ledger.oldest_first() if work != current]
    surplus_count = len(older_works) + 1 - settings.kept_turns
    excess_count = surplus_count if surplus_count > settings.kept_turns // SLACK else 0
    for work in older_works[:excess_count]:
        ledger.forget(*work)
    if excess_count or database.size > settings.kept_mb * MB:
        sweep(recorder)
    for work in older_works[excess_count:]:
        if database.size <= settings.kept_mb * MB:
            return
        ledger.forget(*work)
        sweep(recorder)
