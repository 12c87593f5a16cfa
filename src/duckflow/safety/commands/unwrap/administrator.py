"""Commands run with other rights, or on another machine."""

import re
from collections.abc import Iterator
from itertools import pairwise

from duckflow.safety.commands.git_call import read_git
from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.opinion import Opinion, RunsText
from duckflow.safety.commands.reading.git import git_only_reads
from duckflow.safety.commands.reading.programs import READERS
from duckflow.safety.commands.secret_names import is_secret
from duckflow.safety.commands.unwrap.shells import SHELLS
from duckflow.safety.commands.unwrap.wrappers import WRAPPERS, Wrapper, behind, judge_behind
from duckflow.safety.commands.verdict import CommandFinding, ask, danger

ADMINISTRATORS: dict[str, Wrapper] = {
    "sudo": Wrapper(
        "ughpCTrtUDRac",
        ("--user", "--group", "--host", "--prompt", "--close-from", "--chdir", "--chroot", "--role", "--type")
        + ("--other-user", "--command-timeout"),
        doubt="as_administrator",
    ),
    "doas": Wrapper("uCa", doubt="as_administrator"),
    "pkexec": Wrapper("", ("--user",), doubt="as_administrator"),
    "gosu": Wrapper(operands=1, doubt="as_administrator"),
    "su-exec": Wrapper(operands=1, doubt="as_administrator"),
    "chroot": Wrapper("", ("--userspec", "--groups"), 1, "as_administrator"),
    "nsenter": Wrapper("tSGrw", ("--target",), doubt="as_administrator"),
    "unshare": Wrapper("SGRw", doubt="as_administrator"),
    "systemd-run": Wrapper("pMHutE", ("--unit", "--property", "--uid", "--gid"), doubt="as_administrator"),
}
REMOTE = Wrapper("bBcDEeFIiJLlmOopQRSWw", operands=1, doubt="on_another_machine", as_text=True)
LOCAL_COMMAND = re.compile(r"(?:Proxy|Local|KnownHosts|AuthorizedKeys)Command[= ]+(.+)$", re.IGNORECASE)
BECOMES = frozenset(("-i", "-s", "--login", "--shell"))
LOOKS = frozenset(
    ("status", "list", "ls", "ps", "show", "info", "get", "logs", "images", "search", "version", "inspect")
)
JUDGED_BY_ITSELF = WRAPPERS.keys() | ADMINISTRATORS.keys() | SHELLS | {"env", "xargs", "parallel", "su"}


def unwrap_administrator(call: Invocation) -> Iterator[Opinion]:
    """With all rights a change is a change of the whole machine."""
    wrapper = ADMINISTRATORS[call.program]
    rest = behind(call.arguments, wrapper)
    yield from judge_behind(call, wrapper, rest)
    if rest:
        yield from _judge_rights(call.running(rest))
    elif not BECOMES.isdisjoint(call.texts):
        yield danger("becomes_administrator")


def _judge_rights(inner: Invocation) -> Iterator[CommandFinding]:
    if inner.program in JUDGED_BY_ITSELF:
        return
    if inner.program == "git":
        changes = not git_only_reads(read_git(inner))
    elif inner.program in READERS:
        changes = any(is_secret(text) for text in inner.texts)
    else:
        changes = LOOKS.isdisjoint(inner.texts[:2])
    if changes:
        yield danger("administrator_changes", program=inner.program)


def judge_su(call: Invocation) -> Iterator[Opinion]:
    """Becoming another user, for one command or for good."""
    yield ask("as_administrator", program=call.program)
    commands = [after for text, after in pairwise(call.texts) if _takes_command(text)]
    for command in commands:
        yield RunsText(command)
    if not commands:
        yield danger("becomes_administrator")


def _takes_command(option: str) -> bool:
    return option == "--command" or bool(re.fullmatch(r"-[a-z]*c", option))


def unwrap_remote(call: Invocation) -> Iterator[Opinion]:
    """ssh: the command runs there, but some options run commands here."""
    for found in filter(None, map(LOCAL_COMMAND.search, call.texts)):
        yield RunsText(found[1])
    yield from judge_behind(call, REMOTE, behind(call.arguments, REMOTE))
