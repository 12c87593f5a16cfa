"""A small model is held to the files that the request wants written, until they are."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from duckflow.agent.led.errand import errand
from duckflow.agent.phases import Phases
from duckflow.agent.policies.policy import Ending, Guidance, Loop, Policy, TurnSoFar
from duckflow.state.action import RESPOND, WRITE_FILE, Operation
from duckflow.state.phrase import say

READERS = 2
"""Loops that may only look before a small model is held to writing."""
FAILURES = 2
"""Failed tries after which the model may speak about it instead."""


@dataclass(slots=True)
class Owed:
    """Only what the request names clearly is owed, and a refusal settles everything."""

    files: list[str]
    refused: bool = False
    failures: int = 0
    looks: int = 0

    @property
    def pressing(self) -> bool:
        """Whether there is something to write that has not failed again and again."""
        return bool(self.files) and self.failures < FAILURES


class OwedFiles(Policy):
    """The model is held to writing and reminded once; what is called done all the same is unverified. It is done when
    all is written: it would only talk on."""

    def __init__(self, phases: Phases) -> None:
        self._phases = phases
        self._reminded = False

    async def opening(self, turn: TurnSoFar) -> None:
        self._reminded = False

    async def before(self, turn: TurnSoFar) -> Guidance | None:
        owed = _owed(turn)
        if not owed.pressing or turn.state.plan is not None:
            return None
        narrow = partial(_held_to_writing, paths=owed.files, may_look=owed.looks < READERS)
        return Guidance(turn.note("owed_write", files=", ".join(owed.files)), narrow)

    async def after(self, turn: TurnSoFar) -> str | Ending | None:
        owed = _owed(turn)
        if turn.last.decision.next_step == "done" and owed.pressing:
            files = ", ".join(owed.files)
            if not self._reminded:
                self._reminded = True
                return turn.note("owed_said_done", files=files)
            turn.doubt = turn.note("owed_unwritten", files=files)
        asked_for = errand(turn.request, turn.state.language)
        written = asked_for.only_writes and asked_for.writes and not owed.files and not owed.refused
        if not written or turn.last.done.stop:
            return None
        return self._written(turn, ", ".join(asked_for.writes))

    def _written(self, turn: TurnSoFar, files: str) -> Ending:
        # The review that a failed check calls for has been held: the try-out, and the mends after it.
        self._phases.finish(turn.checks().failed, reviewed=True)
        told = say("turn.written_tried" if turn.last.tried else "turn.written", files=files)
        return Ending("done", None if turn.last.done.ran(RESPOND) else told)


def _owed(turn: TurnSoFar) -> Owed:
    owed = Owed(list(errand(turn.request, turn.state.language).writes))
    for loop in turn.loops:
        _settle(owed, loop)
    return owed


def _held_to_writing(operations: Iterable[Operation], paths: Sequence[str], may_look: bool) -> list[Operation]:
    """Nothing but writing these files, after a look around where that is still due."""
    return [
        held_to(operation, path=paths) if operation.name == WRITE_FILE else operation
        for operation in operations
        if operation.name == WRITE_FILE or (may_look and operation.effect == "read")
    ]


def _settle(owed: Owed, loop: Loop) -> None:
    results = loop.done.results
    if loop.done.stop in ("refused", "nobody") and not loop.done.refusal:
        owed.files.clear()
        owed.refused = True
    for result in results:
        owed.files = [path for path in owed.files if not _same(path, result.changed)]
    # A look that failed (at a file that is not there yet, say) is no reason to let it off.
    if any(not result.ok and result.effect != "read" for result in results):
        owed.failures += 1
    elif not any(result.changed for result in results):
        owed.looks += 1


def _same(path: str, changed: Iterable[str]) -> bool:
    """Where only the name is given, it may be in any folder."""
    return any(f"/{one}".endswith(f"/{path.removeprefix('./')}") for one in changed)


def held_to(operation: Operation, **values: Sequence[str]) -> Operation:
    """The operation with some arguments held to these values."""
    held = {name: {"type": "string", "enum": list(texts)} for name, texts in values.items()}
    properties = {**operation.parameters.get("properties", {}), **held}
    return operation.model_copy(update={"parameters": {**operation.parameters, "properties": properties}})
