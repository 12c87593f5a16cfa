"""Which form of the prompt a model gets: short for small ones, full for the others."""

import re

from duckflow.prompts.offer import Profile
from duckflow.prompts.settings import PromptSettings

ON_THIS_MACHINE = "local:"
BILLIONS = re.compile(r"(?<![\d.a-z])(\d+(?:\.\d+)?)b(?![a-z\d])", re.IGNORECASE)


def profile_for(model: str, window: int, settings: PromptSettings) -> Profile:
    """By the setting, else by provider, context size and the size in the name."""
    if settings.profile:
        return settings.profile
    if model.startswith(ON_THIS_MACHINE) or window <= settings.small_window:
        return "compact"
    # A mixture names its whole first and its active part after it: the whole counts.
    sizes = [float(size) for size in BILLIONS.findall(model)]
    return "compact" if sizes and max(sizes) <= settings.small_billions else "full"
