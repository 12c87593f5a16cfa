"""The classes that the reference scorers drive: the product's own, with their default settings, nothing else."""

from pathlib import Path
from typing import Any


def workspace(folder: str) -> Any:
    from duckflow.safety.workspace import Workspace

    return Workspace(Path(folder))


def replace(before: str, old: str, new: str, everywhere: bool) -> str:
    from duckflow.tools.files.edit_file import replace as replace_text

    return replace_text(before, old, new, everywhere)


def parse(text: str) -> Any:
    from duckflow.forms.broken_json import read_json

    return read_json(text).value


def detector() -> Any:
    from benchmarks.pacing import BenchDetector

    return BenchDetector()


def classify(command: str) -> str:
    """Judges the text alone: nobody has looked at a repository, so git asks (docs/decisions/028)."""
    from duckflow.safety.commands.judge import judge_command

    return judge_command(command).verdict


def answer(text: str) -> str:
    """Reads an answer as at a Gate that asks about the very action the answer names, if a Gate can ask about it."""
    from duckflow.i18n.answer_words import asked_deeds
    from duckflow.i18n.answers import read_answer

    read = read_answer(text, deeds=asked_deeds())
    return read.choice if read else "other"


def whole_answer(text: str) -> dict[str, Any]:
    from duckflow.i18n.answer_words import asked_deeds
    from duckflow.i18n.answers import read_whole

    reply = read_whole(text, deeds=asked_deeds())
    read = {name: getattr(reply, name) for name in ("scope", "about", "condition", "background")}
    return {"kind": reply.verdict, **read}


def asks(text: str) -> bool:
    from duckflow.i18n.asking import ends_asking

    return ends_asking(text)


def memory(budget: int, folder: str) -> Any:
    from benchmarks.remembering import BenchMemory

    return BenchMemory(budget, Path(folder))


def keep_last(budget: int, folder: str) -> Any:
    from benchmarks.keep_last import KeepLast

    return KeepLast(budget)
