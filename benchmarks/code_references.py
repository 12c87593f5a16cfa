"""An independent word on uses: symbols drawn by lot, and every place that a language server says refers to them.

For Python they are drawn by its own parser and basedpyright is asked; elsewhere lines that look like a definition are
drawn, and gopls or typescript-language-server, which must be on the PATH, is asked.

`python -m benchmarks.code_references FOLDER OUT.json [--symbols 100] [--seed 7] [--language go|typescript]`
"""

import argparse
import ast
import asyncio
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from duckflow.code.lsp import CodePlace, LanguageServer
from duckflow.programs.launch import Launch
from duckflow.rpc import RpcError

SERVERS = {
    "python": (str(Path(sys.executable).with_name("basedpyright-langserver")), "--stdio"),
    "go": ("gopls",),
    "typescript": ("typescript-language-server", "--stdio"),
}
DEFINED = {
    "go": r"^(?:func (?:\([^)]*\) )?|type )(\w+)",
    "typescript": r"^(?:export )?(?:default )?(?:async )?(?:function|class|interface|type|const) (\w+)",
}
SUFFIXES = {"go": ".go", "typescript": ".ts"}
CONFIG = {"include": ["."], "typeCheckingMode": "off", "exclude": ["**/node_modules"]}
QUESTION_SECONDS = 600.0


class Drawn(NamedTuple):
    """A definition, by the place of its name."""

    path: str
    line: int
    column: int
    name: str
    what: str


def lines_that_define(folder: Path, language: str) -> Iterator[Drawn]:
    """Outside of tests, generated code and declaration files."""
    for file in sorted(folder.rglob(f"*{SUFFIXES[language]}")):
        path = str(file.relative_to(folder))
        if re.search(r"test|node_modules|example|docs|\.d\.ts|dist/", path):
            continue
        for number, line in enumerate(file.read_text("utf-8", "replace").split("\n"), 1):
            if defines := re.match(DEFINED[language], line):
                yield Drawn(path, number, defines.start(1), defines[1], language)


def definitions(folder: Path) -> Iterator[Drawn]:
    """Returns functions, methods and classes outside of tests; names that Python itself calls are left out."""
    for file in sorted(folder.rglob("*.py")):
        path = str(file.relative_to(folder))
        if any(part.startswith(("test", "doc", "example")) or part == "conftest.py" for part in path.split("/")):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(file.read_text("utf-8"))
        except (SyntaxError, ValueError):
            continue
        lines = file.read_text("utf-8").split("\n")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                column = lines[node.lineno - 1].find(node.name, node.col_offset)
                if not (node.name.startswith("__") and node.name.endswith("__")) and column >= 0:
                    yield Drawn(path, node.lineno, column, node.name, type(node).__name__)


async def references(folder: Path, drawn: list[Drawn], language: str) -> list[dict[str, Any]]:
    server = LanguageServer(folder, language)
    await server.start(Launch(SERVERS[language], folder, os.environ), 120)
    found = list[dict[str, Any]]()
    try:
        first = drawn[0]
        server.show(first.path, (folder / first.path).read_text("utf-8"))
        # Until it has listed the folder it knows the open file only.
        await asyncio.sleep(30)
        shown = {first.path}
        for number, one in enumerate(drawn, 1):
            if one.path not in shown:
                server.show(one.path, (folder / one.path).read_text("utf-8"))
                shown.add(one.path)
            begun = time.monotonic()
            try:
                places = await server.references(CodePlace(one.path, one.line, one.column), QUESTION_SECONDS)
            except (TimeoutError, RpcError) as problem:
                print(one, repr(problem), file=sys.stderr)
                continue
            places = sorted(set(places))
            found.append({**one._asdict(), "places": [list(place) for place in places]})
            seconds = time.monotonic() - begun
            print(f"{number}/{len(drawn)} {one.name}: {len(places)} places, {seconds:.1f} s", file=sys.stderr)
    finally:
        await server.aclose()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--symbols", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--language", choices=list(SERVERS), default="python")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top) / given.folder.resolve().name
        shutil.copytree(given.folder, folder, symlinks=True)
        # The project's own settings may leave out its tests.
        (folder / "pyrightconfig.json").write_text(json.dumps(CONFIG))
        language = given.language
        every = list(definitions(folder) if language == "python" else lines_that_define(folder, language))
        drawn = random.Random(given.seed).sample(every, min(given.symbols, len(every)))
        found = asyncio.run(references(folder, drawn, language))
    written = {"seed": given.seed, "of": len(every), "language": language, "symbols": found}
    given.out.write_text(json.dumps(written))


if __name__ == "__main__":
    main()
