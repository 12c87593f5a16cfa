"""Checks the machine, the terminal and the settings."""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from duckflow import __version__
from duckflow.agent.trust import FolderTrust
from duckflow.cli.config import describe_origin
from duckflow.cli.doctor.model import DoctorFinding, broken, good, judged
from duckflow.config.load import FROM_ENVIRONMENT, PROJECT_FILE, Loaded, load
from duckflow.config.settings import Settings
from duckflow.config.value import list_settings, show_value
from duckflow.errors import UsageError
from duckflow.extensions.places import HOME_HOOKS, PROJECT_HOOKS
from duckflow.i18n.words import Words
from duckflow.llm.local.weights import Weights
from duckflow.programs.find import environment_outside, find_program
from duckflow.state.data import Phrase, say, shorten
from duckflow.store.paths import Paths


def check_settings(
    paths: Paths, folder: Path, language: str | None, words: Words
) -> tuple[Settings, list[DoctorFinding]]:
    """Returns the settings and the findings about them. If the settings cannot be read, it returns the defaults, so
    that the other checks can still run."""
    try:
        loaded_config = load(paths.user_config, folder, {"language": language})
    except UsageError as problem:
        return Settings(), [broken("settings", problem)]
    return loaded_config.settings, [*_layers(paths, folder), *_values(loaded_config, words)]


def _layers(paths: Paths, folder: Path) -> Iterator[DoctorFinding]:
    for kind, path in (("user", paths.user_config), ("project", folder / PROJECT_FILE)):
        file_exists = path.is_file()
        yield good(
            "settings", say(f"doctor.layer.{kind}" if file_exists else f"doctor.no_layer.{kind}", path=str(path))
        )
    if names := [name for name in FROM_ENVIRONMENT if os.environ.get(name)]:
        yield good("settings", say("doctor.layer.environment", names=", ".join(names)))


def _values(loaded: Loaded, words: Words) -> Iterator[DoctorFinding]:
    for name, value in list_settings(loaded.settings):
        if value_origin := loaded.origins.get(name):
            origin_text = describe_origin(name, value_origin, words)
            yield good("settings", say("doctor.value", name=name, value=show_value(name, value), origin=origin_text))


NARROW = 60


def check_terminal() -> Iterator[DoctorFinding]:
    encoding = (sys.stdout.encoding or "?").lower()
    is_unicode = encoding.replace("-", "").startswith("utf")
    yield judged("terminal", is_unicode, say("doctor.encoding", encoding=encoding), say("fix.encoding"), "note")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield DoctorFinding("terminal", "note", say("doctor.no_terminal"), say("fix.terminal"))
        return
    columns, rows = shutil.get_terminal_size()
    term = os.environ.get("TERM", "")
    size = say("doctor.terminal", term=term or "?", columns=columns, rows=rows)
    if term in ("", "dumb"):
        yield DoctorFinding("terminal", "note", size, say("fix.dumb"))
    else:
        yield judged("terminal", columns >= NARROW, size, say("fix.narrow"), "note")
    yield good("terminal", _colours(term))


def _colours(term: str) -> Phrase:
    if os.environ.get("NO_COLOR"):
        return say("doctor.no_colours", why="NO_COLOR")
    if term in ("", "dumb"):
        return say("doctor.no_colours", why=f"TERM={term}")
    if os.environ.get("COLORTERM") in ("truecolor", "24bit"):
        return say("doctor.colours", colours=16_777_216)
    return say("doctor.colours", colours=256 if "256" in term else 16)


GIB = 1024**3
SHOWN_HOOK = 100
LITTLE_SPACE = 1 * GIB
PROGRAM_SECONDS = 5.0


def check_machine(settings: Settings, paths: Paths, folder: Path) -> Iterator[DoctorFinding]:
    python = ".".join(map(str, sys.version_info[:3]))
    system = f"{platform.system()} {platform.release()}"
    yield good("machine", say("doctor.version", version=__version__, python=python, system=system))
    yield _sandbox(settings, paths, folder)
    yield from _local(paths)
    for program in ("git", "rg"):
        yield _program(program, folder)
    yield from _servers(settings, folder)
    yield _search(settings)
    yield _folder(folder)
    yield _data(paths)
    yield from _disk({paths.data, folder})
    yield from _hooks(settings, paths, folder)


def _sandbox(settings: Settings, paths: Paths, folder: Path) -> DoctorFinding:
    from duckflow.safety.sandbox.choose import choose

    sandbox = choose(settings.sandbox, folder, private=paths.private)
    sandbox.close()
    return judged("machine", sandbox.kind != "none", sandbox.says, say("fix.sandbox"), "note")


def _local(paths: Paths) -> Iterator[DoctorFinding]:
    if find_spec("xllamacpp") is None:
        yield DoctorFinding("machine", "note", say("doctor.no_runtime"), say("fix.local"))
    else:
        yield good("machine", say("doctor.runtime"))
    try:
        weights_files = Weights(paths.models, os.environ).holdings()
    except OSError as problem:
        unreadable_phrase = say("doctor.no_data", path=str(paths.models), reason=problem.strerror or str(problem))
        yield DoctorFinding("machine", "note", unreadable_phrase, say("fix.data"))
        return
    for weights_file in weights_files:
        if weights_file.complete:
            yield good("machine", say("doctor.weights", name=weights_file.model.name, path=str(weights_file.path)))
        elif weights_file.size:
            percent = round(100 * weights_file.size / weights_file.model.size)
            partly_phrase = say("doctor.weights_partly", name=weights_file.model.name, percent=percent)
            yield DoctorFinding(
                "machine", "note", partly_phrase, say("fix.weights_partly", name=weights_file.model.name)
            )
    if not any(weights_file.size for weights_file in weights_files):
        yield DoctorFinding("machine", "note", say("doctor.no_weights"), say("fix.weights"))


def _program(program: str, folder: Path) -> DoctorFinding:
    path = find_program(program, folder)
    if path is None:
        return DoctorFinding("machine", "note", say("doctor.no_program", program=program), say(f"fix.{program}"))
    try:
        version_run = subprocess.run(
            [path, "--version"],
            cwd="/",
            env=environment_outside(folder),
            capture_output=True,
            text=True,
            timeout=PROGRAM_SECONDS,
            check=True,
            errors="replace",
        )
    except (OSError, subprocess.SubprocessError) as problem:
        broken_phrase = say("doctor.program_broken", program=path, reason=type(problem).__name__)
        return DoctorFinding("machine", "note", broken_phrase, say(f"fix.{program}"))
    return good(
        "machine", say("doctor.program", program=version_run.stdout.split("\n")[0].strip() or program, path=path)
    )


def _servers(settings: Settings, folder: Path) -> Iterator[DoctorFinding]:
    """Checks whether the programs of MCP servers exist, without starting them: `duckflow mcp test` does that."""
    servers = settings.mcp.servers
    if servers:
        yield good("machine", say("doctor.mcp", names=", ".join(servers)))
    for name, server in servers.items():
        program = server.command
        if program and "$" not in program and not find_program(str(Path(program).expanduser()), folder):
            missing_phrase = say("doctor.mcp_missing", name=name, program=program)
            yield DoctorFinding("machine", "note", missing_phrase, say("fix.mcp", name=name))


def _search(settings: Settings) -> DoctorFinding:
    engine = settings.web.engine(os.environ)
    phrase = say("doctor.search", engine=engine.kind) if engine else say("doctor.no_search")
    return judged("machine", engine is not None, phrase, say("doctor.fix_search"), otherwise="note")


def _folder(folder: Path) -> DoctorFinding:
    is_usable = os.access(folder, os.R_OK | os.W_OK | os.X_OK)
    return judged("machine", is_usable, say("doctor.folder", folder=str(folder)), say("fix.folder"), "note")


def _data(paths: Paths) -> DoctorFinding:
    """Tries to write a file, whatever the permissions say: only a try shows that a disk is full or read-only."""
    try:
        paths.data.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=paths.data) as file:
            file.write(b"can I?")
            file.flush()
    except OSError as problem:
        reason = problem.strerror or str(problem)
        return DoctorFinding(
            "machine", "bad", say("doctor.no_data", path=str(paths.data), reason=reason), say("fix.data")
        )
    return good("machine", say("doctor.data", path=str(paths.data), log=str(paths.log)))


def _hooks(settings: Settings, paths: Paths, folder: Path) -> Iterator[DoctorFinding]:
    """Reports the hooks that run, and those that the user would be asked about. Without hooks nothing is loaded."""
    home = Path(os.environ.get("HOME") or "/")
    files = (*(home / name for name in HOME_HOOKS), *(folder / name for name in PROJECT_HOOKS))
    if not settings.hooks.groups() and not any(path.is_file() for path in files):
        return
    from duckflow.agent.brought_programs import TrustedHooks
    from duckflow.extensions.hook_files import find_hooks
    from duckflow.safety.brought.agreements import agreements_of

    is_trusted = FolderTrust(folder, home, paths.trusted).trusted
    trusted_hooks, hook_files = TrustedHooks(paths.trusted_hooks), find_hooks(settings.hooks, home, folder, is_trusted)
    agreed_programs = {agreement.program for agreement in agreements_of(paths.data, folder).all()}
    for hook in hook_files.hooks:
        may_run = not hook.source or (
            hook.program in agreed_programs if hook.brought else hook.digest() in trusted_hooks
        )
        state = "own" if not hook.source else "trusted" if may_run else "new"
        phrase = say(f"doctor.hook.{state}", event=hook.event, command=shorten(hook.shown, SHOWN_HOOK))
        yield judged("machine", may_run, phrase, say("fix.hook"), "note")
    for problem in hook_files.problems:
        yield DoctorFinding("machine", "note", problem)


def _disk(folders: set[Path]) -> Iterator[DoctorFinding]:
    seen_devices: set[int] = set()
    for folder in sorted(folders):
        existing_folder = next(candidate for candidate in (folder, *folder.parents) if candidate.exists())
        device = existing_folder.stat().st_dev
        if device not in seen_devices:
            seen_devices.add(device)
            free_bytes = shutil.disk_usage(existing_folder).free
            phrase = say("doctor.disk", gigabytes=round(free_bytes / GIB, 1), folder=str(existing_folder))
            yield judged("machine", free_bytes > LITTLE_SPACE, phrase, say("fix.disk"), "note")
