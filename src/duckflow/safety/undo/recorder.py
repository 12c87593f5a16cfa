"""Notes down what a change or a command does to the work folder: before it happens, and after."""

import json
from collections.abc import Iterable, Mapping, Sequence

from duckflow.safety.undo.baseline import Difference
from duckflow.safety.undo.fact import Fact, Seen, dump_facts, load_facts
from duckflow.safety.undo.git_watch import Mark
from duckflow.safety.undo.ignored import Ignored, NothingIgnored, upwards
from duckflow.safety.undo.ledger import CHANGE, COMMAND, RESTORE, Change, Window
from duckflow.safety.undo.left_out import left_out_of
from duckflow.safety.undo.retention import retain
from duckflow.safety.undo.site import Site
from duckflow.safety.undo.survey import Survey, TooManyFiles
from duckflow.safety.undo.turn import UndoTurn


class Recorder:
    """Works inside a transaction. What a window notes before is on disk when the transaction ends."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._open: set[int] = set()
        self._survey: Survey | None = None
        self._ignored: Ignored | None = None

    def open_change(self, turn: UndoTurn, paths: Sequence[str]) -> tuple[int, dict[str, Fact]]:
        """For Duckflow's own changes. What lies in a folder belongs to it, ignored files too."""
        before = self._site.vault.keep(self._capture(turn, paths), with_git=False)
        facts = {path: seen.fact for path, seen in before.items()}
        return self._opened(turn, CHANGE, paths, dump_facts(facts)), facts

    def open_command(self, turn: UndoTurn) -> int | None:
        """For everything a command may do. Nothing when the folder has too many files for that."""
        others = [window for window in self._site.ledger.windows() if window.kind == COMMAND]
        try:
            # What changed while another command runs is taken for that one's doing.
            survey = self._sync(others[0].turn if others else None, sure=True)
        except TooManyFiles:
            self._site.ledger.leave_out(turn, "too_many", {".": self._site.settings.files})
            return None
        marks = self._site.watch.marks(survey.repositories, before=True)
        return self._opened(turn, COMMAND, survey.repositories, json.dumps(marks))

    def close(self, window_id: int) -> None:
        for window in self._site.ledger.windows():
            if window.window_id == window_id:
                self._close(window, sure=True)
        self._open.discard(window_id)

    def give_up(self, window_id: int) -> None:
        """What could not be noted down now is found out later, as after a crash."""
        self._open.discard(window_id)

    def recover(self) -> None:
        """Close what a crash left open. Who made the changes since then is not certain."""
        for window in self._site.ledger.windows():
            mine = window.token == self._site.presence.token
            if (mine and window.window_id not in self._open) or not (mine or self._site.presence.alive(window.token)):
                self._close(window, sure=False)

    def open_restore(self, turn: UndoTurn) -> int:
        return self._opened(turn, RESTORE, (), "")

    def restored(self, now: Mapping[str, Seen | None]) -> None:
        """An undo or redo changed these: no command did."""
        self._note(now)

    def _opened(self, turn: UndoTurn, kind: str, roots: Iterable[str], before: str) -> int:
        window_id = self._site.ledger.open(turn, self._site.presence.token, kind, roots, before)
        self._open.add(window_id)
        return window_id

    def _close(self, window: Window, sure: bool) -> None:
        if window.kind == CHANGE:
            self._close_change(window, sure)
        elif window.kind == COMMAND:
            self._close_command(window, sure)
        else:
            paths = [one.path for one in self._site.ledger.changes(window.turn)]
            self._site.tree.clean_up(window.token, paths)
        self._site.ledger.close(window.window_id)
        retain(self._site, window.turn)

    def _close_change(self, window: Window, sure: bool) -> None:
        before = load_facts(window.before)
        after = self._site.vault.keep(self._capture(window.turn, window.roots), with_git=False)
        paths = sorted(before.keys() | after.keys())
        now = {path: after[path].fact if path in after else None for path in paths}
        changes = [Change(path, before.get(path), now[path], sure) for path in paths if before.get(path) != now[path]]
        self._record(window.turn, changes, sure)
        if self._site.baseline.entries:
            self._note({path: after.get(path) for path in paths})

    def _close_command(self, window: Window, sure: bool) -> None:
        ledger, before = self._site.ledger, self._survey
        try:
            after = self._sync(window.turn, sure)
        except TooManyFiles:
            ledger.leave_out(window.turn, "too_many", {".": self._site.settings.files})
            return
        old = {folder: Mark(*values) for folder, values in json.loads(window.before).items()}
        new = self._site.watch.marks({*old, *after.repositories}, before=False)
        for kind, name in self._site.watch.moved(old, new):
            ledger.leave_out(window.turn, kind, {name: 1})
        if before:
            ledger.leave_out(window.turn, "ignored", after.touched_since(before))
        ledger.leave_out(window.turn, "blind", {after.ignored_above(path): 1 for path in after.blind})

    def _sync(self, turn: UndoTurn | None, sure: bool) -> Survey:
        """Bring the baseline up to date. What differs is a turn's doing, or nobody's in particular."""
        site = self._site
        ignored = site.shadow.ignored()
        survey = site.surveyor.take(site.baseline.entries, ignored)
        found = list(site.baseline.differences(survey, self._survey, site.tree))
        changed = [one for one in found if turn and one.real]
        # Before anything else: the command may have removed the repository that has the old contents.
        lost = site.vault.adopt(one.before.fact.blob for one in changed if one.before)
        self._update_baseline(survey, found)
        self._survey, self._ignored = survey, ignored
        if turn:
            self._record(turn, [self._change(one, sure) for one in changed], sure)
            gone = [one.path for one in changed if one.before and one.before.fact.blob in lost]
            site.ledger.leave_out(turn, "lost", dict.fromkeys(gone, 1))
        return survey

    def _update_baseline(self, survey: Survey, found: list[Difference]) -> None:
        site = self._site
        moved = site.shadow.refresh()
        present = {one.path: one.now for one in found if one.now}
        kept = site.vault.keep(survey.covered | present if moved else present, with_git=True)
        entries = site.baseline.entries
        update: dict[str, Seen | None] = {path: seen for path, seen in kept.items() if entries.get(path) is not seen}
        site.baseline.update(update | {one.path: None for one in found if one.now is None})

    def _change(self, one: Difference, sure: bool) -> Change:
        now = self._site.baseline.entries.get(one.path)
        return Change(one.path, one.before.fact if one.before else None, now.fact if now else None, sure)

    def _record(self, turn: UndoTurn, changes: list[Change], sure: bool) -> None:
        ledger, largest = self._site.ledger, self._site.settings.largest_file_mb
        ledger.record(turn, changes)
        for kind, names in left_out_of(changes, largest).items():
            ledger.leave_out(turn, kind, names)
        if changes and not sure:
            ledger.leave_out(turn, "interrupted", {one.path: 1 for one in changes})

    def _capture(self, turn: UndoTurn, paths: Iterable[str]) -> dict[str, Seen]:
        """These paths, all that is beneath them unless it is too much, and the folders above them."""
        found: dict[str, Seen] = {}
        known = self._site.baseline.entries
        for path in paths:
            for one in upwards(path):
                if one not in found and (seen := self._site.tree.look(one)):
                    found[one] = seen
            if path in found and found[path].fact.kind == "folder":
                try:
                    found |= self._site.surveyor.take(known, NothingIgnored(), path).covered
                except TooManyFiles:
                    self._site.ledger.leave_out(turn, "too_many", {path: self._site.settings.files})
        return found

    def _note(self, now: Mapping[str, Seen | None]) -> None:
        known, ignored = self._site.baseline.entries, self._ignored
        covered = {
            path: seen for path, seen in now.items() if path in known or (ignored and not ignored.left_out(path))
        }
        if known:
            self._site.baseline.update(covered)
