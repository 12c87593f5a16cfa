"""A witness is run in a copy of the folder, in the sandbox: on the change, and then on the code before it."""

import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from duckflow.errors import DuckflowError
from duckflow.programs.run import FloodError, OverrunError, collect
from duckflow.proof.settings import ProofSettings
from duckflow.proof.trial_folder import MakeLaunch, TrialFolder, Versions
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.state.finding import Witness, WitnessStatus

SECONDS = 60.0
MOST_PRINTED = 4 * 1024 * 1024
KEPT = 2_000
NO_PROGRAM = (126, 127)
PYTEST = re.compile(r"\b(?:pytest|py\.test)\b")
PYTEST_BROKEN = (2, 3, 4, 5)
"""Its exit codes where no test was judged: errors while collecting, of its own, of usage, and no tests at all."""


@dataclass(frozen=True, slots=True)
class WitnessRunner:
    """Needs bubblewrap: no other sandbox puts a copy in the place of the folder."""

    find_sandbox: Callable[[], Awaitable[Sandbox]]
    make_launch: MakeLaunch
    settings: ProofSettings

    async def run(self, witness: Witness, before: Versions) -> Witness:
        sandbox = await self.find_sandbox()
        if sandbox.kind != "bubblewrap":
            return witness
        folder = TrialFolder(sandbox, self.make_launch, self.settings)
        own: Versions = {witness.path: witness.text.encode()} if witness.path else {}
        code, output = await _run(folder, witness.command, own)
        ran: dict[str, Any] = {"code": code, "output": output}
        if not _judges(witness.command, code):
            return witness.model_copy(update={**ran, "status": "broken"})
        if code == 0:
            return witness.model_copy(update={**ran, "status": "passes"})
        if not before:
            return witness.model_copy(update={**ran, "status": "fails_new"})
        before_code, _ = await _run(folder, witness.command, {**before, **own})
        # A run on the code before that was stopped has not passed there.
        tried = before_code is None or _judges(witness.command, before_code)
        status: WitnessStatus = "fails" if before_code == 0 else "fails_before_too" if tried else "fails_new"
        return witness.model_copy(update={**ran, "status": status, "before_code": before_code})


async def _run(folder: TrialFolder, command: str, versions: Versions) -> tuple[int | None, str]:
    """The exit code, and the end of what was printed; no code where it was stopped."""
    deadline = time.monotonic() + SECONDS
    try:
        async with folder.launch(command, versions) as launch:
            left = max(1.0, deadline - time.monotonic())
            printed = await collect(launch, seconds=left, most=MOST_PRINTED)
    except (TimeoutError, OverrunError, FloodError) as problem:
        return None, type(problem).__name__
    except (DuckflowError, OSError) as problem:
        return None, str(problem)
    text = b"\n".join(filter(None, (printed.out, printed.err))).decode("utf-8", "replace").strip()
    return printed.code, text[-KEPT:]


def _judges(command: str, code: int | None) -> bool:
    """Says whether a run with this exit code has tried what it is for."""
    return code is not None and code not in NO_PROGRAM and not (PYTEST.search(command) and code in PYTEST_BROKEN)
