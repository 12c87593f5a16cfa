"""Short prompts for small models, which take every name that they read for a part of the request."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from duckflow.i18n.template import render
from duckflow.prompts.layers import Layers, done_so_far
from duckflow.state.action import READ_FILE, RUN_COMMAND, WRITE_FILE
from duckflow.state.agent import AgentState
from duckflow.state.data import shorten
from duckflow.state.message import Message, PromptMessage, last_request

OUTCOME_LENGTH = 1200
MATERIAL_LENGTH = 12_000
PROSE = frozenset(("", ".md", ".txt", ".rst", ".csv", ".json", ".toml", ".yaml", ".yml", ".ini", ".cfg"))
FENCES = ("```", "````", "`````")
REQUEST = 500


class CompactLayers(Layers):
    """The layers of a prompt for a small model: nothing about the project, and of the work only the request and the
    results."""

    base_template = "base_compact"
    main_template = "main_compact"

    def known(self, state: AgentState) -> dict[str, str]:
        return {"session": "", "limits": "", "facts": "", "known": ""}

    def values(
        self, state: AgentState, history: Sequence[Message], shared: Mapping[str, str], about: Mapping[str, str]
    ) -> dict[str, str]:
        request = shorten(last_request(history), REQUEST)
        return {**shared, "goal": state.five.goal, "request": request, "done": done_so_far(history, state.turn)}

    def body(
        self, language: str, path: str, current: str, request: str, why: str, history: Sequence[Message]
    ) -> tuple[PromptMessage, ...] | None:
        return plain_body(language, path, current, request, why, history)


def plain_body(
    language: str, path: str, current: str, request: str, why: str, history: Sequence[Message]
) -> tuple[PromptMessage, ...]:
    """Makes the request for a file's text: only the files that were read, the file as it is, and the user's request. In
    measurements, a small model wrote better code without the conversation."""
    text = render(
        language,
        "body_plain",
        material="\n\n".join(material(history, path)),
        path=path,
        current=fenced(current) if current.strip() else "",
        outcome=fenced(outcome_text) if (outcome_text := last_outcome(history)) else "",
        request=request,
        why="" if why.strip() in request else why,
        care=render(language, "body_care").strip() if is_code(path) else "",
    )
    return plain_request(language, text)


def plain_request(language: str, text: str) -> tuple[PromptMessage, ...]:
    """Makes a request that is answered in plain text: one sentence that tells the model its role, and this text."""
    return PromptMessage("system", render(language, "base_plain").strip()), PromptMessage("user", text.strip())


def material(history: Iterable[Message], without: str) -> list[str]:
    """Returns the files that were read last, each in its newest version, as far as there is room. They stand in the
    order of the conversation."""
    characters_left, quotations, seen_names = MATERIAL_LENGTH, list[str](), {without}
    read_messages = [
        message
        for message in history
        if message.role == "tool" and (message.operation == READ_FILE or message.operation.startswith("@"))
    ]
    for message in reversed(read_messages):
        first_line, _, text = message.text.partition("\n")
        name = first_line.partition(" (lines ")[0]
        if not text or name in seen_names or len(text) > characters_left:
            continue
        seen_names.add(name)
        characters_left -= len(text)
        quotations.insert(0, f"{name}:\n{fenced(text)}")
    return quotations


def last_outcome(history: Sequence[Message]) -> str:
    """Returns the output of the last command; empty if a file was written after it."""
    last_message = next(
        (message for message in reversed(history) if message.operation in (RUN_COMMAND, WRITE_FILE)), None
    )
    return last_message.text[-OUTCOME_LENGTH:] if last_message and last_message.operation == RUN_COMMAND else ""


def is_code(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() not in PROSE


def fenced(text: str) -> str:
    """Puts the text between fences that are longer than any fence in the text."""
    fence = next((candidate for candidate in FENCES if candidate not in text), "``````")
    return f"{fence}\n{text.rstrip()}\n{fence}"
