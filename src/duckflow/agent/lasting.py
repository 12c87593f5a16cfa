"""What of an action `/undo` could not take back: computed from what it would do, and told before it is done."""

import re
from collections.abc import Iterator
from pathlib import Path

from duckflow.safety.ignore_rules import LONGEST_RULES, RULES_FILE, IgnoredPaths
from duckflow.safety.repository import read_plain
from duckflow.safety.risk import Deed
from duckflow.safety.shown import shown
from duckflow.state.phrase import Phrase, say

GIT = re.compile(r"(?<![\w.-])(?:git|gh|hub|jj)(?![\w.-])|\.git(?![\w.-])", re.IGNORECASE)
WORD = re.compile(r"[^\s;|&<>()'\"]+")
MOST_WORDS = 500


def what_lasts(deed: Deed, command: str, goes_on: bool, folder: Path) -> Iterator[Phrase]:
    """Nothing, when all of it can be undone. Of a command the ignored files are told that it names."""
    if deed.effect == "network" or (deed.command and deed.command.online):
        yield say("lasting.network")
    if GIT.search(command) or any(".git" in impact.path.lower().split("/") for impact in deed.impacts):
        yield say("lasting.git")
    for impact in deed.impacts:
        if not impact.inside:
            yield say("lasting.outside", path=impact.path)
    if deed.command and not deed.command.sandboxed:
        yield say("lasting.no_sandbox")
    if goes_on:
        yield say("lasting.background")
    if path := _ignored_in(command, folder):
        yield say("lasting.ignored", path=shown(path))


def _ignored_in(command: str, folder: Path) -> str:
    """The first path in the command that git ignores; what Duckflow's own tools change is kept all the same."""
    words = list(dict.fromkeys(WORD.findall(command)))[:MOST_WORDS]
    ignored = IgnoredPaths(folder) if words else None
    for word in words:
        path = word.removeprefix("./").rstrip("/")
        if ignored and path and not path.startswith(("-", "/", "~", "$")) and _ignores(ignored, path, folder):
            return path
    return ""


def _ignores(ignored: IgnoredPaths, path: str, folder: Path) -> bool:
    rules, names = ignored.top, path.split("/")
    if ".." in names:
        return False
    for depth in range(len(names)):
        above = "/".join(names[:depth])
        try:
            text = read_plain(folder / above / RULES_FILE, LONGEST_RULES).decode("utf-8", "surrogateescape")
        except (OSError, ValueError):
            continue
        rules = ignored.below(rules, above, text)
    try:
        return ignored.ignores(rules, path, (folder / path).is_dir())
    except OSError:
        return False
