"""What the results of a turn say of its changes."""

from collections.abc import Sequence
from pathlib import Path

from duckflow.state.action import ActionResult
from duckflow.state.agent import AgentState
from duckflow.state.evidence import evidence_of, recorded

FILES = 8


class Checks:
    """Results from before the last change say nothing any more. A command that failed speaks against the changes of
    its turn; where nothing was changed it is only what the user wanted to know."""

    def __init__(self) -> None:
        self.all_succeeded = True
        self.failed = ""
        self._changed = False

    def saw(self, results: Sequence[ActionResult], fault: str = "") -> None:
        """`fault`: what a try-out of the changes has shown."""
        if any(result.changed for result in results):
            self._changed = self.all_succeeded = True
        self.all_succeeded &= all(result.ok for result in results)
        for result in results:
            check = evidence_of(result)
            if result.changed or (check and check.ok):
                self.failed = ""
            if check and not check.ok and self._changed:
                self.failed = check.text
        self.failed = fault or self.failed

    def for_review(self, state: AgentState) -> str:
        """What the review is told: why there is one, and what is on the record."""
        why = f"a check failed: {self.failed}" if self.failed else "not everything succeeded"
        files = state.files_changed[-FILES:]
        shown = recorded(state.evidence, files, lambda path: (Path(state.folder) / path).exists())
        return (
            f"you said done, but {why}. Mend it, or tell the user plainly that it is not done. "
            f"On record since the last change: {shown}"
        )
