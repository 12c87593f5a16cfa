"""The verdict on a shell command, and the findings that it is made of."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from duckflow.safety.path_names import shown
from duckflow.state.data import Phrase

Verdict = Literal["safe", "ask", "dangerous"]
SHOWN_LENGTH = 80
MOST_CALLS = 500
MOST_WORK = 60_000
"""The limit of work for one command: words and pieces of text that are looked at, counted again for each layer of
nesting."""
MOST_REASONS = 6
RUNS_TOOL = {f"harm.runs_{kind}": kind for kind in ("tests", "linters", "builds")}
LEAVES = frozenset(("harm.git_elsewhere", "harm.as_administrator", "harm.on_another_machine", "harm.background"))
GENERAL = frozenset(("harm.unknown_program", "harm.expands", "harm.reads_outside"))
"""Reasons that say little when there are other reasons, so they come last."""
VAGUE = {"harm.unknown_program": 2, "harm.runs_code": 1}
"""Reasons that are left out where a clearer one about the same program exists, with their degree of vagueness."""


RUNS_TEXT = frozenset(("harm.runs_code", "harm.runs_fed"))
"""Reasons that already say that a program gets a text as input, so that this need not be said again."""


class ProjectTool(NamedTuple):
    """A test runner, linter or build tool of the project."""

    kind: str
    name: str


class CommandVerdict(NamedTuple):
    """The verdict on a command. `safe`: it only reads. `ask`: it may change something. `dangerous`: it destroys much,
    or something outside the work folder, or something that cannot be brought back."""

    verdict: Verdict
    reasons: tuple[Phrase, ...]
    tools: tuple["ProjectTool", ...] = ()
    """The project's own tools that the command runs. It is empty if the command also does anything else than
    reading."""
    leaves: bool = False
    """True if the command names something outside the work folder, or works as another user or on another machine."""


class CommandFinding(NamedTuple):
    """One reason to ask the user before a command runs."""

    verdict: Literal["ask", "dangerous"]
    key: str
    values: tuple[tuple[str, str], ...] = ()


def ask(key: str, **values: str) -> CommandFinding:
    return CommandFinding("ask", f"harm.{key}", _short(values))


def danger(key: str, **values: str) -> CommandFinding:
    return CommandFinding("dangerous", f"harm.{key}", _short(values))


def _short(values: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, shown(text[:SHOWN_LENGTH] + "…" * (len(text) > SHOWN_LENGTH))) for name, text in values.items())


class TooMuch(Exception):
    """Raised when a command is too long, or nested too deeply, to be judged."""


@dataclass(slots=True)
class Report:
    """The findings about a command so far, without repetitions."""

    findings: dict[CommandFinding, None] = field(default_factory=dict[CommandFinding, None])
    work: int = 0
    leaves: bool = False

    def add(self, finding: CommandFinding) -> None:
        self.findings[finding] = None

    def spend(self, work: int) -> None:
        """Counts work, and raises TooMuch at the limit. The limit keeps the time linear in the length of the command,
        however deeply its parts are nested."""
        self.work += work
        if self.work > MOST_WORK:
            raise TooMuch

    def verdict(self) -> CommandVerdict:
        """Returns the verdict with its reasons: dangers come first, and reasons that say little come last."""
        dangers = [finding for finding in self.findings if finding.verdict == "dangerous"]
        doubts = [finding for finding in self.findings if finding.verdict == "ask"]
        least_vague: dict[str, int] = {}
        for doubt in doubts:
            program = dict(doubt.values).get("program", "")
            least_vague[program] = min(VAGUE.get(doubt.key, 0), least_vague.get(program, 2))
        doubts = [
            doubt for doubt in doubts if VAGUE.get(doubt.key, 0) <= least_vague[dict(doubt.values).get("program", "")]
        ]
        if any(finding.key in RUNS_TEXT for finding in doubts):
            doubts = [finding for finding in doubts if finding.key != "harm.fed_text"]
        doubts.sort(key=lambda finding: finding.key in GENERAL)
        chosen_findings = (dangers + doubts)[:MOST_REASONS]
        reasons = tuple(Phrase(key=finding.key, values=dict(finding.values)) for finding in chosen_findings)
        tool_runs = [
            ProjectTool(RUNS_TOOL.get(finding.key, ""), dict(finding.values).get("program", ""))
            for finding in self.findings
        ]
        tools = tuple(tool_runs) if all(run.kind for run in tool_runs) else ()
        leaves = self.leaves or any(finding.key in LEAVES for finding in self.findings)
        return CommandVerdict("dangerous" if dangers else "ask" if doubts else "safe", reasons, tools, leaves)
