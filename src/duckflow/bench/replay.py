"""A recorded session played again from its record alone: what was decided and done, and what became of the files."""

import re
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, cast

from duckflow.agent.session import replay
from duckflow.events.types import ActionFinished, ActionStarted, Event, SessionOpened, TurnBegan
from duckflow.safety.path_names import shown
from duckflow.safety.undo.ledger import Change, Contents, Database, Fact, UndoLedger, UndoWork, content_id
from duckflow.state.action import Action
from duckflow.state.phrase import Phrase, say
from duckflow.store.journal import JournalReader

WRITE, EDIT = "file_ops.write_file", "file_ops.edit_file"


class Replayed(NamedTuple):
    """What came of it; without problems the files are the same, byte by byte."""

    session: str
    turns: int
    actions: int
    files: int
    problems: tuple[Phrase, ...]


class Deeds(NamedTuple):
    """Of a journal: the session, its turns, and by author and path the last action that succeeded in changing it."""

    session: str
    turns: int
    actions: int
    last: dict[tuple[str, str], Action]


def play(journal: Path, undo: Path, into: Path) -> Replayed:
    """Plays a session into an empty folder. A damaged journal raises; what does not fit together is a problem."""
    problems: list[Phrase] = []
    with closing(JournalReader.open(journal)) as record:
        record.check()
        if replay(record) != replay(record, from_snapshot=False):
            problems.append(say("replay.state"))
        deeds = _deeds(event for _, event in record.events())
    if not undo.exists():
        return Replayed(deeds.session, deeds.turns, deeds.actions, 0, tuple(problems))
    with closing(Database(undo)) as database:
        works = UndoLedger(database).works(deeds.session)
        player = _Player(Contents(database, 0), into, deeds)
        files = player.play(works)
    return Replayed(deeds.session, deeds.turns, deeds.actions, files, (*problems, *player.problems))


def _deeds(events: Iterable[Event]) -> Deeds:
    session, turn, count = "", 0, 0
    running: dict[str, Action] = {}
    last: dict[tuple[str, str], Action] = {}
    for event in events:
        match event:
            case SessionOpened():
                session = event.session_id
            case TurnBegan():
                turn = event.turn
            case ActionStarted():
                running[event.action.action_id] = event.action
            case ActionFinished():
                count += 1
                if action := running.pop(event.result.action_id, None):
                    last |= {(event.job or str(turn), path): action for path in event.result.changed}
            case _:
                pass
    return Deeds(session, turn, count, last)


class _Player:
    """Puts each change in the place of the one before it, and looks whether they fit."""

    def __init__(self, contents: Contents, into: Path, deeds: Deeds) -> None:
        self._contents = contents
        self._into = into
        self._deeds = deeds
        self.problems: list[Phrase] = []

    def play(self, works: Iterable[UndoWork]) -> int:
        changes = sorted(
            ((change, work.author) for work in works for change in work.changes if not change.undone),
            key=lambda one: one[0].order,
        )
        ends: dict[str, Fact | None] = {}
        latest: dict[tuple[str, str], Change] = {}
        for change, author in changes:
            ends[change.path] = change.after
            latest[author.job or str(author.turn), change.path] = change
        self._write(ends)
        for key, change in latest.items():
            self._compare(change, self._deeds.last.get(key))
        for path, fact in ends.items():
            self._check(path, fact)
        return len(ends)

    def _write(self, ends: Mapping[str, Fact | None]) -> None:
        """Makes folders, then files, then links. No link stands there while anything is written, so that nothing can
        be written through one."""
        inside = {path: fact for path, fact in ends.items() if fact and _is_inside(path)}
        links = {path: fact.content for path, fact in inside.items() if fact.kind == "link"}
        for path, fact in inside.items():
            with suppress(OSError):
                (self._into / path if fact.kind == "folder" else (self._into / path).parent).mkdir(
                    parents=True, exist_ok=True
                )
        for path, fact in inside.items():
            if fact.kind == "file" and fact.blob and (data := self._contents.get(fact.blob)) is not None:
                with suppress(OSError):
                    (self._into / path).write_bytes(data)
        for path, target in links.items():
            with suppress(OSError):
                (self._into / path).symlink_to(target)

    def _check(self, path: str, fact: Fact | None) -> None:
        if fact and fact.kind == "file" and not fact.blob:
            self.problems.append(say("replay.not_kept", path=shown(path)))
        elif not _is_inside(path) or not self._is_so(self._into / path, fact):
            self.problems.append(say("replay.differs", path=shown(path)))

    @staticmethod
    def _is_so(place: Path, fact: Fact | None) -> bool:
        match fact.kind if fact else "":
            case "":
                return not place.is_symlink() and not place.is_file()
            case "file" if fact:
                return not place.is_symlink() and place.is_file() and content_id(place.read_bytes()) == fact.content
            case "link" if fact:
                return place.is_symlink() and str(place.readlink()) == fact.content
            case _:
                return True

    def _compare(self, change: Change, action: Action | None) -> None:
        """What the record says was written, beside what is kept as written."""
        if action is None or action.operation not in (WRITE, EDIT) or not change.after or not change.after.blob:
            return
        data = self._contents.get(change.after.blob)
        if data is None:
            return
        text = _bare(data.decode("utf-8", "replace"))
        if not all(_bare(part) in text for part in _written(action.operation, action.args)):
            self.problems.append(say("replay.other_text", path=shown(change.path), action=action.action_id))


def _is_inside(path: str) -> bool:
    """Says whether a recorded path stays in its folder. A record may have been tampered with."""
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and ".." not in parts and "\0" not in path


def _written(operation: str, args: dict[str, Any]) -> list[str]:
    if operation == WRITE:
        return [str(args.get("content", ""))]
    edits = cast("list[dict[str, Any]]", args.get("edits") or [])
    return [str(edit.get("new", "")) for edit in edits]


def _bare(text: str) -> str:
    """Without what encodings, newlines and indentation change on the way to the file."""
    return re.sub(r"\s+|�|^```\w*|```$", "", text)
