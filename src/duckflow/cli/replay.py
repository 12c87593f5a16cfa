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
from duckflow.bench.replay import (
    Fork,
    RecordedDeed,
    RecordedPast,
    WayOn,
    differences,
    find_step,
    is_done_again,
    kept_files,
    moved,
    play,
    read_past,
    side_by_side,
    way_on,
)
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
from duckflow.state.data import Phrase, shorten
from duckflow.state.mode import Mode
from duckflow.state.phase import Phase
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
    session_entry = sessions.find(options.session) if options.session else sessions.latest()
    if bool(options.step) != bool(options.model):
        raise UsageError("replay.from_usage")
    with tempfile.TemporaryDirectory(prefix="duckflow-replay-") as temporary_folder:
        target_folder = Path(temporary_folder)
        if options.into:
            target_folder = Path(options.into).expanduser().resolve()
            if target_folder.exists() and (not target_folder.is_dir() or any(target_folder.iterdir())):
                raise UsageError("replay.not_empty", path=options.into)
            target_folder.mkdir(parents=True, exist_ok=True)
        if options.step:
            return asyncio.run(_go_on(options, words, paths, session_entry, target_folder))
        if options.run:
            return asyncio.run(_run_again(options, words, paths, session_entry, target_folder))
        replay_result = play(session_entry.path, paths.undo_of(Path(session_entry.headline.folder)), target_folder)
    _tell(replay_result.problems, words)
    facts = {
        "session": session_entry.session_id,
        "turns": replay_result.turns,
        "actions": replay_result.actions,
        "files": replay_result.files,
    }
    print_out(words("replay.differences" if replay_result.problems else "replay.same", **facts))
    return 1 if replay_result.problems else 0


def _tell(problems: Sequence[Phrase], words: Words) -> None:
    for problem in problems:
        print_err(plain(words.phrase(problem)))


class Again(NamedTuple):
    """A recorded session that is played again in a copy of its folder, with a separate journal."""

    entry: SessionEntry
    past: RecordedPast
    folder: Path
    undo: Path
    setup: Setup


def _copied(options: Options, words: Words, paths: Paths, entry: SessionEntry, turn: int, into: Path) -> Again:
    """Copies the folder as it was before a turn of the session: the present folder, without the session's changes since
    that turn. Secret files are empty in the copy, as commands always see them."""
    with closing(JournalReader.open(entry.path)) as journal:
        journal.check()
        recorded_past = read_past(journal.events())
    folder, undo_folder = Path(entry.headline.folder), paths.undo_of(Path(entry.headline.folder))
    own_paths = paths._replace(data=into / "record")
    copy_folder = into / "folder" / folder.name
    asked_options: dict[str, Any] = {**vars(options), "mode": options.mode or Mode.FULL_AUTO, "add_dir": []}
    present_folder = folder if folder.is_dir() else Path.cwd()
    original_setup = make_setup(Options(**asked_options, trust=False), words, paths, present_folder)
    is_trusted = folder_trust(original_setup)().trusted
    sandbox = choose(original_setup.settings.sandbox, present_folder, record=paths.tracked_secrets)
    secret_paths = {str(covered_secret.path) for covered_secret in sandbox.paths.covered().secrets}
    sandbox.close()
    if folder.is_dir():
        shutil.copytree(
            folder, copy_folder, symlinks=True, ignore=lambda top, names: _left_out(Path(top), names, secret_paths)
        )
        for secret_copy in (
            copy_folder / path.relative_to(folder) for path in map(Path, secret_paths) if path.is_relative_to(folder)
        ):
            secret_copy.touch()
    else:
        copy_folder.mkdir(parents=True)
    if undo_folder.exists():
        with kept_files(undo_folder, recorded_past.session) as files:
            files.put(files.before(turn), copy_folder)
    setup = make_setup(Options(**asked_options, trust=False), words, own_paths, copy_folder)
    if is_trusted:
        # The flag `--trust` would also agree to hooks and servers that came since.
        folder_trust(setup)().trust()
    return Again(entry, recorded_past, folder, undo_folder, setup._replace(alone=True, copy_of=folder))


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
    """Repeats the recorded actions in the copy, and prints each result that differs. Returns how many differ."""
    copy_folder, session_id = again.setup.folder, new_session_id()
    journal = Sessions(again.setup.paths.sessions_of(copy_folder)).path(session_id)
    session = begin(journal, session_id, copy_folder, words.language)
    built_conversation = build_conversation(again.setup, session)
    differing_count, actor = 0, Actor(session.emit, _nobody, for_user=True)
    try:
        for event in events:
            if not isinstance(event, RecordedDeed):
                scope = UndoScope(turn=event.turn, paths=event.changed)
                with suppress(DuckflowError):
                    await built_conversation.conversation.undo.restore(event.back, scope=scope)
                continue
            if event.turn != session.state.turn:
                session.emit(TurnBegan(turn=event.turn))
            action = moved(event.action, again.folder, copy_folder)
            decision = Decision.made_up(action.reasoning, [action], TaskProfile.FILE_OPERATION, Phase.EXECUTION)
            dispatch_outcome = await built_conversation.dispatcher.run(ParsedReply(decision), actor)
            changes = list(differences(event.result, dispatch_outcome.results[-1], again.folder, copy_folder))
            differing_count += bool(changes)
            if changes or (shows_all and event.result.effect != "read"):
                _tell_deed(event, changes, words)
    finally:
        await built_conversation.close()
        session.close()
    return differing_count


async def _nobody(question: Question) -> Answer:
    return Answer(choice=NOBODY if question.gate else question.choices[-1].key)


def _tell_deed(deed: RecordedDeed, changes: Sequence[Phrase], words: Words) -> None:
    subject = shorten(deed.action.about or "", SHOWN_COMMAND)
    print_out(plain(f"{'≠' if changes else '='} {deed.step:3}  {deed.action.operation} {subject}"))
    for phrase in changes:
        print_out(plain(f"       {words.phrase(phrase)}"))


async def _run_again(options: Options, words: Words, paths: Paths, entry: SessionEntry, into: Path) -> int:
    repetition = _copied(options, words, paths, entry, 1, into)
    events = [event for event in repetition.past.events if not isinstance(event, RecordedDeed) or is_done_again(event)]
    differing_count = await _do_again(repetition, events, words, shows_all=True)
    problems: list[Phrase] = []
    if repetition.undo.exists():
        with kept_files(repetition.undo, repetition.past.session) as files:
            problems = list(files.differences(files.at_the_end(), repetition.setup.folder))
    _tell(problems, words)
    deed_count = sum(isinstance(event, RecordedDeed) for event in events)
    print_out(
        words("replay.ran", session=entry.session_id, deeds=deed_count, differing=differing_count, files=len(problems))
    )
    return 1 if differing_count or problems else 0


async def _go_on(options: Options, words: Words, paths: Paths, entry: SessionEntry, into: Path) -> int:
    with closing(JournalReader.open(entry.path)) as journal:
        journal.check()
        fork = find_step(journal.events(), options.step)
        if fork is None:
            raise UsageError("replay.no_step", step=options.step)
        way_by_name = {words("replay.as_it_was"): _recorded(journal, fork)}
    for number in range(1, options.times + 1):
        repetition = _copied(options, words, paths, entry, fork.turn, into / str(number))
        earlier_deeds = [deed for deed in repetition.past.deeds if deed.turn == fork.turn and deed.step < options.step]
        await _do_again(repetition, [deed for deed in earlier_deeds if is_done_again(deed)], words)
        name = options.model if options.times == 1 else f"{options.model} #{number}"
        way_by_name[name] = await _other_way(repetition, fork, words)
    from duckflow.cli.fleet_table import aligned

    for line in aligned(side_by_side(way_by_name, words)):
        print_out(line)
    return 0


def _recorded(journal: JournalReader, fork: Fork) -> WayOn:
    state, events_since = AgentState(), list[Event]()
    for number, event in journal.events():
        if number <= fork.end:
            apply(state, event)
            events_since += [event] if number > fork.number else []
    return way_on(state, events_since)


async def _other_way(again: Again, fork: Fork, words: Words) -> WayOn:
    """Copies the recorded session up to a step, and then lets the setup's model go on with that turn to its end."""
    setup, session_id = again.setup, new_session_id()
    target = Sessions(setup.paths.sessions_of(setup.folder)).path(session_id)
    with closing(JournalReader.open(again.entry.path)) as origin_journal, closing(Journal(target)) as journal:
        copy_events(origin_journal, journal, session_id, fork.number, (again.folder, setup.folder))
        journal.append(TurnEnded(turn=fork.turn, outcome="interrupted"))
        user_texts = [message.text for message in replay(journal).messages if message.role == "user"]
    session = reopen(target).session
    first_number = session.number
    built_conversation = build_conversation(setup, session)
    headless = Headless(built_conversation.conversation, words, OutputFormat.TEXT)
    built_conversation.conversation.hear(headless.hear)
    try:
        await built_conversation.conversation.say("", wish=user_texts[-1] if user_texts else "")
        await built_conversation.conversation.work.jobs_over(alone=True)
        await headless.carry_through("")
        return way_on(session.state, [event for _, event in session.record(first_number)])
    finally:
        await built_conversation.close()
        session.close()
