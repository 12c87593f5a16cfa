"""What was tried of a claim that the work is done, and what came of it."""

from typing import Literal

from duckflow.state.noun import Value
from duckflow.state.phrase import Phrase, say

ProofVerdict = Literal["proven", "hollow", "unknown"]
NAMED = 3


class UnaskedChange(Value):
    """A hunk of a turn's diff that ties to nothing that was asked for."""

    turn: int
    path: str
    line: int
    hunk_id: str


class Proof(Value):
    """Tests are named as pytest does, `tests/test_x.py::test_y`. A turn that changed no tests together with code has
    none of them."""

    red: tuple[str, ...] = ()
    """Tests that fail on the code before the change, and pass now."""
    noticing: tuple[str, ...] = ()
    """Tests of names that are new, which fail when the new code is broken on purpose."""
    guarding: tuple[str, ...] = ()
    """Tests that pass without the change, but fail when the changed code is broken on purpose."""
    hollow: tuple[str, ...] = ()
    """Tests that pass without the change, and whatever it does."""
    untold: tuple[str, ...] = ()
    """Tests of which nothing could be told."""
    why: Phrase | None = None
    """Why nothing could be told of them."""
    unreached: tuple[str, ...] = ()
    """New public names that nothing else in the folder speaks of."""
    unasked: tuple[UnaskedChange, ...] = ()
    """Changes that nobody asked for; each can be taken back by itself."""
    seconds: float = 0.0

    @property
    def verdict(self) -> ProofVerdict:
        if self.hollow:
            return "hollow"
        return "proven" if self.red or self.noticing else "unknown"

    @property
    def holds(self) -> bool:
        """Whether the work may be called done where proof is required."""
        return self.verdict == "proven"

    def parts(self) -> tuple[Phrase, ...]:
        """The parts of the line that a person is shown."""
        counted = (("red", self.red), ("noticing", self.noticing), ("guarding", self.guarding))
        parts = [say(f"proof.{name}", count=len(tests)) for name, tests in counted if tests]
        if self.hollow:
            parts.append(say("proof.hollow", count=len(self.hollow), names=named(self.hollow)))
        if self.untold:
            parts.append(say("proof.untold", count=len(self.untold)))
        parts += [self.why] if self.why else []
        if self.unreached:
            parts.append(say("proof.unreached", names=named(self.unreached)))
        if self.unasked:
            places = tuple(f"{change.path}:{change.line}" for change in self.unasked)
            parts.append(say("proof.unasked", count=len(places), places=named(places)))
        return tuple(parts)


def named(names: tuple[str, ...]) -> str:
    """The first of some names, without the files of tests."""
    short = [name.rpartition("::")[2] for name in names[:NAMED]]
    return ", ".join(short) + (" …" if len(names) > NAMED else "")
