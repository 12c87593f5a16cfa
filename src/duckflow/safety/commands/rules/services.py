"""Services, clouds, backups, secrets: told to delete, they do, and mostly for good."""

import re
from collections.abc import Iterator

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.verdict import CommandFinding, danger

SUBCOMMAND = re.compile(r"^[a-zA-Z][\w:-]*$")
PARTS = re.compile(r"[-_:]|(?<=[a-z])(?=[A-Z])")
DESTROYING = frozenset(
    ("delete", "destroy", "purge", "wipe", "erase", "drop", "nuke", "terminate", "deregister", "unregister")
    + ("obliterate", "deleteall", "unpublish", "yank")
)
TAKING_AWAY = frozenset(
    ("remove", "rm", "rb", "rmdir", "rmdirs", "rmi", "del", "deletefile", "disable", "revoke", "forget", "prune")
    + ("compact", "clear", "flush", "reset", "archive", "detach", "evict", "drain", "uninstall", "rollback", "undo")
    + ("invalidate", "expire", "unsubscribe", "offline", "seal", "rekey", "deactivate", "suspend", "unlink")
    + ("truncate", "cleanup", "trash", "discard", "cancel")
)
HARMLESS = frozenset(
    ("list", "ls", "get", "describe", "show", "status", "info", "view", "head", "lookup", "read", "search", "check")
    + ("version", "diff", "plan", "whoami", "help", "stats", "cat", "find", "inspect", "explain", "create", "add")
    + ("new", "init", "start", "login", "download", "copy", "cp", "pull", "clone", "watch", "validate", "lint")
    + ("fmt", "invoke", "send", "publish")
)
OF_THEIR_OWN: dict[str, frozenset[str]] = {
    "rclone": frozenset(("sync", "move", "moveto", "dedupe")),
    "azcopy": frozenset(("sync",)),
    "gsutil": frozenset(("rsync", "mv")),
    "kubectl": frozenset(("cordon", "replace", "taint")),
    "terraform": frozenset(("force", "taint", "untaint")),
    "tofu": frozenset(("force", "taint", "untaint")),
    "vault": frozenset(("rotate", "step")),
    "vagrant": frozenset(("halt",)),
    "rabbitmqctl": frozenset(("stop", "shutdown", "close")),
    "jenkins-cli": frozenset(("quiet", "shutdown", "stop")),
    "virsh": frozenset(("undefine", "shutdown")),
    "mc": frozenset(("mirror", "mv")),
}
KEEPS_SECRETS = frozenset(("secretsmanager", "ssm", "kms", "keyvault"))
CHANGES = frozenset(("put", "update", "rotate", "set", "replace", "schedule"))
OPTIONS = frozenset(("delete", "del", "purge", "remove", "destroy", "prune", "wipe", "reset"))
UNASKED = frozenset(("-auto-approve", "--auto-approve", "--yes", "-y", "--skip-preview", "--force-destroy"))
DRY = ("--dry-run", "--dryrun", "--dry_run")
TELLS = frozenset(("--help", "--version"))
MOST_WORDS = 8
LOCAL = frozenset(
    ("mkdir", "make", "cargo", "npm", "yarn", "pnpm", "bun", "go", "pytest", "tox", "nox", "vim", "nano", "emacs")
    + ("code", "open", "less", "more", "man", "gcc", "clang", "cmake", "ninja", "mvn", "gradle", "dotnet", "ruff")
    + ("mypy", "black", "jest", "vitest", "tsc", "eslint", "pip", "uv", "poetry", "brew", "apt", "apt-get", "logger")
    + ("say", "notify-send")
)
"""Programs that are given names of files, tests and packages: a word such as `delete` is a name there."""


def judge_service_call(call: Invocation) -> Iterator[CommandFinding]:
    """The first telling word decides: `list` and `create` are harmless, `delete` is not."""
    if _only_tries(call):
        return
    words = [text for text in call.texts if SUBCOMMAND.match(text)][:MOST_WORDS]
    own = OF_THEIR_OWN.get(call.program, frozenset[str]())
    for word in (call.program, *words):
        parts = _parts(word)
        if parts & (DESTROYING | TAKING_AWAY | own):
            yield danger("service_destroys", program=call.program, action=word)
            return
        if parts & CHANGES and not KEEPS_SECRETS.isdisjoint(words):
            yield danger("changes_secret", program=call.program, action=word)
            return
        if parts & HARMLESS:
            return
    yield from _judge_options(call)
    yield from _judge_approval(call, words)


def judge_unknown(call: Invocation) -> Iterator[CommandFinding]:
    """A program nobody here knows, told in plain words to destroy something."""
    if call.program in LOCAL or _only_tries(call):
        return
    for word in call.texts[:2]:
        parts = _parts(word)
        if not SUBCOMMAND.match(word) or parts & HARMLESS:
            return
        if parts & DESTROYING:
            yield danger("service_destroys", program=call.program, action=word)
            return


def _only_tries(call: Invocation) -> bool:
    tries = any(text.startswith(DRY) and not text.endswith("=none") for text in call.texts)
    return tries or not TELLS.isdisjoint(call.texts)


def _judge_options(call: Invocation) -> Iterator[CommandFinding]:
    for text in call.texts:
        name = PARTS.split(text.lstrip("-").partition("=")[0])
        if text.startswith("-") and not OPTIONS.isdisjoint(name[:2]) and not text.endswith("=false"):
            yield danger("service_destroys", program=call.program, action=text)
            return


def _judge_approval(call: Invocation, words: list[str]) -> Iterator[CommandFinding]:
    """`apply` and `up` with the question switched off, and scaling down to nothing."""
    if words[:1] in (["apply"], ["up"], ["deploy"]) and not UNASKED.isdisjoint(call.texts):
        yield danger("service_unasked", program=call.program, action=words[0])
    if words[:1] == ["scale"] and any(text.replace("=", " ").endswith("replicas 0") for text in call.texts):
        yield danger("service_destroys", program=call.program, action="scale")


def _parts(word: str) -> set[str]:
    return {part.lower() for part in PARTS.split(word)} | {word.lower()}
