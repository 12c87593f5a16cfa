"""Chooses the sandbox of this machine. Each kind is tried once with a real command, because an installed one may not
work."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from duckflow.programs.find import find_program, keep_temporary_files_out
from duckflow.programs.launch import Launch
from duckflow.safety.sandbox.paths import GitPlaces, SandboxPaths, Scratch, sweep_scratch
from duckflow.safety.sandbox.sandbox import Contained, Sandbox, Unconfined
from duckflow.safety.sandbox.seatbelt import PROGRAM, Seatbelt
from duckflow.safety.sandbox.seccomp import Machine, machine
from duckflow.safety.sandbox.settings import SandboxSettings
from duckflow.state.data import Phrase, say

TRY_SECONDS = 10.0
ATTEMPT = ("/bin/sh", "-c", "exit 0")
NOT_INSTALLED = ""


def choose(
    settings: SandboxSettings,
    folder: Path,
    private: Sequence[Path] = (),
    home: Path | None = None,
    record: Path | None = None,
    added: tuple[Path, ...] = (),
) -> Sandbox:
    """Returns the best sandbox that works here. `private` lists folders that no command may see, such as Duckflow's
    own. `record` is the file that remembers which secret files git tracked. `added` lists further folders that commands
    may read."""
    home = (home or Path.home()).resolve()
    folder = folder.resolve()
    writable_folders = (folder, *(folder / Path(name).expanduser() for name in settings.writable))
    keep_temporary_files_out((*writable_folders, *added))
    for place in (path for path in private if any(path.resolve().is_relative_to(top) for top in writable_folders)):
        # A place that is not there cannot be hidden, and a command could make it: the user's own settings, for example.
        with contextlib.suppress(OSError):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
    scratch = Scratch()
    git = GitPlaces.of(folder)
    paths = SandboxPaths(folder, home, settings, tuple(private), scratch, record=record, git=git, added=added)
    sweep_scratch()
    if settings.kind == "none":
        return Unconfined(paths, say("sandbox.off"))
    if sys.platform == "darwin":
        seatbelt = Seatbelt(paths)
        problem = failure(seatbelt) if Path(PROGRAM).exists() else f"{PROGRAM}?"
        return Unconfined(paths, say("sandbox.none_broken", reason=problem)) if problem else seatbelt
    machine_facts = machine()
    if sys.platform != "linux" or machine_facts is None:
        return Unconfined(paths, say("sandbox.none_here"))
    return _on_linux(paths, machine_facts)


def contained_machine(folder: Path, settings: SandboxSettings) -> Sandbox:
    """Returns a sandbox that confines nothing, since the machine itself is one: commands have the network and may leave
    something running."""
    settings = settings.model_copy(update={"kind": "none", "network": True})
    return Contained(SandboxPaths(folder.resolve(), Path.home().resolve(), settings), say("sandbox.contained"))


def failure(sandbox: Sandbox) -> str:
    """Returns the reason why the sandbox does not work, or an empty text when it works."""
    try:
        launch = sandbox.confine(Launch(ATTEMPT, sandbox.paths.folder, {"PATH": os.defpath}), secrets="write")
    except OSError as problem:
        return str(problem)
    try:
        trial_run = subprocess.run(
            launch.argv,
            pass_fds=launch.fds,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=launch.environment,
            cwd=launch.folder,
            timeout=TRY_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return str(problem)
    finally:
        launch.meddled()
        launch.close()
    if trial_run.returncode == 0:
        return ""
    return trial_run.stderr.decode(errors="replace").strip()[:200] or f"exit code {trial_run.returncode}"


def _on_linux(paths: SandboxPaths, known: Machine) -> Sandbox:
    wanted_kind = paths.settings.kind
    problem = NOT_INSTALLED
    if wanted_kind != "landlock" and (program := find_program("bwrap", paths.folder)):
        from duckflow.safety.sandbox.bubblewrap import Bubblewrap

        for sizes in (True, False):
            problem = failure(bubblewrap := Bubblewrap(program, known, paths, sizes))
            if not problem:
                return bubblewrap
    if wanted_kind != "bubblewrap" and (landlock := _landlock(paths, known, _second_best(wanted_kind, problem))):
        return landlock
    is_missing = problem == NOT_INSTALLED
    return Unconfined(paths, say("sandbox.none_missing") if is_missing else say("sandbox.none_broken", reason=problem))


def _landlock(paths: SandboxPaths, known: Machine, says: Phrase) -> Sandbox | None:
    from duckflow.safety.sandbox.landlock import OLDEST, SCOPES_SINCE, Landlock, version

    newest_version = version()
    # Some kernels claim the version that brought scopes without having them.
    for tried_version in dict.fromkeys((newest_version, min(newest_version, SCOPES_SINCE - 1))):
        if tried_version >= OLDEST and not failure(landlock := Landlock(tried_version, known, paths, says)):
            return landlock
    return None


def _second_best(wanted: str, problem: str) -> Phrase:
    if wanted == "landlock":
        return say("sandbox.landlock")
    if problem == NOT_INSTALLED:
        return say("sandbox.landlock_missing")
    return say("sandbox.landlock_broken", reason=problem)
