"""Reviews of public commits whose fault was mended later: does a finding get to its line, and is its witness run?

    python -m benchmarks.review_commits CHECKOUT... [--most 30]

A mending commit changes a Python file and a test file, and the tests it adds or changes fail before it and pass with
it, as tried here. The commit under review is the one since which those tests fail: found by halving where some older
commit passes them, else the commit that brought the mended line (git blame). A scripted model reports the line, with
those tests as the witness, so this measures the mechanics and no model's eye. Needs bubblewrap and pytest, and what the
tests of the checkouts import; nothing is fetched."""

import argparse
import ast
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from duckflow.state.changes import read_diff
from tests.cli.shell import Shell
from tests.journeys.story import act, decide, respond

LARGEST_FIX = 12
FIXES_EACH = 400
MENDS_EACH = 8
"""The number of mends that can be tried, of which the regressions are taken first."""
OLDEST = 256
"""The number of commits before a mend among which a passing one is looked for."""
BWRAP = ("bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--die-with-parent")
PYTEST = "PYTHONPATH=src:. python3 -m pytest -q -x -p no:cacheprovider -c /dev/null --rootdir=. -W ignore"


class FaultyCommit(NamedTuple):
    """A commit with a fault, where the fault is, and the tests that came with the mend."""

    checkout: Path
    commit: str
    path: str
    line: int
    test: str
    command: str
    mend: str
    regression: bool
    """Some commit before it passes the tests."""


def git(checkout: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=checkout, capture_output=True, text=True, errors="replace", check=False)
    return done.stdout if not done.returncode else ""


class Tries:
    """Runs the tests of a mend on other commits, in a clone of its own."""

    def __init__(self, checkout: Path, top: Path) -> None:
        self._checkout, self._folder = checkout, top / "tried"
        git(top, "clone", "-q", str(checkout), str(self._folder))

    def run(self, commit: str, test: str, mend: str, command: str) -> int:
        """Returns the exit code; 5 also where the commit cannot be laid out."""
        git(self._folder, "checkout", "-qf", "--detach", commit)
        git(self._folder, "clean", "-fdxq")
        if git(self._folder, "rev-parse", "HEAD") != git(self._folder, "rev-parse", f"{commit}^{{commit}}"):
            return 5
        (self._folder / test).parent.mkdir(parents=True, exist_ok=True)
        (self._folder / test).write_text(git(self._checkout, "show", f"{mend}:{test}"))
        argv = [*BWRAP, "--bind", str(self._folder), str(self._folder), "sh", "-c", command]
        try:
            return subprocess.run(argv, cwd=self._folder, capture_output=True, timeout=60, check=False).returncode
        except subprocess.TimeoutExpired:
            return 5


def faulty_commits(checkout: Path, tries: Tries) -> Iterator[FaultyCommit]:
    """Small mends with tests that show the fault, and the commits that they mend."""
    fixes = git(checkout, "log", "-i", "--no-merges", "--grep=fix", "--grep=bug", f"-{FIXES_EACH}", "--format=%H")
    for mend in fixes.split():
        named = git(checkout, "show", "--format=", "--name-only", mend).split()
        changed = [path for path in named if path.endswith(".py")]
        tests = [path for path in changed if "test" in path]
        sources = [path for path in changed if path not in tests and "docs/" not in path]
        if len(tests) != 1 or len(sources) != 1:
            continue
        removed = [
            line.old
            for line in read_diff(git(checkout, "show", "-U0", "--format=", mend, "--", sources[0]))
            if line.sign == "-"
        ]
        command = _command(checkout, mend, tests[0])
        if not 0 < len(removed) <= LARGEST_FIX or not command:
            continue
        if tries.run(mend, tests[0], mend, command) or tries.run(f"{mend}~1", tests[0], mend, command) != 1:
            continue
        if faulty := _introduced(checkout, tries, mend, command, sources[0], tests[0], removed[0]):
            yield faulty


def _command(checkout: Path, mend: str, test: str) -> str:
    """Runs the test functions that the mend adds lines to."""
    lines = {
        line.new for line in read_diff(git(checkout, "show", "-U0", "--format=", mend, "--", test)) if line.sign == "+"
    }
    try:
        tree = ast.parse(git(checkout, "show", f"{mend}:{test}"))
    except SyntaxError:
        return ""
    holders: list[tuple[str, ast.AST]] = [("", tree)]
    holders += [(f"{node.name}::", node) for node in tree.body if isinstance(node, ast.ClassDef)]
    touched = [
        f"{test}::{prefix}{node.name}"
        for prefix, holder in holders
        for node in ast.iter_child_nodes(holder)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test")
        if lines & {*range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    ]
    return f"{PYTEST} {shlex.join(touched)}" if touched else ""


def _introduced(
    checkout: Path, tries: Tries, mend: str, command: str, path: str, test: str, line: int
) -> FaultyCommit | None:
    blamed = git(checkout, "blame", "-l", "-s", "-n", "-f", "-L", f"{line},{line}", f"{mend}~1", "--", path)
    found = re.match(r"\^?([0-9a-f]{39,40})\s+\S+\s+(\d+)", blamed)
    commit, at, regression = (found[1], int(found[2]), False) if found else ("", 0, False)
    if commit and tries.run(f"{commit}~1", test, mend, command) == 0:
        regression = True
    elif since := _since(checkout, tries, mend, command, test):
        diff = git(checkout, "show", "-U0", "--format=", since, "--", "*.py")
        new = [(one.path, one.new) for one in read_diff(diff) if one.sign in ("+", "-") and "test" not in one.path]
        if new:
            commit, regression, (path, at) = since, True, new[0]
    if not commit or not at or tries.run(commit, test, mend, command) != 1:
        return None
    if not git(checkout, "rev-parse", "-q", "--verify", f"{commit}~1"):
        return None
    return FaultyCommit(checkout, commit, path, at, test, command, mend, regression)


def _since(checkout: Path, tries: Tries, mend: str, command: str, test: str) -> str:
    """The commit since which the tests fail, on the line of first parents; nothing where no older one passes them."""
    line = git(checkout, "rev-list", "--first-parent", f"-{OLDEST + 1}", f"{mend}~1").split()
    fails, step = 0, 1
    while step < len(line) and tries.run(line[step], test, mend, command):
        fails, step = step, step * 2
    if step >= len(line):
        return ""
    passes = step
    while passes - fails > 1:
        middle = (passes + fails) // 2
        passes, fails = (passes, middle) if tries.run(line[middle], test, mend, command) else (middle, fails)
    return line[fails]


def review(faulty: FaultyCommit, top: Path) -> dict[str, object]:
    """One review in a clone of its own, by a script that knows what is wrong."""
    shell = Shell(top, seconds=300)
    shell.work.rmdir()
    git(top, "clone", "-q", str(faulty.checkout), str(shell.work))
    git(shell.work, "checkout", "-q", faulty.commit)
    told: dict[str, Any] = {"path": faulty.path, "line": faulty.line, "severity": "high", "text": "mended later"}
    test = git(faulty.checkout, "show", f"{faulty.mend}:{faulty.test}")
    finding = act("review.finding", **told, command=faulty.command, test_path=faulty.test, test=test)
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
        with tempfile.TemporaryDirectory() as folder:
            tries = Tries(checkout.resolve(), Path(folder))
            found = list(islice(faulty_commits(checkout.resolve(), tries), MENDS_EACH))
            for faulty in sorted(found, key=lambda one: not one.regression):
                if faulty.commit in seen:
                    continue
                seen.add(faulty.commit)
                done += 1
                with tempfile.TemporaryDirectory() as top:
                    result = review(faulty, Path(top))
                kind = "regression" if faulty.regression else "always so"
                counted[f"{kind}: {result['status']}"] += 1
                place = f"{faulty.path}:{faulty.line} mended by {faulty.mend[:10]} ({kind})"
                sys.stdout.write(f"{checkout.name} {faulty.commit[:10]} {place} {json.dumps(result)}\n")
                sys.stdout.flush()
                if len(seen) == each or done == options.most:
                    break
    sys.stdout.write(f"{done} commits: {dict(counted)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
