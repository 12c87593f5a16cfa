"""Classifies the paths in a command: inside or outside the work folder, a secret, a file that other programs run."""

import posixpath
import re
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Literal

from duckflow.safety.commands.words import Call, Word, names
from duckflow.safety.secrets import secret_name

LONGEST_PATH = 1000
Target = StrEnum("Target", "INSIDE TEMPORARY HERE REPOSITORY OUTSIDE UNKNOWN DEVICE SYSTEM HOME ROOT")
"""Kinds of places, from a harmless file inside the work folder to the root of the machine. `HERE` is the work folder
itself or everything in it, `REPOSITORY` is git's own folder."""


@dataclass(frozen=True, slots=True)
class CommandFacts:
    """The folders of a command, and whether git runs programs in them."""

    folder: str = ""
    home: str = ""
    git_runs_programs: bool | None = None
    """Says whether the repository's settings make git run programs (hooks, pagers, filters), as even `git status` can.
    None means that nobody has looked, so git counts as doing more than reading."""


NOTHING_KNOWN = CommandFacts()


@dataclass(slots=True)
class Scene:
    """The circumstances of a call, above all its current folder. Earlier calls may have changed them, as `cd` does."""

    facts: CommandFacts
    place: Literal["here", "below", "elsewhere"] = "here"
    where: str = ""
    """The current folder as a path below the work folder, as far as it is known."""
    downloaded: set[str] = field(default_factory=set[str])
    """Names of files that programs may have downloaded in earlier calls."""

    def go(self, target: Word | None) -> None:
        """Follows a `cd`, into a folder below the work folder or to another place."""
        if target is None or not target.known or is_outside(target, self) or self.place == "elsewhere":
            self.place = "elsewhere"
        elif target_of(target, self) is not Target.HERE:
            self.place = "below"
            start_folder = "" if target.text.startswith("/") else self.where
            top_folder = self.facts.folder if target.text.startswith("/") else "."
            self.where = posixpath.relpath(posixpath.join(start_folder, target.text), top_folder or "/")
        elif target.text.startswith("/"):
            self.place, self.where = "here", ""


BROAD = frozenset((Target.HERE, Target.REPOSITORY, Target.HOME, Target.SYSTEM, Target.ROOT, Target.DEVICE))
FAR_AWAY = frozenset((Target.OUTSIDE, Target.HOME, Target.SYSTEM, Target.ROOT, Target.DEVICE))
TRUSTED_FOLDERS = ("", "/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/opt/homebrew/bin")
"""Folders with the system's programs; an empty one means a program that is found by its name."""
INSIDE = frozenset((Target.INSIDE, Target.HERE, Target.REPOSITORY))
HOME_NAMES = re.compile(r"^(?:\$HOME|\$\{HOME\}|~)(?=/|$)")
OTHER_HOME = re.compile(r"^~[\w.-]+(?=/|$)")
TEMPORARY_NAMES = re.compile(r"^(?:\$TMPDIR|\$\{TMPDIR(?::-[^}]*)?\}|\$TMP|\$\{TMP\}|\$TEMP|\$\{TEMP\})(?=/|$)")
HERE_NAMES = re.compile(r"^(?:\$PWD|\$\{PWD\}|\$\(pwd\)|`pwd`)(?=/|$)")
TEMPORARY = ("/tmp", "/var/tmp", "/private/tmp", "/private/var/tmp", "/dev/shm", "/var/folders")
HOMES = re.compile(r"^/(?:home|Users)(?:/[^/]+)?$|^/root$")
HARMLESS_DEVICES = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/stdin", "/dev/zero"))
SYSTEM = names(
    "etc usr bin sbin lib lib32 lib64 boot sys proc opt var srv run root mnt media System Library Applications Volumes"
    " private nix efi"
)
ALL_OF_IT = re.compile(r"(?:^|/)(?:\*+|\.\*|\{\.,\}\*|\.\[[^\]]*\]\*|\?+\*?)(?:/\*+)*$")
REPOSITORY = re.compile(r"(?:^|/)\.git$|^\.git/")


def target_of(word: Word, scene: Scene) -> Target:
    """Returns the kind of place that a path leads to, by its spelling alone: links are not followed, and only a few
    variables are known."""
    text = word.text.rstrip()
    if len(text) > LONGEST_PATH:
        return Target.UNKNOWN
    wildcard_match = ALL_OF_IT.search(text)
    if wildcard_match:
        text = text[: wildcard_match.start()] or ("/" if text.startswith("/") else ".")
    text = HERE_NAMES.sub(".", TEMPORARY_NAMES.sub("/tmp", text))
    if HOME_NAMES.match(text):
        text = HOME_NAMES.sub(lambda _: scene.facts.home or "/home/own", text)
    elif OTHER_HOME.match(text):
        text = OTHER_HOME.sub("/home/other", text)
    elif not word.known and ("$" in text or "`" in text or text.startswith("…")):
        return Target.UNKNOWN
    return _absolute(text, scene) if text.startswith("/") else _relative(text, scene)


def _relative(text: str, scene: Scene) -> Target:
    if scene.place == "elsewhere":
        return Target.OUTSIDE
    path = posixpath.normpath(text or ".")
    if path == ".." or path.startswith("../"):
        if scene.facts.folder:
            return _absolute(posixpath.join(scene.facts.folder, path), scene)
        return Target.ROOT if set(path.split("/")) == {".."} else Target.OUTSIDE
    if path == ".":
        return Target.HERE if scene.place == "here" else Target.INSIDE
    return Target.REPOSITORY if REPOSITORY.search(path) else Target.INSIDE


def _absolute(text: str, scene: Scene) -> Target:
    path = "/" + posixpath.normpath(text).lstrip("/")
    folder = posixpath.normpath(scene.facts.folder) if scene.facts.folder else ""
    if folder and (path == folder or path.startswith(folder + "/")):
        return _relative(posixpath.relpath(path, folder), Scene(scene.facts))
    if path == "/" or (folder and folder.startswith(path + "/")):
        return Target.ROOT
    if HOMES.match(path) or (scene.facts.home and path == posixpath.normpath(scene.facts.home)):
        return Target.HOME
    if any(path == temporary_folder or path.startswith(temporary_folder + "/") for temporary_folder in TEMPORARY):
        return Target.TEMPORARY
    if path.startswith("/dev/") or path == "/dev":
        return Target.OUTSIDE if path in HARMLESS_DEVICES else Target.DEVICE
    return Target.SYSTEM if path.split("/")[1] in SYSTEM else Target.OUTSIDE


def is_outside(word: Word, scene: Scene) -> bool:
    return target_of(word, scene) not in INSIDE


def names_outside(call: Call, scene: Scene) -> bool:
    """Says whether a call names a path that surely lies outside of the work folder. Folders for temporary files do not
    count as outside."""
    words = (
        *call.arguments,
        *(redirect.target for redirect in call.redirects),
        *(word for _, word in call.assignments),
    )
    assigned_words = (Word(word.text.partition("=")[2]) for word in words if "=" in word.text)
    program = (
        call.words[:1] if posixpath.dirname(call.words[0].text if call.words else "") not in TRUSTED_FOLDERS else ()
    )
    return any(_leaves(word, scene) for word in (*program, *words, *assigned_words))


def _leaves(word: Word, scene: Scene) -> bool:
    target_kind = target_of(word, scene)
    # The work folder itself may lie in a temporary folder, and then the files beside it belong to somebody else.
    is_beside = target_kind is Target.TEMPORARY and not word.text.startswith(("/", "$"))
    return (target_kind in FAR_AWAY or is_beside) and word.text not in HARMLESS_DEVICES


MORE_SECRETS = re.compile(
    r"(?:^|/)(?:gshadow|sudoers|\w*_history|\.zhistory)$|(?:^|/)\.(?:config/(?:gcloud|gh)|ssh|gnupg|aws|azure"
    r"|kube|docker)(?:/|$)|^/proc/[^/]+/environ$|^/etc/(?:shadow|gshadow|sudoers)"
)
PUBLIC = re.compile(r"\.pub$|(?:^|/)(?:known_hosts|config)$")
RUNS_BY_ITSELF = re.compile(
    r"(?:^|/)\.(?:bashrc|bash_profile|bash_login|bash_aliases|profile|zshrc|zshenv|zprofile|zlogin|kshrc|cshrc|tcshrc"
    r"|inputrc|gitconfig|vimrc|emacs|xinitrc|xprofile|xsession|login|logout|bash_logout)$"
    r"|(?:^|/)\.git/(?:hooks/|config$)|(?:^|/)\.config/(?:fish|autostart|systemd)/"
    r"|(?:^|/)LaunchAgents/|(?:^|/)LaunchDaemons/"
    r"|(?:^|/)\.ssh/|(?:^|/)\.gnupg/|^/etc/|^/var/spool/cron|(?:^|/)authorized_keys$"
)
"""Matches files that a shell, git, ssh or the system reads and obeys on its own."""


@lru_cache(4096)
def is_secret(path: str) -> bool:
    """Says whether a path looks like a file that holds keys, passwords or tokens."""
    return (secret_name(path) or bool(MORE_SECRETS.search(path))) and not PUBLIC.search(path)
