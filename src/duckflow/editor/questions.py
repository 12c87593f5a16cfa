"""Questions as an editor can put them: permission requests that carry the command or the diff, and all that a Gate,
a Duck Call or a choice says."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from duckflow.editor.tool_calls import fenced, gate_kind, hunks, text_content
from duckflow.i18n.folded import TAB, folded, one_line
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.state.question import Choice, GateRequest, Question

LONGEST_WORDS = 300
KINDS = {"yes": "allow_once", "session": "allow_always", "always": "allow_always"}
NO = frozenset({"no", "stop", "rest", "leave", "stay"})
"""Choices after which nothing is done."""


def permission_request(question: Question, words: Words, root: Path) -> dict[str, Any]:
    """The tool call that is asked about and the options. A Gate about one action is about that call."""
    gate = question.gate
    alone = gate is not None and len(gate.action_ids) == 1
    content = [text_content(question_text(question, words))]
    call: dict[str, Any] = {
        "toolCallId": gate.action_ids[0] if gate and alone else question.question_id,
        "title": _title(question, words),
        "kind": gate_kind(gate) if gate and alone else "other",
        "status": "pending",
        "content": [*content, *(hunks(gate.file_diff, root) if gate else ())],
    }
    if gate and gate.impacts:
        call["locations"] = [{"path": str(root / impact.path)} for impact in gate.impacts]
    # What needs words comes last: an editor that answers by itself takes the first.
    choices = sorted(question.choices, key=lambda choice: choice.wants_text or choice.key == "edit")
    return {"toolCall": call, "options": [_option(choice, words) for choice in choices]}


def question_text(question: Question, words: Words) -> str:
    """All of it but the diff and the choices."""
    gate = question.gate
    lines = [words("job.asks", job=question.job_name)] if question.job else []
    lines += _gate_lines(gate, words) if gate else [f"**{_title(question, words)}**"]
    lines += [plain(words.phrase(detail)) for detail in question.details]
    return "\n\n".join(line for line in lines if line)


def _title(question: Question, words: Words) -> str:
    gate, title = question.gate, words.phrase(question.title)
    if question.kind == "duck_call":
        return words("duck.title", title=title)
    if gate and gate.commands:
        return folded(plain(_command(gate.commands[0])), words)
    if gate and gate.impacts:
        changes = [f"{words(f'gate.{impact.change}')} {plain(impact.path)}" for impact in gate.impacts]
        return ", ".join(changes)
    return plain(title)


def _command(shown: str) -> str:
    """The first line that runs, without the prompt before it."""
    lines = [line for line in shown.split("\n") if not line.startswith("# ")]
    return (lines or [shown])[0].removeprefix("$ ")


def _gate_lines(gate: GateRequest, words: Words) -> Iterator[str]:
    """Commands first and whole; then what is computed; then what the model says, marked as such."""

    def fold(line: str) -> str:
        return folded(plain(line), words).expandtabs(TAB)

    for command in gate.commands:
        yield fenced("\n".join(map(fold, command.split("\n"))))
    for impact in gate.impacts:
        known = words("gate.tracked" if impact.tracked else "gate.untracked")
        change = words(f"gate.{impact.change}")
        yield f"{change}: {fold(impact.path)}  (+{impact.added} −{impact.removed}, {known})"
    yield words("gate.risk", level=words(f"gate.risk.{gate.risk}"))
    for reason in gate.reasons:
        yield f"⚠ {fold(words.phrase(reason))}"
    if gate.doubtful:
        yield words("gate.doubtful")
    if gate.reversible:
        yield words("gate.reversible_command" if gate.commands else "gate.reversible")
    for reason in gate.lasting:
        yield f"⚠ {fold(words.phrase(reason))}"
    for key, said in _model_words(gate):
        yield f"> {words(key)}: “{one_line(plain(said), words, LONGEST_WORDS)}”"


def _model_words(gate: GateRequest) -> Iterator[tuple[str, str]]:
    said = [("gate.intent", intent) for intent in gate.intent]
    said += [("gate.rationale", gate.rationale), *(("gate.alternative", one) for one in gate.alternatives)]
    return ((key, text) for key, text in said if text.strip())


def _option(choice: Choice, words: Words) -> dict[str, str]:
    kind = KINDS.get(choice.key) or ("reject_once" if choice.key in NO else "allow_once")
    return {"optionId": choice.key, "name": folded(plain(words.phrase(choice.label)), words), "kind": kind}
