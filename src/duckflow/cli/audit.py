"""`duckflow audit`: who allowed what, what was done, and what came of it."""

import json
from contextlib import closing
from pathlib import Path

from duckflow.cli.arguments import Options
from duckflow.store.audit import audit
from duckflow.store.journal import Journal
from duckflow.store.paths import Paths
from duckflow.store.sessions import Sessions
from duckflow.ui.audit_lines import audit_lines
from duckflow.ui.i18n.words import Words
from duckflow.ui.streams import print_out


def show_audit(options: Options, words: Words, paths: Paths) -> int:
    sessions = Sessions(paths.sessions_of(Path.cwd()))
    entry = sessions.find(options.session) if options.session else sessions.latest()
    with closing(Journal(entry.path)) as journal:
        entries = audit(event for _, event in journal.events())
    if options.json:
        for one in entries:
            print_out(json.dumps(one.as_json(), ensure_ascii=False))
    else:
        for line in audit_lines(entries, words):
            print_out(line)
    return 0
