"""Packages: taken off the machine, or published for everybody to keep."""

from collections.abc import Iterator

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.verdict import CommandFinding, danger

SYSTEM_REMOVES: dict[str, tuple[str, ...]] = {
    "apt": ("remove", "purge", "autoremove", "autopurge"),
    "apt-get": ("remove", "purge", "autoremove", "dselect-upgrade"),
    "aptitude": ("remove", "purge"),
    "dnf": ("remove", "erase", "autoremove"),
    "yum": ("remove", "erase", "autoremove"),
    "zypper": ("remove", "rm"),
    "apk": ("del",),
    "snap": ("remove",),
    "flatpak": ("uninstall", "remove"),
    "port": ("uninstall",),
    "dpkg": ("-r", "-P", "--remove", "--purge"),
    "rpm": ("-e", "--erase"),
    "brew": ("uninstall", "remove", "rm"),
    "nix-collect-garbage": ("-d", "--delete-old"),
    "choco": ("uninstall",),
    "winget": ("uninstall",),
}
PUBLISHES: dict[str, tuple[str, ...]] = {
    "npm": ("publish", "unpublish", "deprecate"),
    "yarn": ("publish",),
    "pnpm": ("publish",),
    "cargo": ("publish", "yank"),
    "gem": ("push", "yank"),
    "twine": ("upload",),
    "poetry": ("publish",),
    "flit": ("publish",),
    "hatch": ("publish",),
    "uv": ("publish",),
    "dotnet": ("push",),
    "mvn": ("deploy", "release:perform"),
    "dart": ("publish",),
    "vsce": ("publish", "unpublish"),
}
DRY = frozenset(("--dry-run", "-n", "-s", "--simulate", "--help", "--list", "--just-print", "--no-act"))


def judge_packages(call: Invocation) -> Iterator[CommandFinding]:
    if not DRY.isdisjoint(call.texts):
        return
    words = [text for text in call.texts if not text.startswith("-") or text in SYSTEM_REMOVES.get(call.program, ())]
    for word in words[:2]:
        if word in SYSTEM_REMOVES.get(call.program, ()):
            yield danger("removes_packages", program=call.program, action=word)
        if word in PUBLISHES.get(call.program, ()):
            yield danger("publishes", program=call.program, action=word)
    if call.program == "pacman" and any(text.startswith("-R") for text in call.texts):
        yield danger("removes_packages", program=call.program, action="-R")
