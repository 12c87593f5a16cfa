"""The verdict on a command, and the findings it is made of."""

from dataclasses import dataclass
from typing import Literal

from duckflow.safety.shown import shown
from duckflow.state.phrase import Phrase

Verdict = Literal["safe", "ask", "dangerous"]
SHOWN_LENGTH = 80


@dataclass(frozen=True, slots=True)
class CommandVerdict:
    """`safe` only reads, `ask` may change something, `dangerous` destroys much, or outside, or for good."""

    verdict: Verdict
    reasons: tuple[Phrase, ...]
    programs: tuple[str, ...]
    writes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommandFinding:
    """One reason not to run a command unasked."""

    verdict: Literal["ask", "dangerous"]
    key: str
    values: tuple[tuple[str, str], ...] = ()

    @property
    def phrase(self) -> Phrase:
        return Phrase(key=self.key, values=dict(self.values))


def ask(key: str, **values: str) -> CommandFinding:
    return CommandFinding("ask", f"harm.{key}", _short(values))


def danger(key: str, **values: str) -> CommandFinding:
    return CommandFinding("dangerous", f"harm.{key}", _short(values))


def _short(values: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, shown(_cut(value))) for name, value in values.items())


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_LENGTH else text[: SHOWN_LENGTH - 1] + "…"
