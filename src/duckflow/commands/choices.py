"""`/mode`, `/model`, `/lang`: what the user may choose while it runs."""

from duckflow.commands.command import Command, CommandContext
from duckflow.errors import DuckflowError
from duckflow.i18n.words import LANGUAGES
from duckflow.safety.mode import Mode


def mode(context: CommandContext, wanted: str) -> str:
    context.conversation.choices.change_mode(wanted)
    return context.words("mode.now", mode=wanted)


async def model(context: CommandContext, wanted: str) -> str:
    """Which one it is, or another one from now on; the chat itself shows the new one and why."""
    words, now = context.words, context.conversation.state.model
    if not wanted:
        return words("model.choices", model=now or "–")
    try:
        await context.conversation.choices.change_model(wanted)
    except DuckflowError as problem:
        return "\n".join([words.error(problem), words("model.stays", model=now or "–")])
    return ""


def language(context: CommandContext, wanted: str) -> str:
    context.conversation.choices.change_language(wanted)
    context.words.language = wanted
    return context.words("language.now")


GROUP = (Command("mode", mode, tuple(Mode)), Command("model", model), Command("lang", language, LANGUAGES))
