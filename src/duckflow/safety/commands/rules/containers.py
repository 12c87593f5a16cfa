"""Containers: volumes and images thrown away, and containers that hold the whole machine."""

from collections.abc import Iterator

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.opinion import Opinion, Runs
from duckflow.safety.commands.text.options import read_options
from duckflow.safety.commands.unwrap.wrappers import Wrapper, behind
from duckflow.safety.commands.verdict import ask, danger

RUN_VALUES = Wrapper(
    "acehlmpuvw",
    ("--name", "--volume", "--env", "--user", "--workdir", "--network", "--entrypoint", "--publish", "--mount")
    + ("--env-file", "--memory", "--cpus", "--platform", "--label", "--hostname", "--pid", "--ipc", "--device")
    + ("--cap-add", "--add-host", "--gpus", "--restart", "--tmpfs", "--ulimit", "--shm-size", "--security-opt")
    + ("--namespace", "--container"),
    operands=1,
)
MANAGED = frozenset(
    ("volume", "network", "stack", "service", "node", "secret", "config", "context", "plugin", "machine")
)
WHOLE_MACHINE = ("/:/", "--privileged", "/var/run/docker.sock", "--pid=host", "/etc:", "/root:")
DRY = frozenset(("--help", "--dry-run"))


def judge_container(call: Invocation) -> Iterator[Opinion]:
    if not DRY.isdisjoint(call.texts):
        return
    words = [text for text in call.texts if not text.startswith("-")]
    options = read_options(call.arguments)
    first, second = (*words, "", "")[:2]
    composed = first == "compose" or "compose" in call.program
    forced = options.has("-f", "--force", "-v", "--volumes", "-a", "--all") or any("$(" in text for text in call.texts)
    removes = first in ("rm", "rmi", "kill") or (first in ("container", "image", "pod") and second == "rm")
    if (
        "prune" in words[:3]
        or (first in MANAGED and second in ("rm", "remove", "reset"))
        or (removes and forced)
        or (composed and ("down" in words or "rm" in words) and options.has("-v", "--volumes", "--rmi"))
        or (first, second) in (("swarm", "leave"), ("system", "reset"))
    ):
        yield danger("container_destroys", program=call.program, action=f"{first} {second}".strip())
    yield from _runs(call, words)


def _runs(call: Invocation, words: list[str]) -> Iterator[Opinion]:
    """`docker run image command`: the command is judged as if it ran here."""
    if not words or not ({"run", "exec"} & set(words[:2])):
        return
    if any(mark in text for text in call.texts for mark in WHOLE_MACHINE):
        yield danger("container_holds_machine")
    verb = "run" if "run" in words[:2] else "exec"
    start = call.texts.index(verb) + 1
    yield ask("runs_code", program=call.program)
    yield Runs(behind(call.arguments[start:], RUN_VALUES))
