"""`/mode`, `/model`, `/lang`: what the user may choose while it runs."""

from duckflow.commands.command import Command, CommandContext
from duckflow.errors import DuckflowError
from duckflow.i18n.words import LANGUAGES
from duckflow.safety.mode import Mode


def mode(counter: CommandContext, wanted: str) -> str:
    if wanted not in tuple(Mode):
        return counter.words("mode.choices", mode=counter.desk.mode, modes=", ".join(Mode))
    counter.desk.change_mode(Mode(wanted))
    return counter.words("mode.now", mode=wanted)


async def model(counter: CommandContext, wanted: str) -> str:
    """Which one it is, or another one from now on; the chat itself shows the new one and why."""
    words, now = counter.words, counter.desk.state.model
    if not wanted:
        return words("model.choices", model=now or "–")
    try:
        await counter.desk.change_model(wanted)
    except DuckflowError as problem:
        return "\n".join([words.error(problem), words("model.stays", model=now or "–")])
    return ""


def language(counter: CommandContext, wanted: str) -> str:
    if wanted not in LANGUAGES:
        return counter.words("language.choices", languages=", ".join(LANGUAGES))
    counter.words.language = wanted
    counter.desk.change_language(wanted)
    return counter.words("language.now")


GROUP = (Command("mode", mode, tuple(Mode)), Command("model", model), Command("lang", language, LANGUAGES))
