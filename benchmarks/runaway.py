"""The reference scorer `runaway.py`, for programs whose tools take other arguments than its models give.

usage: python -m benchmarks.runaway SCORER NAME [--limit 60] -- COMMAND...     (SCORER: ../shared/bench/runaway.py)

Its models write relative paths, take `todowrite` for a tool that writes files, and need a tool that searches. Here a
path is absolute where the tool asks for that, a tool with the very name comes first, and grep runs in the shell where
no tool searches. The behaviours, and what counts as stopped, are those of the scorer.
"""

import json
import re
import shlex
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

PATHS = {"path", "file_path", "filePath"}


def adapt(oracle: Any, runaway: Any) -> None:
    """Puts the three differences into the scorer's modules."""
    loosely, fill, call, hear = oracle.named, oracle.Native.filled, runaway.Speaker._call, runaway.Speaker.__init__

    def named(names: Any, *words: str) -> str | None:
        return next((word for word in words if word in names), None) or loosely(names, *words)

    def heard(self: Any, request: dict[str, Any]) -> None:
        hear(self, request)
        place = re.search(rf"{tempfile.gettempdir()}/\w+/work\b", json.dumps(request["messages"]))
        if self.native and place:
            self.native.folder = Path(place[0])

    def filled(self: Any, name: str, values: dict[str, Any]) -> Any:
        asked = [field for field in PATHS & values.keys() if "absolute" in json.dumps(self.fields(name)[field])]
        return fill(self, name, values | {field: str(self.folder / values[field]) for field in asked if self.folder})

    def called(self: Any, kind: str, what: Any) -> Any:
        if kind == "grep" and not named(self.native.tools, "grep", "search"):
            return call(self, "run", f"grep -rn {shlex.quote(what)} .")
        return call(self, kind, what)

    oracle.named = runaway.named = named
    oracle.Native.filled = filled
    runaway.Speaker.__init__, runaway.Speaker._call = heard, called


if __name__ == "__main__":
    sys.path.insert(0, str(Path(sys.argv.pop(1)).resolve().parent))
    scorer = import_module("runaway")
    adapt(import_module("oracle"), scorer)
    scorer.main()
