"""`/undo`, `/redo` and `/diff`."""

from duckflow.commands.command import Command, CommandContext
from duckflow.i18n.words import Words
from duckflow.state.phrase import Phrase
from duckflow.tools.undo_turn import undo_question


async def undo(context: CommandContext, _: str) -> str:
    return await _restore(context, back=True)


async def redo(context: CommandContext, _: str) -> str:
    return await _restore(context, back=False)


async def diff(context: CommandContext, rest: str) -> str:
    words = context.words
    preview = await context.conversation.undo.diff(int(rest) if rest.isdecimal() else None)
    lines = [words("undo.turn", turn=preview.turn), preview.diff, *warnings(preview.not_covered, words)]
    return "\n".join(line for line in lines if line)


async def _restore(context: CommandContext, back: bool) -> str:
    words, kept = context.words, context.conversation.undo
    if any(question.kind == "gate" for question in context.conversation.questions):
        return words("undo.gate_first")
    if context.conversation.state.turn_open:
        return words("undo.busy")
    preview = await kept.preview(back)
    if not preview.impacts and not preview.conflicts:
        return "\n".join([words("undo.nothing"), *warnings(preview.not_covered, words)])
    answer = await context.ask(undo_question(preview, back))
    if answer.choice not in ("yes", "all"):
        return words("undo.left")
    outcome = await kept.restore(back, only_own=answer.choice == "yes" and not preview.nothing_else)
    done = words("undo.done" if back else "undo.redone", turn=outcome.turn, files=", ".join(outcome.changed) or "–")
    return "\n".join([done, *warnings((*outcome.conflicts, *outcome.not_covered), words)])


def warnings(phrases: tuple[Phrase, ...], words: Words) -> list[str]:
    return [f"⚠ {words.phrase(phrase)}" for phrase in phrases]


GROUP = (Command("diff", diff), Command("undo", undo), Command("redo", redo))
