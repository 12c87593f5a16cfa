"""Plays a recorded session again from its record alone: what was decided and done, and what became of the files."""

import posixpath
import re
import shutil
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, cast

from duckflow.agent.session import replay
from duckflow.events.types import ActionFinished, ActionStarted, Event, LoopBegan, SessionOpened, TurnBegan, TurnUndone
from duckflow.safety.path_names import shown
from duckflow.safety.undo.ledger import Change, Contents, Database, Fact, UndoLedger, UndoWork, content_id
from duckflow.state.action import Action, ActionResult
from duckflow.state.phrase import Phrase, say
from duckflow.store.journal import JournalReader

WRITE, EDIT = "file_ops.write_file", "file_ops.edit_file"
Facts = Mapping[str, Fact | None]
"""Files by their paths; None for one that does not exist."""


class Replayed(NamedTuple):
    """The end of a replay. Without problems the files are the same, byte by byte."""

    session: str
    turns: int
    actions: int
    files: int
    problems: tuple[Phrase, ...]


class RecordedDeed(NamedTuple):
    """An action of the record, and its result. `step` is the number of the model's step in the session."""

    step: int
    turn: int
    job: str
    action: Action
    result: ActionResult


class RecordedPast(NamedTuple):
    """The deeds of a session and their undoing, in the order of its record."""

    session: str
    turns: int
    events: tuple[RecordedDeed | TurnUndone, ...]

    @property
    def deeds(self) -> list[RecordedDeed]:
        return [event for event in self.events if isinstance(event, RecordedDeed)]


def read_past(events: Iterable[tuple[int, Event]]) -> RecordedPast:
    session, turn, step = "", 0, 0
    running_actions: dict[str, Action] = {}
    deeds: list[RecordedDeed | TurnUndone] = []
    for _, event in events:
        match event:
            case SessionOpened():
                session = event.session_id
            case TurnBegan():
                turn = event.turn
            case LoopBegan():
                step += 1
            case ActionStarted():
                running_actions[event.action.action_id] = event.action
            case ActionFinished() if action := running_actions.pop(event.result.action_id, None):
                deeds.append(RecordedDeed(step, turn, event.job, action, event.result))
            case TurnUndone():
                deeds.append(event)
            case _:
                pass
    return RecordedPast(session, turn, tuple(deeds))


def play(journal: Path, undo: Path, into: Path) -> Replayed:
    """Plays a session into an empty folder. A damaged journal raises an error; contradictions in the record are
    problems."""
    problems: list[Phrase] = []
    with closing(JournalReader.open(journal)) as record:
        record.check()
        if replay(record) != replay(record, from_snapshot=False):
            problems.append(say("replay.state"))
        past = read_past(record.events())
    files = 0
    if undo.exists():
        with closing(Database(undo)) as database:
            session_files = KeptFiles(database, past.session)
            final_facts = session_files.at_the_end()
            session_files.put(final_facts, into)
            problems += [*session_files.contradictions(past), *session_files.differences(final_facts, into)]
            files = len(final_facts)
    return Replayed(past.session, past.turns, len(past.deeds), files, tuple(problems))


@contextmanager
def kept_files(undo: Path, session: str) -> Generator["KeptFiles"]:
    with closing(Database(undo)) as database:
        yield KeptFiles(database, session)


class KeptFiles:
    """The files that a session has changed, as they were at any turn, from what `/undo` keeps."""

    def __init__(self, database: Database, session: str) -> None:
        self._contents = Contents(database, 0)
        works: list[UndoWork] = UndoLedger(database).works(session)
        changes = [(change, work.author) for work in works for change in work.changes]
        self._changes = sorted(changes, key=lambda pair: pair[0].order)

    def at_the_end(self) -> dict[str, Fact | None]:
        return {change.path: change.after for change, _ in self._changes if not change.undone}

    def before(self, turn: int) -> dict[str, Fact | None]:
        """Returns the files as the turn found them, including those that only later turns have changed."""
        earlier_facts = {
            change.path: change.after for change, author in self._changes if author.turn < turn and not change.undone
        }
        later_facts = {change.path: change.before for change, author in reversed(self._changes) if author.turn >= turn}
        return earlier_facts | later_facts

    def put(self, facts: Facts, into: Path) -> None:
        """Writes files into a folder: it removes what stands in these places, then makes folders, then files, then
        links. So no link of the record is there while anything is written, and nothing is written through an older
        one."""
        root = into.resolve()
        facts_inside = {path: fact for path, fact in facts.items() if _is_inside(path)}
        for path in sorted(facts_inside, reverse=True):
            with suppress(OSError):
                _remove(into / path, root, facts_inside[path])
        for path, fact in sorted(
            facts_inside.items(), key=lambda pair: ("folder", "file", "link").index(_kind(pair[1]))
        ):
            target = into / path
            if fact and (target.parent if fact.kind != "folder" else target).resolve().is_relative_to(root):
                with suppress(OSError):
                    self._make(target, fact)

    def _make(self, place: Path, fact: Fact) -> None:
        (place if fact.kind == "folder" else place.parent).mkdir(parents=True, exist_ok=True)
        if fact.kind == "link":
            place.symlink_to(fact.content)
        elif fact.kind == "file" and fact.blob and (data := self._contents.get(fact.blob)) is not None:
            place.write_bytes(data)
            place.chmod(fact.mode & 0o777 | 0o400)

    def differences(self, facts: Facts, into: Path) -> Iterator[Phrase]:
        """Yields the files of a folder that are not as they should be."""
        for path, fact in facts.items():
            if fact and fact.kind == "file" and not fact.blob:
                yield say("replay.not_kept", path=shown(path))
            elif not _is_inside(path) or not _is_so(into / path, fact):
                yield say("replay.differs", path=shown(path))

    def contradictions(self, past: RecordedPast) -> Iterator[Phrase]:
        """Compares the texts that the record says were written with those that were kept. Only the file that a call
        names must hold its text: hooks may have changed others along with it."""
        actions = {
            (deed.job or str(deed.turn), path): deed.action
            for deed in past.deeds
            for path in deed.result.changed
            if posixpath.normpath(f"/{deed.action.args.get('path', '')}").endswith(f"/{path}")
        }
        standing_changes = [(change, author) for change, author in self._changes if not change.undone]
        for (author, path), change in {
            (author_of_change.job or str(author_of_change.turn), change_of_file.path): change_of_file
            for change_of_file, author_of_change in standing_changes
        }.items():
            action = actions.get((author, path))
            if action and not self._holds(change, action):
                yield say("replay.other_text", path=shown(path), action=action.action_id)

    def _holds(self, change: Change, action: Action) -> bool:
        if action.operation not in (WRITE, EDIT) or not change.after or not change.after.blob:
            return True
        data = self._contents.get(change.after.blob)
        text = _bare((data or b"").decode("utf-8", "replace"))
        return data is None or all(_bare(part) in text for part in _written(action.operation, action.args))


def _kind(fact: Fact | None) -> str:
    return fact.kind if fact and fact.kind in ("folder", "file") else "link"


def _remove(place: Path, root: Path, fact: Fact | None) -> None:
    """Removes whatever stands in a place. A folder that stays one is left as it is."""
    if not place.parent.resolve().is_relative_to(root):
        return
    if place.is_symlink() or place.is_file():
        place.unlink()
    elif place.is_dir() and not (fact and fact.kind == "folder"):
        shutil.rmtree(place)


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


def _is_inside(path: str) -> bool:
    """Says whether a recorded path stays in its folder. A record may have been tampered with."""
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and ".." not in parts and "\0" not in path


def _written(operation: str, args: dict[str, Any]) -> list[str]:
    """Returns the texts that a call puts into a file. A model may have put anything into its arguments."""
    if operation == WRITE:
        return [str(args.get("content", ""))]
    edits: Any = args.get("edits")
    return [
        str(cast("dict[str, Any]", edit).get("new", ""))
        for edit in (cast("list[Any]", edits) if isinstance(edits, list) else ())
        if isinstance(edit, dict)
    ]


def _bare(text: str) -> str:
    """Removes what encodings, newlines and indentation may change on the way to the file."""
    return re.sub(r"\s+|�|^```\w*|```$", "", text)
