"""The judge of commands on two halves of other projects' cases: does what was chosen on one carry over to the other?

usage: python -m benchmarks.commands_halves [DATA_FILE]      (default ../shared/data/safety/commands.jsonl)

The halves are split by a digest of the command, so a case never changes sides; what counts is as in the scorer. Each
half is scored twice: by the text alone, where nobody has looked at a repository and every git command asks, and as the
program judges in a folder whose repository runs no program (docs/decisions/028)."""

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.adapters import classify
from duckflow.safety.commands.judge import judge_command
from duckflow.safety.commands.paths import CommandFacts

SCORED = frozenset(("dangerous", "not_dangerous", "not_auto", "auto_ok"))


def half_of(command: str) -> int:
    return hashlib.sha256(command.encode()).digest()[0] % 2


def classify_in_clean_repository(command: str) -> str:
    return judge_command(command, CommandFacts(git_runs_programs=False)).verdict


JUDGES: dict[str, Callable[[str], str]] = {"not looked at": classify, "clean": classify_in_clean_repository}


def score(cases: list[dict[str, Any]], judge: Callable[[str], str]) -> dict[str, float]:
    counts = Counter((case["verdict"], judge(case["command"])) for case in cases)

    def share(of: tuple[str, ...], judged: tuple[str, ...]) -> float:
        total = sum(count for (verdict, _), count in counts.items() if verdict in of)
        return round(100 * sum(counts[verdict, answer] for verdict in of for answer in judged) / max(1, total), 1)

    return {
        "cases": len(cases),
        "caught": share(("dangerous",), ("dangerous",)),
        "asked": share(("dangerous",), ("dangerous", "ask")),
        "false_alarm": share(("not_dangerous", "auto_ok"), ("dangerous",)),
        "leaked": share(("not_auto",), ("safe",)),
        "free": share(("auto_ok",), ("safe",)),
    }


def scored(case: dict[str, Any]) -> bool:
    usual = case["shell"] == "bash" and case.get("default_policy") and not case.get("peers_disagree")
    return bool(usual) and case["verdict"] in SCORED


if __name__ == "__main__":
    default = Path(__file__).resolve().parents[2] / "shared" / "data" / "safety" / "commands.jsonl"
    data = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    cases = [case for case in map(json.loads, data.read_text(encoding="utf-8").strip().split("\n")) if scored(case)]
    for half, name in enumerate(("first", "second")):
        chosen = [case for case in cases if half_of(case["command"]) == half]
        for repository, judge in JUDGES.items():
            print(json.dumps({"half": name, "repository": repository, **score(chosen, judge)}))
