"""`duckflow sessions`: what was talked about in this folder."""

import time
from pathlib import Path

from duckflow.cli.arguments import Options
from duckflow.store.paths import Paths
from duckflow.store.sessions import SessionEntry, Sessions
from duckflow.ui.i18n.words import Words
from duckflow.ui.plain import plain
from duckflow.ui.streams import print_out


def list_sessions(options: Options, words: Words, paths: Paths) -> int:
    entries = Sessions(paths.sessions_of(Path.cwd())).list()
    if not entries:
        print_out(words("sessions.none"))
    for line in session_lines(entries, words):
        print_out(line)
    return 0


def session_lines(entries: list[SessionEntry], words: Words) -> list[str]:
    """One line a session: number, id, when, how many turns, how it began."""
    return [
        plain(
            f"{number:>3}. {entry.session_id}  {time.strftime('%Y-%m-%d %H:%M', time.localtime(entry.updated))}  "
            f"{words('sessions.turns', turns=entry.turns)}  {' '.join(entry.title.split())[:60]}"
        )
        for number, entry in enumerate(entries, 1)
    ]
