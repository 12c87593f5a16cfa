"""The request for a file's text from a small model: what was read, the file as it is, the wish, and nothing else."""

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from duckflow.prompts.template import render
from duckflow.state.action import READ_FILE, RUN_COMMAND, WRITE_FILE
from duckflow.state.message import Message, PromptMessage

OUTCOME_LENGTH = 1200
MATERIAL_LENGTH = 12_000
PROSE = frozenset(("", ".md", ".txt", ".rst", ".csv", ".json", ".toml", ".yaml", ".yml", ".ini", ".cfg"))
FENCES = ("```", "````", "`````")


def plain_body(
    language: str, path: str, current: str, request: str, why: str, history: Sequence[Message]
) -> tuple[PromptMessage, ...]:
    """No system text and no conversation: measured, a small model writes better code without them."""
    text = render(
        language,
        "body_plain",
        material="\n\n".join(material(history, path)),
        path=path,
        current=fenced(current) if current.strip() else "",
        outcome=fenced(outcome) if (outcome := last_outcome(history)) else "",
        request=request,
        why="" if why.strip() in request else why,
        care=render(language, "body_care").strip() if is_code(path) else "",
    )
    return (PromptMessage("user", text.strip()),)


def material(history: Iterable[Message], without: str) -> list[str]:
    """The files read lately, newest version of each, in the order of the conversation, as far as there is room."""
    room, kept, seen = MATERIAL_LENGTH, list[str](), {without}
    read = [
        one for one in history if one.role == "tool" and (one.operation == READ_FILE or one.operation.startswith("@"))
    ]
    for message in reversed(read):
        head, _, text = message.text.partition("\n")
        name = head.partition(" (lines ")[0]
        if not text or name in seen or len(text) > room:
            continue
        seen.add(name)
        room -= len(text)
        kept.insert(0, f"{name}:\n{fenced(text)}")
    return kept


def last_outcome(history: Sequence[Message]) -> str:
    """What the last command said, if nothing was written after it."""
    last = next((one for one in reversed(history) if one.operation in (RUN_COMMAND, WRITE_FILE)), None)
    return last.text[-OUTCOME_LENGTH:] if last and last.operation == RUN_COMMAND else ""


def is_code(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() not in PROSE


def fenced(text: str) -> str:
    """The text between fences longer than any in it."""
    fence = next((one for one in FENCES if one not in text), "``````")
    return f"{fence}\n{text.rstrip()}\n{fence}"
