"""Reviews of public commits whose fault was mended later: does a finding get to its line, and is its witness run?

    python -m benchmarks.review_commits CHECKOUT... [--most 30]

A mending commit changes a Python file and a test of its own. The commit that is reviewed is the one that brought the
line which was mended (git blame). A scripted model reports that line, with the mended test as the witness, so this
measures the mechanics and no model's eye. Needs bubblewrap and pytest; nothing is fetched."""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.cli.shell import Shell
from tests.journeys.story import act, decide, respond

HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? ", re.MULTILINE)
LARGEST_FIX = 12
FIXES_EACH = 400


class FaultyCommit(NamedTuple):
    """A commit with a fault, where the fault is, and the test that came with the mend."""

    checkout: Path
    commit: str
    path: str
    line: int
    test: str
    mend: str


def git(checkout: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=checkout, capture_output=True, text=True, errors="replace", check=False)
    return done.stdout if not done.returncode else ""


def faulty_commits(checkout: Path) -> Iterator[FaultyCommit]:
    """Small mends with a test, and the commits that they mend."""
    fixes = git(checkout, "log", "-i", "--no-merges", "--grep=fix", "--grep=bug", f"-{FIXES_EACH}", "--format=%H")
    for mend in fixes.split():
        named = git(checkout, "show", "--format=", "--name-only", mend).split()
        changed = [path for path in named if path.endswith(".py")]
        tests = [path for path in changed if "test" in path]
        sources = [path for path in changed if path not in tests and "docs/" not in path]
        if len(tests) != 1 or len(sources) != 1:
            continue
        hunks = HUNK.findall(git(checkout, "show", "-U0", "--format=", mend, "--", sources[0]))
        lines = [int(start) for start, count in hunks if count != "0"]
        if not lines or len(hunks) > 2 or sum(int(count or 1) for _, count in hunks) > LARGEST_FIX:
            continue
        blamed = git(checkout, "blame", "-l", "-s", "-n", "-L", f"{lines[0]},{lines[0]}", f"{mend}~1", "--", sources[0])
        found = re.match(r"([0-9a-f]{40})\s+(?:\S+\s+)?(\d+)", blamed)
        if found and git(checkout, "rev-parse", "-q", "--verify", f"{found[1]}~1"):
            line, path = int(found[2]), sources[0]
            if len(git(checkout, "show", f"{found[1]}:{path}").splitlines()) >= line:
                yield FaultyCommit(checkout, found[1], path, line, tests[0], mend)


def review(faulty: FaultyCommit, top: Path) -> dict[str, object]:
    """One review in a clone of its own, by a script that knows what is wrong."""
    shell = Shell(top, seconds=300)
    shell.work.rmdir()
    git(top, "clone", "-q", str(faulty.checkout), str(shell.work))
    git(shell.work, "checkout", "-q", faulty.commit)
    told: dict[str, Any] = {"path": faulty.path, "line": faulty.line, "severity": "high", "text": "mended later"}
    test = git(faulty.checkout, "show", f"{faulty.mend}:{faulty.test}")
    command = f"python3 -m pytest -q -x -p no:cacheprovider {faulty.test}"
    finding = act("review.finding", **told, command=command, test_path=faulty.test, test=test)
    model = shell.script(decide(finding, next_step="continue"), decide(respond("One fault.")))
    done = shell.run("review", faulty.commit, "--format", "json", "-m", model, "--trust")
    try:
        (found,) = json.loads(done.stdout)["findings"]
    except ValueError:
        return {"status": f"exit {done.returncode}: {done.stderr.strip()[-200:]}"}
    return {"status": found["witness"]["status"], "shown": found["shown"], "exit": done.returncode}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--most", type=int, default=30)
    options = parser.parse_args()
    each, counted, done = -(-options.most // len(options.checkouts)), Counter[str](), 0
    for checkout in options.checkouts:
        seen = set[str]()
        for faulty in faulty_commits(checkout):
            if len(seen) == each or done == options.most:
                break
            if faulty.commit in seen:
                continue
            seen.add(faulty.commit)
            done += 1
            with tempfile.TemporaryDirectory() as top:
                result = review(faulty, Path(top))
            counted[str(result["status"])] += 1
            place = f"{faulty.path}:{faulty.line}"
            sys.stdout.write(f"{checkout.name} {faulty.commit[:10]} {place} {json.dumps(result)}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{done} commits: {dict(counted)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
