"""What a turn still owes: files the request wants written, and that nothing has written yet."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from duckflow.llm.decision import Reading
from duckflow.safety.secrets import secret_name
from duckflow.state.action import READ_FILE, Action, ActionResult, Decision, TaskProfile
from duckflow.state.agent import AgentState
from duckflow.state.errand import errand
from duckflow.state.phase import Phase

READERS = 2
"""Loops that may only look before a small model is held to writing."""
FAILURES = 2
"""Failed tries after which the model may speak about it instead."""


class Owing:
    """Kept by the turn. Only what the request names clearly is owed, and a refusal settles everything."""

    def __init__(self, request: str) -> None:
        asked_for = errand(request)
        self.names = asked_for.names
        self.only_asks = asked_for.only_asks
        self._writes = list(asked_for.writes)
        self._wanted = asked_for.writes if asked_for.only_writes else ()
        self._failures = 0
        self._looks = 0
        self._given: tuple[str, ...] = ()
        self._reminded = False

    @property
    def writes(self) -> tuple[str, ...]:
        return tuple(self._writes)

    @property
    def pressing(self) -> bool:
        """Whether there is something to write that has not failed again and again."""
        return bool(self._writes) and self._failures < FAILURES

    @property
    def settled(self) -> tuple[str, ...]:
        """All the files of the request, when they are written and nothing else was asked for."""
        return () if self._writes else self._wanted

    @property
    def looked_enough(self) -> bool:
        return self._looks >= READERS

    def saw(self, results: Sequence[ActionResult], refused: bool) -> None:
        if refused:
            self._writes.clear()
            self._wanted = ()
        for result in results:
            self._writes = [path for path in self._writes if not _same(path, result.changed)]
        # A look that failed (at a file that is not there yet, say) is no reason to let it off.
        if any(not result.ok and result.effect != "read" for result in results):
            self._failures += 1
        elif not any(result.changed for result in results):
            self._looks += 1

    def hint(self) -> str:
        return f"write {', '.join(self._writes)} now with file_ops.write_file"

    def was_given(self, reads: Iterable[Action]) -> None:
        """The named files, read before the model was asked."""
        self._given = tuple(str(action.args["path"]) for action in reads)

    def read_hint(self) -> str:
        """For a request that only wants files read, which has been done for it."""
        only_reads = self._given and not self._writes
        return f"{', '.join(self._given)} has been read: answer with response" if only_reads else ""

    def remind(self) -> str:
        """Once, when the end is claimed: what has not been done."""
        if self._reminded or not self.pressing:
            return ""
        self._reminded = True
        return f"you said done, but {', '.join(self._writes)} has not been written: write it now, or say why not"


def _same(path: str, changed: Iterable[str]) -> bool:
    return any(path.removeprefix("./") == one for one in changed)


def named_files(owing: Owing, state: AgentState) -> Reading | None:
    """A Decision to read the files that the request names and that are there."""
    there = [name for name in owing.names if not secret_name(name) and (Path(state.folder) / name).is_file()]
    if not there:
        return None
    actions = [Action(operation=READ_FILE, args={"path": name}, reasoning="the request names it") for name in there]
    decision = Decision(
        rationale="the request names these files",
        goal_consistency="yes",
        constraint_check="yes",
        confidence=1.0,
        task_profile=TaskProfile.FILE_OPERATION,
        step=Phase.PLANNING,
        actions=actions,
        next_step="continue",
        prompt_pattern="base_main",
    )
    return Reading(decision)
