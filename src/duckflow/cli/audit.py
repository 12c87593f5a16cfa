"""`duckflow audit`: lists actions with their results, and who allowed them."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any, cast

from duckflow.cli.parser import Options
from duckflow.commands.audit import audit_lines, list_audit
from duckflow.i18n.words import Words
from duckflow.safety.secrets import redacted
from duckflow.store.journal import JournalReader
from duckflow.store.paths import Paths
from duckflow.store.sessions import Sessions
from duckflow.ui.streams import print_out


def show_audit(options: Options, words: Words, paths: Paths) -> int:
    sessions = Sessions(paths.sessions_of(Path.cwd()))
    session_entry = sessions.find(options.session) if options.session else sessions.latest()
    with closing(JournalReader.open(session_entry.path)) as journal:
        entries = list_audit(journal.events())
    if options.json:
        for audit_entry in entries:
            print_out(json.dumps(without_secrets(audit_entry.as_json()), ensure_ascii=False))
    else:
        for line in audit_lines(entries, words):
            print_out(line)
    return 0


def without_secrets(value: Any) -> Any:
    """Hides secrets in each text separately. Hiding them in a whole line could swallow a quote and break the JSON."""
    match value:
        case str():
            return redacted(value)
        case dict():
            return {name: without_secrets(field) for name, field in cast(dict[str, Any], value).items()}
        case list() | tuple():
            return [without_secrets(element) for element in cast(list[Any], value)]
        case _:
            return value
