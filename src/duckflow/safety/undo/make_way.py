"""Gives another name to what commands have put in the place of a file that comes back. It is never deleted, since undo
could not bring it back."""

import contextlib
import os
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from itertools import count

from duckflow.safety.undo.facts import Change, ChangeKey, UndoWork
from duckflow.safety.undo.file_history import is_folder
from duckflow.safety.undo.plan import UndoPlan, lives_of
from duckflow.safety.undo.recorder import Recorder
from duckflow.safety.undo.tree import git_folder, upwards

LONGEST_START = 200
"""The number of bytes of a name that go into the name under which something is set aside."""


class Occupants:
    """Knows what stands in the work folder where something else was before."""

    def __init__(self, recorder: Recorder) -> None:
        self._tree = recorder.tree
        self._baseline = recorder.baseline
        self._places = recorder.places
        self._ledger = recorder.ledger

    def in_the_way(self, plan: UndoPlan, session: str, histories: Mapping[str, Sequence[Change]]) -> set[str]:
        """Returns the paths at which something stands in the way of this plan that came while commands of the session
        ran, and of which no undo can take anything back by itself."""
        stuck, moving = lives_of(plan.conflicts), {edit.key for edit in plan.edits}
        wanted = [move.then for move in plan.moves if move.life in stuck and move.then and move.then.fact]
        own_keys = {change.key for work in self._ledger.works(session) for change in work.changes} if wanted else ()
        return {
            path
            for then in wanted
            for path in upwards(then.path)
            if self._makes_way(path, path == then.path and not is_folder(then.fact), histories, own_keys, moving)
        }

    def _makes_way(
        self,
        path: str,
        may_be_folder: bool,
        histories: Mapping[str, Sequence[Change]],
        own_keys: Collection[ChangeKey],
        moving: Collection[ChangeKey],
    ) -> bool:
        seen, known, arrived = self._tree.look(path), self._baseline.entries.get(path), self._baseline.arrived
        if seen is None or known is None or path not in arrived or (is_folder(seen.fact) and not may_be_folder):
            return False
        newest_keys = {change.key for change in histories.get(path, ())[-1:]}
        if (seen.file, seen.fact.bare) != (known.file, known.fact.bare) or newest_keys.isdisjoint(own_keys):
            return False
        beneath = [inner for inner in self._baseline.entries if inner.startswith(f"{path}/") and not git_folder(inner)]
        standing = (change for inner in (path, *beneath) for change in histories.get(inner, ()) if not change.undone)
        return arrived.issuperset(beneath) and not any(
            change.after and change.after.kept and change.key not in moving for change in standing
        )

    def held_by(self, work: UndoWork) -> dict[str, int]:
        """Returns the files that the work holds, as it has removed them, and that are still missing."""
        return {
            change.path: 1
            for change in work.changes
            if not change.undone and change.before and change.before.kept and not change.after
            if not (git_folder(change.path) or self._places.path_of(change.life))
        }

    def new_names(self, paths: Iterable[str]) -> dict[str, str]:
        """Returns a free path beside each of these paths."""
        return {path: self._beside(path) for path in paths}

    def _beside(self, path: str) -> str:
        folder, slash, name = path.rpartition("/")
        start = name if len(os.fsencode(name)) <= LONGEST_START else os.fsdecode(os.fsencode(name)[:LONGEST_START])
        paths = (f"{folder}{slash}{start}.undone-{number}" for number in count(1))
        return next(path for path in paths if self._tree.look(path) is None)

    @contextlib.contextmanager
    def set_aside(self, new_names: Mapping[str, str]) -> Generator[None]:
        """Renames what makes way. If the body raises an error, it goes back to its place."""
        renamed = dict[str, str]()
        try:
            for path, new_path in new_names.items():
                self._tree.rename(path, new_path.rpartition("/")[2])
                renamed[path] = new_path
            yield
        except BaseException:
            for path, new_path in renamed.items():
                if self._tree.look(path) is None:
                    self._tree.rename(new_path, path.rpartition("/")[2])
            raise

    def note(self, new_names: Mapping[str, str]) -> None:
        """Notes where those are now that were set aside."""
        for path, new_path in new_names.items():
            entries = self._baseline.entries
            inner = {known: f"{new_path}{known[len(path) :]}" for known in entries if known.startswith(f"{path}/")}
            moved = {new: entries[known] for known, new in inner.items()}
            self._baseline.write(dict.fromkeys(inner) | moved | {new_path: self._tree.look(new_path)})
            lives = {new: self._places.life_at(known) for known, new in ({path: new_path} | inner).items()}
            self._places.put({life: new for new, life in lives.items() if life})
