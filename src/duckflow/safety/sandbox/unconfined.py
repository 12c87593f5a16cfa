"""No sandbox: the command can do what the user can. It is only seen to that nothing outlives it."""

import sys
from collections.abc import Sequence

from duckflow.safety.sandbox.repositories import repositories
from duckflow.safety.sandbox.sandbox import Launch, Sandbox


class Unconfined(Sandbox):
    """Every command must be asked for."""

    kind = "none"

    def launch(self, command: Sequence[str], network: bool = False, writes: bool = True) -> Launch:
        found = repositories(self.paths.folder)
        before = found.traces()
        launch = _launch(command)
        launch.environment["TMPDIR"] = str(self.paths.scratch.folder)
        launch.meddled = lambda: found.meddled(before, self.paths.folder)
        return launch


def _launch(command: Sequence[str]) -> Launch:
    if sys.platform != "linux":
        return Launch(argv=command)
    from duckflow.safety.sandbox.orders import launch_by_orders

    return launch_by_orders(command)
