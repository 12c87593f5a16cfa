"""Finds out the languages, folders and commands of a project."""

import itertools
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from duckflow.errors import ToolError
from duckflow.safety.ignore_rules import ignored_in
from duckflow.safety.workspace import Workspace
from duckflow.state.data import shorten
from duckflow.tools.plan.folder import WorkFolder, command_for_tests

Found = tuple[str, str]
"""The purpose of a command, and the command itself."""

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
    """Returns the commands, sorted by their purpose, each once."""
    names = set(folder.names())
    commands = [*_tests(folder), *_targets(folder, names), *_scripts(folder, names), *_by_files(folder, names)]
    return sorted(dict.fromkeys(commands), key=lambda command: ORDER.index(command[0]))


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
    for searched_text, purpose, command in IN_PYPROJECT:
        if searched_text in project:
            yield purpose, command


MOST_FILES = 20_000
MOST_SECONDS = 3.0
MOST_FOLDERS = 12
MOST_LANGUAGES = 4
ABOUT_LENGTH = 300
ENDINGS = {
    "Python": "py",
    "JavaScript": "js mjs cjs jsx",
    "TypeScript": "ts tsx",
    "Rust": "rs",
    "Go": "go",
    "Java": "java",
    "Kotlin": "kt",
    "Ruby": "rb",
    "PHP": "php",
    "C": "c h",
    "C++": "cc cpp cxx hpp",
    "C#": "cs",
    "Swift": "swift",
    "Scala": "scala",
    "Elixir": "ex exs",
    "Haskell": "hs",
    "OCaml": "ml",
    "Lua": "lua",
    "R": "r",
    "Julia": "jl",
    "Dart": "dart",
    "Zig": "zig",
    "Shell": "sh bash",
    "SQL": "sql",
    "HTML": "html htm",
    "CSS": "css scss",
    "Vue": "vue",
    "Svelte": "svelte",
    "Terraform": "tf",
    "Jupyter": "ipynb",
}
LANGUAGES = {ending: language for language, endings in ENDINGS.items() for ending in endings.split()}


@dataclass(frozen=True, slots=True)
class ProjectSurvey:
    """Facts about a project that can be read from its files."""

    name: str
    about: str
    languages: tuple[tuple[str, int], ...]
    """The languages, each with its number of files; the most frequent comes first."""
    folders: tuple[tuple[str, int, str], ...]
    """Each folder with its number of files and its most frequent language."""
    commands: tuple[Found, ...]


def survey(folder: Path) -> ProjectSurvey:
    workspace = Workspace(folder)
    work_folder = WorkFolder(workspace)
    language_counts, counts_by_folder = Counter[str](), dict[str, Counter[str]]()
    for path in _files(workspace):
        language = LANGUAGES.get(path.rpartition(".")[2].lower() if "." in path else "", "")
        if language:
            language_counts[language] += 1
        if "/" in path:
            counts_by_folder.setdefault(path.partition("/")[0], Counter())[language] += 1
    largest_folders = sorted(counts_by_folder, key=lambda name: (-counts_by_folder[name].total(), name))[:MOST_FOLDERS]
    rows = [
        (name, counts_by_folder[name].total(), counts_by_folder[name].most_common(1)[0][0])
        for name in sorted(largest_folders)
    ]
    return ProjectSurvey(
        folder.name or "/",
        _about(work_folder),
        tuple(language_counts.most_common(MOST_LANGUAGES)),
        tuple(rows),
        tuple(commands_of(work_folder)),
    )


def _files(workspace: Workspace) -> list[str]:
    """Lists files, without hidden files and files that git ignores. Stops after a number of files or seconds."""
    is_ignored = ignored_in(workspace)
    deadline = time.monotonic() + MOST_SECONDS
    entries = workspace.walk(enter=lambda entry: not entry.name.startswith(".") and not is_ignored(entry))
    files = (
        entry.path
        for entry in entries
        if entry.kind == "file" and not entry.name.startswith(".") and not is_ignored(entry)
    )
    try:
        return [*itertools.islice(itertools.takewhile(lambda _: time.monotonic() < deadline, files), MOST_FILES)]
    except (OSError, ToolError):
        return []


def _about(look: WorkFolder) -> str:
    """Returns the first paragraph of the README that is neither a heading nor a picture."""
    names = [name for name in look.names() if name.lower().startswith("readme")]
    for name in sorted(names, key=len):
        for paragraph in re.split(r"\n\s*\n", look.text(name).replace("\r\n", "\n")):
            text = paragraph.strip()
            if text and not re.match(r"[#<!\[|=`>*-]", text):
                return shorten(text, ABOUT_LENGTH)
    return ""
