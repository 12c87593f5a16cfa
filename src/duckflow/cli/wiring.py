"""What a conversation is built from."""

from dataclasses import dataclass
from pathlib import Path

from duckflow.config.settings import Settings
from duckflow.i18n.words import Words
from duckflow.store.paths import Paths


@dataclass(frozen=True, slots=True)
class Wiring:
    """Where a conversation is held, with which settings and in which words."""

    settings: Settings
    paths: Paths
    folder: Path
    words: Words
    model_flag: str = ""


def facts_of(wiring: Wiring) -> Path:
    return wiring.paths.archive_of(wiring.folder).with_suffix(".facts.json")
