"""The work folders that the user trusts, and the question before the first message if there is a reason to ask."""

import asyncio
import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from duckflow.errors import UsageError
from duckflow.events.ports import Ask, Emit
from duckflow.events.types import Noticed
from duckflow.extensions.places import AGENT_PLACES, COMMAND_PLACES, PROJECT_HOOKS, SKILL_PLACES
from duckflow.safety.path_names import holds_home, shown
from duckflow.safety.repository import find_repository, points_back
from duckflow.state.data import Phrase, say
from duckflow.state.question import Choice, Question

BROUGHT, SERVERS = ".duckflow", ".mcp.json"
MOST_LOOKED_AT = 1000


class FolderTrust:
    """Remembers whether the user trusts one work folder. Answers are kept in the user's own data, by path. A linked
    worktree is trusted if a trusted repository points back to it."""

    def __init__(self, folder: Path, home: Path, kept_in: Path, contained: bool = False) -> None:
        """`contained` means that the whole machine is for this work. Then nothing is asked, and programs that a folder
        brings do not run."""
        self.contained = contained
        self._folder = folder
        self._home = home
        self._kept_in = kept_in
        self._repository = find_repository(folder)

    @property
    def trusted(self) -> bool:
        return self._trusted_among(self._known())

    @property
    def must_be_wanted(self) -> bool:
        """Says whether Duckflow must not work in this folder at all unless the user says yes."""
        return self._no_project and not self.contained

    @property
    def _no_project(self) -> bool:
        return holds_home(self._folder, self._home)

    def reasons(self) -> tuple[Phrase, ...]:
        """Returns the reasons to ask for trust; none for an ordinary folder."""
        reasons, known_folders = tuple(self._reasons()), self._known()
        if (
            reasons
            and self._repository
            and str(self._repository.common) in known_folders
            and not self._trusted_among(known_folders)
        ):
            return (*reasons, say("trust.not_inherited", repository=shown(str(self._repository.common))))
        return reasons

    def trust(self) -> None:
        known_folders = sorted({*self._known(), str(self._folder)})
        self._kept_in.parent.mkdir(parents=True, exist_ok=True)
        new_file = self._kept_in.with_suffix(".new")
        file_descriptor = os.open(new_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(file_descriptor, "w", encoding="utf-8", errors="surrogateescape") as open_file:
            json.dump(known_folders, open_file, ensure_ascii=False, indent=1)
        new_file.replace(self._kept_in)

    def _reasons(self) -> Iterator[Phrase]:
        if self._folder == Path("/"):
            yield say("trust.root")
        elif self._no_project:
            yield say("trust.home")
        if self._repository and self._repository.runs_programs():
            yield say("trust.repository")
        if programs := list(_programs_in(self._folder / BROUGHT)):
            yield say("trust.brought", files=", ".join(programs[:5]))
        if (self._folder / SERVERS).exists():
            yield say("trust.servers", file=SERVERS)
        brought_folders = (*SKILL_PLACES, *COMMAND_PLACES, *AGENT_PLACES)
        if found_folders := [name for name in brought_folders if (self._folder / name).is_dir()]:
            yield say("trust.extensions", places=", ".join(found_folders))
        if any((self._folder / name).is_file() for name in PROJECT_HOOKS):
            yield from _hooks_in(self._folder)

    def _trusted_among(self, known: Sequence[str]) -> bool:
        """Says whether the known paths make this folder trusted: by its own path, by that of its own `.git` folder (as
        earlier versions recorded it), or as a worktree of a trusted repository."""
        git_folder = self._folder / ".git"
        if str(self._folder) in known:
            return True
        if self._no_project:
            return False
        if git_folder.is_dir() and not git_folder.is_symlink():
            return str(git_folder) in known and not (git_folder / "commondir").exists()
        repository = self._repository
        if repository is None or repository.top != self._folder or not points_back(repository):
            return False
        main_folder = repository.common
        return str(main_folder) in known or (main_folder.name == ".git" and str(main_folder.parent) in known)

    def _known(self) -> Sequence[str]:
        try:
            folders: Any = json.loads(self._kept_in.read_text(encoding="utf-8", errors="surrogateescape"))
        except (OSError, ValueError):
            return ()
        return [str(name) for name in cast("list[Any]", folders)] if isinstance(folders, list) else ()


def _hooks_in(folder: Path) -> Iterator[Phrase]:
    """Yields a line about every hook of the folder. A user who trusts the folder has then seen what will run."""
    from duckflow.extensions.hook_files import find_hooks
    from duckflow.extensions.places import HookSettings

    for hook in find_hooks(HookSettings(), None, folder, trusted=True).hooks:
        yield say("trust.hook", event=hook.event, command=shown(hook.shown))


def refuse_own_folders(folder: Path, own: Sequence[Path]) -> None:
    """Refuses Duckflow's own folders as work folders: changing them would change what Duckflow is allowed to do."""
    for own_folder in own:
        if folder.resolve().is_relative_to(own_folder.resolve()):
            raise UsageError("folder.own", folder=str(folder))


def _programs_in(folder: Path) -> Iterator[str]:
    files_seen = 0
    for top, _, names in os.walk(folder):
        for name in names:
            files_seen += 1
            path = Path(top, name)
            with contextlib.suppress(OSError):
                if path.is_file() and path.stat().st_mode & 0o111:
                    yield str(path.relative_to(folder.parent))
        if files_seen > MOST_LOOKED_AT:
            return


class Admission:
    """Asks whether the user trusts the folder. It asks when the first turn begins, because a look at the folder would
    slow down the start of the program."""

    def __init__(
        self, make: Callable[[], FolderTrust], emit: Emit, ask: Ask, wanted: bool, by_client: bool = False
    ) -> None:
        self._make = make
        self._emit = emit
        self._ask = ask
        self._by_client = by_client
        self.wanted = wanted
        """True if the user has said on the command line that everything in this folder is to be trusted."""
        self.newly = False
        """True if the folder was trusted in this session, by an answer."""
        self.decided = False
        self._refused = False
        self._asking = asyncio.Lock()
        self.trusted = False
        """True if programs that the folder brings may run. The mode and the sandbox may still forbid it."""

    async def admit(self) -> bool:
        """Says whether Duckflow may work in this folder at all."""
        async with self._asking:
            return self.decided or await self._decide()

    async def look_again(self) -> None:
        """Asks the user again if the folder now gives a reason to. A user who has said no is not asked again."""
        if not (self.trusted or self._refused):
            self.decided = False
        await self.admit()

    async def _decide(self) -> bool:
        folder_trust = await asyncio.to_thread(self._make)
        reasons = await asyncio.to_thread(folder_trust.reasons)
        if not reasons or folder_trust.trusted:
            self.trusted = bool(reasons)
            self.decided = True
            return True
        # A program that says yes to everything must not open a whole home folder.
        asks = not folder_trust.contained and not (self._by_client and folder_trust.must_be_wanted)
        if self.wanted or (asks and await self._asked(reasons)):
            await asyncio.to_thread(folder_trust.trust)
            self.newly = True
            self.trusted = self.decided = True
            return True
        if folder_trust.must_be_wanted:
            self._emit(Noticed(what=say("trust.not_here")))
            return False
        self._emit(Noticed(what=say("trust.untrusted")))
        self.decided = self._refused = True
        return True

    async def _asked(self, reasons: Sequence[Phrase]) -> bool:
        choices = tuple(Choice(key=key, label=say(f"trust.choice.{key}")) for key in ("trust", "no"))
        question = Question(kind="choice", title=say("trust.question"), details=tuple(reasons), choices=choices)
        return (await self._ask(question)).choice == "trust"
