"""How well the proof of tests works on real commits: real tests of a real change, and hollow twins of the same tests.

    python -m benchmarks.proof FOLDER [--repositories a,b] [--commits 10] [--seconds 30] [--real] [--alone]
        [--python PROGRAM]

Commits are taken from the newest on, by rule: no merges, tests and code in Python changed together, at most 400 changed
lines, and the changed test files pass. What the product says of them has no part in the choice. Each commit is tried as
it is, and with two of four kinds of hollow twins by turns; a twin that does not pass is left out. The repositories are
not part of this project.

`--real` leaves the twins out. `--alone` gives the product the tests without the change of code that they came with, as
in a turn that only writes tests; breaks of the code that they run have to decide there.

On a machine with other work the clock says little. So the time limit of a trial is `--seconds` times what a run of the
same tests right before it took by the clock for each second of processor time, and processor time is reported too."""

import argparse
import asyncio
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.proof_twins import KINDS, twins
from duckflow.programs.launch import Launch
from duckflow.proof.breaking import FEW_SECONDS, PATIENCE
from duckflow.proof.settings import ProofSettings
from duckflow.proof.trial import RedGreenTrial, TestsInQuestion, questions_of
from duckflow.safety.environment import environment
from duckflow.safety.sandbox.choose import choose
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.safety.sandbox.settings import SandboxSettings
from duckflow.safety.undo.facts import FileVersions
from duckflow.state.checks import Proof, belongs_to_tests

MOST_LINES = 400
LOOKED_AT = 1500
SECONDS = ProofSettings().seconds
VERDICTS = {"proven": "proof", "guards": "guards", "hollow": "hollow", "unknown": "cannot tell"}
"""The product's verdicts, and how the report calls them. `guards`: the tests pass without the change too, and fail on
code that is broken on purpose."""
TIMES, SPENT = "trial-times", re.compile(r"(\d+)m([\d.]+)s")


def git(repository: Path, *words: str) -> bytes:
    return subprocess.run(
        ["git", f"--git-dir={repository}", *words], capture_output=True, check=True, timeout=120
    ).stdout


def present(repository: Path, commit: str, *words: str) -> bytes:
    """Returns what git says of a commit; nothing, with a word about it, where the repository lacks some object."""
    try:
        return git(repository, *words)
    except subprocess.CalledProcessError as problem:
        print(f"{repository.parent.name} {commit[:10]} skipped: {problem.stderr.decode(errors='replace').strip()}")
        return b""


def blob(repository: Path, commit: str, path: str) -> bytes | None:
    done = subprocess.run(
        ["git", f"--git-dir={repository}", "show", f"{commit}:{path}"], capture_output=True, check=False, timeout=60
    )
    return done.stdout if done.returncode == 0 else None


def candidates(repository: Path) -> Iterator[tuple[str, list[FileVersions]]]:
    """Commits that change tests and code together, the newest first."""
    for commit in git(repository, "log", "--no-merges", f"-{LOOKED_AT}", "--format=%H", "HEAD").decode().split():
        rows = present(repository, commit, "show", "--format=", "--numstat", commit).decode().split("\n")
        changed = [row.split("\t") for row in rows if row.count("\t") == 2]
        paths = [path for added, _, path in changed if path.endswith(".py") and added.isdecimal()]
        lines = sum(int(added) + int(removed) for added, removed, path in changed if path in paths)
        if not any(map(belongs_to_tests, paths)) or all(map(belongs_to_tests, paths)) or lines > MOST_LINES:
            continue
        if any("=>" in path for path in paths):
            continue
        yield (
            commit,
            [
                FileVersions(path, blob(repository, f"{commit}^", path), blob(repository, commit, path))
                for _, _, path in changed
            ],
        )


def checkout(repository: Path, commit: str, folder: Path) -> bool:
    """Writes the files of a commit, and says whether they are all there."""
    files = present(repository, commit, "archive", commit)
    if files:
        subprocess.run(["tar", "-x", "-C", folder], input=files, check=True)
    return bool(files)


@dataclass
class Tried:
    """One trial of a commit, as it is or with twins."""

    repository: str
    commit: str
    kind: str
    proof: Proof
    processor: float
    """The processor time of the trial with all its programs, in seconds."""

    in_question: int

    def tests(self) -> Counter[str]:
        names = ("red", "noticing", "guarding", "hollow", "untold")
        counts = Counter({name: len(getattr(self.proof, name)) for name in names})
        counts["unsaid"] = max(0, self.in_question - counts.total())
        return counts


@dataclass
class Bench:
    """Tries commits with the product's own classes."""

    python: str
    seconds: float = SECONDS
    twins: bool = True
    alone: bool = False
    load: float = 1.0
    """Seconds of the clock for each second of processor time, in the last run of tests without a trial."""
    rows: list[Tried] = field(default_factory=list[Tried])

    async def repository(self, path: Path, wanted: int) -> None:
        taken = 0
        for commit, changes in candidates(path / "repo"):
            questions = questions_of(changes)
            if questions is None or not questions.tests:
                continue
            with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as top:
                folder = Path(top).resolve() / "work"
                folder.mkdir()
                if not checkout(path / "repo", commit, folder) or not self.passes(folder, questions):
                    continue
                kinds = ("real", KINDS[taken % 4], KINDS[(taken + 2 + taken // 4) % 4])
                for kind in dict.fromkeys(kinds if self.twins else kinds[:1]):
                    await self._try(path.name, commit, folder, kind, changes, questions)
            taken += 1
            if taken >= wanted:
                return

    async def _try(
        self, name: str, commit: str, folder: Path, kind: str, changes: list[FileVersions], questions: TestsInQuestion
    ) -> None:
        versions = changes if kind == "real" else twins(changes, questions, kind)
        given = [one for one in versions or () if belongs_to_tests(one.path) or not self.alone]
        asked = questions_of(given)
        if not versions or asked is None:
            return
        for one in versions:
            if one.after is not None:
                (folder / one.path).write_bytes(one.after)
        try:
            if kind != "real" and not self.passes(folder, asked):
                return
            sandbox = choose(SandboxSettings(), folder)
            trial = RedGreenTrial(asked, self.command(folder, asked), ProofSettings(seconds=self.seconds * self.load))
            (sandbox.paths.scratch.folder / TIMES).touch()
            proof = await trial.run(sandbox, launch)
            took = processor_time(sandbox)
            sandbox.close()
        finally:
            for one in changes:
                if one.after is not None:
                    (folder / one.path).write_bytes(one.after)
        in_question = sum(len(asked.names(of)) for of in ("tried", "trivial", "copies"))
        row = Tried(name, commit[:10], kind, proof, took, in_question)
        self.rows.append(row)
        why = proof.why.key if proof.why else ""
        hollow = ", ".join(proof.hollow) if kind == "real" else ""
        counted = dict(+row.tests())
        print(
            f"{name:32} {commit[:10]} {kind:12} {proof.verdict:8} {counted} {why} {proof.seconds}s {took:.1f}s {hollow}"
        )
        sys.stdout.flush()

    def command(self, folder: Path, questions: TestsInQuestion) -> str:
        files = " ".join(questions.files)
        return f"PYTHONPATH={folder}:{folder}/src {self.python} -m pytest -q -p no:cacheprovider {files}"

    def passes(self, folder: Path, questions: TestsInQuestion) -> bool:
        wanted = [f"{path}::{name}" for path, tests in questions.tests.items() for name in tests]
        if not wanted:
            return True
        files = self.command(folder, questions).rpartition(" no:cacheprovider ")[0] + " no:cacheprovider "
        command = files + " ".join(f"'{name}'" for name in wanted)
        clock, processor = time.monotonic(), _processor_time()
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", command],
                cwd=folder,
                env=self.variables(),
                capture_output=True,
                check=False,
                timeout=120,
            )
        except subprocess.TimeoutExpired:
            return False
        self.load = max(1.0, (time.monotonic() - clock) / max(0.1, _processor_time() - processor))
        return done.returncode == 0

    def variables(self) -> dict[str, str]:
        return {**environment(os.environ), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def launch(sandbox: Sandbox, command: str) -> Launch:
    variables = {**environment(os.environ), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    watched = f"echo begun >>/tmp/{TIMES}; trap 'times >>/tmp/{TIMES}' EXIT; {command}"
    return Launch(("/bin/sh", "-c", watched), sandbox.paths.folder, variables)


def _processor_time() -> float:
    """Returns the processor time of the programs that have ended."""
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def processor_time(sandbox: Sandbox) -> float:
    """Returns the processor time of all runs in the sandbox. A run that was ended because the broken code took too long
    counts with the time that it would have got on a quiet machine."""
    noted = (sandbox.paths.scratch.folder / TIMES).read_text()
    runs = [
        sum(60 * float(minutes) + float(seconds) for minutes, seconds in SPENT.findall(run))
        for run in noted.split("begun\n")[1:]
    ]
    longest = FEW_SECONDS + PATIENCE * runs[0] if runs else 0.0
    return sum(run or longest for run in runs)


def report(rows: list[Tried]) -> dict[str, float]:
    """The figures: of commits, and of single tests."""
    real, hollow = [row for row in rows if row.kind == "real"], [row for row in rows if row.kind != "real"]
    verdicts, twin_verdicts = Counter(row.proof.verdict for row in real), Counter(row.proof.verdict for row in hollow)
    unknown = [row for row in real if row.proof.verdict == "unknown"]
    late = [row for row in unknown if row.proof.why and row.proof.why.key == "proof.time"]
    noticed = [row for row in hollow if row.proof.verdict == "hollow"]
    tests = sum((row.tests() for row in real), Counter[str]())
    twin_tests = sum((row.tests() for row in hollow), Counter[str]())
    return {
        "commits": len(real),
        **{f"{said} % (commits)": _share(verdicts[verdict], len(real)) for verdict, said in VERDICTS.items()},
        "real called hollow % (commits with nothing else)": _share(
            sum(row.proof.verdict == "hollow" and not row.proof.red + row.proof.noticing for row in real), len(real)
        ),
        "real tests": tests.total(),
        "real tests called hollow": tests["hollow"],
        "real tests called hollow %": _share(tests["hollow"], tests.total()),
        "cannot tell for want of time % (commits)": _share(len(late), len(real)),
        "cannot tell % (tests)": _share(tests["untold"], tests.total()),
        "nothing said % (tests)": _share(tests["unsaid"], tests.total()),
        "twins": len(hollow),
        "twins noticed %": _share(len(noticed), len(hollow)),
        **{f"twins: {said}": twin_verdicts[verdict] for verdict, said in VERDICTS.items()},
        "twin tests noticed %": _share(twin_tests["hollow"], twin_tests.total()),
        **{
            f"twins noticed %, {kind}": _share(
                sum(row.kind == kind for row in noticed), sum(row.kind == kind for row in hollow)
            )
            for kind in KINDS
        },
        **_spread("seconds of the clock", [row.proof.seconds for row in real]),
        **_spread("seconds of the processor", [row.processor for row in real]),
    }


def _spread(name: str, values: list[float]) -> dict[str, float]:
    values = sorted(values) or [0.0]
    return {
        f"{name}, median": round(statistics.median(values), 1),
        f"{name}, 95 %": round(values[int(len(values) * 0.95)], 1),
    }


def _share(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repositories", default="")
    parser.add_argument("--commits", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    folder: Path = options.folder
    names: list[str] = options.repositories.split(",") if options.repositories else sorted(os.listdir(folder))
    bench = Bench(options.python, options.seconds, not options.real, options.alone)
    for name in names:
        if (folder / name / "repo").is_dir():
            asyncio.run(bench.repository(folder / name, options.commits))
    print(json.dumps(report(bench.rows), indent=2))


if __name__ == "__main__":
    main()
