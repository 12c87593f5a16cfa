"""Which form of the prompt a model gets: short for small ones, full for the others."""

from duckflow.prompts.offer import Profile
from duckflow.prompts.settings import PromptSettings

ON_THIS_MACHINE = "local:"


def profile_for(model: str, window: int, settings: PromptSettings) -> Profile:
    """By the setting, else by provider and context size."""
    if settings.profile:
        return settings.profile
    return "compact" if model.startswith(ON_THIS_MACHINE) or window <= settings.small_window else "full"
