"""The setup that a conversation is built from."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from duckflow.agent.trust import FolderTrust
from duckflow.config.settings import Settings
from duckflow.events.ports import Conversation, Emit
from duckflow.events.types import Event, Noticed
from duckflow.i18n.words import Words
from duckflow.state.mode import Mode
from duckflow.state.phrase import say
from duckflow.store.paths import Paths


class Setup(NamedTuple):
    """The folder, the settings, the language and the circumstances of a conversation."""

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
    alone: bool = False
    """Nobody is there to answer a question; the model is told so."""
    home: Path | None = None
    """The folder that holds the user's own extensions; by default their home."""
    model_origin: str = "model.chosen.flag"
    """The key of the text that says where the name of the model comes from."""
    answer_schema: dict[str, Any] | None = None
    """The JSON schema that answers must fit."""
    really: bool = False
    """The user insists on the mode `contained`, whatever this machine looks like."""
    on_duck_call: tuple[str, int] = ("replan", 2)
    """In the mode `contained`: the answer to a Duck Call, and how often it is given before the turn ends."""
    copy_of: Path | None = None
    """The folder that this one is a copy of. Commands see the copy at that place as well."""

    @property
    def contained(self) -> bool:
        return self.settings.safety.mode is Mode.CONTAINED

    @property
    def home_folder(self) -> Path:
        return self.home or Path(os.environ.get("HOME") or "/")


def folder_trust(setup: Setup) -> Callable[[], FolderTrust]:
    """Returns a function that looks at the folder, which takes time that the start does not have."""
    return partial(FolderTrust, setup.folder, setup.home_folder, setup.paths.trusted, setup.contained)


def facts_of(setup: Setup) -> Path:
    return setup.paths.archive_of(setup.folder).with_suffix(".facts.json")


def traced(conversation: Conversation, emit: Emit) -> Callable[[], None]:
    """Sends traces to the collector that the environment names, if any. Returns a function that ends that."""
    has_endpoint = any(os.environ.get(f"OTEL_EXPORTER_OTLP_{kind}ENDPOINT") for kind in ("", "TRACES_"))
    is_off = (
        os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or os.environ.get("OTEL_TRACES_EXPORTER") == "none"
    )
    if not has_endpoint or is_off:
        return lambda: None
    try:
        from duckflow.telemetry.spans import trace_conversation
    except ModuleNotFoundError:

        def tell(number: int, event: Event) -> None:
            stop_hearing()
            emit(Noticed(what=say("telemetry.missing")))

        # This is said with the first event, since nobody listens before it.
        stop_hearing = conversation.hear(tell)
        return stop_hearing
    return trace_conversation(conversation)
