"""Taking back what the latest turn with changes did, and the question that comes before it."""

from duckflow.errors import ToolError
from duckflow.events.ports import Ask, UndoPort
from duckflow.events.views import PlannedUndo
from duckflow.i18n.template import note
from duckflow.state.agent import AgentState
from duckflow.state.phrase import say
from duckflow.state.question import Choice, GateRequest, Question
from duckflow.tools.tool import Args, Done, Tool


class NoArgs(Args):
    """Nothing has to be said."""


class TakeTurnBack(Tool[NoArgs]):
    """Takes back the latest turn with changes, after the user has seen what that changes and said yes to it, in every
    mode."""

    operation = "undo.turn"
    effect = "plan"
    when = ("changed",)
    args = NoArgs

    def __init__(self, state: AgentState, undo: UndoPort, ask: Ask) -> None:
        self._state = state
        self._undo = undo
        self._ask = ask

    async def run(self, args: NoArgs) -> Done:
        preview = await self._undo.preview(back=True)
        if not preview.impacts and not preview.conflicts:
            raise ToolError(note(self._state.language, "undo_nothing"), "undo.nothing")
        answer = await self._ask(undo_question(preview, back=True))
        if answer.choice not in ("yes", "all"):
            key = "refused_why" if answer.text else "refused"
            raise ToolError(note(self._state.language, key, reason=answer.text), "undo.left")
        outcome = await self._undo.restore(back=True, only_own=answer.choice == "yes" and not preview.nothing_else)
        files = ", ".join(outcome.changed) or "-"
        text = note(self._state.language, "turn_undone", turn=str(outcome.turn), files=files)
        return Done(text, say("undo.done", turn=outcome.turn, files=files))


def undo_question(preview: PlannedUndo, back: bool) -> Question:
    request = GateRequest(
        action_ids=(),
        operations=("undo" if back else "redo",),
        intent=(),
        rationale="",
        impacts=preview.impacts,
        diff=preview.diff,
        reasons=(*preview.maybe_yours, *preview.conflicts, *preview.not_covered),
    )
    # A mere yes never takes back what may be somebody else's, unless that is all that is asked.
    doubtful = bool(preview.maybe_yours) and not preview.nothing_else
    yes = (("yes", "undo.yes_own"), ("all", "undo.yes_all")) if doubtful else (("yes", "gate.yes"),)
    choices = tuple(Choice(key=key, label=say(label)) for key, label in (*yes, ("no", "gate.no")))
    title = say("undo.title" if back else "undo.redo_title", turn=preview.turn)
    return Question(kind="gate", title=title, gate=request, choices=choices)
