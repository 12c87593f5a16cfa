"""Taking back what the latest turn with changes did, and the question that comes before it."""

import re
from collections.abc import Sequence
from typing import Literal

from duckflow.errors import ToolError
from duckflow.events.ports import Ask, UndoPort
from duckflow.events.views import PlannedUndo, UndoResult
from duckflow.i18n.answers import read_whole
from duckflow.i18n.language import fullmatch
from duckflow.i18n.template import note
from duckflow.safety.path_names import named_files
from duckflow.state.agent import AgentState
from duckflow.state.changes import LATEST, UndoScope, WorkAuthor
from duckflow.state.phrase import Phrase, say
from duckflow.state.question import GateRequest, Question, gate_choice
from duckflow.tools.tool import Args, Done, Tool


class TakeBackArgs(Args):
    of: Literal["", "turn", "job", "step"] = ""
    paths: tuple[str, ...] = ()


class TakeTurnBack(Tool[TakeBackArgs]):
    """Takes back the latest work, or the latest turn, job or step, all of it or some files or folders; without a name
    the newest changes of these. The user sees before what that changes, and says yes to it in every mode."""

    operation = "undo.turn"
    effect = "plan"
    when = ("changed",)
    args = TakeBackArgs

    def __init__(self, state: AgentState, undo: UndoPort, ask: Ask) -> None:
        self._state = state
        self._undo = undo
        self._ask = ask

    async def run(self, args: TakeBackArgs) -> Done:
        scope = latest(args.of, await self._undo.authors())._replace(paths=tuple(one.rstrip("/") for one in args.paths))
        preview = await self._undo.preview(back=True, scope=scope)
        if not preview.impacts and not preview.conflicts:
            raise ToolError(note(self._state.language, "undo_nothing"), "undo.nothing")
        answer = await self._ask(undo_question(preview, back=True))
        if answer.choice not in ("yes", "all"):
            # The user has decided, so the call has not failed.
            key = "wished" if answer.choice == "wish" else "refused_why" if answer.text else "refused"
            return Done(note(self._state.language, key, reason=answer.text), say("undo.left"))
        scope = scope._replace(paths=answer.paths or scope.paths)
        only_own = answer.choice == "yes" and not preview.nothing_else
        outcome = await self._undo.restore(back=True, only_own=only_own, scope=scope)
        files = ", ".join(outcome.changed) or "-"
        key = "work_undone" if outcome.name else "turn_undone"
        text = note(self._state.language, key, turn=str(outcome.turn), work=outcome.name, files=files)
        return Done(text, about_work("done", outcome, files=files))


def latest(kind: str, authors: Sequence[WorkAuthor]) -> UndoScope:
    """The latest turn, job or step; what was done last of all, where there is none of that kind."""
    jobs, turns = [one for one in authors if one.job], [one for one in authors if not one.job]
    match kind:
        case "turn" if turns:
            return turns[0].whole
        case "job" if jobs:
            return jobs[0].whole
        case "step" if jobs:
            return UndoScope(job=jobs[0].job, step=jobs[0].step)
        case _:
            return LATEST


def undo_question(preview: PlannedUndo, back: bool, with_diff: bool = True, more: Sequence[str] = ()) -> Question:
    """`more`: what else than a yes or a no may be chosen, `diff` or `files`."""
    request = GateRequest(
        action_ids=(),
        operations=("undo" if back else "redo",),
        intent=(),
        rationale="",
        impacts=preview.impacts,
        diff=preview.diff if with_diff else "",
        reasons=(*preview.maybe_yours, *preview.conflicts, *preview.not_covered),
    )
    # A mere yes never takes back what may be somebody else's, unless that is all that is asked.
    doubtful = bool(preview.maybe_yours) and not preview.nothing_else
    yes = (("yes", "undo.yes_own"), ("all", "undo.yes_all")) if doubtful else (("yes", "gate.yes"),)
    keys = (*yes, *((key, f"undo.show_{key}") for key in more), ("no", "gate.no"))
    choices = tuple(gate_choice(key, say(label)) for key, label in keys)
    title = about_work("title" if back else "redo_title", preview, wish=preview.wish)
    return Question(kind="gate", title=title, gate=request, choices=choices)


def about_work(key: str, work: PlannedUndo | UndoResult, **values: str) -> Phrase:
    """A sentence about a turn by its number, or about a job or step by its name."""
    return say(f"undo.{key}{'_named' if work.name else ''}", turn=work.turn, name=work.name, **values)


OTHER_FILE = r"(?<![A-Za-z0-9_./-])[A-Za-z0-9_./-]+\.[A-Za-z][A-Za-z0-9]{0,5}(?![A-Za-z0-9_])"
"""The name of a file, with its ending."""


def files_meant(text: str, paths: Sequence[str], language: str) -> tuple[str, ...] | None:
    """The files that an answer is for where it names some of those that were asked about, or says that others stay; no
    file where that leaves all of them, and nothing where it says anything else."""
    said, named = named_files(read_whole(text, language).rest or text.strip().rstrip("。.!！"), paths, "@")
    said = re.sub(OTHER_FILE, "#", said)
    if named and fullmatch("scopes.only_named", said, language):
        return tuple(named) if len(named) < len(paths) else ()
    if fullmatch("scopes.spared_named", said, language):
        left = tuple(path for path in paths if path not in named)
        return None if not left else left if named else ()
    return None
