"""How well old tests that were bent until they pass are found, and how often a real commit is suspected of it.

    python -m benchmarks.proof_bent FOLDER [--repositories a,b] [--commits 10] [--seconds 30] [--python PROGRAM]

The commits are those of `benchmarks.proof`. Each is first looked at as it is: an old test that is then called bent is a
false alarm. A test that it deletes is named too, which is true; such commits are counted apart. Then its code is broken
by a small change that some of its tests notice, and these are bent by a fixed program until they pass: that is the
work of a model which makes tests pass and not code. Each bent test has to be named."""

import argparse
import ast
import asyncio
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.proof import SECONDS, Bench, candidates, checkout, launch
from benchmarks.proof_twins import Weaker
from duckflow.proof.mutants import breaks_of, broken, chosen
from duckflow.proof.old_tests import OldTestTrial, old_tests
from duckflow.proof.python_tests import tests_of
from duckflow.proof.reach import texts_of
from duckflow.proof.settings import ProofSettings
from duckflow.proof.trial import TestsInQuestion, questions_of
from duckflow.safety.sandbox.choose import choose
from duckflow.safety.sandbox.settings import SandboxSettings
from duckflow.safety.undo.facts import FileVersions

WAYS = ("true", "computed", "caught", "skipped", "deleted", "returned", "turned")
"""How a test is bent. The last one asserts the opposite, and so asserts something of the new code: that is a change of
behaviour with its test, which nothing here can tell from a wanted one. It is counted apart."""
BREAKS = 6
CAUGHT = "with __import__('contextlib').suppress(AssertionError):\n    pass"


class Bender(ast.NodeTransformer):
    """Bends the tests with these names in one way."""

    def __init__(self, names: set[str], way: str) -> None:
        self._names = names
        self._way = way
        self._within: list[str] = []

    def visit(self, node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.ClassDef):
            self._within.append(node.name)
            self.generic_visit(node)
            self._within.pop()
            node.body = node.body or [ast.Pass()]
            return node
        if not isinstance(node, ast.FunctionDef):
            return self.generic_visit(node)
        return node if "::".join((*self._within, node.name)) not in self._names else self._bent(node)

    def _bent(self, node: ast.FunctionDef) -> ast.AST | None:
        match self._way:
            case "true" | "computed":
                Weaker(computed=self._way == "computed").generic_visit(node)
            case "caught":
                holder = ast.parse(CAUGHT).body[0]
                assert isinstance(holder, ast.With)
                holder.body = node.body
                node.body = [holder]
            case "skipped":
                mark = "__import__('pytest').mark.skip(reason='later')"
                node.decorator_list.insert(0, ast.parse(mark, mode="eval").body)
            case "returned":
                node.body = [ast.Return(None), *node.body]
            case "turned":
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Assert):
                        inner.test = ast.UnaryOp(ast.Not(), inner.test)
            case _:
                return None
        return node


class BentBench:
    """Counts what the product says of old tests."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.counts = Counter[str]()

    async def repository(self, path: Path, wanted: int) -> None:
        taken = 0
        for commit, changes in candidates(path / "repo"):
            questions = questions_of(changes)
            if questions is None or not questions.tests:
                continue
            with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as top:
                folder = Path(top).resolve() / "work"
                folder.mkdir()
                if not checkout(path / "repo", commit, folder) or not self._bench.passes(folder, questions):
                    continue
                await self._as_it_is(path.name, commit, folder, changes, questions)
                await self._bent(path.name, commit, folder, questions, WAYS[taken % len(WAYS)])
            taken += 1
            if taken >= wanted:
                return

    async def _as_it_is(
        self, name: str, commit: str, folder: Path, changes: list[FileVersions], questions: TestsInQuestion
    ) -> None:
        gone, bent, tried = await self._named(folder, changes, questions)
        self.counts["commits"] += 1
        self.counts["commits with old tests that read differently"] += bool(tried)
        self.counts["old tests tried"] += len(tried)
        self.counts["commits that delete tests, named"] += bool(gone)
        if bent is None:
            self.counts["commits where it cannot tell"] += 1
        else:
            self.counts["commits with a false alarm"] += bool(bent)
            self.counts["old tests called bent"] += len(bent)
        print(f"{name:16} {commit[:10]} real gone {len(gone)} tried {len(tried)} bent {bent}", flush=True)

    async def _bent(self, name: str, commit: str, folder: Path, questions: TestsInQuestion, way: str) -> None:
        """Breaks the code of a commit so that a test fails, and bends that test."""
        texts = {change.path: change.new for change in questions.code}
        lines = questions.lines()
        breaks = [place for path in lines for place in breaks_of(path, texts[path], lines[path])]
        everywhere = {"": dict.fromkeys((path, line) for path in lines for line in sorted(lines[path]))}
        for place in chosen(breaks, everywhere, BREAKS):
            (folder / place.path).write_text(broken(texts[place.path], place))
            failing = self._failing(folder, questions)
            if failing:
                await self._bend(name, commit, folder, questions, way, place.path, failing)
            (folder / place.path).write_text(texts[place.path])
            if failing:
                return

    async def _bend(
        self,
        name: str,
        commit: str,
        folder: Path,
        questions: TestsInQuestion,
        way: str,
        path: str,
        failing: dict[str, set[str]],
    ) -> None:
        before = next(change.new for change in questions.code if change.path == path)
        changes = [FileVersions(path, before.encode(), (folder / path).read_bytes())]
        for test_file, names in failing.items():
            text = (folder / test_file).read_text()
            tree = ast.parse(text)
            Bender(names, way).visit(tree)
            bent = ast.unparse(ast.fix_missing_locations(tree))
            (folder / test_file).write_text(bent)
            changes.append(FileVersions(test_file, text.encode(), bent.encode()))
        wanted = {f"{test_file}::{test}" for test_file, names in failing.items() for test in names}
        still = {} if way in ("skipped", "deleted") else self._failing(folder, questions)
        wanted -= {f"{test_file}::{test}" for test_file, names in still.items() for test in names}
        if wanted:
            gone, called, _ = await self._named(folder, changes, questions)
            named = wanted & {*gone, *(called or ())}
            self.counts[f"bent by {way}"] += len(wanted)
            self.counts[f"bent by {way}, named"] += len(named)
            print(f"{name:16} {commit[:10]} {way:8} named {len(named)} of {len(wanted)} {called is None}", flush=True)
        for change in changes[1:]:
            (folder / change.path).write_text(change.old)

    async def _named(
        self, folder: Path, changes: list[FileVersions], questions: TestsInQuestion
    ) -> tuple[set[str], set[str] | None, set[str]]:
        """Returns the old tests that are gone, those that are called bent, and those that were tried, as the product
        finds them when a command has passed."""
        old = old_tests(changes, lambda: texts_of(folder, SECONDS) or {})
        tried = {*old.altered, *dict(old.renamed), *old.touched}.difference(old.gone)
        if not tried:
            return set(old.gone), set(), tried
        sandbox = choose(SandboxSettings(), folder)
        settings = ProofSettings(seconds=self._bench.seconds * self._bench.load)
        trial = OldTestTrial(changes, self._bench.command(folder, questions), settings, dict(old.renamed))
        bent = await trial.bent(sandbox, launch, tried)
        sandbox.close()
        return set(old.gone), bent, tried

    def _failing(self, folder: Path, questions: TestsInQuestion) -> dict[str, set[str]]:
        """Returns the tests in question that fail now, by file; none of a file that cannot be loaded."""
        command = f"{self._bench.command(folder, questions)} -rf --tb=no --color=no"
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", command],
                cwd=folder,
                env=self._bench.variables(),
                capture_output=True,
                check=False,
                timeout=60,
            )
        except subprocess.TimeoutExpired:
            return {}
        failing = dict[str, set[str]]()
        for line in done.stdout.decode("utf-8", "replace").splitlines():
            path, _, test = line.removeprefix("FAILED ").partition(" - ")[0].partition("[")[0].partition("::")
            tests = questions.tests.get(path, ()) if line.startswith("FAILED ") else ()
            if test in tests and test in tests_of(ast.parse((folder / path).read_text())):
                failing.setdefault(path, set()).add(test)
        return failing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repositories", default="")
    parser.add_argument("--commits", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    folder: Path = options.folder
    names: list[str] = options.repositories.split(",") if options.repositories else sorted(os.listdir(folder))
    bench = BentBench(Bench(options.python, options.seconds))
    for name in names:
        if (folder / name / "repo").is_dir():
            asyncio.run(bench.repository(folder / name, options.commits))
    for key, count in sorted(bench.counts.items()):
        print(f"{count:5} {key}")


if __name__ == "__main__":
    main()
