"""`/permissions` and `/audit`: what was allowed, and what was done."""

from duckflow.errors import UsageError
from duckflow.store.audit import audit
from duckflow.ui.audit_lines import audit_lines
from duckflow.ui.commands.command import Command
from duckflow.ui.counter import Counter

SHOWN_ENTRIES = 30


def permissions(counter: Counter, rest: str) -> str:
    words, kept = counter.words, counter.desk.permissions
    verb, _, number = rest.partition(" ")
    if verb == "rm" and number.strip().isdecimal():
        try:
            rule = kept.remove(int(number))
        except UsageError as problem:
            return words.error(problem)
        return words("permission.removed", rule=words.phrase(rule.describe()))
    kinds = [*(("always", rule) for rule in kept.always), *(("session", rule) for rule in kept.session)]
    lines = [
        f"{number}. {words.phrase(rule.describe())} ({words(f'permission.{kind}')})"
        for number, (kind, rule) in enumerate(kinds, 1)
    ]
    return "\n".join(lines) or words("permission.none")


def show_audit(counter: Counter, wanted: str) -> str:
    """The latest entries, so many as wanted; all of them are for `duckflow audit`."""
    entries = audit(counter.desk.events())
    shown = entries[-(int(wanted) if wanted.isdecimal() and int(wanted) else SHOWN_ENTRIES) :]
    earlier = len(entries) - len(shown)
    lines = [counter.words("audit.earlier", count=earlier)] if earlier else []
    return "\n".join([*lines, *audit_lines(shown, counter.words)])


GROUP = (Command("permissions", permissions, ("rm",)), Command("audit", show_audit))
