"""`/memory`, `/recall`, `/compact`, `/forget`: the memory of the conversation."""

from duckflow.commands.command import Command, CommandContext
from duckflow.state.data import say
from duckflow.state.question import Choice, Question
from duckflow.store.paths import Paths

ALL = "--all"


def memory(context: CommandContext, _: str) -> str:
    return "\n".join(map(context.words.phrase, context.conversation.memory.report()))


def recall(context: CommandContext, wanted: str) -> str:
    if not wanted:
        return context.words("memory.recall_what")
    is_found, text = context.conversation.memory.find(wanted, in_context=True)
    return text if is_found else context.words("memory.nothing", query=wanted)


def recall_anywhere(paths: Paths, context: CommandContext, line: str) -> str:
    """Searches earlier messages; with `--all` those of every session on this machine."""
    query = line.removeprefix(ALL).strip()
    if not query or not line.startswith(ALL):
        return recall(context, query)
    from duckflow.commands.sessions import search_sessions

    lines = search_sessions(query, paths.archives(None), context.conversation.sessions.all(), context.words)
    return "\n".join(lines) or context.words("memory.nothing", query=query)


async def compact(context: CommandContext, focus: str) -> str:
    return context.words.phrase(await context.conversation.memory.compact(focus))


async def forget(context: CommandContext, wanted: str) -> str:
    """Forgets for good every text that contains the wanted words. Before that, the user is shown how many there are."""
    words, forgetting = context.words, context.conversation.memory.forgetting
    if not wanted:
        return words("memory.forget_what")
    held_phrases = forgetting.holding(wanted)
    if not held_phrases:
        return words("memory.forget_none", words=wanted)
    choices = (Choice(key="yes", label=say("gate.yes")), Choice(key="no", label=say("memory.forget_no")))
    answer = await context.ask(Question(kind="gate", title=held_phrases[0], details=held_phrases[1:], choices=choices))
    if answer.choice != "yes":
        return words("memory.forget_not")
    try:
        return words.phrase(forgetting.forget(wanted))
    except OSError as problem:
        return words("memory.unwritable", reason=problem.strerror or str(problem))


GROUP = (Command("memory", memory), Command("recall", recall), Command("compact", compact), Command("forget", forget))
