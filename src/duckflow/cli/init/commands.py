"""How a project is tested, built, checked and run, as far as its files tell."""

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from duckflow.tools.plan.folder import WorkFolder, command_for_tests

Found = tuple[str, str]
"""What for, and the command."""

BY_FILE: tuple[tuple[str, str, str], ...] = (
    ("Cargo.toml", "build", "cargo build"),
    ("Cargo.toml", "check", "cargo clippy"),
    ("go.mod", "build", "go build ./..."),
    ("go.mod", "check", "go vet ./..."),
    ("pom.xml", "test", "mvn test"),
    ("gradlew", "test", "./gradlew test"),
    ("gradlew", "build", "./gradlew build"),
    ("build.gradle", "test", "gradle test"),
    ("Gemfile", "test", "bundle exec rake test"),
    ("mix.exs", "test", "mix test"),
    ("composer.json", "test", "composer test"),
    ("deno.json", "test", "deno test"),
    ("Package.swift", "test", "swift test"),
    ("pubspec.yaml", "test", "dart test"),
    ("tox.ini", "test", "tox"),
    ("noxfile.py", "test", "nox"),
    ("CMakeLists.txt", "build", "cmake -B build && cmake --build build"),
    ("CMakeLists.txt", "test", "ctest --test-dir build"),
    ("biome.json", "check", "npx biome check ."),
)
IN_PYPROJECT = (
    ("[tool.ruff", "check", "ruff check ."),
    ("[tool.mypy", "check", "mypy ."),
    ("[tool.black", "format", "black ."),
)
LOCKS = (("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lockb", "bun"), ("bun.lock", "bun"))
NAMES = {
    "test": "test",
    "tests": "test",
    "build": "build",
    "lint": "check",
    "check": "check",
    "typecheck": "check",
    "fmt": "format",
    "format": "format",
    "start": "run",
    "dev": "run",
    "run": "run",
    "serve": "run",
}
ORDER = ("test", "check", "format", "build", "run")


def commands_of(folder: WorkFolder) -> list[Found]:
    """Sorted by what they are for; each command once."""
    names = set(folder.names())
    found = [*_tests(folder), *_targets(folder, names), *_scripts(folder, names), *_by_files(folder, names)]
    return sorted(dict.fromkeys(found), key=lambda one: ORDER.index(one[0]))


def _tests(folder: WorkFolder) -> Iterator[Found]:
    if command := command_for_tests(folder):
        yield "test", command


def _targets(folder: WorkFolder, names: set[str]) -> Iterator[Found]:
    for file, program in (("Makefile", "make"), ("justfile", "just")):
        if file in names:
            for target in re.findall(r"^([\w-]+)\s*:(?!=)", folder.text(file), re.M):
                if target in NAMES:
                    yield NAMES[target], f"{program} {target}"


def _scripts(folder: WorkFolder, names: set[str]) -> Iterator[Found]:
    try:
        package: Any = json.loads(folder.text("package.json"))
        scripts: Any = package.get("scripts", {})
    except (ValueError, AttributeError, RecursionError):
        return
    program = next((program for lock, program in LOCKS if lock in names), "npm")
    for name in cast("dict[str, Any]", scripts) if isinstance(scripts, dict) else {}:
        if name in NAMES and not (name == "test" and program == "npm"):
            yield NAMES[name], f"{program} run {name}"


def _by_files(folder: WorkFolder, names: set[str]) -> Iterator[Found]:
    for file, purpose, command in BY_FILE:
        if file in names:
            yield purpose, command
    project = folder.text("pyproject.toml")
    for mark, purpose, command in IN_PYPROJECT:
        if mark in project:
            yield purpose, command
