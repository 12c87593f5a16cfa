"""How well the proof of tests works on real commits: real tests of a real change, and hollow twins of the same tests.

    python -m benchmarks.proof FOLDER [--repositories a,b] [--commits 10] [--seconds 240] [--python PROGRAM]

Commits are taken from the newest on, by rule: no merges, tests and code in Python changed together, at most 400 changed
lines, and the changed test files pass. What the product says of them has no part in the choice. Each commit is tried as
it is, and with two of four kinds of hollow twins by turns; a twin that does not pass is left out. The repositories are
not part of this project."""

import argparse
import ast
import asyncio
import copy
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from duckflow.programs.launch import Launch
from duckflow.proof.python_tests import belongs_to_tests
from duckflow.proof.settings import ProofSettings
from duckflow.proof.trial import RedGreenTrial, TestsInQuestion, questions_of
from duckflow.safety.environment import environment
from duckflow.safety.sandbox.choose import choose
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.safety.sandbox.settings import SandboxSettings
from duckflow.safety.undo.undo import FileVersions
from duckflow.state.checks import Proof

MOST_LINES = 400
LOOKED_AT = 1500
SECONDS = 240.0
"""The time limit of a run, by the clock. Under load a run takes many times its processor time."""
RAISES = ("raises", "assertRaises", "warns", "assertWarns", "assertRaisesRegex")
KINDS = ("assert_true", "computed", "mocked", "renamed")


def git(repository: Path, *words: str) -> bytes:
    return subprocess.run(
        ["git", f"--git-dir={repository}", *words], capture_output=True, check=True, timeout=120
    ).stdout


def blob(repository: Path, commit: str, path: str) -> bytes | None:
    done = subprocess.run(
        ["git", f"--git-dir={repository}", "show", f"{commit}:{path}"], capture_output=True, check=False, timeout=60
    )
    return done.stdout if done.returncode == 0 else None


def candidates(repository: Path) -> Iterator[tuple[str, list[FileVersions]]]:
    """Commits that change tests and code together, the newest first."""
    log = git(repository, "log", "--no-merges", f"-{LOOKED_AT}", "--format=%x00%H", "--numstat", "HEAD").decode()
    for part in log.split("\0")[1:]:
        commit, *rows = part.split("\n")
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


def checkout(repository: Path, commit: str, folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(git(repository, "archive", commit))) as archive:
        archive.extractall(folder, filter="tar")


@dataclass
class Tried:
    """One trial of a commit, as it is or with twins."""

    repository: str
    commit: str
    kind: str
    proof: Proof

    def tests(self) -> Counter[str]:
        names = ("red", "noticing", "guarding", "hollow", "untold")
        return Counter({name: len(getattr(self.proof, name)) for name in names})


@dataclass
class Bench:
    """Tries commits with the product's own classes."""

    python: str
    seconds: float = SECONDS
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
                checkout(path / "repo", commit, folder)
                if not self._passes(folder, questions):
                    continue
                kinds = ("real", KINDS[taken % 4], KINDS[(taken + 2 + taken // 4) % 4])
                for kind in dict.fromkeys(kinds):
                    await self._try(path.name, commit, folder, kind, changes, questions)
            taken += 1
            if taken >= wanted:
                return

    async def _try(
        self, name: str, commit: str, folder: Path, kind: str, changes: list[FileVersions], questions: TestsInQuestion
    ) -> None:
        versions = changes if kind == "real" else twins(changes, questions, kind)
        asked = questions_of(versions) if versions else None
        if not versions or asked is None:
            return
        for one in versions:
            if one.after is not None:
                (folder / one.path).write_bytes(one.after)
        try:
            if kind != "real" and not self._passes(folder, asked):
                return
            sandbox = choose(SandboxSettings(), folder)
            trial = RedGreenTrial(asked, self._command(folder, asked), ProofSettings(seconds=self.seconds))
            proof = await trial.run(sandbox, launch)
            sandbox.close()
        finally:
            for one in changes:
                if one.after is not None:
                    (folder / one.path).write_bytes(one.after)
        row = Tried(name, commit[:10], kind, proof)
        self.rows.append(row)
        why = proof.why.key if proof.why else ""
        hollow = ", ".join(proof.hollow) if kind == "real" else ""
        counted = dict(+row.tests())
        print(f"{name:32} {commit[:10]} {kind:12} {proof.verdict:8} {counted} {why} {proof.seconds}s {hollow}")
        sys.stdout.flush()

    def _command(self, folder: Path, questions: TestsInQuestion) -> str:
        files = " ".join(questions.files)
        return f"PYTHONPATH={folder}:{folder}/src {self.python} -m pytest -q -p no:cacheprovider {files}"

    def _passes(self, folder: Path, questions: TestsInQuestion) -> bool:
        wanted = [f"{path}::{name}" for path, tests in questions.tests.items() for name in tests]
        if not wanted:
            return True
        files = self._command(folder, questions).rpartition(" no:cacheprovider ")[0] + " no:cacheprovider "
        command = files + " ".join(f"'{name}'" for name in wanted)
        variables = {**environment(os.environ), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", command], cwd=folder, env=variables, capture_output=True, check=False, timeout=120
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


def launch(sandbox: Sandbox, command: str) -> Launch:
    variables = {**environment(os.environ), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return Launch(("/bin/sh", "-c", command), sandbox.paths.folder, variables)


def twins(changes: list[FileVersions], questions: TestsInQuestion, kind: str) -> list[FileVersions] | None:
    """The same change with hollow tests in the place of those in question; nothing where the kind does not fit."""
    made, replaced = list[FileVersions](), 0
    target = _target(questions)
    for one in changes:
        names = set(questions.tests.get(one.path, ()))
        if not names:
            made.append(one)
            continue
        tree = ast.parse(one.new)
        maker = TwinMaker(names, kind, target, ast.parse(one.old))
        maker.visit(tree)
        replaced += maker.replaced
        made.append(one._replace(after=ast.unparse(ast.fix_missing_locations(tree)).encode()))
    return made if replaced else None


def _target(questions: TestsInQuestion) -> str:
    """The dotted name of a function that the change touches."""
    lines = questions.lines()
    for one in questions.code:
        for node in ast.parse(one.new).body if one.path in lines else ():
            touched = lines[one.path].intersection(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            if isinstance(node, ast.FunctionDef) and touched:
                module = one.path.removeprefix("src/").removesuffix(".py").replace("/", ".")
                return f"{module.removesuffix('.__init__')}.{node.name}"
    return ""


class TwinMaker(ast.NodeTransformer):
    """Weakens the tests with these names."""

    def __init__(self, names: set[str], kind: str, target: str, old: ast.Module) -> None:
        self._names = names
        self._kind = kind
        self._target = target
        self._old = old
        self._within: list[str] = []
        self.replaced = 0

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.ClassDef):
            self._within.append(node.name)
            self.generic_visit(node)
            self._within.pop()
            return node
        if not isinstance(node, ast.FunctionDef):
            return self.generic_visit(node)
        if "::".join((*self._within, node.name)) not in self._names:
            return node
        twin = getattr(self, f"_{self._kind}")(node)
        self.replaced += twin is not None
        return twin or node

    def _assert_true(self, node: ast.FunctionDef) -> ast.AST:
        Weaker(computed=False).generic_visit(node)
        return node

    def _computed(self, node: ast.FunctionDef) -> ast.AST:
        Weaker(computed=True).generic_visit(node)
        return node

    def _mocked(self, node: ast.FunctionDef) -> ast.AST:
        if self._target:
            module, _, name = self._target.rpartition(".")
            text = (
                f"import importlib\nfrom unittest import mock\nmodule = importlib.import_module({module!r})\n"
                f"with mock.patch.object(module, {name!r}, return_value=7):\n    assert module.{name}() == 7"
            )
        else:
            text = "from unittest import mock\ntarget = mock.Mock(return_value=7)\nassert target(1) == 7"
        node.body = ast.parse(text).body
        return node

    def _renamed(self, node: ast.FunctionDef) -> ast.AST | None:
        body = self._old.body
        for name in self._within:
            found = [one for one in body if isinstance(one, ast.ClassDef) and one.name == name]
            body = found[0].body if found else []
        others = [one for one in body if isinstance(one, ast.FunctionDef) and one.name.startswith("test")]
        others = [one for one in others if "::".join((*self._within, one.name)) not in self._names]
        if not others:
            return None
        twin = copy.deepcopy(others[0])
        twin.name = node.name
        return twin


class Weaker(ast.NodeTransformer):
    """Removes from assertions what they assert: True, or the computed value, remains."""

    def __init__(self, computed: bool) -> None:
        self._computed = computed

    def visit(self, node: ast.AST) -> ast.AST:
        match node:
            case ast.Assert():
                value = node.test.left if isinstance(node.test, ast.Compare) else node.test
                return self._weak(value)
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name), args=[value, *_])) if name.startswith("assert"):
                return self._weak(value)
            case ast.With(items=[ast.withitem(context_expr=ast.Call(func=func))]) if _raises(func):
                suppress = ast.parse("__import__('contextlib').suppress(BaseException)", mode="eval").body
                node.items = [ast.withitem(context_expr=suppress)]
                return self.generic_visit(node)
            case _:
                return self.generic_visit(node)

    def _weak(self, value: ast.expr) -> ast.stmt:
        if not self._computed:
            return ast.parse("assert True").body[0]
        holder = ast.parse("for expected in [0]:\n    assert 0 == expected").body[0]
        assert isinstance(holder, ast.For) and isinstance(holder.iter, ast.List)
        holder.iter.elts = [value]
        check = holder.body[0]
        assert isinstance(check, ast.Assert) and isinstance(check.test, ast.Compare)
        check.test.left = copy.deepcopy(value)
        return holder


def _raises(func: ast.expr) -> bool:
    return ast.unparse(func).rpartition(".")[2] in RAISES


def report(rows: list[Tried]) -> dict[str, float]:
    """The figures: of commits, and of single tests."""
    real, hollow = [row for row in rows if row.kind == "real"], [row for row in rows if row.kind != "real"]
    tests = sum((row.tests() for row in real), Counter[str]())
    twin_tests = sum((row.tests() for row in hollow), Counter[str]())
    seconds = sorted(row.proof.seconds for row in real)
    return {
        "commits": len(real),
        "proven %": _share(sum(row.proof.verdict == "proven" for row in real), len(real)),
        "real called hollow % (commits with nothing else)": _share(
            sum(row.proof.verdict == "hollow" and not row.proof.red + row.proof.noticing for row in real), len(real)
        ),
        "real tests": tests.total(),
        "real tests called hollow %": _share(tests["hollow"], tests.total()),
        "cannot tell % (commits)": _share(sum(row.proof.verdict == "unknown" for row in real), len(real)),
        "cannot tell % (tests)": _share(tests["untold"], tests.total()),
        "twins": len(hollow),
        "twins noticed %": _share(sum(row.proof.verdict == "hollow" for row in hollow), len(hollow)),
        "twin tests noticed %": _share(twin_tests["hollow"], twin_tests.total()),
        **{
            f"twins noticed %, {kind}": _share(
                sum(row.proof.verdict == "hollow" for row in hollow if row.kind == kind),
                sum(row.kind == kind for row in hollow),
            )
            for kind in KINDS
        },
        "seconds, median": statistics.median(seconds) if seconds else 0.0,
        "seconds, 95 %": seconds[int(len(seconds) * 0.95)] if seconds else 0.0,
    }


def _share(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0


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
    bench = Bench(options.python, options.seconds)
    for name in names:
        if (folder / name / "repo").is_dir():
            asyncio.run(bench.repository(folder / name, options.commits))
    print(json.dumps(report(bench.rows), indent=2))


if __name__ == "__main__":
    main()
