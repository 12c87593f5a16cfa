"""What an editor lets its user choose: mode, model, language."""

from collections.abc import Sequence
from typing import Any

from duckflow.events.ports import Conversation
from duckflow.i18n.language import facts_of, languages
from duckflow.i18n.words import Words
from duckflow.state.mode import OFFERED, Mode

AUTO = "auto"
"""No model is connected yet: it will be found out."""


def mode_state(conversation: Conversation, words: Words) -> dict[str, Any]:
    """For editors that know modes and no options yet."""
    modes = [{"id": value, "name": value, "description": about} for value, about in _modes(conversation, words)]
    return {"currentModeId": str(conversation.choices.mode), "availableModes": modes}


def config_options(conversation: Conversation, models: Sequence[str], words: Words) -> list[dict[str, Any]]:
    now = conversation.state.model or AUTO
    named = list(dict.fromkeys([now, *models]))
    about = {AUTO: words("init.choice.model.auto")}
    return [
        _select("mode", words("editor.mode"), str(conversation.choices.mode), _modes(conversation, words)),
        _select("model", words("editor.model"), now, [(name, about.get(name, "")) for name in named]),
        _select("language", words("editor.language"), words.language, _languages()),
    ]


async def choose(conversation: Conversation, option: str, value: str) -> bool:
    """Whether there is such an option."""
    match option:
        case "mode":
            conversation.choices.change_mode(value)
        case "model":
            if value not in (AUTO, conversation.state.model):
                await conversation.choices.change_model(value)
        case "language":
            conversation.choices.change_language(value)
        case _:
            return False
    return True


def _modes(conversation: Conversation, words: Words) -> list[tuple[str, str]]:
    """The one that it was started in is among them, even if it cannot be chosen elsewhere."""
    offered = dict.fromkeys((*OFFERED, Mode(conversation.choices.mode)))
    return [(str(mode), words(f"init.choice.mode.{mode}").removeprefix(f"{mode}: ")) for mode in offered]


def _languages() -> list[tuple[str, str]]:
    return [(language, facts_of(language).name) for language in languages()]


def _select(option: str, name: str, now: str, values: Sequence[tuple[str, str]]) -> dict[str, Any]:
    offered = [{"value": value, "name": value} | ({"description": about} if about else {}) for value, about in values]
    # Others than these two have no category that every editor knows.
    category = {"category": option} if option in ("mode", "model") else {}
    return {"id": option, "name": name, **category, "type": "select", "currentValue": now, "options": offered}
