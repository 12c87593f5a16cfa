"""Docstrings, names and messages for readers who know nothing of this project: are they clear at first reading?

usage: python -m benchmarks.signs draw FOLDER [--before 277bd77] [--seed 1] [--each 60]
       python -m benchmarks.signs score FOLDER ANSWERS...

`draw` draws 60 docstrings, 60 local variables in their context and 60 messages (30 Japanese) from an earlier revision
and as many from the present sources, mixes them, and writes `sheet.md` for the readers and `key.json`, which they must
not see. A reader writes one line for each number: `17 yes`, or `17 no` and the reason. `score` prints the share of
`yes` for each kind, before and now, for each reader. The draw depends on the seed and the two revisions alone.
"""

import argparse
import ast
import json
import random
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.revisions import TOP, unpack

ANSWER = re.compile(r"^\s*(\d+)[\s.:)]+(yes|no)\b", re.IGNORECASE)
SHORTEST_NAME = 3
"""Shorter names (`i`, `x`) are customs of the language, not signs of this house."""
LINES_AROUND = 8
INTRODUCTION = """# {count} short pieces of a program and of its messages

The program is a coding assistant for the terminal. For each number write one line: `N yes` if you understand it at
first reading, `N no: reason` if you have to read it twice, guess, or do not know what it says. A docstring is clear
when it says what the thing does or why it is so; a name when it says what the variable holds; a message when a user of
the program knows what it tells. Be strict, and do not look anything up.
"""


class Sign(NamedTuple):
    """One piece that a reader judges."""

    kind: str
    text: str


def docstrings(source: str) -> Iterator[Sign]:
    """Yields each docstring below the first line of what it describes; texts below a field or a constant count too."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        head = 0 if isinstance(node, ast.Module) else node.lineno
        for place, statement in enumerate(node.body):
            before = node.body[place - 1] if place else None
            if before is not None and not isinstance(before, ast.Assign | ast.AnnAssign):
                continue
            match statement:
                case ast.Expr(value=ast.Constant(value=str())):
                    first = before.lineno if before is not None else head or statement.lineno
                    yield Sign("docstring", "\n".join(lines[first - 1 : statement.end_lineno]))
                case _:
                    pass


def names(source: str) -> Iterator[Sign]:
    """Yields each local variable once in its function, with the lines around the place where it is set first."""
    lines = source.splitlines()
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        seen: set[str] = set()
        for node in ast.walk(function):
            if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Store):
                continue
            if node.id in seen or len(node.id.strip("_")) < SHORTEST_NAME:
                continue
            seen.add(node.id)
            first = max(function.lineno - 1, node.lineno - 1 - LINES_AROUND)
            last = min(function.end_lineno or node.lineno, node.lineno + LINES_AROUND)
            yield Sign("name", f"the variable `{node.id}` in:\n" + "\n".join(lines[first:last]))


def messages(folder: Path, language: str) -> Iterator[Sign]:
    """Yields the sentences for people in one language, each with its key, which tells where it is shown."""
    now, earlier = folder / "i18n" / language / "words.json", folder / "i18n" / f"{language}.json"
    texts: dict[str, str] = json.loads((now if now.exists() else earlier).read_text())
    kind = "message" if language == "en" else f"message, {language}"
    for key, text in texts.items():
        if len(text.split()) >= SHORTEST_NAME or (language != "en" and len(text) > LINES_AROUND):
            yield Sign(kind, f"({key})\n{text}")


def signs(folder: Path) -> dict[str, list[Sign]]:
    """Returns all pieces of the sources in that folder, by kind."""
    sources = [path.read_text() for path in sorted(folder.rglob("*.py"))]
    return {
        "docstring": [sign for source in sources for sign in docstrings(source)],
        "name": [sign for source in sources for sign in names(source)],
        "message": list(messages(folder, "en")),
        "message, ja": list(messages(folder, "ja")),
    }


def draw(folder: Path, before: str, seed: int, each: int) -> None:
    """Writes the sheet and its key."""
    chance = random.Random(seed)
    drawn: list[tuple[str, Sign]] = []
    with tempfile.TemporaryDirectory() as earlier:
        unpack(before, Path(earlier))
        for time, sources in (("before", Path(earlier) / "src/duckflow"), ("now", TOP / "src/duckflow")):
            for kind, pieces in signs(sources).items():
                count = each // 2 if kind.startswith("message") else each
                drawn += [(time, sign) for sign in chance.sample(pieces, count)]
    chance.shuffle(drawn)
    folder.mkdir(parents=True, exist_ok=True)
    parts = [f"## {number}. {sign.kind}\n\n```\n{sign.text}\n```\n" for number, (_, sign) in enumerate(drawn, 1)]
    (folder / "sheet.md").write_text("\n".join([INTRODUCTION.format(count=len(drawn)), *parts]))
    key = {number: [sign.kind, time] for number, (time, sign) in enumerate(drawn, 1)}
    (folder / "key.json").write_text(json.dumps(key, indent=1))


def score(folder: Path, answers: list[Path]) -> None:
    """Prints for each reader the share of clear pieces of each kind, before and now, in percent."""
    key: dict[str, list[str]] = json.loads((folder / "key.json").read_text())
    for reader in answers:
        verdicts = {
            match[1]: match[2].lower() == "yes" for match in map(ANSWER.match, reader.read_text().splitlines()) if match
        }
        shares: dict[str, float] = {}
        for place in sorted({(kind, time) for kind, time in key.values()}):
            judged = [verdicts[number] for number, where in key.items() if tuple(where) == place and number in verdicts]
            shares[", ".join(place)] = round(100 * sum(judged) / max(1, len(judged)), 1)
        print(json.dumps({"reader": reader.name, "judged": len(verdicts), **shares}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="action", required=True)
    drawing = kinds.add_parser("draw")
    drawing.add_argument("folder", type=Path)
    drawing.add_argument("--before", default="277bd77")
    drawing.add_argument("--seed", type=int, default=1)
    drawing.add_argument("--each", type=int, default=60)
    scoring = kinds.add_parser("score")
    scoring.add_argument("folder", type=Path)
    scoring.add_argument("answers", type=Path, nargs="+")
    arguments = parser.parse_args()
    if arguments.action == "draw":
        draw(arguments.folder, arguments.before, arguments.seed, arguments.each)
    else:
        score(arguments.folder, arguments.answers)


if __name__ == "__main__":
    main()
