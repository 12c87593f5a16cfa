"""What of an action stays, whatever undo and sandbox do: the Gate tells it, and the mode `auto` asks for it."""

import re
from collections.abc import Iterator
from pathlib import Path

from duckflow.safety.ignore_rules import IgnoredPaths
from duckflow.safety.path_names import shown
from duckflow.safety.risk import Deed, runs_later
from duckflow.state.phrase import Phrase, say

GIT = re.compile(r"(?<![\w.-])(?:git|gh|hub|jj)(?![\w.-])|\.git(?![\w.-])", re.IGNORECASE)
ELSEWHERE = re.compile(r"(?<![\w.-])(?:gh|hub|jj|push|send-pack)(?![\w.-])", re.IGNORECASE)
MOST_WORDS = 500


def what_lasts(deed: Deed, command: str, goes_on: bool, folder: Path) -> Iterator[Phrase]:
    """Nothing, when all of it can be undone. Of a command the ignored files are told that it names."""
    if deed.effect == "network" or (deed.command and deed.command.online):
        yield say("lasting.network")
    if GIT.search(command) and not _history_comes_back(deed, command, folder):
        yield say("lasting.git")
    for impact in deed.impacts:
        # In a folder that the user has added paths are whole, and undo does not reach there.
        if not impact.inside or impact.path.startswith("/"):
            yield say("lasting.outside", path=impact.path)
    if deed.command and not deed.command.sandboxed:
        yield say("lasting.no_sandbox")
    if goes_on:
        yield say("lasting.background")
    tested = deed.command is not None and deed.command.tools
    if command and not tested and (path := _ignored_in(command, folder)):
        yield say("lasting.ignored", path=shown(path))


def _history_comes_back(deed: Deed, command: str, folder: Path) -> bool:
    """Undo brings back git's history only in the work folder's own repository, and only where the sandbox protects the
    packs, which undo does not copy."""
    here = folder / ".git"
    own = here.is_dir() and not here.is_symlink()
    return own and deed.command is not None and deed.command.spares_packs and not ELSEWHERE.search(command)


def _ignored_in(command: str, folder: Path) -> str:
    """The first path in the command that git ignores; what Duckflow's own tools change is kept all the same."""
    from duckflow.safety.commands.handed_over import named_words

    words = list(dict.fromkeys(named_words(command)))[:MOST_WORDS]
    ignored = IgnoredPaths(folder) if words else None
    for word in words:
        path = word.removeprefix("./").rstrip("/")
        if ignored and path and not path.startswith(("-", "/", "~", "$")) and ignored.ignores_file(path):
            return path
    return ""


def runs_later_by(command: str, folder: Path) -> bool:
    """Whether the command names a file to write that may make code run by itself later."""
    from duckflow.safety.commands.parse import named_targets

    names = [path.removeprefix(f"{folder}/") for path in named_targets(command, folder)]
    return any(runs_later(name, not (folder / name).exists(), folder) for name in names)
