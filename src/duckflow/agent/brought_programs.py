"""Programs that the work folder brings: the question before they run, what may be given to them, and their start."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.events.ports import Ask
from duckflow.safety.path_names import shown
from duckflow.state.mode import Mode
from duckflow.state.phrase import Phrase, say
from duckflow.state.question import Choice, Question

if TYPE_CHECKING:
    from duckflow.programs.launch import Launch
    from duckflow.safety.brought.agreements import Agreement, Agreements, BroughtProgram, Right
    from duckflow.safety.sandbox.sandbox import Sandbox

MOST_NAMED = 8
MOST_SWITCHED = 20


class BroughtPrograms:
    """Runs the programs that a folder brings, hooks and servers, for one conversation. The copies are looked for when
    the first of them is to run."""

    def __init__(
        self,
        folder: Path,
        data: Path,
        find_sandbox: "Callable[[], Awaitable[Sandbox]]",
        mode: Callable[[], Mode],
        ask: Ask,
    ) -> None:
        self._folder = folder
        self._data = data
        self._find_sandbox = find_sandbox
        self.mode = mode
        self._ask = ask

    @property
    def agreements(self) -> "Agreements":
        from duckflow.safety.brought.agreements import agreements_of

        return agreements_of(self._data, self._folder)

    async def agree(
        self, programs: "Sequence[BroughtProgram]", vanished: "Sequence[Agreement]" = ()
    ) -> tuple[str, ...]:
        """The user has said yes elsewhere, to the sandbox only. What the copy leaves out is given back."""
        copy = await asyncio.to_thread(self.agreements.copies.take, self._folder)
        self._keep(programs, dict.fromkeys(programs, await self._least()), copy.name, vanished)
        return copy.left_out

    async def ask_about(
        self,
        programs: "Sequence[BroughtProgram]",
        title: Phrase,
        details: Sequence[Phrase],
        vanished: "Sequence[Agreement]",
    ) -> bool:
        """One question for all of them. The copy is made before it is asked, so that nothing that changes meanwhile is
        agreed to."""
        copy = await asyncio.to_thread(self.agreements.copies.take, self._folder)
        least = await self._least()
        lines = [*details, *self._differences(programs, vanished), say("brought.from_copy")]
        lines.append(say("brought.outside_only" if least else "brought.in_sandbox"))
        if copy.left_out:
            names = ", ".join(map(shown, copy.left_out[:MOST_NAMED]))
            lines.append(say("brought.left_out", files=names, count=len(copy.left_out)))
        offered = ("trust", "no") if least else ("trust", "more", "no")
        choices = tuple(Choice(key=key, label=say(f"brought.choice.{key}")) for key in offered)
        answer = await self._ask(Question(kind="choice", title=title, details=tuple(lines), choices=choices))
        if answer.choice not in ("trust", "more"):
            return False
        rights = dict.fromkeys(programs, least)
        if answer.choice == "more":
            rights = {program: await self._rights(program, least) for program in programs}
        self._keep(programs, rights, copy.name, vanished)
        return True

    async def offer_fresh_copy(self, lines: "Mapping[BroughtProgram, str]") -> list[str]:
        """Takes agreed programs with their commands, and asks about files that they name and that differ from the copy.
        Those that stay as they were are given back."""
        from duckflow.safety.brought.launch import changed_files

        agreements = self.agreements
        known = [agreement for agreement in agreements.all() if agreement.program in lines]
        stale: dict[str, None] = {}
        for agreement in known:
            if copy := agreements.copies.find(agreement.copy):
                line = lines[agreement.program]
                stale |= dict.fromkeys(await asyncio.to_thread(changed_files, self._folder, copy, line))
        if not stale:
            return []
        fresh = await asyncio.to_thread(agreements.copies.take, self._folder)
        details = (say("brought.stale", files=", ".join(map(shown, stale))),)
        choices = tuple(Choice(key=key, label=say(f"brought.files.{key}")) for key in ("fresh", "no"))
        question = Question(kind="choice", title=say("brought.stale_question"), details=details, choices=choices)
        if (await self._ask(question)).choice != "fresh":
            return list(stale)
        agreements.add([agreement._replace(copy=fresh.name) for agreement in known])
        return []

    async def change_rights(self, program: "BroughtProgram") -> None:
        """The user gives an agreed program more or less; its copy stays the same."""
        agreements = self.agreements
        if known := agreements.find(program):
            agreements.add([known._replace(rights=await self._rights(program, known.rights))])

    def only_place(self, program: "BroughtProgram") -> Path | None:
        """The copy that a program runs from, where it has a right beyond the sandbox and runs from nothing else."""
        agreements = self.agreements
        known = agreements.find(program)
        return agreements.copies.find(known.copy) if known and known.rights else None

    async def launch(
        self,
        program: "BroughtProgram",
        argv: Sequence[str],
        line: str | None,
        environment: Mapping[str, str],
        cwd: str = "",
        readable: Sequence[Path] = (),
        serves: bool = False,
    ) -> "Launch":
        """CannotRunError when its copy or the sandbox is gone. A server beyond the sandbox only reads the folder."""
        from duckflow.safety.brought.launch import BroughtLaunch, CannotRunError

        agreements = self.agreements
        known = agreements.find(program)
        copy = agreements.copies.find(known.copy) if known else None
        if known is None or copy is None:
            raise CannotRunError("brought.no_copy")
        mark = hashlib.sha256(f"{self._folder}\0{program.name}".encode("utf-8", "surrogateescape")).hexdigest()
        start = BroughtLaunch(self._folder, copy, known.rights, self._data / "homes" / mark)
        launch = start.make(argv, line, environment, cwd, leaves_rest=not serves)
        writes, folder_writable = self.mode() != Mode.PLAN, not (serves and known.rights)
        return start.confine(launch, await self._find_sandbox(), writes, folder_writable, readable)

    def _keep(
        self,
        programs: "Sequence[BroughtProgram]",
        rights: "Mapping[BroughtProgram, tuple[Right, ...]]",
        copy: str,
        vanished: "Sequence[Agreement]",
    ) -> None:
        from duckflow.safety.brought.agreements import Agreement

        names = {program.name for program in programs}
        gone = [known.program for known in vanished if known.program.name in names]
        self.agreements.add([Agreement(program, rights[program], copy) for program in programs], gone)

    async def _least(self) -> "tuple[Right, ...]":
        """Without a sandbox there is nothing less than all."""
        return ("outside",) if (await self._find_sandbox()).kind == "none" else ()

    def _differences(self, programs: "Sequence[BroughtProgram]", vanished: "Sequence[Agreement]") -> list[Phrase]:
        names = {program.name for program in programs}
        return [
            say("brought.before", text=shown(known.program.shown)) for known in vanished if known.program.name in names
        ]

    async def _rights(self, program: "BroughtProgram", given: "tuple[Right, ...]") -> "tuple[Right, ...]":
        """Each answer switches one right on or off, until the user is content."""
        from duckflow.safety.brought.agreements import RIGHTS

        chosen = set(given)
        title = say("brought.rights", name=shown(program.shown))
        for _ in range(MOST_SWITCHED):
            choices = [
                Choice(key=right, label=say(f"brought.{'take' if right in chosen else 'give'}.{right}"))
                for right in RIGHTS
            ]
            done = Choice(key="done", label=say("brought.done"))
            details = [say(f"brought.has.{right}") for right in RIGHTS if right in chosen] or [say("brought.has_none")]
            question = Question(kind="choice", title=title, details=tuple(details), choices=(*choices, done))
            choice = (await self._ask(question)).choice
            wanted = next((right for right in RIGHTS if right == choice), None)
            if wanted is None:
                break
            chosen ^= {wanted}
        return tuple(right for right in RIGHTS if right in chosen)
