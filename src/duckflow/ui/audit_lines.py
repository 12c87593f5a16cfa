"""The record as lines a person reads."""

import time
from collections.abc import Iterable

from duckflow.safety.secrets import redacted
from duckflow.store.audit import AuditEntry
from duckflow.ui.i18n.words import Words
from duckflow.ui.plain import plain

SUBJECTS = ("path", "command", "source", "words")
MARKS = {True: "✓", False: "✗", None: "…"}


def audit_lines(entries: Iterable[AuditEntry], words: Words) -> list[str]:
    lines: list[str] = []
    for entry in entries:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.at))
        subject = (
            entry.args.get("path")
            or entry.args.get("command")
            or entry.args.get("source")
            or entry.args.get("words", "")
        )
        lines.append(plain(redacted(f"{MARKS[entry.ok]} {when}  {entry.operation} {' '.join(str(subject).split())}")))
        if entry.why:
            lines.append(plain(redacted(f"    {words('audit.why')}: {entry.why}")))
        if entry.answer:
            lines.append(plain(redacted(f"    {words('audit.answer')}: {entry.answer}")))
        if entry.told:
            lines.append(plain(redacted(f"    {words('audit.came')}: {words.phrase(entry.told)}")))
    return lines or [words("audit.nothing")]
