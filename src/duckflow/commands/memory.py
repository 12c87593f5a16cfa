"""`/memory`, `/recall`, `/compact`, `/forget`: what is remembered."""

from duckflow.commands.command import Command, CommandContext
from duckflow.errors import ToolError
from duckflow.state.phrase import say
from duckflow.state.question import Choice, Question


def memory(counter: CommandContext, _: str) -> str:
    return "\n".join(map(counter.words.phrase, counter.desk.memory.report()))


def recall(counter: CommandContext, wanted: str) -> str:
    if not wanted:
        return counter.words("memory.recall_what")
    found, text = counter.desk.memory.find(wanted, in_context=True)
    return text if found else counter.words("memory.nothing", query=wanted)


def compact(counter: CommandContext, focus: str) -> str:
    return counter.words.phrase(counter.desk.memory.compact(focus))


async def forget(counter: CommandContext, wanted: str) -> str:
    """What is forgotten cannot be brought back: how much that is, is shown before."""
    words, forgetting = counter.words, counter.desk.memory.forgetting
    if not wanted:
        return words("memory.forget_what")
    held = forgetting.holding(wanted)
    if not held:
        return words("memory.forget_none", words=wanted)
    choices = (Choice(key="yes", label=say("gate.yes")), Choice(key="no", label=say("memory.forget_no")))
    answer = await counter.ask(Question(kind="gate", title=held[0], details=held[1:], choices=choices))
    if answer.choice != "yes":
        return words("memory.forget_not")
    try:
        return words.phrase(forgetting.forget(wanted))
    except ToolError as problem:
        return words.error(problem)
    except OSError as problem:
        return words("memory.unwritable", reason=problem.strerror or str(problem))


GROUP = (Command("memory", memory), Command("recall", recall), Command("compact", compact), Command("forget", forget))
