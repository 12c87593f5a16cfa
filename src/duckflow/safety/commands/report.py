"""What has been found out about a command so far."""

from dataclasses import dataclass, field

from duckflow.safety.commands.verdict import CommandFinding, CommandVerdict

MOST_STEPS = 1500
MOST_REASONS = 6
GENERAL = frozenset(("harm.unknown_program", "harm.expands", "harm.reads_outside"))
"""Reasons that say little beside others."""


class TooMuch(Exception):
    """The command hides behind more layers than anybody would look through."""


@dataclass(slots=True)
class Report:
    """Collects findings, programs and written files in order, each once."""

    findings: dict[CommandFinding, None] = field(default_factory=dict[CommandFinding, None])
    programs: dict[str, None] = field(default_factory=dict[str, None])
    writes: dict[str, None] = field(default_factory=dict[str, None])
    spelled: list[str] = field(default_factory=list[str])
    """Every word of the text itself, as it was understood."""
    steps: int = 0

    def add(self, finding: CommandFinding) -> None:
        self.findings[finding] = None

    def step(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise TooMuch

    def verdict(self) -> CommandVerdict:
        dangers = [finding for finding in self.findings if finding.verdict == "dangerous"]
        doubts = [finding for finding in self.findings if finding.verdict == "ask"]
        doubts.sort(key=lambda finding: finding.key in GENERAL)
        reasons = tuple(finding.phrase for finding in (dangers + doubts)[:MOST_REASONS])
        verdict = "dangerous" if dangers else "ask" if doubts else "safe"
        return CommandVerdict(verdict, reasons, tuple(self.programs), tuple(self.writes))
