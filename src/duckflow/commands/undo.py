"""`/undo`, `/redo` and `/diff`."""

from typing import TYPE_CHECKING

from duckflow.commands.command import Command, CommandContext
from duckflow.errors import DuckflowError
from duckflow.i18n.words import Words
from duckflow.state.phrase import Phrase, say
from duckflow.state.question import Choice, GateRequest, Question

if TYPE_CHECKING:
    from duckflow.safety.undo.preview import UndoPreview


async def undo(counter: CommandContext, _: str) -> str:
    return await _restore(counter, back=True)


async def redo(counter: CommandContext, _: str) -> str:
    return await _restore(counter, back=False)


async def diff(counter: CommandContext, rest: str) -> str:
    words = counter.words
    try:
        preview = await counter.desk.safekeeping.diff(int(rest) if rest.isdecimal() else None)
    except DuckflowError as problem:
        return words.error(problem)
    lines = [words("undo.turn", turn=preview.turn), preview.diff, *_said(preview.not_covered, words)]
    return "\n".join(line for line in lines if line)


async def _restore(counter: CommandContext, back: bool) -> str:
    words, kept = counter.words, counter.desk.safekeeping
    if counter.desk.state.turn_open:
        return words("undo.busy")
    try:
        preview = await kept.preview(back)
        if not preview.impacts and not preview.conflicts:
            return "\n".join([words("undo.nothing"), *_said(preview.not_covered, words)])
        answer = await counter.ask(_question(preview, back))
        if answer.choice != "yes":
            return words("undo.left")
        outcome = await kept.restore(back)
    except DuckflowError as problem:
        return words.error(problem)
    done = words("undo.done" if back else "undo.redone", turn=outcome.turn, files=", ".join(outcome.changed) or "–")
    return "\n".join([done, *_said((*outcome.conflicts, *outcome.not_covered), words)])


def _question(preview: "UndoPreview", back: bool) -> Question:
    request = GateRequest(
        action_ids=(),
        operations=("undo" if back else "redo",),
        intent=(),
        rationale="",
        impacts=preview.impacts,
        diff=preview.diff,
        reasons=(*preview.conflicts, *preview.not_covered),
    )
    choices = (Choice(key="yes", label=say("gate.yes")), Choice(key="no", label=say("gate.no")))
    title = say("undo.title" if back else "undo.redo_title", turn=preview.turn)
    return Question(kind="gate", title=title, gate=request, choices=choices)


def _said(phrases: tuple[Phrase, ...], words: Words) -> list[str]:
    return [f"⚠ {words.phrase(phrase)}" for phrase in phrases]


GROUP = (Command("diff", diff), Command("undo", undo), Command("redo", redo))
