"""Makes the surroundings in which a conversation is built."""

from typing import NamedTuple

from duckflow.agent.permissions import Permissions
from duckflow.agent.questions import Questions
from duckflow.agent.session import Session
from duckflow.agent.trust import Admission
from duckflow.cli.code_sense import CodeSense
from duckflow.cli.sandboxes import Sandboxes
from duckflow.cli.setup import Setup, folder_trust, open_workspace, unasked
from duckflow.extensions.places import ExtensionPlaces
from duckflow.safety.workspace import Workspace


class Ground(NamedTuple):
    """The surroundings of a conversation: its folder, whether that is trusted, its sandbox, and how the user is
    asked."""

    workspace: Workspace
    questions: Questions
    admission: Admission
    permissions: Permissions
    sandboxes: Sandboxes
    places: ExtensionPlaces
    code: CodeSense


def make_ground(setup: Setup, session: Session) -> Ground:
    workspace, trust = open_workspace(setup), folder_trust(setup)
    nobody = unasked(setup, session) if setup.contained else None
    questions = Questions(session.emit, lambda: session.state.language, nobody)
    admission = Admission(trust, session.emit, questions.ask, setup.trust, setup.by_client)
    permissions = Permissions(setup.paths.permissions_of(setup.folder), setup.settings.agent.safe_extensions)
    sandboxes = Sandboxes(setup, session.emit, lambda: admission.trusted, permissions)
    places = ExtensionPlaces(setup.folder, setup.home_folder, setup.paths.skill_copies, lambda: trust().trusted)
    code = CodeSense(setup, workspace, sandboxes)
    return Ground(workspace, questions, admission, permissions, sandboxes, places, code)
