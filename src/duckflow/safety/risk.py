"""Computes from an action's effects how risky it is, and why; and decides which risks need a yes in which mode."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

from duckflow.safety.commands.verdict import ProjectTool, Verdict
from duckflow.safety.secrets import secret_name, secret_text
from duckflow.safety.started_files import (
    git_reads,
    git_runs,
    holds_place_on_path,
    led_to,
    on_path,
    place_around,
    shadows,
)
from duckflow.state.action import CHANGING, Effect
from duckflow.state.data import Phrase, Section, say
from duckflow.state.mode import Mode
from duckflow.state.question import FileImpact, Risk

HARMLESS_HIDDEN = (
    (".git", ".*ignore", ".gitkeep", ".keep", ".git-blame-ignore-revs", ".mailmap", ".nojekyll", ".well-known")
    + (".editorconfig", ".clang-format", ".*-version", ".nvmrc", ".env", ".env.*", ".changeset", ".ds_store")
    # what tools make anew
    + (".*cache*", ".venv*", ".tox", ".nox", ".eggs", ".coverage*", ".nyc_output", ".hypothesis", ".ipynb_checkpoints")
    + (".next", ".nuxt", ".output", ".svelte-kit", ".turbo", ".vite", ".angular", ".docusaurus", ".expo", ".dart_tool")
    + (".build", ".stack-work", ".pnpm-store", ".lake", ".gradle", ".terraform")
)
"""Hidden names that are harmless: they make no program run. Every other hidden file or folder counts as one that may
run later, since nobody can list all settings of shells, editors, checkers, assistants, version control and CI that
start programs."""
FILES = (
    # git's hooks, and tools that act when a folder is entered
    ("lefthook*", "lint-staged.config.*", "commitlint.config.*", "captainhook.json", "grumphp.y*ml", "prek.toml")
    + ("hk.pkl", "mise*.toml", "flake.nix", "shell.nix", "devbox.json", "devenv.*", "dot_*")
    # editors, when they open a folder, and the checkers that they start for it
    + ("*.code-workspace", "*.sublime-project", "eslint.config.*", "prettier.config.*", "stylelint.config.*")
    + ("pylintrc",)
    # instructions and tools of assistants
    + ("agents*.md", "claude*.md", "gemini.md", "qwen.md", "crush.md", "warp.md", "opencode.json*")
    + ("crush.json",)
    # CI and containers
    + ("jenkinsfile*", "azure-pipelines*.y*ml", "appveyor.y*ml", "bitbucket-pipelines.y*ml", "cloudbuild.y*ml")
    + ("buildspec*.y*ml", "bitrise.y*ml", "codemagic.y*ml", "docker-compose.override.y*ml", "compose.override.y*ml")
    + ("devfile.y*ml",)
    # languages
    + ("conftest.py", "sitecustomize.py", "usercustomize.py", "*.pth", "package.json", "pyvenv.cfg", "startup.m")
    + ("pnpm-workspace.y*ml", "bunfig.toml", "ansible.cfg", "gradle-wrapper.properties", "rust-toolchain*")
)
INSTALLED = frozenset(((".venv", "bin"), ("venv", "bin"), ("node_modules", ".bin"), ("vendor", "bin")))
"""Folders of programs that people start by typing their names. Installers write there all the time, so only a change by
a file tool counts."""
OF_AN_ENVIRONMENT = ("activate", "python", "pip")
"""Beginnings of names of programs in every environment for Python."""
MOVED = ("move", "create")
"""The changes of the first and the last file that a move names: its source and its target."""
WHEN_NEW = ("makefile", "gnumakefile", "*.mk", "justfile", ".justfile", "taskfile.y*ml")
"""Files that define what a familiar command such as `make` runs. Only a new one counts as a file that may run later; a
change of an existing one is like any other change."""
GIT_FOLDER = frozenset(("objects", "refs", "config", "config.worktree", "hooks", "commondir", "packed-refs", "modules"))
"""Names that make a folder with a `HEAD` a git folder, or say what git runs in it."""

HISTORY = frozenset(("objects", "refs", "logs"))
"""Folders of a repository that hold its commits, branches and their logs."""


def names_of_git(path: str) -> bool:
    """Says whether the path is `.git` or something in it, in any spelling that some file system accepts."""
    return any(name.rstrip(". ") == ".git" or name == "git~1" for name in _parts(path))


def runs_later(path: str, is_new: bool, folder: Path | None = None) -> bool:
    """Says whether a change of this path, relative to the work folder, may make code run by itself later."""
    parts = _parts(path)
    if not parts:
        return False
    name = parts[-1]
    if any(fnmatchcase(name, pattern) for pattern in FILES) or any(map(_hides_settings, parts)):
        return True
    if is_new and any(fnmatchcase(name, pattern) for pattern in WHEN_NEW):
        return True
    if not _is_own_history(path, is_new, folder) and _makes_git_folder(path, folder):
        return True
    return folder is not None and (git_runs(path, folder) or led_to(path, folder) or shadows(path, folder))


def _hides_settings(name: str) -> bool:
    is_hidden = name.startswith(".") and name.strip(".") != ""
    return is_hidden and not any(fnmatchcase(name, pattern) for pattern in HARMLESS_HIDDEN)


def _is_own_history(path: str, is_new: bool, folder: Path | None) -> bool:
    """Says whether the path is a file in which the work folder's own repository keeps its history: every commit writes
    such files, and none of them makes a program run. A name that could make a git folder inside does not count."""
    parts = PurePosixPath(path).parts
    if folder is None or len(parts) < 2 or parts[0] != ".git" or not (folder / ".git/HEAD").is_file():
        return False
    names_inside = {name.lower() for name in parts[2:]}
    is_record = parts[1] in HISTORY and names_inside.isdisjoint(GIT_FOLDER - {"refs"})
    is_branch = parts[1] in ("HEAD", "packed-refs") and not (names_inside or is_new)
    return is_record or is_branch


def _makes_git_folder(path: str, folder: Path | None) -> bool:
    """Says whether the path may turn its folder into a git folder. Every git folder has a `HEAD`, so this name always
    counts; other names count if a `HEAD` lies beside them."""
    parts = PurePosixPath(path).parts
    if parts[-1].lower() == "head":
        return True
    if folder is None:
        return False
    parent_folders = [folder.joinpath(*parts[:index]) for index, name in enumerate(parts) if name.lower() in GIT_FOLDER]
    return any("head" in _names_in(parent) for parent in parent_folders)


def _names_in(folder: Path) -> frozenset[str]:
    try:
        return frozenset(name.lower() for name in os.listdir(folder))
    except OSError:
        return frozenset()


def _parts(path: str) -> tuple[str, ...]:
    return PurePosixPath(path.lower()).parts


MANY_FILES = 10
MANY_LINES = 2000
ORDER: tuple[Risk, ...] = ("low", "medium", "high", "forbidden")
PROGRAMS = frozenset(
    (".exe", ".bat", ".cmd", ".com", ".sh", ".bash", ".zsh", ".ps1", ".psm1", ".vbs", ".msi", ".dll", ".so", ".dylib")
    + (".scr", ".jar", ".app", ".desktop", ".service")
)

NOT_FULLY_READ = frozenset(
    ("harm.unreadable", "harm.too_long", "harm.odd_characters", "harm.untrusted", "harm.may_read")
)
"""Reasons for which the user is asked in every mode: the command could not be read for certain, an untrusted folder
would run it, or it may read secret files that the sandbox cannot cover."""

READS_SECRET = "harm.reads_secret"
REVEALING = frozenset(("risk.secret_read", READS_SECRET, "harm.shows_environment"))
"""Reasons for which the user is asked in every mode, because the model would see a secret."""


RUNS_CODE = frozenset(("harm.runs_code", "harm.runs_script", "harm.runs_fed"))


class JudgedCommand(NamedTuple):
    """A shell command, how it was judged, and what it may use."""

    verdict: Verdict
    reasons: tuple[Phrase, ...] = ()
    sandboxed: bool = True
    network: bool = False
    """True if the command asks for the network, which it would not have otherwise."""
    online: bool = False
    """True if the command has the network, because it asked for it or because the settings allow it."""
    spares_packs: bool = False
    """True if the sandbox keeps the command from git's packs, the one part of a repository that undo does not copy."""
    secrets: bool = False
    """True if the command asks to read the project's secret files, which it could not see otherwise. Their content is
    hidden in its output."""
    shut_in: bool = False
    """True if the command stays in the sandbox to its end, and asks for neither network nor secrets."""
    tools: tuple[ProjectTool, ...] = ()
    """The project's own tools that the command runs in the sandbox. It is empty if the command also does anything else
    than reading."""
    leaves: bool = False
    """True if the command names something outside the work folder."""

    @property
    def only_runs_code(self) -> bool:
        """Says whether the only objection to the command is that it runs code which Duckflow does not read, and the
        command stays in the sandbox."""
        keys = {reason.key for reason in self.reasons}
        return bool(keys) and keys <= RUNS_CODE and self.verdict == "ask" and self.shut_in and not self.leaves


class Deed(NamedTuple):
    """The effects of an action, from which its risk is computed."""

    effect: Effect
    impacts: tuple[FileImpact, ...] = ()
    diff: str = ""
    reads: str = ""
    """The path that the action reads, if the action only reads."""
    command: JudgedCommand | None = None

    @property
    def changes(self) -> bool:
        return self.effect in CHANGING


class Assessment(NamedTuple):
    """The risk of an action: its level, the reasons, and whether the user is asked in every mode."""

    level: Risk = "low"
    reasons: tuple[Phrase, ...] = ()
    always_ask: bool = False
    runs: bool = False
    """True if the action is a command that does more than read."""
    comes_back: bool = False
    """True if sandbox and undo together can take back all effects of the action."""
    beyond_undo: bool = False
    """True if the action changes files of a folder that the user has added, where undo does not reach."""

    @property
    def reveals(self) -> bool:
        """Says whether a yes to the action means that the model may see a secret."""
        return any(reason.key in REVEALING for reason in self.reasons)

    @property
    def wants_secrets(self) -> bool:
        """Says whether a yes lets a command read the project's secret files, though it may print nothing of them."""
        return any(reason.key in ("risk.secret_files", "harm.may_read") for reason in self.reasons)

    @property
    def runs_later(self) -> tuple[Phrase, ...]:
        """Returns the reasons of the kind `risk.runs_later`. They are shown even where the user is not asked, and only
        a rule for exactly this file allows the action."""
        return tuple(reason for reason in self.reasons if reason.key == "risk.runs_later")


@dataclass(slots=True)
class _Scale:
    """Collects the reasons for a risk. The highest level among them is the level of the risk."""

    level: Risk = "low"
    always_ask: bool = False
    reasons: list[Phrase] = field(default_factory=list[Phrase])

    def add(self, level: Risk, reason: Phrase | None = None, always: bool = False) -> None:
        self.level = highest([self.level, level])
        self.always_ask |= always
        if reason:
            self.reasons.append(reason)


def assess(deed: Deed, folder: Path | None = None) -> Assessment:
    """Computes the risk of an action. Reads are low; changes inside the folder and runs of the project's own tools are
    medium; actions that are hard to take back are high. The user is always asked about changes outside the folder,
    secrets and dangers."""
    scale = _Scale()
    if deed.reads and secret_name(deed.reads):
        scale.add("high", say("risk.secret_read", path=deed.reads), always=True)
    if deed.command:
        _weigh_command(deed.command, scale)
    elif deed.effect == "network":
        scale.add("high", say("risk.network"), always=True)
    elif deed.changes:
        scale.add("medium")
    for impact in deed.impacts:
        _weigh_file(impact, scale)
        # A lesson is one line in a file that Duckflow itself makes; it has its own operation.
        writes_content = deed.effect == "write" and impact.change in ("create", "edit", "folder")
        is_new_file = impact.change == "create"
        place = place_around(impact.path) if _added(impact) else folder
        if place and git_reads(impact.path, place):
            scale.add("high", say("risk.git_settings", path=impact.path), always=True)
        if writes_content and (runs_later(impact.path, is_new_file, place) or _is_program(impact.path, place)):
            # In the work folder the change is reported and undo can take it back; in an added folder undo cannot.
            scale.add("high", say("risk.runs_later", path=impact.path), always=_added(impact))
    if path := _programs_moved_to(deed.impacts, folder):
        scale.add("high", say("risk.runs_later", path=path), always=path.startswith("/"))
    if len(deed.impacts) > MANY_FILES:
        scale.add("high", say("risk.many_files", count=len(deed.impacts)))
    if sum(impact.added + impact.removed for impact in deed.impacts) > MANY_LINES:
        scale.add("high", say("risk.many_lines", count=MANY_LINES))
    if deed.changes and any(line.startswith(("+", "-")) and secret_text(line) for line in deed.diff.splitlines()):
        scale.add("high", say("risk.secret_text"), always=True)
    runs_command = deed.command is not None and scale.level != "low"
    beyond_undo = any(map(_added, deed.impacts))
    return Assessment(
        scale.level, tuple(dict.fromkeys(scale.reasons)), scale.always_ask, runs_command, beyond_undo=beyond_undo
    )


def _is_program(path: str, folder: Path | None) -> bool:
    """Says whether the path lies in a folder of programs that people start by their names, or is what holds such a
    folder. An environment for Python may have any name."""
    pairs, name = list(pairwise(parts := _parts(path))), "".join(parts[-1:])
    if not INSTALLED.isdisjoint(pairs) or name in {holder for holder, _ in INSTALLED}:
        return True
    in_environment = bool(pairs) and pairs[-1][0] in ("bin", "scripts") and name.startswith(OF_AN_ENVIRONMENT)
    return in_environment or (folder is not None and on_path(path, folder))


def _programs_moved_to(impacts: Sequence[FileImpact], folder: Path | None) -> str:
    """Returns the path to which a folder is moved if people start its files by their names there: a folder on PATH, or
    the programs of an environment for Python."""
    if folder is None or len(impacts) < len(MOVED) or (impacts[0].change, impacts[-1].change) != MOVED:
        return ""
    source, target = impacts[0].path, impacts[-1].path
    holds_programs = any(name.startswith(OF_AN_ENVIRONMENT) for name in _names_in(folder / source))
    is_environment = holds_programs and _parts(target)[-1:] in (("bin",), ("scripts",))
    return target if is_environment or holds_place_on_path(target, folder) else ""


def _added(impact: FileImpact) -> bool:
    """Says whether the file is in a folder that the user has added. Only paths in added folders are absolute."""
    return impact.path.startswith("/")


def _weigh_command(command: JudgedCommand, scale: _Scale) -> None:
    if command.verdict == "safe" and command.sandboxed and not command.network and not command.secrets:
        return
    risk_level: Risk = "medium" if command.tools else "high"
    scale.add(risk_level)
    for reason in command.reasons:
        always_ask = reason.key in NOT_FULLY_READ | REVEALING
        scale.add("high" if always_ask else risk_level, reason, always_ask)
    if command.verdict == "dangerous":
        scale.add("forbidden", always=True)
    if not command.sandboxed:
        scale.add("high", say("risk.no_sandbox"), always=True)
    if command.network:
        scale.add("high", say("risk.network"), always=True)
    if command.secrets:
        scale.add("high", say("risk.secret_files"), always=True)


def _weigh_file(impact: FileImpact, scale: _Scale) -> None:
    path = impact.path
    parts = path.split("/")
    if not impact.inside:
        scale.add("high", say("risk.outside", path=path), always=True)
    if names_of_git(path):
        scale.add("high", say("risk.git_internals", path=path), always=True)
    if secret_name(path):
        scale.add("high", say("risk.secret_name", path=path), always=True)
    if impact.change == "delete":
        scale.add("high", say("risk.delete", path=path))
    if impact.change in ("create", "edit") and f".{parts[-1].rpartition('.')[2].lower()}" in PROGRAMS:
        scale.add("high", say("risk.program", path=path))


def highest(risks: list[Risk]) -> Risk:
    return ORDER[max(map(ORDER.index, risks), default=0)]


BEYOND = frozenset(
    f"harm.{name}"
    for name in (
        ("git_force_push", "git_deletes_remote", "publishes", "http_delete", "service_destroys", "service_unasked")
        + ("sends_secret", "changes_secret", "remote_shell", "container_holds_machine", "container_destroys")
        + ("overwrites_disk", "writes_device", "system_setting", "power", "kills_all", "fork_bomb")
    )
)  # fmt: skip
"""Dangers that reach beyond the machine (other people's servers; devices and the kernel, which belong to the host), or
that end the machine."""


def forbidden_here(reasons: Iterable[Phrase]) -> Phrase | None:
    """Returns the reason why a dangerous command is not run even on a disposable machine, if there is one."""
    for reason in reasons:
        path = str(reason.values.get("path", ""))
        deletes_root = reason.key.startswith("harm.deletes_") and path.startswith("/") and not path.strip("/*.")
        if reason.key in BEYOND or deletes_root:
            return reason
    return None


Ruling = Literal["pass", "ask", "refuse"]


class SafetySettings(Section):
    mode: Mode = Mode.ASK


def judge(mode: Mode, risk: Assessment, changes: bool, doubtful: bool) -> Ruling:
    """Decides whether an action may run, needs the user's yes, or is refused. In plan mode every change is refused. A
    risk with `always_ask` needs a yes in every mode, and so does a change from a doubtful reply (repaired or cut off).
    In the mode `contained`, where the machine itself is the sandbox, nobody is asked."""
    if mode is Mode.CONTAINED:
        is_forbidden = risk.level == "forbidden" and (not risk.reasons or forbidden_here(risk.reasons))
        return "refuse" if is_forbidden else "pass"
    if mode is Mode.PLAN and changes:
        return "refuse"
    if risk.always_ask or risk.level == "forbidden" or (doubtful and changes):
        return "ask"
    edits = risk.level == "medium" and not risk.runs
    match mode:
        case Mode.ASK | Mode.PLAN:
            passes_gate = False
        case Mode.AUTO_EDIT:
            passes_gate = edits
        case Mode.AUTO:
            passes_gate = (edits and not risk.beyond_undo) or risk.comes_back
        case Mode.FULL_AUTO:
            passes_gate = True
    return "pass" if passes_gate or risk.level == "low" else "ask"
