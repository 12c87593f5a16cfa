"""Tries about fifty ways out of the sandbox, as the user who runs the tests."""

import shutil
import time

import pytest
from attacks import ATTACKS, Attack, fingerprint, got_through
from yard import Yard

from duckflow.safety.sandbox.landlock import SCOPES_SINCE, version
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.safety.sandbox.settings import SandboxSettings

LANDLOCK_CANNOT_STOP = {"chmod", "utime"}

# Attacks that do no harm to the machine when nothing stops them.
HARMLESS = {
    "write a new file", "overwrite", "append", "truncate by name", "truncate while reading", "delete",
    "remove a folder", "make a folder", "chmod", "chown", "utime", "rename outside", "take away", "move out",
    "hard link in, write", "hard link out", "symbolic link, write", "symbolic link to a folder", "symbolic link out",
    "TCP", "UDP", "local socket", "local socket by a pair", "read ~/.ssh", "read ~/.netrc", "copy a secret",
    "read Duckflow's own", "environment of others", "kill", "limits of others", "powers by programs",
}  # fmt: skip

needs_bubblewrap = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")
needs_landlock = pytest.mark.skipif(version() < 3, reason="the kernel has no Landlock, or an old one")


PATIENCE = 60.0


def through(place: Yard, sandbox: Sandbox) -> set[str]:
    """Returns the names of the attacks that got through."""
    found: set[str] = set()
    for attack in ATTACKS:
        before = fingerprint(place.outside)
        if got_through(place, place.run(sandbox, attack.command), before):
            found.add(attack.name)
    return found


@needs_bubblewrap
def test_nothing_gets_through_bubblewrap(place: Yard) -> None:
    sandbox = place.sandbox(SandboxSettings(kind="bubblewrap"))
    assert sandbox.kind == "bubblewrap"
    assert through(place, sandbox) == set()


@needs_landlock
def test_landlock_stops_all_but_what_the_documentation_lists(place: Yard) -> None:
    sandbox = place.sandbox(SandboxSettings(kind="landlock"))
    assert sandbox.kind == "landlock"
    known = LANDLOCK_CANNOT_STOP if version() >= SCOPES_SINCE else LANDLOCK_CANNOT_STOP | {"kill"}
    assert through(place, sandbox) == known


@pytest.mark.one_in(4)
@pytest.mark.parametrize("attack", [attack for attack in ATTACKS if attack.name in HARMLESS], ids=lambda one: one.name)
def test_without_a_sandbox_the_attack_is_real(place: Yard, attack: Attack) -> None:
    sandbox = place.sandbox(SandboxSettings(kind="none"))
    before = fingerprint(place.outside)
    ran, end = place.run(sandbox, attack.command), time.monotonic() + PATIENCE
    # A killed process may live a moment longer.
    while not (real := got_through(place, ran, before)) and time.monotonic() < end:
        time.sleep(0.02)
    assert real
