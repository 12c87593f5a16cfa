"""Ignored files are computed without git, and the result is the same as git's."""

import random
import subprocess
import time
from pathlib import Path

import pytest

from duckflow.safety.ignore_rules import IgnoredPaths, RulesFile, rules_file

NAMES = ("a", "b", "ab", "foo", "foo.py", "x.log", "build", "a b", "B", "deep", "日本")
LINES = (
    *("a", "*.py", "/foo", "foo/", "build/", "**/foo", "a/**", "a/**/b", "!foo.py", "!b", "*", "?", "[ab]", "[!a]*"),
    *("deep/*", "/deep/**/x.log", "*o*o*", "\\!x", "foo.*", "#c", "**", "a/*/b", "deep/", "!/deep/", "[a-c]", "a**b"),
    *("**/b/**", "\\a", "x.lo[g]", "a/", "**/deep/*.log", "/*", "!*/", "foo/**/", "日*", "a ", "[z-a]", "[", "a\\ b"),
)


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-c", "core.excludesFile=", *words], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode("utf-8", "surrogateescape")


def fill(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("x\n")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(8))
def test_rules_are_read_as_git_reads_them(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    folder = tmp_path / "work"
    git(tmp_path, "init", "-q", str(folder))
    paths = {"/".join(chance.choices(NAMES, k=chance.randint(1, 4))) for _ in range(60)}
    files = [path for path in sorted(paths) if not any(other.startswith(f"{path}/") for other in paths)]
    fill(folder, *files)
    for _ in range(15):
        text = "\n".join(chance.choices(LINES, k=chance.randint(1, 4))) + "\n"
        (folder / ".git/info/exclude").write_text(text)
        ignored = set(git(folder, "ls-files", "-zoi", "--exclude-standard").split("\0")) - {""}
        assert {path for path in files if rules_file(text).ignores(path, is_folder=False)} == ignored, text


def test_the_deepest_rules_file_decides_and_tracked_files_are_never_ignored(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    fill(tmp_path, "part/kept.log", "part/other.log", "out/made", "out/deep/tracked", "node_modules/x/y.js")
    git(tmp_path, "add", "out/deep/tracked")
    ignored = IgnoredPaths(tmp_path)
    rules = ignored.below(ignored.top, "", "*.log\nout/\n")
    inner = ignored.below(rules, "part", "!kept.log\n")
    assert not ignored.ignores(inner, "part/kept.log", is_folder=False)
    assert ignored.ignores(inner, "part/other.log", is_folder=False)
    assert not ignored.ignores(rules, "out", is_folder=True), "something in it is tracked"
    assert ignored.ignores(rules, "out/made", is_folder=False)
    assert not ignored.ignores(rules, "out/deep/tracked", is_folder=False)
    assert ignored.ignores(rules, "node_modules", is_folder=True)


def test_a_folder_inside_a_repository_knows_the_rules_above_it(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text("/part/out/\n*.log\n/hidden/\n")
    fill(tmp_path, "part/x.log", "part/out/y", "hidden/x.log")
    part = IgnoredPaths(tmp_path / "part")
    assert part.ignores(part.top, "out", is_folder=True)
    assert part.ignores(part.top, "x.log", is_folder=False)
    hidden = IgnoredPaths(tmp_path / "hidden")
    assert not hidden.ignores(hidden.top, "x.log", is_folder=False), "ignored as a whole, so nothing is said of it"


@pytest.mark.parametrize(
    "line", ["*a" * 60 + "b", "**/" * 40 + "*a*b*c", "a*/" * 40 + "x", "?*" * 80 + "y", "**/a" * 40]
)
def test_no_rule_takes_long(line: str) -> None:
    started = time.process_time()
    rules = RulesFile(line, "", None)
    assert not rules.ignores("/".join(["a" * 100] * 38), is_folder=False)
    assert time.process_time() - started < 0.5
