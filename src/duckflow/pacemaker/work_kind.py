"""What kind of work a turn is, computed from what is done in it, for a model that does not say so."""

from duckflow.pacemaker.signatures import LoopStep
from duckflow.state.action import DOCUMENTS, TaskProfile

LARGE = 500
"""Lines of a file that count as one file more."""
SEVERAL = 3
"""So many files make a task of several steps, and so many looks an analysis."""
WEB = "web."


class WorkKind:
    """Counts the files, edits, failed runs and pages of a turn. Until there are any, what was asked for tells."""

    def __init__(self) -> None:
        self.begin(TaskProfile.GENERAL_CHAT)

    def begin(self, guessed: TaskProfile) -> None:
        self._guessed = guessed
        self._read: dict[str, int] = {}
        self._changed: set[str] = set()
        self._pages = self._looks = self._failed_runs = 0

    def see(self, step: LoopStep) -> None:
        self._changed.update(step.changed)
        self._failed_runs += step.kind == "run" and step.is_error
        if step.is_error:
            return
        self._pages += step.name.startswith(WEB)
        self._looks += step.kind in ("read", "search")
        if step.kind == "read":
            lines = step.result.count("\n")
            self._read[step.subject] = max(self._read.get(step.subject, 0), 1 + lines // LARGE)

    @property
    def files(self) -> int:
        """The files that were read or changed; a large one counts for several."""
        return sum(self._read.values()) + len(self._changed - self._read.keys())

    @property
    def profile(self) -> TaskProfile:
        if len(self._changed) >= SEVERAL:
            return TaskProfile.MULTI_STEP_TASK
        if self._failed_runs and (self._changed or self._looks):
            return TaskProfile.DEBUGGING
        if self._changed:
            written = all(path.casefold().endswith(DOCUMENTS) for path in self._changed)
            return TaskProfile.CREATIVE_WRITING if written else TaskProfile.FILE_OPERATION
        if self._pages:
            return TaskProfile.RESEARCH
        return TaskProfile.CODE_ANALYSIS if self._looks >= SEVERAL else self._guessed
