"""Makes the surroundings in which a conversation is built."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from duckflow.agent.permissions import Permissions
from duckflow.agent.questions import Questions
from duckflow.agent.session import Session
from duckflow.agent.session_secrets import SessionSecrets
from duckflow.agent.trust import Admission
from duckflow.cli.code_sense import CodeSense
from duckflow.cli.sandboxes import Sandboxes
from duckflow.cli.setup import Setup, folder_trust
from duckflow.extensions.places import ExtensionPlaces
from duckflow.programs.find import own_installation
from duckflow.safety.path_names import private_places
from duckflow.safety.workspace import Workspace
from duckflow.state.mode import Mode
from duckflow.state.question import Answer, Question


class Ground(NamedTuple):
    """The surroundings of a conversation: its folder, the trust in that folder, its sandbox, and the way to ask the
    user."""

    workspace: Workspace
    questions: Questions
    admission: Admission
    permissions: Permissions
    sandboxes: Sandboxes
    places: ExtensionPlaces
    code: CodeSense
    secrets: SessionSecrets


def make_ground(setup: Setup, session: Session) -> Ground:
    workspace, trust = _open_workspace(setup), folder_trust(setup)
    answer_alone = _answers_alone(setup, session) if setup.contained else None
    questions = Questions(session.emit, lambda: session.state.language, answer_alone)
    admission = Admission(trust, session.emit, questions.ask, setup.trust, setup.by_client)
    permissions = Permissions(setup.paths.permissions_of(setup.folder), setup.settings.agent.safe_extensions)
    sandboxes = Sandboxes(setup, session.emit, lambda: admission.trusted, permissions)
    places = ExtensionPlaces(setup.folder, setup.home_folder, setup.paths.skill_copies, lambda: trust().trusted)
    code, secrets = CodeSense(setup, workspace, sandboxes), SessionSecrets(session.state, setup.added)
    return Ground(workspace, questions, admission, permissions, sandboxes, places, code, secrets)


def _open_workspace(setup: Setup) -> Workspace:
    """Opens the work folder without the private places in it. In the mode `contained`, opens the whole machine."""
    paths, shown_paths = setup.paths, setup.settings.sandbox.shown
    try:
        home = Path.home()
    except RuntimeError:
        home = setup.folder
    if setup.contained:
        return _whole_machine(setup, home)
    private_paths = private_places(setup.folder, home, paths.private, shown_paths)
    if not setup.added:
        return Workspace(setup.folder, private_paths, own_installation(setup.folder))
    from duckflow.agent.wider_workspace import WiderWorkspace

    for folder in setup.added:
        private_paths = (*private_paths, *private_places(folder, home, paths.private, shown_paths))
    return WiderWorkspace(setup.folder, private_paths, setup.added, own_installation(setup.folder))


def _whole_machine(setup: Setup, home: Path) -> Workspace:
    """Opens the whole machine except Duckflow's own files. Refuses a machine that does not look disposable."""
    from duckflow.agent.wider_workspace import WiderWorkspace
    from duckflow.safety.contained import keep_environment_to_itself, require_contained

    require_contained(os.environ, home, setup.really)
    keep_environment_to_itself()
    own_folders = tuple(path.resolve() for path in setup.paths.private)
    return WiderWorkspace(setup.folder, own_folders, [Path("/")], ())


def _answers_alone(setup: Setup, session: Session) -> Callable[[Question], Answer | None]:
    """Returns a function that answers questions in place of the user in the mode `contained`. It answers a Duck Call
    (the question when work goes badly) with the configured answer a number of times, and then stops the turn."""
    times_answered: dict[int, int] = {}

    def answer(question: Question) -> Answer | None:
        state = session.state
        if (state.mode or Mode.CONTAINED) != Mode.CONTAINED:
            return None
        if setup.alone and question.kind == "gate":
            # Here a Gate is never about an action of the model. It comes from `/undo` in a script, and the script wants
            # the undo.
            return Answer(choice="all" if any(option.key == "all" for option in question.choices) else "yes")
        if question.kind != "duck_call":
            return None
        choice, most_times = setup.on_duck_call
        times_answered[state.turn] = times_answered.get(state.turn, 0) + 1
        return Answer(choice=choice if times_answered[state.turn] <= most_times else "stop")

    return answer
