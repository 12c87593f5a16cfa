"""Which hooks the user has agreed to, and the questions about those that are new."""

import asyncio
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from duckflow.agent.brought_programs import BroughtPrograms
from duckflow.agent.trust import Admission
from duckflow.events.ports import Ask, Emit
from duckflow.events.types import Noticed
from duckflow.safety.path_names import shown
from duckflow.state.phrase import Phrase, say
from duckflow.state.question import Choice, Question
from duckflow.store.paths import make_private

if TYPE_CHECKING:
    from duckflow.extensions.hook_files import Hook
    from duckflow.safety.brought.agreements import Agreement


class TrustedHooks:
    """The digests of the user's own hooks that the user has said yes to, in a file of their own."""

    def __init__(self, kept_in: Path) -> None:
        self._kept_in = kept_in
        self._refused: set[str] = set()

    def __contains__(self, digest: str) -> bool:
        return digest in self._known()

    def refused(self, digest: str) -> bool:
        return digest in self._refused

    def refuse(self, digests: Iterable[str]) -> None:
        """Until the end of the session."""
        self._refused |= set(digests)

    def add(self, digests: Iterable[str]) -> None:
        known = sorted({*self._known(), *digests})
        self._kept_in.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._kept_in.with_suffix(".new")
        make_private(fresh)
        fresh.write_text(json.dumps(known, indent=1), encoding="utf-8")
        fresh.replace(self._kept_in)

    def _known(self) -> frozenset[str]:
        try:
            known: Any = json.loads(self._kept_in.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return frozenset()
        return frozenset(map(str, cast("list[Any]", known))) if isinstance(known, list) else frozenset()


class HookConsent:
    """The user's own hooks are agreed to by what they say. Those of the work folder run from a copy, in the sandbox."""

    def __init__(
        self, admission: Admission, trusted: TrustedHooks, programs: BroughtPrograms, emit: Emit, ask: Ask
    ) -> None:
        self.programs = programs
        self._admission = admission
        self._trusted = trusted
        self._emit = emit
        self._ask = ask
        self._found: Sequence[Hook] = ()
        self._asking = asyncio.Lock()

    async def look(self, hooks: Sequence["Hook"], first: bool) -> None:
        """All hooks there are now. `first`: the session begins with them, and has not put any of them there."""
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
        """A hook that is new or says something else is asked about."""
        if not hook.source or self.is_agreed(hook):
            return True
        if self._trusted.refused(hook.digest()):
            return False
        await self._ask_about([hook], changed=True)
        return self.is_agreed(hook)

    async def _ask_about(self, hooks: Sequence["Hook"], changed: bool = False) -> None:
        async with self._asking:
            new = [hook for hook in hooks if hook.source and not self.is_agreed(hook)]
            new = [hook for hook in new if not self._trusted.refused(hook.digest())]
            own, brought = ([hook for hook in new if hook.brought is theirs] for theirs in (False, True))
            if own and ((not changed and self._admission.wanted) or await self._agreed_to_own(own, changed)):
                self._trusted.add(hook.digest() for hook in own)
            if brought:
                await self._ask_about_brought(brought, changed)
            if refused := [hook for hook in new if not self.is_agreed(hook)]:
                self._trusted.refuse(hook.digest() for hook in refused)
                self._emit(Noticed(what=say("hook.untrusted", count=len(refused))))

    async def _ask_about_brought(self, hooks: Sequence["Hook"], changed: bool) -> None:
        programs = [hook.program for hook in hooks]
        vanished = self._vanished(self._found)
        # Whoever has just trusted the folder has seen what its hooks run. What comes later nobody has seen.
        if not changed and (self._admission.wanted or self._admission.newly):
            left_out = await self.programs.agree(programs, vanished)
            self._emit(Noticed(what=say("hook.in_sandbox", count=len(left_out))))
            return
        title = say("hook.changed_question" if changed or vanished else "hook.question")
        await self.programs.ask_about(programs, title, _listed(hooks), vanished)

    def _tell_of_vanished(self, hooks: Sequence["Hook"]) -> None:
        """A guard that was agreed to and is not in its file any more."""
        for agreement in self._vanished(hooks):
            self._emit(Noticed(what=say("hook.vanished", text=shown(agreement.program.shown))))

    def _vanished(self, hooks: Sequence["Hook"]) -> "list[Agreement]":
        there = {hook.program for hook in hooks if hook.brought}
        agreed = self.programs.agreements.all()
        return [one for one in agreed if one.program.name.startswith("hook ") and one.program not in there]

    async def _look_at_files(self, hooks: Sequence["Hook"]) -> None:
        """Agreed hooks whose files have changed since the yes go on as they were, until the user wants the new ones."""
        agreed = {hook.program: hook.shown for hook in hooks if hook.brought and self.is_agreed(hook)}
        if stale := await self.programs.offer_fresh_copy(agreed):
            self._emit(Noticed(what=say("hook.stale", files=", ".join(map(shown, stale)))))

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
