"""The present state (`/status`, `/why`, `/context`, `/cost`, `/permissions`, `/audit`), choices, and `/quit`."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path

from duckflow.commands.audit import audit_lines, list_audit
from duckflow.commands.command import Command, CommandContext, cost_lines
from duckflow.commands.plan_tree import plan_bar, plan_tree
from duckflow.errors import DuckflowError
from duckflow.i18n.words import Words, age, facts_of, languages, turns
from duckflow.state.agent import AgentState, Headline, kind_of_ref
from duckflow.state.data import say, shorten, whole_sentences
from duckflow.state.message import Message
from duckflow.state.mode import OFFERED
from duckflow.state.phase import Phase
from duckflow.state.progress import in_the_middle, job_progress, progress
from duckflow.state.question import Choice, Question
from duckflow.tools.toolbox import talk_operations
from duckflow.view.items import TextItem, review_line

TITLE = 60
ASKED = 300
REPLIED = 600


def recap(state: AgentState, mode: str, now: float, words: Words) -> list[str | TextItem]:
    """Returns a recap of a resumed session. It must be made before the conversation is built, because building closes
    the open turn and forgets the open question."""
    last_time = state.messages[-1].at if state.messages else now
    title = shorten(Headline.of(state).title, TITLE)
    headline = words("recap.title", title=title, turns=turns(state.turn, words), age=age(last_time, now, words))
    lines: list[str | TextItem] = [headline] if title else []
    if state.forked_from:
        lines.append(words("recap.fork", session=state.forked_from))
    lines += _exchange(state.messages)
    if state.turn_open:
        lines.append(words("turn.crashed"))
        interrupted_agents = [agent.agent_id for agent in state.agents.values() if agent.status == "running"]
        lines += [words("agent.interrupted", agent=agent) for agent in interrupted_agents]
    if state.pending_gate:
        lines.append(_open_question(state.pending_gate, words))
    if state.plan and not state.plan.is_over:
        lines.append(plan_tree(state.plan, words))
    if state.files_changed:
        lines.append(words("status.files", files=", ".join(state.files_changed)))
    if state.mode and state.mode != mode:
        lines.append(words("recap.mode", was=state.mode, mode=mode))
    if state.model:
        lines.append(words("recap.model", model=state.model))
    return lines


def _exchange(messages: list[Message]) -> list[str | TextItem]:
    """Returns the user's last message, and the reply to it, which is Markdown."""
    asked_index = next((index for index in range(len(messages) - 1, -1, -1) if messages[index].role == "user"), None)
    if asked_index is None:
        return []
    decisions = [message.decision for message in messages[asked_index:] if message.decision]
    replies = [text for decision in decisions for text in decision.said(*talk_operations())]
    question = f"› {shorten(messages[asked_index].text, ASKED)}"
    if not replies:
        return [question]
    reply = whole_sentences(replies[-1], REPLIED)
    return [question, TextItem(id="recap", number=0, at=0, by="model", text=reply, piece=reply)]


def _open_question(question: Question, words: Words) -> str:
    if question.gate is None:
        return words("recap.duck", question=words.phrase(question.title))
    files = [impact.path for impact in question.gate.impacts]
    asked_text = "; ".join((*question.gate.intent, *files)) or ", ".join(question.gate.operations)
    return words("recap.gate", what=shorten(asked_text, ASKED))


SHOWN_CHANGE = 0.005
"""The smallest change of a vital (mood, focus, stamina) that is shown: a smaller one would be shown as 0.00."""


def status(context: CommandContext, _: str) -> str:
    state, words = context.conversation.state, context.words
    lines = [
        *map(words.phrase, context.conversation.health()),
        *(
            f"  {words(f'vital.{vital_change.vital}')} {vital_change.delta:+.2f}: {words.phrase(vital_change.cause)}"
            for vital_change in state.vitals_causes
            if abs(vital_change.delta) >= SHOWN_CHANGE
        ),
        words("status.session", session=state.session_id, turns=state.turn),
        words("status.model", model=state.model),
        words("status.mode", mode=context.conversation.choices.mode),
        words(
            "status.step",
            step=words(f"status.phase.{state.phase.lower()}"),
            status=words(f"status.going.{state.status.lower()}"),
        ),
    ]
    if state.review:
        lines.append(review_line(state.review, words))
    if state.limit:
        work_text = words(f"work.{state.profile}") if state.profile else ""
        lines.append(words("status.loops", loop=state.loop, limit=state.limit, work=work_text))
    key_facts = {
        "goal": state.five.goal,
        "why_now": state.five.why_now,
        "constraints": "; ".join(state.five.constraints),
        "plan_brief": "; ".join(state.five.plan_brief),
        "open_questions": "; ".join(state.five.open_questions),
    }
    lines += [f"{words(f'five.{name}')}: {text}" for name, text in key_facts.items() if text]
    if bar := plan_bar(state, words):
        lines.append(words("status.plan", plan=bar))
    lines += [words.phrase(line) for job in state.live_jobs() for line in job_progress(state, job)]
    if state.last_delta:
        delta = re.sub("|".join(Phase), lambda name: words(f"status.phase.{name[0].lower()}"), state.last_delta)
        lines.append(words("status.last_delta", delta=delta))
    if refs := [ref for ref in state.context_refs if kind_of_ref(ref)]:
        lines.append(words("status.refs", refs=", ".join(refs)))
    if state.files_changed:
        lines.append(words("status.files", files=", ".join(state.files_changed)))
    return "\n".join(lines)


def why(context: CommandContext, _: str) -> str:
    return "\n".join(map(context.words.phrase, context.conversation.why()))


STATUS = (Command("status", status), Command("why", why))


async def context(context: CommandContext, _: str) -> str:
    from duckflow.commands.command import layer_lines

    return "\n".join(layer_lines(await context.conversation.context(), context.words))


CONTEXT = (Command("context", context),)


def cost(context: CommandContext, _: str) -> str:
    return "\n".join(cost_lines(context.conversation.state, context.conversation.choices.budget_usd, context.words))


def queue(context: CommandContext, text: str) -> str:
    """Queues a message until the running turn has ended. Without a message, the queued messages are shown."""
    if text:
        context.conversation.queue(text)
        return ""
    waiting_texts = [queued_message.text for queued_message in context.conversation.waiting]
    return "\n".join(waiting_texts) or context.words("queue.empty")


async def leave(context: CommandContext, _: str) -> str:
    """Leaves the chat. If a job is at work, the user says what to do with it."""
    conversation, choice = context.conversation, "stop"
    if running_jobs := [job.name for job in conversation.state.live_jobs() if job.status == "running"]:
        choices = tuple(Choice(key=key, label=say(f"leave.{key}")) for key in ("stop", "detach", "stay"))
        title = say("leave.jobs", job=", ".join(running_jobs))
        choice = (await context.ask(Question(kind="choice", title=title, choices=choices))).choice
    if choice == "detach" and await _stays(context):
        return ""
    if choice != "stay":
        conversation.sessions.leave(detached=choice == "detach")
    return ""


async def _stays(context: CommandContext) -> bool:
    """Says whether the user stays in the chat. Waits until the running task has ended, because a task that is cut off
    would be done twice. The user may also leave at once."""
    state = context.conversation.state
    current_tasks = [
        current_task
        for job in state.live_jobs()
        if in_the_middle(state, job)
        for current_task in progress(state, job).now
    ]
    settle_task = asyncio.ensure_future(context.conversation.work.settle())
    if not current_tasks:
        await settle_task
        return False
    choices = tuple(Choice(key=key, label=say(f"leave.{key}")) for key in ("cut", "stay"))
    details = tuple(say("leave.finishing_task", task=current_task.line()) for current_task in current_tasks)
    question = Question(kind="choice", title=say("leave.finishing"), details=details, choices=choices)
    ask_task = asyncio.ensure_future(context.ask(question))
    try:
        await asyncio.wait({settle_task, ask_task}, return_when=asyncio.FIRST_COMPLETED)
        return ask_task.done() and ask_task.result().choice == "stay"
    finally:
        settle_task.cancel()
        ask_task.cancel()


SESSION = (Command("queue", queue), Command("cost", cost), Command("quit", leave), Command("exit", leave))


SHOWN_ENTRIES = 30


def permissions(context: CommandContext, arguments: str) -> str:
    words, choices = context.words, context.conversation.choices
    verb, _, number = arguments.partition(" ")
    if verb == "rm" and number.strip().isdecimal():
        removed = choices.remove_permission(int(number))
        key = "permission.lifted" if removed.key == "permission.limit" else "permission.removed"
        return words(key, rule=words.phrase(removed))
    if verb == "add" and number.strip().isdecimal():
        return words("permission.added", rule=words.phrase(choices.add_usual(int(number))))
    lines = [
        f"{number}. {words.phrase(rule)} ({words(f'permission.{scope}')})"
        for number, (scope, rule) in enumerate(choices.permissions(), 1)
    ]
    lines = lines or [words("permission.none")]
    lines += [
        words("permission.usual", number=number, rule=words.phrase(rule), times=times)
        for number, (rule, times) in enumerate(choices.usual(), 1)
    ]
    return "\n".join(lines)


def show_audit(context: CommandContext, wanted: str) -> str:
    """Shows the latest entries of the audit, as many as `wanted` says. `duckflow audit` shows all of them."""
    entries = list_audit(context.conversation.record())
    shown_entries = entries[-(int(wanted) if wanted.isdecimal() and int(wanted) else SHOWN_ENTRIES) :]
    earlier_count = len(entries) - len(shown_entries)
    lines = [context.words("audit.earlier", count=earlier_count)] if earlier_count else []
    return "\n".join([*lines, *audit_lines(shown_entries, context.words)])


RECORD = (Command("permissions", permissions, ("rm", "add")), Command("audit", show_audit))


def mode(context: CommandContext, wanted: str) -> str:
    """Changes the mode. If no mode is named, lists all modes, each with how often it asked in tests, and how often it
    missed a risk."""
    if not wanted:
        return "\n".join(_modes(context.words, context.conversation.choices.mode))
    context.conversation.choices.change_mode(wanted)
    return context.words("mode.now", mode=wanted)


def _modes(words: Words, now: str) -> Iterator[str]:
    figures = json.loads(Path(__file__).with_name("mode_figures.json").read_text(encoding="utf-8"))
    yield words("mode.choices", mode=now, modes=", ".join(OFFERED))
    yield from (f"  {words(f'init.choice.mode.{mode_name}')}" for mode_name in OFFERED)
    yield words("mode.measured", count=figures["destructive"] + figures["doubtful"] + figures["harmless"])
    for mode_name in OFFERED:
        shares = figures["modes"][mode_name]
        share_texts = {
            name: f"{share:g}" for name, share in (shares | {"missed": round(100 - shares["asked"], 1)}).items()
        }
        yield f"  {words('mode.figures', mode=mode_name, **share_texts)}"
    yield words("mode.shut_in", caught=f"{figures['caught']:g}")


async def model(context: CommandContext, wanted: str) -> str:
    """Shows the model's name, or changes to another model from now on. The chat itself shows the new name."""
    words, current_model = context.words, context.conversation.state.model
    if not wanted:
        return words("model.choices", model=current_model or "–")
    try:
        await context.conversation.choices.change_model(wanted)
    except DuckflowError as problem:
        return "\n".join([words.error(problem), words("model.stays", model=current_model or "–")])
    return ""


def language(context: CommandContext, wanted: str) -> str:
    context.conversation.choices.change_language(wanted)
    context.words.language = wanted
    return context.words("language.now", name=facts_of(wanted).name)


def rename(context: CommandContext, title: str) -> str:
    context.conversation.choices.rename(title)
    return context.words("rename.now", title=context.conversation.state.heading)


CHOICES = (
    Command("mode", mode, OFFERED),
    Command("model", model),
    Command("lang", language, languages()),
    Command("rename", rename),
)
