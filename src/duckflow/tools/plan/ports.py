"""The interfaces that the plan tools need from outside."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from duckflow.state.job import Job


class Think(Protocol):
    """Asks the model to carry out a procedure. `failures` are earlier replies, each with what was wrong with it."""

    async def __call__(
        self,
        procedure: str,
        values: Mapping[str, str],
        schema: dict[str, Any],
        failures: Sequence[tuple[str, str]],
    ) -> str: ...


class Jobs(Protocol):
    """The background worker, as tools see it. It raises a ToolError for what cannot be done."""

    def start(self, plan_id: str, step_ids: Sequence[str]) -> Job: ...

    async def pause(self, job_id: str) -> Job: ...

    async def resume(self, job_id: str) -> Job: ...

    async def cancel(self, job_id: str) -> Job: ...


class Approval(Protocol):
    """Takes the user's yes to a draft from the model. Raises a ToolError if the words are no yes."""

    async def pass_on(self, words: str, background: bool) -> str: ...


class Folder(Protocol):
    """The work folder, as far as planning looks at it."""

    def names(self) -> list[str]: ...

    def text(self, path: str) -> str: ...

    def exists(self, path: str) -> bool: ...

    def changed_since(self, at: float) -> bool:
        """Says whether a file was made, deleted or written since then. Caches and files that git ignores do not
        count."""
        ...

    def has_content(self, path: str) -> bool:
        """Says whether it is a file of its own (no link) that has content, or a kind of file that is always empty."""
        ...
