"""Everything undo needs to know of one work folder, built once."""

from dataclasses import dataclass
from pathlib import Path

from duckflow.safety.undo.baseline import Baseline
from duckflow.safety.undo.database import Database
from duckflow.safety.undo.git_folder import git_folder_around
from duckflow.safety.undo.git_program import find_git
from duckflow.safety.undo.git_watch import GitWatch
from duckflow.safety.undo.ledger import UndoLedger
from duckflow.safety.undo.presence import Presence
from duckflow.safety.undo.reader import FactReader
from duckflow.safety.undo.settings import MB, UndoSettings
from duckflow.safety.undo.shadow import Shadow
from duckflow.safety.undo.survey import Surveyor
from duckflow.safety.undo.tree import Tree
from duckflow.safety.undo.vault import Vault


@dataclass(frozen=True, slots=True)
class Site:
    """The work folder, and what is kept about it."""

    settings: UndoSettings
    database: Database
    presence: Presence
    ledger: UndoLedger
    baseline: Baseline
    vault: Vault
    tree: Tree
    shadow: Shadow
    surveyor: Surveyor
    watch: GitWatch


def open_site(work: Path, data: Path, settings: UndoSettings) -> Site:
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    database = Database(data / "undo.sqlite")
    repository = git_folder_around(work)
    # Contents are named by it for as long as the data lives, whatever becomes of the repository.
    object_format = database.fact("object_format", repository.object_format if repository else "sha1")
    presence = Presence(data / "alive")
    tree = Tree(work, FactReader(object_format, settings.largest_file_mb * MB), presence.token)
    shadow = Shadow(data / "shadow.git", work, find_git(), object_format, settings.git_seconds)
    facts = data.stat()
    return Site(
        settings=settings,
        database=database,
        presence=presence,
        ledger=UndoLedger(database),
        baseline=Baseline(database),
        vault=Vault(database, shadow, tree, settings.copied_mb * MB),
        tree=tree,
        shadow=shadow,
        surveyor=Surveyor(tree, (facts.st_dev, facts.st_ino), settings.files, settings.watched_files),
        watch=GitWatch(shadow, work),
    )
