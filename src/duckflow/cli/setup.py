"""What a conversation is built from."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from duckflow.agent.trust import FolderTrust
from duckflow.config.settings import Settings
from duckflow.events.ports import Conversation
from duckflow.i18n.words import Words
from duckflow.safety.path_names import private_places
from duckflow.safety.workspace import Workspace
from duckflow.store.paths import Paths


class Setup(NamedTuple):
    """Where a conversation is held, with which settings and in which words."""

    settings: Settings
    paths: Paths
    folder: Path
    words: Words
    model_flag: str = ""
    trust: bool = False
    """The user says on the command line that the folder is to be trusted."""
    added: tuple[Path, ...] = ()
    """Further folders that the user has named on the command line."""
    by_client: bool = False
    """Questions go to another program, which may say yes to everything."""
    home: Path | None = None
    """Where the user's own extensions are; not said: in their home."""
    model_origin: str = "model.chosen.flag"
    """The words that say where the name of the model comes from."""

    @property
    def home_folder(self) -> Path:
        return self.home or Path(os.environ.get("HOME") or "/")


def open_workspace(setup: Setup) -> Workspace:
    """The work folder, without the private places in it."""
    paths, shown = setup.paths, setup.settings.sandbox.shown
    try:
        home = Path.home()
    except RuntimeError:
        home = setup.folder
    private = private_places(setup.folder, home, (paths.data, paths.config), shown)
    if not setup.added:
        return Workspace(setup.folder, private=private)
    from duckflow.agent.wider_workspace import WiderWorkspace

    for folder in setup.added:
        private = (*private, *private_places(folder, home, (paths.data, paths.config), shown))
    return WiderWorkspace(setup.folder, private, setup.added)


def folder_trust(setup: Setup) -> FolderTrust:
    return FolderTrust(setup.folder, setup.home_folder, setup.paths.trusted)


def facts_of(setup: Setup) -> Path:
    return setup.paths.archive_of(setup.folder).with_suffix(".facts.json")


def traced(conversation: Conversation) -> Callable[[], None]:
    """Tell the collector that the environment names, if it does, of what happens; what is given back ends that."""
    if not any(name.startswith("OTEL_EXPORTER_OTLP") for name in os.environ):
        return lambda: None
    from duckflow.telemetry.export import Exporter, collector_of
    from duckflow.telemetry.spans import Tracer

    if (collector := collector_of(os.environ)) is None:
        return lambda: None
    exporter = Exporter(collector)
    conversation.hear(Tracer(conversation.state.session_id, exporter.take, collector.contents).hear)
    return exporter.close
