"""Says whose work a change is that was found in the work folder."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from duckflow.safety.commands.parse import WRITERS, parse
from duckflow.safety.commands.verdict import TooMuch
from duckflow.safety.commands.words import Call, names
from duckflow.safety.undo.facts import Change, Seen, UndoWork
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


REMOVERS = names("rm rmdir")
PLAIN_PROGRAMS = (WRITERS - names("ln install truncate")) | names("cat echo printf sleep true")
PLAIN_OPTION = re.compile(r"-[aEfinprRv]+")
PLAIN_SED = re.compile(r"(?:s/(?:[^/\\\n]|\\.)*/(?:[^/\\\n]|\\.)*/[gI\d]*|(?:\d+|/(?:[^/\\\n]|\\.)*/)d)")


def files_left_by(command: str) -> list[str] | None:
    """Returns the paths at which a command leaves files that it has written or moved; None if its text does not show
    every path that it may change."""
    try:
        script = parse(command)
    except TooMuch:
        return None
    if not script.calls or script.doubts or not all(map(_is_plain, script.calls)):
        return None
    left_paths = dict[str, None]()
    for call in script.calls:
        paths = [os.path.normpath(path) for path in call.plain_words] if call.program in WRITERS else []
        removed_paths = paths if call.program in REMOVERS else paths[:-1] if call.program == "mv" else []
        for path in removed_paths:
            left_paths.pop(path, None)
        written_paths = paths[call.program in ("sed", "chmod") :] if call.program not in REMOVERS | {"mkdir"} else []
        written_paths = written_paths[-1:] if call.program in ("mv", "cp") else written_paths
        written_paths += [os.path.normpath(redirect.target.text) for redirect in call.redirects if redirect.writes]
        left_paths |= dict.fromkeys(written_paths)
    return [*left_paths]


def _is_plain(call: Call) -> bool:
    words = (*call.words, *(redirect.target for redirect in call.redirects))
    if call.assignments or call.program not in PLAIN_PROGRAMS or not all(word.known for word in words):
        return False
    options = [text for text in call.texts if text.startswith("-")]
    sed_script = call.plain_words[:1] if call.program == "sed" else ()
    return call.words[0].text == call.program and all(
        (*map(PLAIN_OPTION.fullmatch, options), *map(PLAIN_SED.fullmatch, sed_script))
    )


class Writer(NamedTuple):
    """Somebody whose commands run: the record of the work, which the user does not have, and the only paths that the
    commands change; None where they may change anything. At the paths in `leaves` they leave files."""

    work: UndoWork | None
    paths: Sequence[str] | None = None
    leaves: Sequence[str] = ()


class Writers(NamedTuple):
    """All who may have made a change that was found. `owns` says whether one of them is known to write at a path."""

    all: Sequence[Writer] = ()
    owns: Owns = owns_paths(None)

    @property
    def works(self) -> list[UndoWork]:
        return [writer.work for writer in self.all if writer.work]

    def told_apart(
        self, changes: Sequence[Change], entries: Mapping[str, Seen | None]
    ) -> Iterator[tuple[Sequence[Writer], Sequence[Change]]]:
        """Yields the changes with those who may have made them. `entries` are the files as they are now. Nothing is
        told apart where one command may have moved what another one wrote, or may have reached another path through a
        link."""
        anywhere = [writer for writer in self.all if writer.paths is None]
        parts, parts_of_lives = dict[tuple[int, ...], list[Change]](), dict[str, set[tuple[int, ...]]]()
        for change in changes:
            place = tuple(
                number for number, writer in enumerate(self.all) if writer.paths and near(change.path, writer.paths)
            )
            parts.setdefault(place, []).append(change)
            parts_of_lives.setdefault(change.life, set()).add(place)
        sources = [place for place, part in parts.items() if any(change.after is None for change in part)]
        is_mixed = any(source != place and {*source} & {*place} for source in sources for place in parts)
        was_moved = any(len(places) > 1 for places in parts_of_lives.values())
        is_missing = bool(anywhere) and any(_is_missing(path, entries) for writer in self.all for path in writer.leaves)
        if is_mixed or was_moved or is_missing or _reached_by_links(self.all, entries):
            parts, anywhere = {(): [*changes]}, []
        for place, part in parts.items():
            yield [*(self.all[number] for number in place), *anywhere] or self.all, part


def _is_missing(path: str, entries: Mapping[str, Seen | None]) -> bool:
    entry = entries.get(path)
    return entry is None or entry.fact.kind != "file"


def _reached_by_links(writers: Iterable[Writer], entries: Mapping[str, Seen | None]) -> bool:
    links = [path for path, entry in entries.items() if entry and entry.fact.kind == "link"]
    return any(near(link, writer.paths or ()) for link in links for writer in writers)


def running(
    ledger: UndoLedger, loaded: UndoWork | None = None, ended: Window | None = None, owns: Owns | None = None
) -> Writers:
    """Returns all whose commands run, or have just `ended`. Between two looks at the folder no command begins or ends,
    so each of them may have made what is found now. `loaded` is a work that the caller saves later; `owns` says what is
    certainly the command's that has ended."""
    works, owners, is_user_there = dict[tuple[str, str], UndoWork](), [owns or owns_paths(None)], False
    windows_of = dict[tuple[str, str], list[Window]]()
    for window in ledger.windows().values():
        key = (window.session, window.author.name)
        if window.kind == "command":
            is_loaded = loaded is not None and key == (loaded.session, loaded.author.name)
            works[key] = (
                loaded if loaded and is_loaded else works.get(key) or ledger.work(window.session, window.author)
            )
            windows_of.setdefault(key, []).append(window)
            owners += [] if window == ended else [owns_paths(without_git(window))]
        is_user_there = is_user_there or window.kind == "watch"

    def is_owned(path: str) -> bool:
        return any(owns_path(path) for owns_path in owners)

    writers = [_writer(work, windows_of[key]) for key, work in works.items()]
    return Writers([*writers, *[Writer(None)] * is_user_there], is_owned)


def _writer(work: UndoWork, windows: Sequence[Window]) -> Writer:
    if any(window.leaves is None for window in windows):
        return Writer(work)
    paths = [path for window in windows for path in window.paths]
    return Writer(work, paths, [path for window in windows for path in window.leaves or ()])
