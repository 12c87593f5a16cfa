"""Plays a recorded session again from its record alone: its decisions, its actions, and its changes of files. Also
compares the results of actions that were carried out again with the recorded results, and several continuations from
one step."""

import posixpath
import re
import shutil
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from difflib import SequenceMatcher
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, cast

from duckflow.agent.session import replay
from duckflow.bench.trajectory import mapped
from duckflow.events.types import (
    ActionFinished,
    ActionStarted,
    Event,
    LoopBegan,
    SessionOpened,
    TurnBegan,
    TurnEnded,
    TurnUndone,
    UsageReported,
)
from duckflow.i18n.words import Words, money
from duckflow.safety.path_names import shown
from duckflow.safety.undo.facts import Change, Fact, UndoWork
from duckflow.safety.undo.ledger import Contents, Database, UndoLedger, content_id
from duckflow.state.action import EDIT_FILE, RUN_AGENT, WRITE_FILE, Action, ActionResult, exit_code
from duckflow.state.agent import AgentState
from duckflow.state.checks import state_of
from duckflow.state.data import LEFT_OUT, REFUSED, WISHED, Phrase, say, shorten
from duckflow.state.message import Usage
from duckflow.store.journal import JournalReader

Facts = Mapping[str, Fact | None]
"""The state of files by their paths; None for a file that does not exist."""


class Replayed(NamedTuple):
    """The result of a replay. Without problems, the replayed files equal the recorded files byte by byte."""

    session: str
    turns: int
    actions: int
    files: int
    problems: tuple[Phrase, ...]


class RecordedDeed(NamedTuple):
    """A recorded action with its result. `step` is the number of the model's step in the session."""

    step: int
    turn: int
    job: str
    action: Action
    result: ActionResult


class RecordedPast(NamedTuple):
    """The recorded actions of a session and its undone turns, in their recorded order."""

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
    returned as problems."""
    problems: list[Phrase] = []
    with closing(JournalReader.open(journal)) as record:
        record.check()
        if replay(record) != replay(record, from_snapshot=False):
            problems.append(say("replay.state"))
        recorded_past = read_past(record.events())
    files = 0
    if undo.exists():
        with closing(Database(undo)) as database:
            session_files = KeptFiles(database, recorded_past.session)
            final_facts = session_files.at_the_end()
            session_files.put(final_facts, into)
            problems += [*session_files.contradictions(recorded_past), *session_files.differences(final_facts, into)]
            files = len(final_facts)
    return Replayed(recorded_past.session, recorded_past.turns, len(recorded_past.deeds), files, tuple(problems))


@contextmanager
def kept_files(undo: Path, session: str) -> Generator["KeptFiles"]:
    with closing(Database(undo)) as database:
        yield KeptFiles(database, session)


class KeptFiles:
    """The files that a session has changed, as they were at any turn, from the copies for `/undo`."""

    def __init__(self, database: Database, session: str) -> None:
        self._contents = Contents(database, 0)
        works: list[UndoWork] = UndoLedger(database).works(session)
        changes = [(change, work.author) for work in works for change in work.changes]
        self._changes = sorted(changes, key=lambda pair: pair[0].order)

    def at_the_end(self) -> dict[str, Fact | None]:
        return {change.path: change.after for change, _ in self._changes if not change.undone}

    def before(self, turn: int) -> dict[str, Fact | None]:
        """Returns the files as they were before the turn, including those that only later turns have changed."""
        earlier_facts = {
            change.path: change.after for change, author in self._changes if author.turn < turn and not change.undone
        }
        later_facts = {change.path: change.before for change, author in reversed(self._changes) if author.turn >= turn}
        return earlier_facts | later_facts

    def put(self, facts: Facts, into: Path) -> None:
        """Writes files into a folder: removes everything in their places, then makes folders, then files, and links
        last. In this order no file is written through a link."""
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
        elif fact.kind == "file" and fact.blob and (content := self._contents.get(fact.blob)) is not None:
            place.write_bytes(content)
            place.chmod(fact.mode & 0o777 | 0o400)

    def differences(self, facts: Facts, into: Path) -> Iterator[Phrase]:
        """Yields the files of a folder that differ from the record."""
        for path, fact in facts.items():
            if fact and fact.kind == "file" and not fact.blob:
                yield say("replay.not_kept", path=shown(path))
            elif not _is_inside(path) or not _is_so(into / path, fact):
                yield say("replay.differs", path=shown(path))

    def contradictions(self, past: RecordedPast) -> Iterator[Phrase]:
        """Compares the texts that the record says were written with the stored texts. Only the file that a call names
        must hold the call's text, because hooks may have changed other files along with it."""
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
        if action.operation not in (WRITE_FILE, EDIT_FILE) or not change.after or not change.after.blob:
            return True
        content = self._contents.get(change.after.blob)
        text = _bare((content or b"").decode("utf-8", "replace"))
        return content is None or all(_bare(part) in text for part in _written(action.operation, action.args))


def _kind(fact: Fact | None) -> str:
    return fact.kind if fact and fact.kind in ("folder", "file") else "link"


def _remove(place: Path, root: Path, fact: Fact | None) -> None:
    """Removes the file, link or folder in a place. A folder that is to stay a folder is not removed."""
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
    names = PurePosixPath(path).parts
    return bool(names) and not path.startswith("/") and ".." not in names and "\0" not in path


def _written(operation: str, args: dict[str, Any]) -> list[str]:
    """Returns the texts that a call writes into a file. A model may have put anything into the arguments."""
    if operation == WRITE_FILE:
        return [str(args.get("content", ""))]
    edits: Any = args.get("edits")
    return [
        str(cast("dict[str, Any]", edit).get("new", ""))
        for edit in (cast("list[Any]", edits) if isinstance(edits, list) else ())
        if isinstance(edit, dict)
    ]


def _bare(text: str) -> str:
    """Removes the characters that encodings, newlines and indentation may change on the way to the file."""
    return re.sub(r"\s+|�|^```\w*|```$", "", text)


DONE_AGAIN = ("read", "write", "run")
TIMES = re.compile(r"\b\d+(?:[.,]\d+)?(?: ?(?:ms|s|sec|seconds?)\b)|\b\d\d:\d\d:\d\d\b|0x[0-9a-f]{6,}")
"""A pattern for durations, times of the day and memory addresses, which differ in every run."""
SHOWN_LINE = 80


def is_done_again(deed: RecordedDeed) -> bool:
    """Says whether a recorded action is repeated. Refused actions, uses of the network and starts of agents are not
    repeated, but an agent's own actions are."""
    if deed.result.for_user.key in (REFUSED, WISHED, LEFT_OUT) or deed.action.operation == RUN_AGENT:
        return False
    return deed.result.effect in DONE_AGAIN


def moved(action: Action, folder: Path, copy: Path) -> Action:
    """Returns the action with every path in the folder replaced by the same path in the copy."""
    pattern = re.compile(rf"{re.escape(str(folder))}(?![\w.-])")
    return action.model_copy(update={"args": mapped(action.args, lambda text: pattern.sub(lambda _: str(copy), text))})


def differences(before: ActionResult, after: ActionResult, folder: Path, copy: Path) -> Iterator[Phrase]:
    """Yields the differences between two results of the same action."""
    if after.for_user.key == LEFT_OUT:
        yield say("replay.needs_yes")
        return
    codes = [exit_code(result) for result in (before, after)]
    if codes[0] != codes[1]:
        yield say("replay.code", before=_told(codes[0]), after=_told(codes[1]))
    elif before.ok != after.ok:
        yield say("replay.went_well" if after.ok else "replay.went_wrong")
    if (files := [", ".join(map(shown, sorted(set(result.changed)))) for result in (before, after)])[0] != files[1]:
        yield say("replay.changed", before=files[0] or "–", after=files[1] or "–")
    texts = [TIMES.sub("…", result.for_model.replace(str(copy), str(folder))).split("\n") for result in (before, after)]
    for tag, first, last, new_first, new_last in SequenceMatcher(None, *texts, autojunk=False).get_opcodes():
        if tag != "equal":
            lines = texts[0][first:last], texts[1][new_first:new_last]
            old_line, new_line = (shorten(next(filter(str.strip, part), "–").strip(), SHOWN_LINE) for part in lines)
            yield say("replay.line", before=old_line, after=new_line)
            return


def _told(code: int | None) -> str:
    return "–" if code is None else str(code)


class WayOn(NamedTuple):
    """The rest of a session after one of its steps, with its outcome and its cost."""

    outcome: str
    checks: str
    proof: str
    usage: Usage
    steps: int
    files: frozenset[str]


def way_on(state: AgentState, events: Iterable[Event]) -> WayOn:
    """Sums up the events after a step, which all belong to one turn. `state` is the state after the last of these
    events."""
    outcome, usage, steps, files = "interrupted", Usage(), 0, set[str]()
    for event in events:
        match event:
            case UsageReported():
                usage = usage.plus(event.usage)
            case LoopBegan():
                steps += 1
            case ActionFinished():
                files.update(event.result.changed)
            case TurnEnded():
                outcome = event.outcome
            case _:
                pass
    proof = state.proof.verdict if state.proof else "none"
    return WayOn(outcome, state_of(state.check_runs).removesuffix("_before"), proof, usage, steps, frozenset(files))


def side_by_side(ways: dict[str, WayOn], words: Words) -> list[list[str]]:
    """Returns the rows of a table that compares several continuations of a session, with a column for each."""
    columns = ways.values()
    return [
        ["", *ways],
        [words("replay.row.outcome"), *(words(f"replay.outcome.{way.outcome}") for way in columns)],
        [words("replay.row.checks"), *(words(f"replay.checks.{way.checks}") for way in columns)],
        [words("replay.row.proof"), *(words(f"replay.proof.{way.proof}") for way in columns)],
        [words("replay.row.requests"), *(str(way.usage.calls) for way in columns)],
        [
            words("replay.row.tokens"),
            *(f"{way.usage.prompt_tokens} + {way.usage.completion_tokens}" for way in columns),
        ],
        [words("replay.row.cost"), *(money(way.usage.cost_usd) for way in columns)],
        [words("replay.row.files"), *(str(len(way.files)) for way in columns)],
    ]


class Fork(NamedTuple):
    """The place in a journal right before one of the model's steps, and the number of the turn's last event."""

    number: int
    turn: int
    end: int


def find_step(events: Iterable[tuple[int, Event]], wanted: int) -> Fork | None:
    """Returns the place right before a step of the session, counted from 1; None if there are fewer steps."""
    turn, steps, number_before, last_number = 0, 0, 0, 0
    for number, event in events:
        match event:
            case TurnBegan() if number_before:
                return Fork(number_before, turn, last_number)
            case TurnBegan():
                turn = event.turn
            case LoopBegan() if not number_before:
                steps += 1
                number_before = number - 1 if steps == wanted else 0
            case _:
                pass
        last_number = number
    return Fork(number_before, turn, last_number) if number_before else None
