"""Programs that the work folder brings: the question before they run, their rights, and their start."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from duckflow.agent.trust import Admission
from duckflow.events.ports import Ask, Emit
from duckflow.events.types import Noticed
from duckflow.safety.path_names import shown
from duckflow.state.data import Phrase, say, shorten
from duckflow.state.mode import Mode
from duckflow.state.question import Choice, Question
from duckflow.whole_file import make_private

if TYPE_CHECKING:
    from duckflow.extensions.hook_files import Hook
    from duckflow.programs.launch import Launch
    from duckflow.safety.brought.agreements import Agreement, Agreements, BroughtProgram, Right
    from duckflow.safety.brought.renewals import Renewal
    from duckflow.safety.sandbox.sandbox import Sandbox


MOST_NAMED = 8
MOST_RENEWED = 50
"""The most files in which a fresh copy may differ from the agreed one. Beyond that its programs count as new ones."""
MOST_SWITCHED = 20
LONGEST_COMMAND = 120


class BroughtPrograms:
    """Runs the programs that a work folder brings with it (hooks and servers), for one conversation. It looks for their
    copies only when a program is to run."""

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
        """Records that the user has agreed to these programs while answering another question. They get as few rights
        as possible. Returns the files that are missing in the programs' copy."""
        folder_copy = await asyncio.to_thread(self.agreements.copies.take, self._folder)
        self._keep(programs, dict.fromkeys(programs, await self._least()), folder_copy.name, vanished)
        return folder_copy.left_out

    async def ask_about(
        self,
        programs: "Sequence[BroughtProgram]",
        title: Phrase,
        details: Sequence[Phrase],
        vanished: "Sequence[Agreement]",
    ) -> bool:
        """Asks one question about all programs, and says whether the user agreed. The copy is made before the question,
        so that the user agrees to exactly what was copied."""
        folder_copy = await asyncio.to_thread(self.agreements.copies.take, self._folder)
        least_rights = await self._least()
        lines = [*details, *self._differences(programs, vanished), say("brought.from_copy")]
        lines.append(say("brought.outside_only" if least_rights else "brought.in_sandbox"))
        if folder_copy.left_out:
            names = ", ".join(map(shown, folder_copy.left_out[:MOST_NAMED]))
            lines.append(say("brought.left_out", files=names, count=len(folder_copy.left_out)))
        offered_keys = ("trust", "no") if least_rights else ("trust", "more", "no")
        choices = tuple(Choice(key=key, label=say(f"brought.choice.{key}")) for key in offered_keys)
        answer = await self._ask(Question(kind="choice", title=title, details=tuple(lines), choices=choices))
        if answer.choice not in ("trust", "more"):
            return False
        rights_by_program = dict.fromkeys(programs, least_rights)
        if answer.choice == "more":
            rights_by_program = {program: await self._rights(program, least_rights) for program in programs}
        self._keep(programs, rights_by_program, folder_copy.name, vanished)
        return True

    async def offer_fresh_copy(self, lines: "Mapping[BroughtProgram, str]") -> list[str]:
        """Compares the files that agreed programs name with their copies. Where some differ, the user is asked about a
        fresh copy, and sees all files in which it differs from the agreed one. Returns the files that the programs go
        on using as they were."""
        from duckflow.safety.brought.renewals import renewals

        old_files: list[str] = []
        for renewal in await asyncio.to_thread(renewals, self._folder, self.agreements, lines):
            if not await self._is_renewed(renewal):
                old_files += renewal.named
        return old_files

    async def _is_renewed(self, renewal: "Renewal") -> bool:
        programs = [agreement.program for agreement in renewal.agreements]
        if renewal.total > MOST_RENEWED:
            details = [say("brought.program", text=shown(program.shown)) for program in programs]
            title = say("brought.renewed_question", count=renewal.total)
            return await self.ask_about(programs, title, details, ())
        longest = max(map(len, (renewal.changed, renewal.new, renewal.gone)))
        chosen = "all" if longest <= MOST_NAMED else await self._chosen(renewal, MOST_NAMED, ("fresh", "all", "no"))
        if chosen == "all":
            chosen = await self._chosen(renewal, MOST_RENEWED, ("fresh", "no"))
        if chosen == "fresh":
            self.agreements.add([agreement._replace(copy=renewal.copy) for agreement in renewal.agreements])
        return chosen == "fresh"

    async def _chosen(self, renewal: "Renewal", most_named: int, keys: Sequence[str]) -> str:
        choices = tuple(Choice(key=key, label=say(f"brought.files.{key}")) for key in keys)
        details = tuple(_renewed(renewal, most_named))
        question = Question(kind="choice", title=say("brought.stale_question"), details=details, choices=choices)
        return (await self._ask(question)).choice

    async def change_rights(self, program: "BroughtProgram") -> None:
        """Lets the user give an agreed program more or fewer rights. The program's copy stays the same."""
        agreements = self.agreements
        if agreement := agreements.find(program):
            agreements.add([agreement._replace(rights=await self._rights(program, agreement.rights))])

    def only_place(self, program: "BroughtProgram") -> Path | None:
        """Returns the program's copy if the program has a right beyond the sandbox, because it may then run from its
        copy only; otherwise None."""
        agreements = self.agreements
        agreement = agreements.find(program)
        return agreements.copies.find(agreement.copy) if agreement and agreement.rights else None

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
        """Returns the launch of a program. Raises CannotRunError when its copy or the sandbox is gone. `serves` marks a
        server: with rights beyond the sandbox, it may read the folder but not write in it."""
        from duckflow.safety.brought.launch import BroughtLaunch, CannotRunError

        agreements = self.agreements
        agreement = agreements.find(program)
        agreed_copy = agreements.copies.find(agreement.copy) if agreement else None
        if agreement is None or agreed_copy is None:
            raise CannotRunError("brought.no_copy")
        home_name = hashlib.sha256(f"{self._folder}\0{program.name}".encode("utf-8", "surrogateescape")).hexdigest()
        brought_launch = BroughtLaunch(self._folder, agreed_copy, agreement.rights, self._data / "homes" / home_name)
        launch = brought_launch.make(argv, line, environment, cwd, leaves_rest=not serves)
        writes, folder_writable = self.mode() != Mode.PLAN, not (serves and agreement.rights)
        return brought_launch.confine(launch, await self._find_sandbox(), writes, folder_writable, readable)

    async def shut_in(self, launch: "Launch", readable: Sequence[Path]) -> "Launch | None":
        """Confines one of the user's own programs to the rights of the model's commands, because it runs what the model
        may have written. Returns the launch, or None where there is no sandbox."""
        sandbox = await self._find_sandbox()
        if sandbox.kind == "none":
            return None
        paths = replace(sandbox.paths, readable=tuple(readable))
        return sandbox.reaching(paths).confine(launch, writes=self.mode() != Mode.PLAN)

    def _keep(
        self,
        programs: "Sequence[BroughtProgram]",
        rights: "Mapping[BroughtProgram, tuple[Right, ...]]",
        copy: str,
        vanished: "Sequence[Agreement]",
    ) -> None:
        from duckflow.safety.brought.agreements import Agreement

        names = {program.name for program in programs}
        replaced_programs = [agreement.program for agreement in vanished if agreement.program.name in names]
        self.agreements.add([Agreement(program, rights[program], copy) for program in programs], replaced_programs)

    async def _least(self) -> "tuple[Right, ...]":
        """Returns the fewest rights that a program can have. Where there is no sandbox, every program needs the right
        to run outside of one."""
        return ("outside",) if (await self._find_sandbox()).kind == "none" else ()

    def _differences(self, programs: "Sequence[BroughtProgram]", vanished: "Sequence[Agreement]") -> list[Phrase]:
        names = {program.name for program in programs}
        return [
            say("brought.before", text=shown(agreement.program.shown))
            for agreement in vanished
            if agreement.program.name in names
        ]

    async def _rights(self, program: "BroughtProgram", current: "tuple[Right, ...]") -> "tuple[Right, ...]":
        """Asks for the rights of a program. Each answer switches one right on or off, until the user is content."""
        from duckflow.safety.brought.agreements import RIGHTS

        rights = set(current)
        title = say("brought.rights", name=shown(program.shown))
        for _ in range(MOST_SWITCHED):
            choices = [
                Choice(key=right, label=say(f"brought.{'take' if right in rights else 'give'}.{right}"))
                for right in RIGHTS
            ]
            done_choice = Choice(key="done", label=say("brought.done"))
            details = [say(f"brought.has.{right}") for right in RIGHTS if right in rights] or [say("brought.has_none")]
            question = Question(kind="choice", title=title, details=tuple(details), choices=(*choices, done_choice))
            choice = (await self._ask(question)).choice
            chosen_right = next((right for right in RIGHTS if right == choice), None)
            if chosen_right is None:
                break
            rights ^= {chosen_right}
        return tuple(right for right in RIGHTS if right in rights)


def _renewed(renewal: "Renewal", most_named: int) -> Iterator[Phrase]:
    """Yields what the user is told of a fresh copy: the files in which it differs, and what its programs may do."""
    for key, files in (("stale", renewal.changed), ("stale_new", renewal.new), ("stale_gone", renewal.gone)):
        names = [*map(shown, files[:most_named]), *(["…"] if len(files) > most_named else [])]
        if names:
            yield say(f"brought.{key}", files=", ".join(names), count=len(files))
    for agreement in renewal.agreements:
        yield say("brought.program", text=shown(agreement.program.shown))
        yield from [say(f"brought.has.{right}") for right in agreement.rights] or [say("brought.has_none")]


class TrustedHooks:
    """The digests of the user's own hooks that the user has agreed to. They are kept in a file of their own."""

    def __init__(self, kept_in: Path) -> None:
        self._kept_in = kept_in
        self._refused: set[str] = set()

    def __contains__(self, digest: str) -> bool:
        return digest in self._known()

    def refused(self, digest: str) -> bool:
        return digest in self._refused

    def refuse(self, digests: Iterable[str]) -> None:
        """Records that the user does not want these hooks until the end of the session."""
        self._refused |= set(digests)

    def add(self, digests: Iterable[str]) -> None:
        known_digests = sorted({*self._known(), *digests})
        self._kept_in.parent.mkdir(parents=True, exist_ok=True)
        new_file = self._kept_in.with_suffix(".new")
        make_private(new_file)
        new_file.write_text(json.dumps(known_digests, indent=1), encoding="utf-8")
        new_file.replace(self._kept_in)

    def _known(self) -> frozenset[str]:
        try:
            digests: Any = json.loads(self._kept_in.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return frozenset()
        return frozenset(map(str, cast("list[Any]", digests))) if isinstance(digests, list) else frozenset()


class HookConsent:
    """Asks the user to agree to hooks. Of the user's own hooks it shows the text. Hooks of the work folder run from a
    copy, in the sandbox."""

    def __init__(
        self, admission: Admission, trusted: TrustedHooks, programs: BroughtPrograms, emit: Emit, ask: Ask
    ) -> None:
        self.programs = programs
        self._admission = admission
        self._trusted = trusted
        self._emit = emit
        self._ask = ask
        self._found: Sequence[Hook] = ()
        self._shut_in: set[Phrase] = set()
        """The notices about the user's own hooks and the sandbox that were already shown, so that none is shown
        twice."""
        self._asking = asyncio.Lock()

    async def look(self, hooks: Sequence["Hook"], first: bool) -> None:
        """Looks at all current hooks. `first` means that the session has just begun, so it cannot have written any of
        them."""
        self._found = hooks
        await self._ask_about(hooks, changed=not first)
        if first and self._admission.trusted:
            await self._look_at_files(hooks)
            self._tell_of_vanished(hooks)

    def is_agreed(self, hook: "Hook") -> bool:
        if hook.brought:
            return self.programs.agreements.find(hook.program) is not None
        return hook.digest() in self._trusted

    async def may_run(self, hook: "Hook") -> bool:
        """Says whether a hook may run. The user is asked about a new or changed one."""
        if not hook.source or self.is_agreed(hook):
            return True
        if self._trusted.refused(hook.digest()):
            return False
        await self._ask_about([hook], changed=True)
        return self.is_agreed(hook)

    async def shut_in(self, hook: "Hook", launch: "Launch", readable: Sequence[Path]) -> "Launch":
        """Confines one of the user's own hooks to the sandbox, because it runs a file of the work folder. The user is
        told once in a session. Raises CannotRunError where there is no sandbox."""
        from duckflow.safety.brought.launch import CannotRunError

        confined_launch = await self.programs.shut_in(launch, readable)
        key = "hook.own_in_sandbox" if confined_launch else "hook.no_sandbox"
        notice = say(key, command=shown(shorten(hook.shown, LONGEST_COMMAND)))
        if notice not in self._shut_in:
            self._shut_in.add(notice)
            self._emit(Noticed(what=notice))
        if confined_launch is None:
            raise CannotRunError(key)
        return confined_launch

    async def _ask_about(self, hooks: Sequence["Hook"], changed: bool = False) -> None:
        async with self._asking:
            new_hooks = [hook for hook in hooks if hook.source and not self.is_agreed(hook)]
            new_hooks = [hook for hook in new_hooks if not self._trusted.refused(hook.digest())]
            own_hooks, brought_hooks = (
                [hook for hook in new_hooks if hook.brought is is_brought] for is_brought in (False, True)
            )
            if own_hooks and (
                (not changed and self._admission.wanted) or await self._agreed_to_own(own_hooks, changed)
            ):
                self._trusted.add(hook.digest() for hook in own_hooks)
            if brought_hooks:
                await self._ask_about_brought(brought_hooks, changed)
            if refused_hooks := [hook for hook in new_hooks if not self.is_agreed(hook)]:
                self._trusted.refuse(hook.digest() for hook in refused_hooks)
                self._emit(Noticed(what=say("hook.untrusted", count=len(refused_hooks))))

    async def _ask_about_brought(self, hooks: Sequence["Hook"], changed: bool) -> None:
        programs = [hook.program for hook in hooks]
        vanished = self._vanished(self._found)
        # A user who has just trusted the folder has seen what its hooks run. Nobody has seen what comes later.
        if not changed and (self._admission.wanted or self._admission.newly):
            left_out = await self.programs.agree(programs, vanished)
            self._emit(Noticed(what=say("hook.in_sandbox", count=len(left_out))))
            return
        title = say("hook.changed_question" if changed or vanished else "hook.question")
        await self.programs.ask_about(programs, title, _listed(hooks), vanished)

    def _tell_of_vanished(self, hooks: Sequence["Hook"]) -> None:
        """Reports each hook that was agreed to and is no longer in its file."""
        for agreement in self._vanished(hooks):
            self._emit(Noticed(what=say("hook.vanished", text=shown(agreement.program.shown))))

    def _vanished(self, hooks: Sequence["Hook"]) -> "list[Agreement]":
        current_programs = {hook.program for hook in hooks if hook.brought}
        agreements = self.programs.agreements.all()
        return [
            agreement
            for agreement in agreements
            if agreement.program.name.startswith("hook ") and agreement.program not in current_programs
        ]

    async def _look_at_files(self, hooks: Sequence["Hook"]) -> None:
        """Asks about hooks whose files have changed since the user agreed to them. The old files run until the user
        wants the new ones."""
        shown_by_program = {hook.program: hook.shown for hook in hooks if hook.brought and self.is_agreed(hook)}
        if stale_files := await self.programs.offer_fresh_copy(shown_by_program):
            self._emit(Noticed(what=say("hook.stale", files=", ".join(map(shown, stale_files)))))

    async def _agreed_to_own(self, hooks: Sequence["Hook"], changed: bool) -> bool:
        choices = tuple(Choice(key=key, label=say(f"hook.choice.{key}")) for key in ("trust", "no"))
        title = say("hook.changed_question" if changed else "hook.question")
        question = Question(kind="choice", title=title, details=_listed(hooks), choices=choices)
        return (await self._ask(question)).choice == "trust"


def _listed(hooks: Sequence["Hook"]) -> tuple[Phrase, ...]:
    return tuple(
        say(
            "hook.listed",
            event=f"{hook.event} {hook.matcher}".strip(),
            command=shown(hook.program.shown if hook.brought else hook.shown),
            file=shown(hook.source),
        )
        for hook in hooks
    )
