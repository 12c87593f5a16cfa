"""The Gate with its five points, or a Duck Call with its findings; then how to answer."""

from duckflow.state.question import GateRequest, Question
from duckflow.ui.console.diff_styles import diff_style
from duckflow.ui.console.panel import Panel
from duckflow.ui.console.paper import Paper
from duckflow.ui.i18n.words import Words

DIFF_LINES = 60


class QuestionPanel:
    """Shows a question."""

    def __init__(self, paper: Paper, words: Words) -> None:
        self._paper = paper
        self._words = words

    def show(self, question: Question) -> None:
        words, panel = self._words, Panel(self._paper)
        title = words.phrase(question.title)
        duck = words("duck.title", title=title)
        asker = words("job.asks", job=question.job_name) + " " if question.job else ""
        panel.top(asker + (duck if question.kind == "duck_call" else title))
        if question.gate:
            self._gate(panel, question.gate)
        for detail in question.details:
            panel.text(words.phrase(detail), hanging=2)
        panel.divider()
        choices = [f"{number}. {words.phrase(choice.label)}" for number, choice in enumerate(question.choices, 1)]
        for choice in ["   ".join(choices)] if len(choices) == 2 else choices:
            panel.text(choice, style="bold", hanging=3)
        if question.kind == "duck_call":
            panel.text(words("duck.free"), style="dim")
        panel.bottom()

    def _gate(self, panel: Panel, gate: GateRequest) -> None:
        words = self._words
        for intent in gate.intent:
            panel.text(f"{words('gate.intent')}: {intent}", hanging=2)
        if gate.rationale:
            panel.text(f"{words('gate.rationale')}: {gate.rationale}", hanging=2)
        for impact in gate.impacts:
            change = words(f"gate.{impact.change}")
            known = words("gate.tracked" if impact.tracked else "gate.untracked")
            panel.text(f"{change}: {impact.path}  (+{impact.added} −{impact.removed}, {known})", hanging=2)
        if gate.reversible:
            panel.text(words("gate.reversible"), style="dim")
        for alternative in gate.alternatives:
            panel.text(f"{words('gate.alternative')}: {alternative}", hanging=2)
        for reason in gate.reasons:
            panel.text(f"⚠ {words.phrase(reason)}", style="yellow", hanging=2)
        if gate.doubtful:
            panel.text(words("gate.doubtful"), style="yellow")
        self._diff(panel, gate.diff.splitlines())

    def _diff(self, panel: Panel, lines: list[str]) -> None:
        if not lines:
            return
        panel.divider()
        for line in lines[:DIFF_LINES]:
            panel.bare(line, diff_style(line))
        if len(lines) > DIFF_LINES:
            panel.bare(self._words("gate.more", lines=len(lines) - DIFF_LINES), "dim")
