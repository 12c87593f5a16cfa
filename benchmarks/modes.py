"""What each mode would have asked about: other projects' commands, put to the real Gate; none of them is run.

usage: python -m benchmarks.modes [DATA_FILE] [--record]      (default ../shared/data/safety/commands.jsonl)

asked   destructive commands that are asked about (or refused)     leaked  commands that want a look and run without one
free    harmless reading commands that run without a question      caught  destructive commands that are called so

What runs without a question in `auto` and `full-auto` runs shut in the sandbox. --record writes the figures into the
package, where `/mode` shows them."""

import argparse
import asyncio
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.commands_halves import scored
from duckflow.agent.actor import Actor
from duckflow.agent.gatekeeper import Gatekeeper, Ready
from duckflow.agent.permissions import Permissions
from duckflow.agent.phases import Phases, transition_table
from duckflow.agent.session import begin
from duckflow.config.settings import Settings
from duckflow.safety.commands.judge import judge_command
from duckflow.safety.commands.paths import CommandFacts
from duckflow.safety.commands.verdict import CommandVerdict
from duckflow.safety.sandbox.choose import choose
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.state.action import Action
from duckflow.state.mode import Mode
from duckflow.state.question import NOBODY, Answer, Question
from duckflow.tools.shell.background import Background
from duckflow.tools.shell.run import ShellArgs, ShellRun

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "safety" / "commands.jsonl"
RECORD = Path(__file__).resolve().parents[1] / "src" / "duckflow" / "commands" / "mode_figures.json"


class Gate:
    """The Gate of a conversation in an empty folder, with a sandbox and undo."""

    def __init__(self, top: Path) -> None:
        folder = top / "work"
        folder.mkdir()
        settings = Settings()
        self.sandbox: Sandbox = choose(settings.sandbox, folder, private=[])
        # As in the scorer: nobody has looked what git runs here, so git does not only read.
        self._facts = CommandFacts(str(folder), str(Path.home()))
        session = begin(top / "s.db", "s", folder, "en")
        self._tool = ShellRun(self._find, settings.shell, self.judged, Background())
        phases, permissions = (
            Phases(session, transition_table(settings.transitions)),
            Permissions(top / "permissions.json"),
        )
        self._actor = Actor(session.emit, self._nobody)
        self._gatekeeper = Gatekeeper(session, phases, Mode.ASK, permissions, True, self._sandboxed, self._unkept)

    async def _nobody(self, question: Question) -> Answer:
        """Answers for a user who is never asked here."""
        return Answer(choice=NOBODY)

    async def _unkept(self, paths: Sequence[str]) -> frozenset[str]:
        """Says that undo keeps every file, since the folder is empty."""
        return frozenset()

    def judged(self, command: str) -> CommandVerdict:
        return judge_command(command, self._facts)

    async def passes(self, command: str, mode: Mode) -> bool:
        await self._tool.get_ready()
        self._gatekeeper.mode = mode
        action = Action(operation="shell.run", args={"command": command}, reasoning="measured")
        try:
            args = ShellArgs(command=command)
        except ValueError:
            # Nobody could run it.
            return False
        call = Ready(action, self._tool, args, self._tool.preview(args))
        return await self._gatekeeper.lets_pass(call, self._actor)

    async def _find(self) -> Sandbox:
        return self.sandbox

    async def _sandboxed(self) -> bool:
        return self.sandbox.kind != "none"


async def measured(cases: list[dict[str, Any]]) -> dict[str, Any]:
    by_verdict = {verdict: [case["command"] for case in cases if case["verdict"] == verdict] for verdict in VERDICTS}
    destructive, doubtful, harmless = (by_verdict[verdict] for verdict in VERDICTS)
    with tempfile.TemporaryDirectory() as top:
        gate = Gate(Path(top))

        async def passing(commands: list[str], mode: Mode) -> float:
            return percent(sum([await gate.passes(command, mode) for command in commands]), len(commands))

        modes = {
            str(mode): {
                "asked": round(100 - await passing(destructive, mode), 1),
                "leaked": await passing(doubtful, mode),
                "free": await passing(harmless, mode),
            }
            for mode in Mode
        }
        caught = sum(gate.judged(command).verdict == "dangerous" for command in destructive)
        return {
            "destructive": len(destructive),
            "doubtful": len(doubtful),
            "harmless": len(harmless),
            "caught": percent(caught, len(destructive)),
            "sandbox": gate.sandbox.kind,
            "modes": modes,
        }


def percent(part: int, whole: int) -> float:
    return round(100 * part / max(1, whole), 1)


VERDICTS = ("dangerous", "not_auto", "auto_ok")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="?", type=Path, default=DATA)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    lines = options.data.read_text(encoding="utf-8").strip().split("\n")
    figures = asyncio.run(measured([case for case in map(json.loads, lines) if scored(case)]))
    print(json.dumps(figures))
    if options.record:
        RECORD.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
