"""Copying and archiving with a side effect: mirrors that delete, archives that run programs."""

from collections.abc import Iterator

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.rules.deleting import judge_written
from duckflow.safety.commands.text.options import read_options
from duckflow.safety.commands.verdict import CommandFinding, danger

DELETES = ("--delete", "--del", "--remove-source-files", "--remove-sent-files", "--force")
DRY = frozenset(("--dry-run", "--dryrun", "--list-only", "--help", "--version"))


def judge_rsync(call: Invocation) -> Iterator[CommandFinding]:
    options = read_options(call.arguments, "efBTM", ("--rsh", "--exclude", "--include", "--filter"))
    if options.has("-n") or not DRY.isdisjoint(call.texts):
        return
    for option, _ in options.given:
        if option.startswith(DELETES):
            yield danger("mirror_deletes", program=call.program, option=option)
    for word in options.operands[1:][-1:]:
        yield from judge_written(call, word)


def judge_archive(call: Invocation) -> Iterator[CommandFinding]:
    """Unpacking over the system, or an archive that removes its sources."""
    options = read_options(call.arguments, "fCIXTbgKNVHL", ("--directory", "--file"))
    for option in ("--remove-files", "--recursive-unlink"):
        if options.has(option):
            yield danger("mirror_deletes", program=call.program, option=option)
    for word in options.values("-C", "--directory"):
        yield from judge_written(call, word)
