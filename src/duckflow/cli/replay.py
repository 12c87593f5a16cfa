"""`duckflow replay`: plays a session again from its journal, with its commands run anew, or with another model."""

import asyncio
import shutil
import stat
import tempfile
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from duckflow.agent.actor import Actor
from duckflow.agent.session import begin, reopen, replay
from duckflow.bench.again import Fork, WayOn, differences, find_step, is_done_again, moved, side_by_side, way_on
from duckflow.bench.replay import RecordedDeed, RecordedPast, kept_files, play, read_past
from duckflow.cli.build import build_conversation
from duckflow.cli.parser import Options
from duckflow.cli.setup import Setup, folder_trust
from duckflow.cli.talk import make_setup
from duckflow.errors import DuckflowError, UsageError
from duckflow.events.apply import apply
from duckflow.events.types import Event, TurnBegan, TurnEnded, TurnUndone
from duckflow.forms.form import ParsedReply
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.safety.sandbox.choose import choose
from duckflow.state.action import Decision, TaskProfile
from duckflow.state.agent import AgentState
from duckflow.state.changes import UndoScope
from duckflow.state.data import shorten
from duckflow.state.mode import Mode
from duckflow.state.phase import Phase
from duckflow.state.phrase import Phrase
from duckflow.state.question import NOBODY, Answer, Question
from duckflow.store.journal import Journal, JournalReader
from duckflow.store.paths import Paths
from duckflow.store.sessions import SessionEntry, Sessions, copy_events, new_session_id
from duckflow.ui.headless import Headless
from duckflow.ui.headless_options import OutputFormat
from duckflow.ui.streams import print_err, print_out

SHOWN_COMMAND = 70


def run_replay(options: Options, words: Words, paths: Paths) -> int:
    sessions = Sessions(paths.sessions_of(Path.cwd()))
    entry = sessions.find(options.session) if options.session else sessions.latest()
    if bool(options.step) != bool(options.model):
        raise UsageError("replay.from_usage")
    with tempfile.TemporaryDirectory(prefix="duckflow-replay-") as top:
        into = Path(top)
        if options.into:
            into = Path(options.into).expanduser().resolve()
            if into.exists() and (not into.is_dir() or any(into.iterdir())):
                raise UsageError("replay.not_empty", path=options.into)
            into.mkdir(parents=True, exist_ok=True)
        if options.step:
            return asyncio.run(_go_on(options, words, paths, entry, into))
        if options.run:
            return asyncio.run(_run_again(options, words, paths, entry, into))
        played = play(entry.path, paths.undo_of(Path(entry.headline.folder)), into)
    _tell(played.problems, words)
    facts = {"session": entry.session_id, "turns": played.turns, "actions": played.actions, "files": played.files}
    print_out(words("replay.differences" if played.problems else "replay.same", **facts))
    return 1 if played.problems else 0


def _tell(problems: Sequence[Phrase], words: Words) -> None:
    for problem in problems:
        print_err(plain(words.phrase(problem)))


class Again(NamedTuple):
    """A session that is done again in a copy of its folder, with a journal of its own."""

    entry: SessionEntry
    past: RecordedPast
    folder: Path
    undo: Path
    setup: Setup


def _copied(options: Options, words: Words, paths: Paths, entry: SessionEntry, turn: int, into: Path) -> Again:
    """Copies the folder as it was before a turn of the session: as it is today, but without what the session has
    changed since. Secret files are empty in the copy, as commands always see them."""
    with closing(JournalReader.open(entry.path)) as journal:
        journal.check()
        past = read_past(journal.events())
    folder, undo = Path(entry.headline.folder), paths.undo_of(Path(entry.headline.folder))
    own = paths._replace(data=into / "record")
    copy = into / "folder" / folder.name
    asked: dict[str, Any] = {**vars(options), "mode": options.mode or Mode.FULL_AUTO, "add_dir": []}
    present_folder = folder if folder.is_dir() else Path.cwd()
    before = make_setup(Options(**asked, trust=False), words, paths, present_folder)
    trusted = folder_trust(before)().trusted
    sandbox = choose(before.settings.sandbox, present_folder, record=paths.tracked_secrets)
    secret = {str(covered.path) for covered in sandbox.paths.covered().secrets}
    sandbox.close()
    if folder.is_dir():
        shutil.copytree(folder, copy, symlinks=True, ignore=lambda top, names: _left_out(Path(top), names, secret))
        for place in (copy / path.relative_to(folder) for path in map(Path, secret) if path.is_relative_to(folder)):
            place.touch()
    else:
        copy.mkdir(parents=True)
    if undo.exists():
        with kept_files(undo, past.session) as files:
            files.put(files.before(turn), copy)
    setup = make_setup(Options(**asked, trust=trusted), words, own, copy)
    return Again(entry, past, folder, undo, setup._replace(alone=True, copy_of=folder))


def _left_out(top: Path, names: list[str], secret: set[str]) -> set[str]:
    return {name for name in names if str(top / name) in secret or not _can_be_copied(top / name)}


def _can_be_copied(path: Path) -> bool:
    with suppress(OSError):
        kind = path.lstat().st_mode
        return stat.S_ISREG(kind) or stat.S_ISDIR(kind) or stat.S_ISLNK(kind)
    return False


async def _do_again(
    again: Again, events: Sequence[RecordedDeed | TurnUndone], words: Words, shows_all: bool = False
) -> int:
    """Does the recorded actions again in the copy, and tells how each result differs. Returns how many differ."""
    copy, session_id = again.setup.folder, new_session_id()
    journal = Sessions(again.setup.paths.sessions_of(copy)).path(session_id)
    session = begin(journal, session_id, copy, words.language)
    built = build_conversation(again.setup, session)
    differing, actor = 0, Actor(session.emit, _nobody, for_user=True)
    try:
        for event in events:
            if not isinstance(event, RecordedDeed):
                scope = UndoScope(turn=event.turn, paths=event.changed)
                with suppress(DuckflowError):
                    await built.conversation.undo.restore(event.back, scope=scope)
                continue
            if event.turn != session.state.turn:
                session.emit(TurnBegan(turn=event.turn))
            action = moved(event.action, again.folder, copy)
            decision = Decision.made_up(action.reasoning, [action], TaskProfile.FILE_OPERATION, Phase.EXECUTION)
            done = await built.dispatcher.run(ParsedReply(decision), actor)
            changes = list(differences(event.result, done.results[-1], again.folder, copy))
            differing += bool(changes)
            if changes or (shows_all and event.result.effect != "read"):
                _tell_deed(event, changes, words)
    finally:
        await built.close()
        session.close()
    return differing


async def _nobody(question: Question) -> Answer:
    return Answer(choice=NOBODY if question.gate else question.choices[-1].key)


def _tell_deed(deed: RecordedDeed, changes: Sequence[Phrase], words: Words) -> None:
    about = shorten(" ".join((deed.action.about or "").split()), SHOWN_COMMAND)
    print_out(plain(f"{'≠' if changes else '='} {deed.step:3}  {deed.action.operation} {about}"))
    for phrase in changes:
        print_out(plain(f"       {words.phrase(phrase)}"))


async def _run_again(options: Options, words: Words, paths: Paths, entry: SessionEntry, into: Path) -> int:
    again = _copied(options, words, paths, entry, 1, into)
    events = [event for event in again.past.events if not isinstance(event, RecordedDeed) or is_done_again(event)]
    differing = await _do_again(again, events, words, shows_all=True)
    problems: list[Phrase] = []
    if again.undo.exists():
        with kept_files(again.undo, again.past.session) as files:
            problems = list(files.differences(files.at_the_end(), again.setup.folder))
    _tell(problems, words)
    deeds = sum(isinstance(event, RecordedDeed) for event in events)
    print_out(words("replay.ran", session=entry.session_id, deeds=deeds, differing=differing, files=len(problems)))
    return 1 if differing or problems else 0


async def _go_on(options: Options, words: Words, paths: Paths, entry: SessionEntry, into: Path) -> int:
    with closing(JournalReader.open(entry.path)) as journal:
        journal.check()
        fork = find_step(journal.events(), options.step)
        if fork is None:
            raise UsageError("replay.no_step", step=options.step)
        ways = {words("replay.as_it_was"): _recorded(journal, fork)}
    for number in range(1, options.times + 1):
        again = _copied(options, words, paths, entry, fork.turn, into / str(number))
        earlier = [deed for deed in again.past.deeds if deed.turn == fork.turn and deed.step < options.step]
        await _do_again(again, [deed for deed in earlier if is_done_again(deed)], words)
        name = options.model if options.times == 1 else f"{options.model} #{number}"
        ways[name] = await _other_way(again, fork, words)
    from duckflow.cli.fleet_table import aligned

    for line in aligned(side_by_side(ways, words)):
        print_out(line)
    return 0


def _recorded(journal: JournalReader, fork: Fork) -> WayOn:
    state, since = AgentState(), list[Event]()
    for number, event in journal.events():
        if number <= fork.end:
            apply(state, event)
            since += [event] if number > fork.number else []
    return way_on(state, since)


async def _other_way(again: Again, fork: Fork, words: Words) -> WayOn:
    """Copies the past up to the step, and then runs the turn to its end with the model of the setup."""
    setup, session_id = again.setup, new_session_id()
    target = Sessions(setup.paths.sessions_of(setup.folder)).path(session_id)
    with closing(JournalReader.open(again.entry.path)) as origin, closing(Journal(target)) as journal:
        copy_events(origin, journal, session_id, fork.number, (again.folder, setup.folder))
        journal.append(TurnEnded(turn=fork.turn, outcome="interrupted"))
        asked = [message.text for message in replay(journal).messages if message.role == "user"]
    session = reopen(target).session
    begun = session.number
    built = build_conversation(setup, session)
    headless = Headless(built.conversation, words, OutputFormat.TEXT)
    built.conversation.hear(headless.hear)
    try:
        await built.conversation.say("", wish=asked[-1] if asked else "")
        await built.conversation.work.jobs_over(alone=True)
        await headless.carry_through("")
        return way_on(session.state, [event for _, event in session.record(begun)])
    finally:
        await built.close()
        session.close()
