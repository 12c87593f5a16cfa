"""How far the token estimate is from a real tokenizer (o200k of the PyPI package rs-bpe), by kind of text.

usage: python -m benchmarks.tokens [MEMORY_DATA_FOLDER]     (for example ../shared/data/memory)

Without data: standard library sources, docstrings and command output of this machine, and Duckflow's own Japanese.
"""

import gzip
import inspect
import json
import pkgutil
import statistics
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.real_tokens import real_tokens
from duckflow.memory.tokens import estimate

PIECE = 1500
SOURCE = Path(__file__).resolve().parents[1] / "src" / "duckflow"
DOCUMENTED = (
    "argparse",
    "asyncio",
    "collections",
    "decimal",
    "json",
    "logging",
    "pathlib",
    "sqlite3",
    "typing",
    "unittest",
)
COMMANDS = (
    ["ls", "-la", "/usr/lib"],
    ["df", "-h"],
    ["git", "log", "--stat", "-n", "40"],
    [sys.executable, "--help"],
    [sys.executable, "-m", "pytest", "--help"],
    [sys.executable, "-m", "pip", "list"],
)


def pieces(text: str) -> Iterator[str]:
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE) if len(text) - start > 100)


def code() -> Iterator[str]:
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:120]:
        yield from list(pieces(path.read_text(encoding="utf-8", errors="replace")))[:3]


def english() -> Iterator[str]:
    for module in pkgutil.iter_modules():
        if module.name in DOCUMENTED:
            for _, value in inspect.getmembers(import_module(module.name), inspect.isclass):
                yield from pieces(inspect.getdoc(value) or "")


def japanese() -> Iterator[str]:
    for path in sorted((SOURCE / "i18n/ja/prompts").glob("*.md")):
        yield path.read_text(encoding="utf-8")


def japanese_chat() -> Iterator[str]:
    words: dict[str, str] = json.loads((SOURCE / "i18n/ja/words.json").read_text(encoding="utf-8"))
    lines = list(words.values())
    return ("\n".join(lines[start : start + 5]) for start in range(0, len(lines), 5))


def tool_output() -> Iterator[str]:
    for command in COMMANDS:
        yield from pieces(subprocess.run(command, capture_output=True, text=True, check=False).stdout)


def recorded(folder: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for talk in map(json.loads, lines):
                messages: list[dict[str, Any]] = talk["messages"]
                for message in messages:
                    found.setdefault(f"{path.name.partition('_')[0]} {message['role']}", []).append(message["text"])
    return found


def main(folder: Path | None) -> None:
    kinds = {
        "code": list(code()),
        "English prose": list(english()),
        "Japanese prose": list(japanese()),
        "Japanese chat": list(japanese_chat()),
        "tool output": list(tool_output()),
        **(recorded(folder) if folder else {}),
    }
    for kind, texts in kinds.items():
        real = [(text, real_tokens(text)) for text in texts if text.strip()]
        errors = [abs(estimate(text) - tokens) / tokens for text, tokens in real]
        bias = sum(estimate(text) for text, _ in real) / sum(tokens for _, tokens in real) - 1
        print(
            f"{kind:20} {len(real):5} texts"
            f"  mean error {100 * statistics.mean(errors):5.1f} %  bias {100 * bias:+5.1f} %"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
