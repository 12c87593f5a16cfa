"""The setup that a conversation is built from."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from duckflow.agent.session import Session
from duckflow.agent.trust import FolderTrust
from duckflow.config.settings import Settings
from duckflow.events.ports import Conversation, Emit
from duckflow.events.types import Event, Noticed
from duckflow.i18n.words import Words
from duckflow.safety.path_names import private_places
from duckflow.safety.workspace import Workspace
from duckflow.state.mode import Mode
from duckflow.state.phrase import say
from duckflow.state.question import Answer, Question
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


def open_workspace(setup: Setup) -> Workspace:
    """Opens the work folder without the private places in it. In the mode `contained` it opens the whole machine."""
    paths, shown = setup.paths, setup.settings.sandbox.shown
    try:
        home = Path.home()
    except RuntimeError:
        home = setup.folder
    if setup.contained:
        return _whole_machine(setup, home)
    private = private_places(setup.folder, home, (paths.data, paths.config), shown)
    if not setup.added:
        return Workspace(setup.folder, private=private)
    from duckflow.agent.wider_workspace import WiderWorkspace

    for folder in setup.added:
        private = (*private, *private_places(folder, home, (paths.data, paths.config), shown))
    return WiderWorkspace(setup.folder, private, setup.added)


def _whole_machine(setup: Setup, home: Path) -> Workspace:
    """Opens the whole machine except Duckflow's own files. It refuses where this is no machine to be thrown away."""
    from duckflow.agent.wider_workspace import WiderWorkspace
    from duckflow.safety.contained import keep_environment_to_itself, require_contained

    require_contained(os.environ, home, setup.really)
    keep_environment_to_itself()
    own = tuple(path.resolve() for path in (setup.paths.data, setup.paths.config))
    return WiderWorkspace(setup.folder, own, [Path("/")])


def unasked(setup: Setup, session: Session) -> Callable[[Question], Answer | None]:
    """Returns a function that answers in place of the user in the mode `contained`, where nobody is asked. It gives a
    Duck Call the chosen answer so often, and then stops the turn."""
    times_answered: dict[int, int] = {}

    def answer(question: Question) -> Answer | None:
        state = session.state
        if (state.mode or Mode.CONTAINED) != Mode.CONTAINED:
            return None
        if setup.alone and question.kind == "gate":
            # This question is about no action, so it comes from `/undo` in a script, which means what it says.
            return Answer(choice="all" if any(option.key == "all" for option in question.choices) else "yes")
        if question.kind != "duck_call":
            return None
        choice, most = setup.on_duck_call
        times_answered[state.turn] = times_answered.get(state.turn, 0) + 1
        return Answer(choice=choice if times_answered[state.turn] <= most else "stop")

    return answer


def folder_trust(setup: Setup) -> Callable[[], FolderTrust]:
    """Returns a function that looks at the folder, which takes time that the start does not have."""
    return partial(FolderTrust, setup.folder, setup.home_folder, setup.paths.trusted, setup.contained)


def facts_of(setup: Setup) -> Path:
    return setup.paths.archive_of(setup.folder).with_suffix(".facts.json")


def traced(conversation: Conversation, emit: Emit) -> Callable[[], None]:
    """Sends traces to the collector that the environment names, if any. Returns a function that ends that."""
    named = any(os.environ.get(f"OTEL_EXPORTER_OTLP_{kind}ENDPOINT") for kind in ("", "TRACES_"))
    off = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or os.environ.get("OTEL_TRACES_EXPORTER") == "none"
    if not named or off:
        return lambda: None
    try:
        from duckflow.telemetry.spans import trace_conversation
    except ModuleNotFoundError:

        def tell(number: int, event: Event) -> None:
            stop()
            emit(Noticed(what=say("telemetry.missing")))

        # This is said with the first event, since nobody listens before it.
        stop = conversation.hear(tell)
        return stop
    return trace_conversation(conversation)
