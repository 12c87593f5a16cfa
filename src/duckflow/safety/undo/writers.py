"""Says whose work a change is that was found in the work folder."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from duckflow.safety.undo.facts import UndoWork
from duckflow.safety.undo.ledger import UndoLedger, Window
from duckflow.safety.undo.tree import GIT, git_folder

Owns = Callable[[str], bool]


def owns_paths(window: Window | None) -> Owns:
    """Returns a function that says whether a change of a path was certainly made by the owner of this window: by
    Duckflow itself, or by a command that is known to write there."""
    if window is None:
        return lambda path: False
    git = GIT in window.paths
    return lambda path: window.kind == "change" or near(path, window.paths) or (git and git_folder(path) != "")


def without_git(window: Window) -> Window:
    return window._replace(paths=[path for path in window.paths if path != GIT])


def near(path: str, others: Iterable[str]) -> bool:
    """Says whether the path is one of the others, lies in one of them, or contains one of them."""
    return any(path == other or path.startswith(f"{other}/") or other.startswith(f"{path}/") for other in others)


class Writers(NamedTuple):
    """Those who may have made a change that was found: the records of their works, and how many they are; the user is
    one of them and has no record. `owns` says whether one of them is known to write at a path."""

    works: Sequence[UndoWork] = ()
    number: int = 0
    owns: Owns = owns_paths(None)


def running(
    ledger: UndoLedger, loaded: UndoWork | None = None, ended: Window | None = None, owns: Owns | None = None
) -> Writers:
    """Returns all whose commands run, or have just `ended`. Between two looks at the folder no command begins or ends,
    so each of them may have made what is found now. `loaded` is a work that the caller saves later; `owns` says what is
    certainly the command's that has ended."""
    works, owners, is_user_there = dict[tuple[str, str], UndoWork](), [owns or owns_paths(None)], False
    for window in ledger.windows().values():
        key = (window.session, window.author.name)
        if window.kind == "command":
            is_loaded = loaded is not None and key == (loaded.session, loaded.author.name)
            works[key] = (
                loaded if loaded and is_loaded else works.get(key) or ledger.work(window.session, window.author)
            )
            owners += [] if window == ended else [owns_paths(without_git(window))]
        is_user_there = is_user_there or window.kind == "watch"

    def is_owned(path: str) -> bool:
        return any(owns_path(path) for owns_path in owners)

    return Writers([*works.values()], len(works) + is_user_there, is_owned)
