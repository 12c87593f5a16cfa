"""Duckflow's questions to a person behind an MCP client: put by elicitation, or answered with no where that is not
offered."""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.state.question import NOBODY, GateRequest, Question

LONGEST_SHOWN = 20_000
"""What is longer than this cannot be looked through in a form: it is refused."""
LEFT_OUT = ("edit",)


class GivenAnswer(NamedTuple):
    """A choice with words to it; without a choice, words that are read as typed."""

    choice: str = ""
    text: str = ""


def message_of(question: Question, words: Words) -> str:
    """All of the question: what would run first and whole, then what is computed, then the model's words."""
    return plain("\n".join(_lines(question, words)))


def _lines(question: Question, words: Words) -> Iterator[str]:
    yield words.phrase(question.title)
    yield from (words.phrase(detail) for detail in question.details)
    if question.gate:
        yield from _gate_lines(question.gate, words)


def _gate_lines(gate: GateRequest, words: Words) -> Iterator[str]:
    yield from gate.commands
    for impact in gate.impacts:
        yield f"{words(f'gate.{impact.change}')}: {impact.path} (+{impact.added} −{impact.removed})"
    yield words("gate.risk", level=words(f"gate.risk.{gate.risk}"))
    yield from (f"⚠ {words.phrase(reason)}" for reason in (*gate.reasons, *gate.lasting))
    for intent in gate.intent:
        yield f"{words('gate.intent')}: “{' '.join(intent.split())}”"
    if gate.rationale:
        yield f"{words('gate.rationale')}: “{' '.join(gate.rationale.split())}”"
    if gate.file_diff:
        yield gate.file_diff


def can_be_shown(question: Question, words: Words) -> bool:
    return len(message_of(question, words)) <= LONGEST_SHOWN


def form_of(question: Question, words: Words) -> dict[str, Any]:
    """The fields of the form: the answer, and words to it. What would be very risky takes a typed word."""
    choices = [one for one in question.choices if one.key not in LEFT_OUT]
    answer: dict[str, Any] = {"type": "string", "title": words("serve.answer")}
    typed = question.kind == "text" or (question.gate is not None and question.gate.risk == "forbidden")
    if typed:
        answer["description"] = " / ".join(words.phrase(one.label) for one in choices)
    else:
        answer["enum"] = [one.key for one in choices]
        answer["enumNames"] = [words.phrase(one.label) for one in choices]
    reason = {"type": "string", "title": words("serve.reason")}
    properties = {"answer": answer} if typed else {"answer": answer, "reason": reason}
    return {"type": "object", "properties": properties, "required": ["answer"]}


def read_form(question: Question, result: dict[str, Any]) -> GivenAnswer:
    """What was filled in; everything that is no clear answer is a no."""
    content: Any = result.get("content")
    if result.get("action") != "accept" or not isinstance(content, dict):
        return refusal(question)
    given = {key: str(value) for key, value in cast("dict[str, Any]", content).items()}
    answer = given.get("answer", "").strip()
    chosen = next((one for one in question.choices if one.key == answer), None)
    if question.kind == "text" or (question.gate and question.gate.risk == "forbidden"):
        return GivenAnswer(text=answer) if answer else refusal(question)
    if chosen is None or chosen.key in LEFT_OUT or (chosen.wants_text and not given.get("reason")):
        return refusal(question)
    return GivenAnswer(chosen.key, given.get("reason", ""))


def unasked(question: Question) -> GivenAnswer:
    """The answer where the person behind the client cannot be asked."""
    return GivenAnswer(NOBODY) if question.takes_nobody else refusal(question)


def refusal(question: Question) -> GivenAnswer:
    """The answer that does nothing: no at a Gate, stop at a Duck Call, else the last one, which says no."""
    if question.kind == "gate":
        return GivenAnswer("no")
    return GivenAnswer("stop" if question.kind == "duck_call" else question.choices[-1].key)
