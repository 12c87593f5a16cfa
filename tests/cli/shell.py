"""`duckflow` as a shell runs it: a real process in a folder and a home of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.forked_program import can_fork, run_forked
from tests.journeys.story import decide, respond

DUCKFLOW = f"{sys.executable} -m duckflow"
HELLO = decide(respond("Hello there."), step="PLANNING")


class Shell:
    """Runs Duckflow so that none of this machine's own settings or keys is seen."""

    def __init__(self, top: Path, seconds: float = 60) -> None:
        self.seconds = seconds
        self.work = top / "work"
        self.work.mkdir()
        self.home = top / "home"
        self.config = self.home / "config/config.toml"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(top),
            "TMPDIR": str(top),
            "DUCKFLOW_HOME": str(self.home),
            "LC_ALL": "C.UTF-8",
            **{name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ},
        }

    def run(
        self, *arguments: str, stdin: str | None = None, **environment: str | None
    ) -> subprocess.CompletedProcess[str]:
        """The command with these arguments; a variable that is None is taken away."""
        variables = self._variables(environment)
        if can_fork(variables):
            return run_forked(arguments, self.work, variables, stdin, self.seconds)
        return self._finished([sys.executable, "-m", "duckflow", *arguments], stdin, variables)

    def sh(self, line: str, **environment: str | None) -> subprocess.CompletedProcess[str]:
        """A line for bash, in which `duckflow` stands for the command."""
        function = f'duckflow() {{ {DUCKFLOW} "$@"; }}\n'
        return self._finished(["bash", "-c", function + line], None, self._variables(environment))

    def write_config(self, text: str | bytes) -> None:
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_bytes(text.encode() if isinstance(text, str) else text)

    def script(self, *replies: Any) -> str:
        """The name of a model that says these replies, one greeting without any."""
        path = self.home / "script.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(json.dumps({"json": r} if "actions" in r else r) for r in replies or [HELLO]))
        return f"scripted:{path}"

    def _variables(self, changed: dict[str, str | None]) -> dict[str, str]:
        return {name: value for name, value in (self.environment | changed).items() if value is not None}

    def _finished(
        self, command: list[str], stdin: str | None, variables: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.work,
            env=variables,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=self.seconds,
            check=False,
        )
