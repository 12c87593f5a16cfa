"""`/back` goes to an earlier message, with the conversation, the files, or both; `/new` and `/clear` begin anew."""

from duckflow.commands.command import Command, CommandContext
from duckflow.commands.undo import warnings
from duckflow.errors import DuckflowError
from duckflow.i18n.words import Words
from duckflow.state.changes import UndoScope
from duckflow.state.data import say, shorten
from duckflow.state.message import Message
from duckflow.state.question import Choice, Question

OFFERED = 9
LABEL = 60


async def back(context: CommandContext, _: str) -> str:
    words, conversation = context.words, context.conversation
    if conversation.state.turn_open or conversation.questions:
        return words("back.busy")
    messages = conversation.memory.own_messages()[-OFFERED:]
    if not messages:
        return words("back.nothing")
    offered_messages = {str(message.turn): message for message in reversed(messages)}
    labels = [
        Choice(key=key, label=say("back.message", text=shorten(message.text, LABEL)))
        for key, message in offered_messages.items()
    ]
    stay_choice = Choice(key="no", label=say("back.stay"))
    message_answer = await context.ask(Question(kind="choice", title=say("back.title"), choices=(*labels, stay_choice)))
    if message_answer.choice not in offered_messages:
        return words("back.left")
    way_choices = tuple(Choice(key=key, label=say(f"back.{key}")) for key in ("both", "talk", "files", "stay"))
    answer = await context.ask(Question(kind="choice", title=say("back.what"), choices=way_choices))
    return await _go(context, offered_messages[message_answer.choice], answer.choice, words)


async def _go(context: CommandContext, message: Message, what: str, words: Words) -> str:
    lines: list[str] = []
    if what in ("both", "files"):
        lines += await _restore_files(context, message.turn)
    if what in ("both", "talk"):
        context.conversation.memory.go_back(message)
        lines.append(words("back.talked"))
    return "\n".join(lines) or words("back.left")


async def _restore_files(context: CommandContext, turn: int) -> list[str]:
    """Takes back all work since that turn at once. Changes that somebody else may have made stay as they are, and are
    named."""
    undo, words = context.conversation.undo, context.words
    try:
        undo_outcome = await undo.restore(back=True, only_own=True, scope=UndoScope(since=turn))
    except DuckflowError:
        return [words("back.no_files")]
    problems = warnings((*undo_outcome.conflicts, *undo_outcome.not_covered), words)
    files = ", ".join(undo_outcome.changed)
    return [words("back.files_done", turn=turn, files=files) if files else words("back.no_files"), *problems]


def new(context: CommandContext, _: str) -> str:
    context.conversation.sessions.new()
    return ""


GROUP = (Command("new", new), Command("clear", new), Command("back", back))
