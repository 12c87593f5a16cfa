"""`/undo` and `/redo`."""

import shlex
from dataclasses import dataclass

from duckflow.commands.command import Command, CommandContext
from duckflow.events.views import PlannedUndo
from duckflow.i18n.words import Words
from duckflow.safety.path_names import shown
from duckflow.state.changes import LATEST, Hunk, UndoScope, WorkAuthor
from duckflow.state.data import Phrase, say
from duckflow.state.question import NOBODY, Answer, Choice, FileImpact, Question
from duckflow.tools.undo_turn import about_work, files_meant, latest, undo_question

OFFERED = 6
LISTED = 9
UNASKED = "unasked"
LEAVE = Choice(key="no", label=say("undo.leave"), takes_text=True)


async def undo(context: CommandContext, wanted: str) -> str:
    """Takes back the last turn, a job, a step of a job, or single files. If several could be meant, the user is asked
    which."""
    if busy_key := _busy(context):
        return context.words(busy_key)
    authors = await context.conversation.undo.authors()
    if wanted.strip():
        return await _Restore(context, back=True).run(_named(wanted.strip(), authors))
    scopes, unasked_hunks = _offered(authors), await _unasked(context)
    if len(scopes) < 2 and not unasked_hunks:
        return await _Restore(context, back=True).run(LATEST)
    answer, paths = await _chosen(context, scopes, unasked_hunks)
    if answer.choice == UNASKED:
        return await _take_back(context, unasked_hunks)
    if answer.text and (files := files_meant(answer.text, paths, context.words.language)):
        return await _Restore(context, back=True).run(UndoScope(paths=files))
    if not answer.choice.isdecimal():
        return await _left(context, answer, await context.conversation.undo.preview(True, LATEST))
    return await _Restore(context, back=True).run(scopes[int(answer.choice)])


async def _unasked(context: CommandContext) -> list[Hunk]:
    """Returns the changes of the last turn that the user had not asked for and that have not been taken back."""
    proof = context.conversation.state.proof
    unasked_ids = {change.hunk_id for change in proof.unasked} if proof else set[str]()
    hunks = await context.conversation.review.hunks(proof.unasked[0].turn) if proof and unasked_ids else ()
    return [hunk for hunk in hunks if hunk.hunk_id in unasked_ids]


async def _take_back(context: CommandContext, hunks: list[Hunk]) -> str:
    for hunk in hunks:
        await context.conversation.review.take_back(hunk.turn, hunk.path, hunk.hunk_id)
    return context.words("undo.unasked_done", places=_places(hunks))


def _places(hunks: list[Hunk]) -> str:
    return ", ".join(dict.fromkeys(shown(hunk.path) for hunk in hunks))


async def redo(context: CommandContext, _: str) -> str:
    busy_key = _busy(context)
    return context.words(busy_key) if busy_key else await _Restore(context, back=False).run(LATEST)


def _busy(context: CommandContext) -> str:
    if any(question.kind == "gate" for question in context.conversation.questions):
        return "undo.gate_first"
    return "undo.busy" if context.conversation.state.turn_open else ""


def _offered(authors: list[WorkAuthor]) -> list[UndoScope]:
    """Returns the work that can be taken back, the latest first: the last turn, the latest jobs, and the latest step of
    a job with several."""
    latest_turns = [author for author in authors if not author.job][:1]
    scopes = list(dict.fromkeys(author.whole for author in authors if author.job or author in latest_turns))
    latest_job = next((author for author in authors if author.job), None)
    if latest_job and sum(author.job == latest_job.job for author in authors) > 1:
        scopes.insert(scopes.index(latest_job.whole) + 1, UndoScope(job=latest_job.job, step=latest_job.step))
    return scopes[:OFFERED]


def _named(wanted: str, authors: list[WorkAuthor]) -> UndoScope:
    """Reads which work to take back: `turn`, `job` and `step` mean the latest of their kind, `last` the latest work of
    all; a number is a turn; other words name files or folders."""
    match wanted.split():
        case ["last" | "turn" | "job" | "step" as kind]:
            return latest(kind, authors)
        case ["turn", number] | [number] if number.isdecimal():
            return UndoScope(turn=int(number))
        case _:
            return UndoScope(paths=_files(wanted))


def _files(wanted: str) -> tuple[str, ...]:
    """Splits file names. A name with a space must be in quotes, as in a shell."""
    try:
        return tuple(shlex.split(wanted))
    except ValueError:
        return (wanted,)


async def _chosen(
    context: CommandContext, scopes: list[UndoScope], unasked: list[Hunk]
) -> tuple[Answer, tuple[str, ...]]:
    """Asks which work to take back. Returns the answer, and the files of all choices, because an answer may name files
    instead."""
    label = say("undo.offer_unasked", places=_places(unasked))
    choices, paths = [Choice(key=UNASKED, label=label)] if unasked else list[Choice](), dict[str, None]()
    for number, scope in enumerate(scopes):
        preview = await context.conversation.undo.preview(True, scope)
        paths |= dict.fromkeys(impact.path for impact in preview.impacts)
        kind = "step" if scope.step else "job" if scope.job else "turn"
        values = {"turn": preview.turn, "name": preview.name or preview.wish, "size": _size(preview.impacts)}
        choices.append(Choice(key=str(number), label=say(f"undo.offer_{kind}", **values)))
    answer = await context.ask(Question(kind="choice", title=say("undo.which"), choices=(*choices, LEAVE)))
    return answer, tuple(paths)


async def _left(context: CommandContext, answer: Answer, preview: PlannedUndo) -> str:
    """Keeps all work as it is. If the answer says what the user wants instead, it goes to the model, which can take
    back less."""
    wish_text = answer.said or answer.text
    if not wish_text:
        return context.words("undo.left")
    context.conversation.undo.tell_left(preview)
    await context.conversation.say(wish_text)
    return ""


def _size(impacts: tuple[FileImpact, ...]) -> str:
    added_lines, removed_lines = sum(impact.added for impact in impacts), sum(impact.removed for impact in impacts)
    names = ", ".join(impact.path for impact in impacts[:2]) + (f", … ({len(impacts)})" if len(impacts) > 2 else "")
    return f"{names} +{added_lines} −{removed_lines}"


@dataclass
class _Restore:
    """Shows what would be taken back, asks for a yes, and takes it back. The user may ask for the diff or choose
    files."""

    context: CommandContext
    back: bool

    async def run(self, scope: UndoScope) -> str:
        words, undo_port = self.context.words, self.context.conversation.undo
        preview = await undo_port.preview(self.back, scope)
        if not preview.impacts and not preview.conflicts:
            is_held = any(phrase.key == "undo.held" for phrase in preview.not_covered)
            nothing = [] if is_held else [words("undo.nothing")]
            return "\n".join([*nothing, *warnings(preview.not_covered, words)])
        answer = await self.context.ask(self._question(preview))
        if answer.choice == "diff":
            answer = await self.context.ask(self._question(preview, with_diff=True))
        if answer.choice == "files":
            answer = await self._one_file(preview)
            if answer.choice.isdecimal():
                return await self.run(scope._replace(paths=(preview.impacts[int(answer.choice)].path,)))
        # If nobody can be asked, the command itself counts as the yes.
        if answer.choice not in ("yes", "all", NOBODY):
            return await _left(self.context, answer, preview)
        only_own = answer.choice != "all" and not preview.nothing_else
        outcome = await undo_port.restore(self.back, only_own, scope._replace(paths=answer.paths or scope.paths))
        done_phrase = about_work("done" if self.back else "redone", outcome, files=", ".join(outcome.changed) or "–")
        return "\n".join([words.phrase(done_phrase), *warnings((*outcome.conflicts, *outcome.not_covered), words)])

    async def _one_file(self, preview: PlannedUndo) -> Answer:
        paths = [impact.path for impact in preview.impacts[:LISTED]]
        choices = [Choice(key=str(number), label=say("talk.quoted", text=path)) for number, path in enumerate(paths)]
        return await self.context.ask(Question(kind="choice", title=say("undo.which_file"), choices=(*choices, LEAVE)))

    def _question(self, preview: PlannedUndo, with_diff: bool = False) -> Question:
        extra_keys: list[str] = [] if with_diff or not preview.diff else ["diff"]
        extra_keys += ["files"] if self.back and len(preview.impacts) > 1 else []
        return undo_question(preview, self.back, with_diff, extra_keys)


def warnings(phrases: tuple[Phrase, ...], words: Words) -> list[str]:
    return [f"⚠ {words.phrase(phrase)}" for phrase in phrases]


GROUP = (Command("undo", undo), Command("redo", redo))
