"""The layers of the settings: which there are, and where each value comes from."""

import os
from collections.abc import Iterator
from pathlib import Path

from duckflow.cli.doctor.finding import Finding, broken, good
from duckflow.cli.origin import told_origin
from duckflow.config.load import FROM_ENVIRONMENT, PROJECT_FILE, Loaded, load
from duckflow.config.settings import Settings
from duckflow.config.value import rows, shown
from duckflow.errors import UsageError
from duckflow.state.phrase import say
from duckflow.store.paths import Paths
from duckflow.ui.i18n.words import Words


def settings_checked(paths: Paths, folder: Path, language: str | None, words: Words) -> tuple[Settings, list[Finding]]:
    """The settings as they are, or the defaults when they cannot be read: the doctor looks at the rest all the same."""
    try:
        loaded = load(paths.user_config, folder, {"language": language})
    except UsageError as problem:
        return Settings(), [broken("settings", problem)]
    return loaded.settings, [*_layers(paths, folder), *_values(loaded, words)]


def _layers(paths: Paths, folder: Path) -> Iterator[Finding]:
    for kind, path in (("user", paths.user_config), ("project", folder / PROJECT_FILE)):
        there = path.is_file()
        yield good("settings", say(f"doctor.layer.{kind}" if there else f"doctor.no_layer.{kind}", path=str(path)))
    if names := [name for name in FROM_ENVIRONMENT if os.environ.get(name)]:
        yield good("settings", say("doctor.layer.environment", names=", ".join(names)))


def _values(loaded: Loaded, words: Words) -> Iterator[Finding]:
    for name, value in rows(loaded.settings):
        if origin := loaded.origins.get(name):
            told = told_origin(name, origin, words)
            yield good("settings", say("doctor.value", name=name, value=shown(name, value), origin=told))
