"""The verdict on a shell command: what it would do, unwrapped down to the programs it really runs."""

from duckflow.safety.commands.facts import NOTHING_KNOWN, CommandFacts
from duckflow.safety.commands.follow import Follower
from duckflow.safety.commands.report import Report, TooMuch
from duckflow.safety.commands.scope import Scope
from duckflow.safety.commands.text.continued import joined_lines
from duckflow.safety.commands.text.lexing import same_words
from duckflow.safety.commands.text.lookalikes import made_plain
from duckflow.safety.commands.verdict import CommandVerdict, ask, danger

LONGEST = 60_000
BRACKET = "test"
"""Also spelled `[`."""


def judge_command(text: str, facts: CommandFacts = NOTHING_KNOWN) -> CommandVerdict:
    """Pure: nothing is run and nothing is read from the disk."""
    report = Report()
    if len(text) > LONGEST:
        report.add(ask("too_long"))
    plain = made_plain(text[:LONGEST])
    if plain != text[:LONGEST]:
        report.add(ask("odd_characters"))
    readable = joined_lines(plain)
    try:
        Follower(report, Scope(facts)).follow(readable)
    except (TooMuch, RecursionError):
        report.add(danger("too_much"))
    if not report.findings and not same_words(readable, report.spelled):
        report.add(ask("unreadable"))
    if not report.findings and not all(program in text for program in report.programs if program != BRACKET):
        report.add(ask("hidden_name"))
    return report.verdict()
