"""What a folder tells of the project in it, without asking a model."""

import itertools
import re
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from duckflow.cli.init.commands import Found, commands_of
from duckflow.errors import ToolError
from duckflow.safety.workspace import Workspace
from duckflow.state.noun import shorten
from duckflow.tools.files.ignored import ignored_in
from duckflow.tools.plan.folder import WorkFolder

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
class Survey:
    """What was found."""

    name: str
    about: str
    languages: tuple[tuple[str, int], ...]
    """With how many files each has, most first."""
    folders: tuple[tuple[str, int, str], ...]
    """Name, files in it, and the language most of them are in."""
    commands: tuple[Found, ...]


def survey(folder: Path) -> Survey:
    workspace = Workspace(folder)
    look = WorkFolder(workspace)
    everything, places = Counter[str](), dict[str, Counter[str]]()
    for path in _files(workspace):
        language = LANGUAGES.get(path.rpartition(".")[2].lower() if "." in path else "", "")
        if language:
            everything[language] += 1
        if "/" in path:
            places.setdefault(path.partition("/")[0], Counter())[language] += 1
    largest = sorted(places, key=lambda name: (-places[name].total(), name))[:MOST_FOLDERS]
    rows = [(name, places[name].total(), places[name].most_common(1)[0][0]) for name in sorted(largest)]
    return Survey(
        folder.name or "/",
        _about(look),
        tuple(everything.most_common(MOST_LANGUAGES)),
        tuple(rows),
        tuple(commands_of(look)),
    )


def _files(workspace: Workspace) -> list[str]:
    """Not what git ignores, nothing hidden; at most so many, for at most so long."""
    ignored = ignored_in(workspace)
    end = time.monotonic() + MOST_SECONDS
    found = workspace.walk(enter=lambda entry: not entry.name.startswith(".") and not ignored(entry))
    files = (
        entry.path for entry in found if entry.kind == "file" and not entry.name.startswith(".") and not ignored(entry)
    )
    try:
        return [*itertools.islice(itertools.takewhile(lambda _: time.monotonic() < end, files), MOST_FILES)]
    except (OSError, ToolError):
        return []


def _about(look: WorkFolder) -> str:
    """The first paragraph of the README that is neither a heading nor a picture."""
    names = [name for name in look.names() if name.lower().startswith("readme")]
    for name in sorted(names, key=len):
        for paragraph in re.split(r"\n\s*\n", look.text(name).replace("\r\n", "\n")):
            text = paragraph.strip()
            if text and not re.match(r"[#<!\[|=`>*-]", text):
                return shorten(text, ABOUT_LENGTH)
    return ""
