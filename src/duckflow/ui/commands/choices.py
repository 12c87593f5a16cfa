"""`/mode`, `/model`, `/lang`: what the user may choose while it runs."""

from duckflow.safety.mode import Mode
from duckflow.ui.commands.command import Command
from duckflow.ui.counter import Counter
from duckflow.ui.i18n.words import LANGUAGES


def mode(counter: Counter, wanted: str) -> str:
    if wanted not in tuple(Mode):
        return counter.words("mode.choices", mode=counter.desk.mode, modes=", ".join(Mode))
    counter.desk.change_mode(Mode(wanted))
    return counter.words("mode.now", mode=wanted)


def model(counter: Counter, _: str) -> str:
    return counter.words("status.model", model=counter.desk.state.model)


def language(counter: Counter, wanted: str) -> str:
    if wanted not in LANGUAGES:
        return counter.words("language.choices", languages=", ".join(LANGUAGES))
    counter.words.language = wanted
    counter.desk.change_language(wanted)
    return counter.words("language.now")


GROUP = (Command("mode", mode, tuple(Mode)), Command("model", model), Command("lang", language, LANGUAGES))
