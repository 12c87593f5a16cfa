"""Containers: volumes and images thrown away, and containers that hold the whole machine."""

from collections.abc import Iterator

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.opinion import Opinion, Runs
from duckflow.safety.commands.options import read_options
from duckflow.safety.commands.verdict import ask, danger
from duckflow.safety.commands.wrappers import Wrapper, behind

RUN_VALUES = Wrapper(
    "acehlmpuvw",
    ("--name", "--volume", "--env", "--user", "--workdir", "--network", "--entrypoint", "--publish")
    + ("--mount", "--env-file")
    + ("--memory", "--cpus", "--platform", "--label", "--hostname", "--pid", "--ipc", "--device", "--cap-add")
    + ("--add-host",)
    + ("--gpus", "--restart", "--tmpfs", "--ulimit", "--shm-size", "--security-opt", "--namespace", "--container"),
    operands=1,
)
MANAGED = frozenset(
    ("volume", "network", "stack", "service", "node", "secret", "config", "context", "plugin", "machine")
)
WHOLE_MACHINE = ("/:/", "--privileged", "/var/run/docker.sock", "--pid=host", "/etc:", "/root:")
DRY = frozenset(("--help", "--dry-run"))


def judge_container(call: Invocation) -> Iterator[Opinion]:
    words = [text for text in call.texts if not text.startswith("-")]
    options = read_options(call.arguments, "")
    if not DRY.isdisjoint(call.texts):
        return
    if "prune" in words[:3]:
        yield danger("container_destroys", action=" ".join(words[:2]))
    if words[:1] and words[0] in MANAGED and words[1:2] and words[1] in ("rm", "remove", "reset"):
        yield danger("container_destroys", action=" ".join(words[:2]))
    forced = options.has("-f", "--force", "-v", "--volumes", "-a", "--all")
    if words[:1] in (["rm"], ["rmi"], ["kill"]) or words[:2] in (["container", "rm"], ["image", "rm"], ["pod", "rm"]):
        if forced or any("$(" in text or "`" in text for text in call.texts):
            yield danger("container_destroys", action=words[0])
    if ("down" in words or "rm" in words) and (words[:1] == ["compose"] or "compose" in call.program):
        if options.has("-v", "--volumes", "--rmi") or any(text.startswith("--rmi") for text in call.texts):
            yield danger("container_destroys", action="compose down --volumes")
    if words[:2] == ["swarm", "leave"] or words[:2] == ["system", "reset"]:
        yield danger("container_destroys", action=" ".join(words[:2]))
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
