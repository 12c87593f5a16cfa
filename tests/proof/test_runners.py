"""Tests of other languages than Python are run on the code before the change by their own runners."""

import os
from pathlib import Path

import pytest

from duckflow.programs.find import find_program
from duckflow.programs.launch import Launch
from duckflow.proof.runners import runner_of
from duckflow.proof.settings import ProofSettings
from duckflow.proof.trial import RedGreenTrial, questions_of
from duckflow.safety.environment import environment
from duckflow.safety.sandbox.choose import choose
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.safety.sandbox.settings import SandboxSettings
from duckflow.safety.undo.facts import FileVersions
from duckflow.state.checks import Proof

NODE = "import test from 'node:test';\nimport assert from 'node:assert';\nimport * as app from './app.mjs';\n"
NODE_TESTS = f"""{NODE}test('twice is two', () => {{ assert.equal(app.twice(1), 2); }});
test('it is there', () => {{ assert.ok(app.twice); }});
test('more is new', () => {{ assert.equal(app.more(), 1); }});
"""
RUST_TESTS = """#[test]
fn twice_is_two() { assert_eq!(app::twice(1), 2); }
#[test]
fn it_is_there() { app::twice(1); }
"""


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [name for name in programs if find_program(name, Path("/nowhere")) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


def launch(sandbox: Sandbox, command: str) -> Launch:
    return Launch(("/bin/sh", "-c", command), sandbox.paths.folder, environment(os.environ))


async def tried(folder: Path, command: str, *files: tuple[str, str | None, str]) -> Proof:
    for path, _, after in files:
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(after)
    changes = [FileVersions(path, before.encode() if before else None, after.encode()) for path, before, after in files]
    questions = questions_of(changes)
    assert questions
    sandbox = choose(SandboxSettings(), folder)
    try:
        return await RedGreenTrial(questions, command, ProofSettings(seconds=120)).run(sandbox, launch)
    finally:
        sandbox.close()


@needs("bwrap", "node")
async def test_with_nodes_own_runner_only_a_failure_on_old_code_is_proof(tmp_path: Path) -> None:
    old = "export const twice = (x) => x;\n"
    new = "export const twice = (x) => 2 * x;\nexport const more = () => 1;\n"
    proof = await tried(tmp_path, "node --test", ("app.mjs", old, new), ("app.test.mjs", None, NODE_TESTS))
    assert proof.red == ("app.test.mjs::twice is two",), proof
    assert proof.untold == ("app.test.mjs::it is there", "app.test.mjs::more is new")
    assert proof.why and proof.why.key == "proof.some_before"


@pytest.mark.slow
@needs("bwrap", "cargo")
async def test_with_cargo_only_a_failure_on_old_code_is_proof(tmp_path: Path) -> None:
    (tmp_path / "Cargo.toml").write_text('[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n')
    old, new = "pub fn twice(x: i32) -> i32 { x }\n", "pub fn twice(x: i32) -> i32 { 2 * x }\n"
    proof = await tried(tmp_path, "cargo test", ("src/lib.rs", old, new), ("tests/app.rs", None, RUST_TESTS))
    assert (proof.red, proof.untold) == (("tests/app.rs::twice_is_two",), ("tests/app.rs::it_is_there",)), proof


async def test_nothing_is_said_of_tests_that_the_command_does_not_run(tmp_path: Path) -> None:
    proof = await tried(tmp_path, "pytest -q", ("app.mjs", "1\n", "2\n"), ("app.test.mjs", None, NODE_TESTS))
    assert proof.why and proof.why.key == "proof.not_run"


GO = "=== RUN   TestA\n--- FAIL: TestA (0.00s)\n    a_test.go:5: got 1\n--- PASS: TestB (0.00s)\n"
VITEST = " ✓ src/a.test.ts > sums > adds 2ms\n × src/a.test.ts > sums > takes 3ms\n   → expected 1 to be 2\n"
JEST = "  sums\n    ✓ adds (2 ms)\n    ✕ takes\n\n  ● sums › takes\n\n    TypeError: app.takes is not a function\n"


@pytest.mark.parametrize(
    ("command", "output", "passed", "failed"),
    [
        ("go test ./...", GO, {"TestB"}, {"TestA"}),
        ("npx vitest run", VITEST, {"adds"}, {"takes"}),
        ("npx jest", JEST, {"adds"}, set[str]()),
    ],
)
def test_the_output_of_runners_is_read(command: str, output: str, passed: set[str], failed: set[str]) -> None:
    runner = runner_of(command)
    assert runner and runner.read(output) == (passed, failed)


def test_only_the_wanted_tests_are_asked_for() -> None:
    commands = {command: runner_of(command) for command in ("go test ./...", "npx vitest run src", "node --test test/")}
    asked = [runner.command(command, ["a", "b c"]) for command, runner in commands.items() if runner]
    assert asked == [
        "go test -v -count=1 -run 'a|b c' ./...",
        "npx vitest run --reporter=verbose -t 'a|b c' src",
        "node --test --test-reporter=tap --test-name-pattern 'a|b c' test/",
    ]
