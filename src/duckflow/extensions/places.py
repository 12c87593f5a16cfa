"""The places where extensions are looked for, in the work folder and under the user's home, and the files found
there."""

import os
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field

from duckflow.safety.secrets import secret_name
from duckflow.state.data import Section

SKILL_PLACES = (".duckflow/skills", ".agents/skills", ".claude/skills", ".codex/skills")
PROMPTS = ".codex/prompts"
COMMAND_PLACES = (".duckflow/commands", ".claude/commands", PROMPTS)
AGENT_PLACES = (".duckflow/agents", ".claude/agents")
HOME_HOOKS = (".duckflow/hooks.json", ".claude/settings.json", ".codex/hooks.json")
PROJECT_HOOKS = (*HOME_HOOKS, ".claude/settings.local.json")
MOST_LOOKED_AT = 2000
DEPTH = 4


class ExtensionFolder(NamedTuple):
    """A folder that may hold extensions. `own` means under the user's home, not brought by the work folder."""

    folder: Path
    own: bool
    top: Path | None = None
    """The work folder that brings it: nothing outside is read in its place."""


class ExtensionPlaces:
    """The folders to look in, and the folder for copies of skills that commands could not see otherwise."""

    def __init__(self, folder: Path, home: Path, copies: Path, known_trusted: Callable[[], bool]) -> None:
        self.folder = folder
        self.home = home
        self.copies = copies
        self._known_trusted = known_trusted

    @cached_property
    def trusted_before(self) -> bool:
        """Says whether the user already trusts the folder, as an earlier session has recorded."""
        return self._known_trusted()


def places_in(home: Path | None, project: Path | None, names: tuple[str, ...]) -> list[ExtensionFolder]:
    """Returns the folders that exist, the user's own first. If home and project are the same folder, it counts as the
    project's."""
    folders = [ExtensionFolder(home / name, True) for name in names] if home and home != project else []
    folders += [ExtensionFolder(project / name, False, project) for name in names] if project else []
    return [extension_folder for extension_folder in folders if extension_folder.folder.is_dir()]


def files_in(place: ExtensionFolder, top: Path) -> Iterator[Path]:
    """Yields files near the top of a folder, sorted. Files with a secret name, or links to them, are left out: nobody
    is asked before these are read. Files of the project must lie beneath its folder `top`, with links followed."""
    looked_at_count = 0
    real_top = Path(os.path.realpath(top))
    pending_folders = [(place.folder, 0)]
    while pending_folders:
        folder, depth = pending_folders.pop(0)
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue
        for name in names:
            looked_at_count += 1
            if looked_at_count > MOST_LOOKED_AT:
                return
            path, real_path = folder / name, Path(os.path.realpath(folder / name))
            is_inside_top = real_path.is_relative_to(real_top)
            if (not place.own and not is_inside_top) or secret_name(
                str(real_path.relative_to(real_top) if is_inside_top else real_path)
            ):
                continue
            if path.is_dir():
                if depth < DEPTH and not name.startswith((".", "node_modules", "__pycache__")):
                    pending_folders.append((path, depth + 1))
            elif path.is_file() and not secret_name(path.relative_to(place.folder).as_posix()):
                yield path


Groups = tuple[dict[str, Any], ...]


class HookSettings(Section):
    """Programs of the user's that Duckflow runs at certain events. The groups have the format that other assistants
    use: a `matcher`, and `hooks` with `type = "command"`, `command` and `timeout`. Hooks in these settings run without
    a question."""

    enabled: bool = True
    others: bool = True
    """True if hooks that the user, or a trusted folder, has for other assistants are used, too. The user is asked once
    about each."""
    may_allow: bool = False
    """True if a hook that says `allow` may answer a Gate (a question before a risky action) in the user's place, unless
    that Gate is always asked."""
    seconds: float = Field(default=60.0, gt=0)
    """Seconds for a hook that names no `timeout`."""
    environment: tuple[str, ...] = ()
    """Variables that hooks see even if their names or values look like secrets."""
    PreToolUse: Groups = ()
    PostToolUse: Groups = ()
    UserPromptSubmit: Groups = ()
    Stop: Groups = ()
    SessionStart: Groups = ()
    SessionEnd: Groups = ()
    Notification: Groups = ()
    SubagentStop: Groups = ()
    PermissionRequest: Groups = ()
    PreCompact: Groups = ()

    def groups(self) -> dict[str, Groups]:
        return {event: getattr(self, event) for event in EVENTS if getattr(self, event)}


EVENTS = tuple(name for name in HookSettings.model_fields if name[0].isupper())
