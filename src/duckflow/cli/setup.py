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
from duckflow.state.data import say
from duckflow.state.mode import Mode
from duckflow.store.paths import Paths


class Setup(NamedTuple):
    """The folder, the settings, the language and the circumstances of a conversation."""

    settings: Settings
    paths: Paths
    folder: Path
    words: Words
    model_flag: str = ""
    trust: bool = False
    """True if the user trusts the folder by a flag on the command line."""
    added: tuple[Path, ...] = ()
    """Further folders that the user has named on the command line."""
    by_client: bool = False
    """True if questions go to another program, which may say yes to everything."""
    alone: bool = False
    """True if nobody can answer a question. The model then knows this."""
    home: Path | None = None
    """The folder with the user's own extensions; None means the home folder."""
    model_origin: str = "model.chosen.flag"
    """The key of the text that says where the model's name comes from."""
    answer_schema: dict[str, Any] | None = None
    """The JSON schema that the model's answers must fit."""
    really: bool = False
    """True if the user insists on the mode `contained`, whatever this machine looks like."""
    on_duck_call: tuple[str, int] = ("replan", 2)
    """In the mode `contained`: the answer to a Duck Call (the question when work goes badly), and how often it is given
    in a turn."""
    copy_of: Path | None = None
    """The folder of which this folder is a copy. Commands see the copy at the original's path as well."""

    @property
    def contained(self) -> bool:
        return self.settings.safety.mode is Mode.CONTAINED

    @property
    def home_folder(self) -> Path:
        return self.home or Path(os.environ.get("HOME") or "/")


def folder_trust(setup: Setup) -> Callable[[], FolderTrust]:
    """Returns a function that reads whether the folder is trusted: that takes too long for the start."""
    return partial(FolderTrust, setup.folder, setup.home_folder, setup.paths.trusted, setup.contained)


def facts_of(setup: Setup) -> Path:
    return setup.paths.archive_of(setup.folder).with_suffix(".facts.json")


def traced(conversation: Conversation, emit: Emit) -> Callable[[], None]:
    """Sends traces to the collector that the environment names, if any. Returns a function that ends the sending."""
    has_endpoint = any(os.environ.get(f"OTEL_EXPORTER_OTLP_{kind}ENDPOINT") for kind in ("", "TRACES_"))
    is_disabled = (
        os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or os.environ.get("OTEL_TRACES_EXPORTER") == "none"
    )
    if not has_endpoint or is_disabled:
        return lambda: None
    try:
        from duckflow.telemetry.spans import trace_conversation
    except ModuleNotFoundError:

        def tell(number: int, event: Event) -> None:
            stop_hearing()
            emit(Noticed(what=say("telemetry.missing")))

        # The notice is sent with the first event, since nobody listens before it.
        stop_hearing = conversation.hear(tell)
        return stop_hearing
    return trace_conversation(conversation)
