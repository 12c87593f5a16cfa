"""Slash commands: each is a name, a help text in the catalogue, and a function."""

import difflib
from collections.abc import Awaitable, Callable

from duckflow.errors import UsageError
from duckflow.safety.policy import Mode
from duckflow.store.audit import audit
from duckflow.ui import undo_commands
from duckflow.ui.audit_lines import audit_lines
from duckflow.ui.counter import Counter, Quit
from duckflow.ui.i18n.words import LANGUAGES
from duckflow.ui.plan_commands import plan, tasks

Command = Callable[[Counter, str], str | Awaitable[str]]


async def run_command(counter: Counter, line: str) -> str:
    """What to show. An unknown command names the nearest one."""
    name, _, rest = line[1:].strip().partition(" ")
    if name in COMMANDS:
        shown = COMMANDS[name](counter, rest.strip())
        return shown if isinstance(shown, str) else await shown
    near = difflib.get_close_matches(name, COMMANDS, n=1)
    if near:
        return counter.words("command.near", name=name, near=near[0])
    return counter.words("command.unknown", name=name)


def _help(counter: Counter, _: str) -> str:
    lines = [f"/{name:<8} {counter.words(f'command.{name}')}" for name in COMMANDS]
    return "\n".join([*lines, "", counter.words("help.keys")])


def _status(counter: Counter, _: str) -> str:
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


def _why(counter: Counter, _: str) -> str:
    return "\n".join(map(counter.words.phrase, counter.desk.why()))


def _mode(counter: Counter, wanted: str) -> str:
    if wanted not in tuple(Mode):
        return counter.words("mode.choices", mode=counter.desk.mode, modes=", ".join(Mode))
    counter.desk.change_mode(Mode(wanted))
    return counter.words("mode.now", mode=wanted)


def _permissions(counter: Counter, rest: str) -> str:
    words, permissions = counter.words, counter.desk.permissions
    verb, _, number = rest.partition(" ")
    if verb == "rm" and number.strip().isdecimal():
        try:
            rule = permissions.remove(int(number))
        except UsageError as problem:
            return words.error(problem)
        return words("permission.removed", rule=words.phrase(rule.describe()))
    kinds = [*(("always", rule) for rule in permissions.always), *(("session", rule) for rule in permissions.session)]
    lines = [
        f"{number}. {words.phrase(rule.describe())} ({words(f'permission.{kind}')})"
        for number, (kind, rule) in enumerate(kinds, 1)
    ]
    return "\n".join(lines) or words("permission.none")


def _audit(counter: Counter, _: str) -> str:
    return "\n".join(audit_lines(audit(counter.desk.events()), counter.words))


def _language(counter: Counter, wanted: str) -> str:
    if wanted not in LANGUAGES:
        return counter.words("language.choices", languages=", ".join(LANGUAGES))
    counter.words.language = wanted
    counter.desk.change_language(wanted)
    return counter.words("language.now")


def _model(counter: Counter, _: str) -> str:
    return counter.words("status.model", model=counter.desk.state.model)


def _cost(counter: Counter, _: str) -> str:
    usage = counter.desk.state.usage
    return counter.words(
        "cost.line",
        calls=usage.calls,
        sent=usage.prompt_tokens,
        cached=usage.cached_tokens,
        received=usage.completion_tokens,
        dollars=f"{usage.cost_usd:.4f}",
    )


def _memory(counter: Counter, _: str) -> str:
    return "\n".join(map(counter.words.phrase, counter.desk.memory.report()))


def _recall(counter: Counter, words: str) -> str:
    found, text = counter.desk.memory.find(words)
    return text if found else counter.words("memory.nothing", query=words)


def _compact(counter: Counter, focus: str) -> str:
    return counter.words.phrase(counter.desk.memory.compact(focus))


def _forget(counter: Counter, words: str) -> str:
    return counter.words.phrase(counter.desk.memory.forget(words))


def _quit(_: Counter, __: str) -> str:
    raise Quit


COMMANDS: dict[str, Command] = {
    "help": _help,
    "status": _status,
    "plan": plan,
    "tasks": tasks,
    "why": _why,
    "mode": _mode,
    "diff": undo_commands.diff,
    "undo": undo_commands.undo,
    "redo": undo_commands.redo,
    "permissions": _permissions,
    "audit": _audit,
    "model": _model,
    "cost": _cost,
    "memory": _memory,
    "recall": _recall,
    "compact": _compact,
    "forget": _forget,
    "lang": _language,
    "quit": _quit,
}
