"""What a path in a command points at: inside the work folder, outside, the home, the system, everything."""

import posixpath
import re
from enum import StrEnum

from duckflow.safety.commands.invocation import Scene
from duckflow.safety.commands.text.words import Word

LONGEST_PATH = 1000


class Target(StrEnum):
    """From harmless to everything."""

    INSIDE = "inside"
    TEMPORARY = "temporary"
    HERE = "here"
    """The work folder itself, or all that is in it."""
    REPOSITORY = "repository"
    """The folder in which git keeps the history."""
    OUTSIDE = "outside"
    UNKNOWN = "unknown"
    DEVICE = "device"
    SYSTEM = "system"
    HOME = "home"
    ROOT = "root"


BROAD = frozenset((Target.HERE, Target.REPOSITORY, Target.HOME, Target.SYSTEM, Target.ROOT, Target.DEVICE))
INSIDE = frozenset((Target.INSIDE, Target.HERE, Target.REPOSITORY))
HOME_NAMES = re.compile(r"^(?:\$HOME|\$\{HOME\}|~)(?=/|$)")
OTHER_HOME = re.compile(r"^~[\w.-]+(?=/|$)")
TEMPORARY_NAMES = re.compile(r"^(?:\$TMPDIR|\$\{TMPDIR(?::-[^}]*)?\}|\$TMP|\$\{TMP\}|\$TEMP|\$\{TEMP\})(?=/|$)")
HERE_NAMES = re.compile(r"^(?:\$PWD|\$\{PWD\}|\$\(pwd\)|`pwd`)(?=/|$)")
TEMPORARY = ("/tmp", "/var/tmp", "/private/tmp", "/private/var/tmp", "/dev/shm", "/var/folders")
HOMES = re.compile(r"^/(?:home|Users)(?:/[^/]+)?$|^/root$")
HARMLESS_DEVICES = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/stdin", "/dev/zero"))
SYSTEM = frozenset(
    ("etc", "usr", "bin", "sbin", "lib", "lib32", "lib64", "boot", "sys", "proc", "opt", "var", "srv", "run")
    + ("root", "mnt", "media", "System", "Library", "Applications", "Volumes", "private", "nix", "efi")
)
ALL_OF_IT = re.compile(r"(?:^|/)(?:\*+|\.\*|\{\.,\}\*|\.\[[^\]]*\]\*|\?+\*?)(?:/\*+)*$")


def target_of(word: Word, scene: Scene) -> Target:
    """Where a path leads, by its spelling alone: links are not followed."""
    text = word.text.rstrip()
    if len(text) > LONGEST_PATH:
        return Target.UNKNOWN
    everything = ALL_OF_IT.search(text)
    if everything:
        text = text[: everything.start()] or ("/" if text.startswith("/") else ".")
    if TEMPORARY_NAMES.match(text):
        text = TEMPORARY_NAMES.sub("/tmp", text, count=1)
    elif HERE_NAMES.match(text):
        text = HERE_NAMES.sub(".", text, count=1)
    if HOME_NAMES.match(text):
        home = scene.facts.home or "/home/own"
        text = HOME_NAMES.sub(lambda _: home, text, count=1)
    elif OTHER_HOME.match(text):
        text = OTHER_HOME.sub("/home/other", text, count=1)
    elif not word.known and ("$" in text or "`" in text or text.startswith("…")):
        return Target.UNKNOWN
    return _absolute(text, scene) if text.startswith("/") else _relative(text, scene)


def _relative(text: str, scene: Scene) -> Target:
    if scene.place is None:
        return Target.OUTSIDE
    path = posixpath.normpath(posixpath.join(scene.place, text or "."))
    if scene.facts.folder and path.startswith(".."):
        return _absolute(posixpath.join(scene.facts.folder, path), scene)
    if path == ".":
        return Target.HERE
    if path == ".." or path.startswith("../"):
        return Target.ROOT if set(path.split("/")) == {".."} else Target.OUTSIDE
    return Target.REPOSITORY if path == ".git" or path.endswith("/.git") or path.startswith(".git/") else Target.INSIDE


def _absolute(text: str, scene: Scene) -> Target:
    path = "/" + posixpath.normpath(text).lstrip("/")
    folder = posixpath.normpath(scene.facts.folder) if scene.facts.folder else ""
    if folder and (path == folder or path.startswith(folder + "/")):
        return _relative(posixpath.relpath(path, folder), Scene(scene.facts))
    if path == "/" or (folder and folder.startswith(path + "/")):
        return Target.ROOT
    if HOMES.match(path) or (scene.facts.home and path == posixpath.normpath(scene.facts.home)):
        return Target.HOME
    if any(path == place or path.startswith(place + "/") for place in TEMPORARY):
        return Target.TEMPORARY
    if path.startswith("/dev/") or path == "/dev":
        return Target.OUTSIDE if path in HARMLESS_DEVICES else Target.DEVICE
    return Target.SYSTEM if path.split("/")[1] in SYSTEM else Target.OUTSIDE


def is_outside(word: Word, scene: Scene) -> bool:
    """Also when an earlier `cd` fails and the work folder itself is the place."""
    return any(target_of(word, place) not in INSIDE for place in (scene, Scene(scene.facts)))
