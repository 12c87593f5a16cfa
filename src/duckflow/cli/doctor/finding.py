"""What the doctor found out about one thing."""

from dataclasses import dataclass
from typing import Any, Literal

from duckflow.errors import DuckflowError
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.state.phrase import Phrase, said

Part = Literal["settings", "machine", "terminal", "model"]
State = Literal["good", "note", "bad"]
MARKS: dict[State, str] = {"good": "✓", "note": "–", "bad": "✗"}


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """One line, and how to fix it. A note is something one can do without; what is bad keeps Duckflow from working."""

    part: Part
    state: State
    what: Phrase
    fix: Phrase | None = None

    def lines(self, words: Words) -> list[str]:
        """The first line says what; every further one is part of the way out."""
        first, *more = words.phrase(self.what).split("\n")
        more += words.phrase(self.fix).split("\n") if self.fix else []
        return [plain(f"{MARKS[self.state]} {first}"), *(plain(f"    → {line}") for line in more)]

    def as_json(self, words: Words) -> dict[str, Any]:
        return {
            "part": self.part,
            "state": self.state,
            "what": words.phrase(self.what),
            "fix": words.phrase(self.fix) if self.fix else "",
        }


def good(part: Part, what: Phrase) -> DoctorFinding:
    return DoctorFinding(part, "good", what)


def judged(part: Part, fine: bool, what: Phrase, fix: Phrase, otherwise: State = "bad") -> DoctorFinding:
    """Good, or with a fix."""
    return DoctorFinding(part, "good", what) if fine else DoctorFinding(part, otherwise, what, fix)


def broken(part: Part, problem: DuckflowError) -> DoctorFinding:
    """An error that says by itself what to do."""
    return DoctorFinding(part, "bad", said(problem))
