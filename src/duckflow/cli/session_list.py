"""`duckflow sessions`: lists and searches the sessions of this machine; exports, renames or removes a session."""

import shutil
import sys
import time
from contextlib import closing
from pathlib import Path

from duckflow.cli.parser import Options
from duckflow.commands.session_rows import session_lines, session_rows
from duckflow.errors import UsageError
from duckflow.i18n.answers import read_answer
from duckflow.i18n.words import Words
from duckflow.store.journal import JournalReader
from duckflow.store.paths import Paths
from duckflow.store.sessions import SessionEntry, Sessions
from duckflow.ui.streams import print_out

SHOWN = 30
PIPED_WIDTH = 160


def run_sessions(options: Options, words: Words, paths: Paths) -> int:
    sessions = Sessions(paths.sessions_of(Path.cwd()))
    match options.what:
        case "search":
            return _search(sessions, options, words, paths)
        case "rm":
            return _remove(sessions, options, words)
        case "rename":
            return _rename(sessions, options, words)
        case "export":
            return _export(sessions, options, words)
        case _:
            return _list(sessions, options, words)


def _list(sessions: Sessions, options: Options, words: Words) -> int:
    entries = sessions.all()
    is_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns - 1 if is_terminal else PIPED_WIDTH
    shown_entries = entries if options.all or not is_terminal else entries[:SHOWN]
    for line in session_lines(session_rows([entry.summary() for entry in shown_entries], words, time.time()), width):
        print_out(line)
    if not entries:
        print_out(words("sessions.none"))
    if len(shown_entries) < len(entries):
        print_out(words("sessions.more", count=len(entries) - len(shown_entries)))
    return 0


def _search(sessions: Sessions, options: Options, words: Words, paths: Paths) -> int:
    """Searches the sessions of this folder, or with `--all` those of the whole machine."""
    from duckflow.commands.sessions import search_sessions

    question = " ".join((options.session, *options.rest)).strip()
    if not question:
        raise UsageError("sessions.search_usage")
    folder = None if options.all else Path.cwd()
    matches = search_sessions(question, paths.archives(folder), [entry.summary() for entry in sessions.all()], words)
    for line in matches or [words("memory.nothing", query=question)]:
        print_out(line)
    return 0


def _rename(sessions: Sessions, options: Options, words: Words) -> int:
    title = " ".join(options.rest)
    if not options.session or not title:
        raise UsageError("sessions.rename_usage")
    sessions.rename(sessions.find(options.session), title)
    print_out(words("sessions.renamed", title=title))
    return 0


def _remove(sessions: Sessions, options: Options, words: Words) -> int:
    if not options.session:
        raise UsageError("sessions.rm_usage")
    session_entry = sessions.find(options.session)
    if not options.yes:
        if not sys.stdin.isatty():
            raise UsageError("sessions.rm_unasked")
        for line in session_lines(
            session_rows([session_entry.summary()], words, time.time()), shutil.get_terminal_size().columns - 1
        ):
            print_out(line)
        answer = read_answer(input(words("sessions.rm_sure")), language=words.language)
        if answer is None or answer.choice != "yes":
            print_out(words("sessions.rm_kept"))
            return 0
    sessions.remove(session_entry)
    print_out(words("sessions.removed", session=session_entry.session_id))
    return 0


def _export_trajectory(entry: SessionEntry, options: Options, words: Words) -> int:
    from duckflow.bench.trajectory import trajectory_text
    from duckflow.commands.export.document import save

    with closing(JournalReader.open(entry.path)) as journal:
        text = trajectory_text(journal.events())
    if options.output == "-":
        print_out(text.rstrip("\n"))
        return 0
    path = Path(options.output or f"duckflow-{entry.session_id}.trajectory.json").expanduser()
    if options.output and path.exists() and not options.yes:
        raise UsageError("export.exists", path=str(path))
    save(path, text)
    print_out(words("export.written", path=str(path.resolve())))
    return 0


def _export(sessions: Sessions, options: Options, words: Words) -> int:
    """Exports a session to a file, or with `-o -` to standard output."""
    from duckflow.commands.export.document import chosen_format, rendered, save, target
    from duckflow.commands.export.transcript import Transcript

    session_entry = sessions.find(options.session) if options.session else sessions.latest()
    if options.format == "atif":
        return _export_trajectory(session_entry, options, words)
    form = chosen_format(options.format or "", options.output)
    to_stdout = options.output == "-"
    path = target("" if options.yes or to_stdout else options.output, session_entry.session_id, form, Path())
    if options.yes and options.output:
        path = Path(options.output).expanduser()
    with closing(JournalReader.open(session_entry.path)) as journal:
        transcript = Transcript().hear_all(journal.events())
    text = rendered(transcript, words, form)
    if to_stdout:
        print_out(text.rstrip("\n"))
        return 0
    save(path, text)
    print_out(words("export.written", path=str(path.resolve())))
    return 0
