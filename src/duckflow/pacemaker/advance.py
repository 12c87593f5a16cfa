"""Whether a turn is visibly advancing, which earns it more loops."""

from duckflow.pacemaker.ledger import Entry


class Advance:
    """Counts gains: a file changed for the first time, a command that failed and now succeeds, a task completed."""

    def __init__(self) -> None:
        self.gains = 0
        self._last_gain = 0
        self._step = 0
        self._files: set[str] = set()
        self._failing: set[int] = set()

    def see(self, entry: Entry) -> None:
        self._step = entry.number
        if entry.edited and entry.new:
            self._edited(entry)
        elif entry.step.kind == "run":
            self._ran(entry)

    def task_done(self) -> None:
        self._gain()

    def within(self, steps: int) -> bool:
        """Whether something was gained in the last so many steps."""
        return self.gains > 0 and self._step - self._last_gain < steps

    def _edited(self, entry: Entry) -> None:
        touched = entry.step.files or (str(entry.call),)
        if not self._files.issuperset(touched):
            self._gain()
        self._files.update(touched)

    def _ran(self, entry: Entry) -> None:
        if entry.step.is_error:
            self._failing.add(entry.call)
        elif entry.call in self._failing:
            self._failing.discard(entry.call)
            self._gain()

    def _gain(self) -> None:
        self.gains += 1
        self._last_gain = self._step
