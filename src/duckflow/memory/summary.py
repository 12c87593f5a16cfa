"""Summaries of what is left out: what the model is shown, and whether what it wrote can be used."""

import re
from collections.abc import Sequence

from duckflow.memory.digest import gist
from duckflow.memory.tokens import clip, estimate
from duckflow.state.context import SUMMARY_LENGTH
from duckflow.state.message import Message
from duckflow.state.noun import shorten

SHOWN_TOKENS = 2500
EACH_TOKENS = 250
_REFUSAL = re.compile(
    r"^\W*(?:i(?:'m| am)? (?:sorry|can(?:'|no)t|unable)|sorry\b|as an ai|i won't|申し訳|すみません"
    r"|お答えできません|できません)",
    re.IGNORECASE,
)


def make_material(messages: Sequence[Message]) -> str:
    """The messages for the model to sum up, each shortened, within a bound."""
    lines: list[str] = []
    room = float(SHOWN_TOKENS)
    for message in messages:
        text = gist(message) if message.role == "assistant" else message.text
        line = f"{message.operation or message.role}: {clip(text, EACH_TOKENS)}"
        room -= estimate(line) + 1
        if room < 0:
            break
        lines.append(line)
    return "\n".join(lines)


def check_summary(text: str, messages: Sequence[Message]) -> str:
    """The summary in one line, or nothing: when it is empty, a refusal, or no shorter than what it stands for."""
    text = " ".join(text.replace("```", " ").split())
    if not text or text.startswith("{") or _REFUSAL.match(text):
        return ""
    if estimate(text) * 2 > sum(estimate(message.whole) for message in messages):
        return ""
    return shorten(text, SUMMARY_LENGTH)
