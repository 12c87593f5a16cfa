"""The verdict on a shell command: what it would do, unwrapped down to the programs it really runs."""

import re
import unicodedata

from duckflow.safety.commands.facts import NOTHING_KNOWN, Facts
from duckflow.safety.commands.follow import Follower
from duckflow.safety.commands.report import Report, TooMuch
from duckflow.safety.commands.scope import Scope
from duckflow.safety.commands.text.lexing import same_words
from duckflow.safety.commands.text.marks import uses_marks
from duckflow.safety.commands.verdict import CommandVerdict, ask, danger

LONGEST = 60_000
CONTINUED = re.compile(r"\\\r?\n")
DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−﹘﹣－"), "-")
ODD = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))


def judge_command(text: str, facts: Facts = NOTHING_KNOWN) -> CommandVerdict:
    """Pure: nothing is run and nothing is read from the disk."""
    report = Report()
    readable = _readable(text, report)
    try:
        Follower(report, Scope(facts)).follow(readable)
    except (TooMuch, RecursionError):
        report.add(danger("too_deep"))
    if not report.findings and not same_words(readable, report.spelled):
        report.add(ask("unreadable"))
    return report.verdict()


def _readable(text: str, report: Report) -> str:
    """The text with look-alike characters made plain; whoever uses them is asked about."""
    if len(text) > LONGEST:
        report.add(ask("too_long"))
        text = text[:LONGEST]
    plain = text
    if not text.isascii():
        plain = "".join(" " if unicodedata.category(mark) == "Zs" else mark for mark in text).translate(DASHES)
    if uses_marks(plain) or any(unicodedata.category(mark) in ODD and mark not in "\n\t" for mark in plain):
        report.add(ask("odd_characters"))
        plain = "".join(mark for mark in plain if unicodedata.category(mark) not in ODD or mark in "\n\t")
    if plain != text:
        report.add(ask("odd_characters"))
    if "\\\n" in plain and "'" not in plain and "<<" not in plain:
        plain = CONTINUED.sub("", plain)
    return plain
