"""Where things stand: `/status`, `/why`, `/context`, `/cost`, `/permissions`, `/audit`, and `/quit`."""

from duckflow.commands.command import Command, CommandContext, Quit
from duckflow.commands.lines import audit_lines, cost_lines
from duckflow.errors import DuckflowError, UsageError
from duckflow.store.audit import audit


def status(counter: CommandContext, _: str) -> str:
    state, words = counter.desk.state, counter.words
    shown = [
        *map(words.phrase, counter.desk.health().report()),
        *(f"  {words(f'vital.{c.vital}')} {c.delta:+.2f}: {words.phrase(c.cause)}" for c in state.vitals_causes),
        words("status.session", session=state.session_id, turns=state.turn),
        words("status.model", model=state.model),
        words("status.mode", mode=counter.desk.mode),
        words("status.step", step=state.phase, status=state.status),
    ]
    five = {
        "goal": state.five.goal,
        "why_now": state.five.why_now,
        "constraints": "; ".join(state.five.constraints),
        "plan_brief": "; ".join(state.five.plan_brief),
        "open_questions": "; ".join(state.five.open_questions),
    }
    shown += [f"{words(f'five.{name}')}: {text}" for name, text in five.items() if text]
    if state.files_changed:
        shown.append(words("status.files", files=", ".join(state.files_changed)))
    return "\n".join(shown)


def why(counter: CommandContext, _: str) -> str:
    return "\n".join(map(counter.words.phrase, counter.desk.why()))


STATUS = (Command("status", status), Command("why", why))


async def context(counter: CommandContext, _: str) -> str:
    from duckflow.commands.lines import layer_lines

    try:
        return "\n".join(layer_lines(await counter.desk.context(), counter.words))
    except DuckflowError as problem:
        return counter.words.error(problem)


CONTEXT = (Command("context", context),)


def cost(counter: CommandContext, _: str) -> str:
    return "\n".join(cost_lines(counter.desk.state, counter.desk.budget_usd, counter.words))


def leave(_: CommandContext, __: str) -> str:
    raise Quit


SESSION = (Command("cost", cost), Command("quit", leave))


SHOWN_ENTRIES = 30


def permissions(counter: CommandContext, rest: str) -> str:
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


def show_audit(counter: CommandContext, wanted: str) -> str:
    """The latest entries, so many as wanted; all of them are for `duckflow audit`."""
    entries = audit(counter.desk.events())
    shown = entries[-(int(wanted) if wanted.isdecimal() and int(wanted) else SHOWN_ENTRIES) :]
    earlier = len(entries) - len(shown)
    lines = [counter.words("audit.earlier", count=earlier)] if earlier else []
    return "\n".join([*lines, *audit_lines(shown, counter.words)])


RECORD = (Command("permissions", permissions, ("rm",)), Command("audit", show_audit))
