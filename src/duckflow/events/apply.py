"""Applies each event to a state, and changes nothing else. Only the session applies events to its own state; others
apply them to copies (replays, mirrors, exports)."""

from collections.abc import Sequence

from duckflow.events import types as happened
from duckflow.events.apply_work import apply_work, change_plan, keep_for_job
from duckflow.events.talking import (
    CommentsLeft,
    FindingMade,
    FindingWithdrawn,
    HunkMarked,
    HunkMoved,
    LineCommented,
    ReviewEvent,
)
from duckflow.events.work import StepChanged, WorkEvent
from duckflow.state.action import evidence_of, is_checked
from duckflow.state.agent import (
    A_WHILE,
    CAUSES_LIMIT,
    CONVERSATION,
    HISTORY_LIMIT,
    MARKS_LIMIT,
    PLAN,
    RECEIPTS_LIMIT,
    REFS_LIMIT,
    AgentState,
    kind_of_ref,
)
from duckflow.state.checks import with_run
from duckflow.state.data import shorten
from duckflow.state.message import Usage
from duckflow.state.phase import FiveItems, Phase, Status, Transition
from duckflow.state.plan import Plan
from duckflow.state.question import Question

EVIDENCE_KEPT = 12
CHECKS_KEPT = 12


def is_past(state: AgentState, now: float) -> bool:
    """Says whether a new request has nothing to do with the old goal. That is assumed if the goal was reached, if its
    plan is over, or if the last message was long ago."""
    goal_is_over = any(plan.goal == state.five.goal for plan in state.plans.values() if plan.is_over)
    last_time = state.messages[-1].at if state.messages else now
    return state.phase is Phase.DONE or goal_is_over or now - last_time > A_WHILE


def begin_anew(state: AgentState) -> None:
    """Clears the old goal, because it was reached or refused, or is too old. The user's constraints stay."""
    state.last_delta = ""
    if state.plan is None or not state.plan.under_way:
        _change(state, goal="", why_now="", plan_brief=[], open_questions=[])


def hear(state: AgentState, constraints: Sequence[str]) -> None:
    """Notes that the user has spoken. This answers the open question, and adds the user's new constraints to the older
    ones."""
    state.heard, state.said_last = True, ""
    answered(state)
    if constraints:
        _change(state, constraints=[*constraints, *(old for old in state.five.constraints if old not in constraints)])


def answered(state: AgentState) -> None:
    """Closes the question that the model asked in a text."""
    state.five.open_questions = [question for question in state.five.open_questions if question != state.asked]
    state.asked = ""


def decided(state: AgentState, event: happened.DecisionMade) -> None:
    state.heard = False
    state.prompt_pattern = event.decision.prompt_pattern
    if event.goal:
        _change(state, goal=event.goal)
        state.goal_turn = state.turn


def asked(state: AgentState, question: str) -> None:
    """Opens a question to the user. It stays open until the user speaks."""
    state.asked = question
    _change(state, open_questions=[question, *(other for other in state.five.open_questions if other != question)])


def follow_plan(state: AgentState, plan: Plan | None) -> None:
    """Copies the goal of an approved plan, and the names of its next steps, into the items that every prompt contains.
    When the plan is over, removes the names of its steps."""
    if plan is None or plan.plan_id != state.active_plan:
        if plan is not None and state.plan is None:
            state.five.plan_brief = []
        return
    if plan.under_way:
        current_step = plan.current()
        remaining_steps = [step for step in plan.steps if step.status != "completed" and step is not current_step]
        steps = [*([current_step] if current_step else []), *remaining_steps]
        _change(state, goal=plan.goal, plan_brief=[step.name for step in steps])
        state.goal_turn = 0
    elif plan.status == "withdrawn" and plan.goal == state.five.goal:
        begin_anew(state)
    elif plan.is_over:
        state.five.plan_brief = []


def _change(state: AgentState, **items: str | list[str]) -> None:
    state.five = FiveItems.model_validate(state.five.model_dump() | items)


def apply_memory(
    state: AgentState, event: happened.ContextPruned | happened.PastSummarised | happened.PastForgotten
) -> None:
    match event:
        case happened.ContextPruned():
            state.context.kept, state.context.cut, state.context.upto = list(event.kept), dict(event.cut), event.upto
            state.context.receipts = [*state.context.receipts, event.receipt][-RECEIPTS_LIMIT:]
        case happened.PastSummarised():
            state.context.add_summary(event.summary)
        case happened.PastForgotten():
            state.context.forget(event.numbers, event.words)
            if event.words:
                state.forget(event.words)


DOING = 100


def apply(state: AgentState, event: happened.Event) -> None:
    """Changes the state as the event demands. A live event, which exists only for the screen, changes nothing."""
    if not event.journaled:
        return
    state.event_count += 1
    match event:
        case happened.SessionOpened():
            state.session_id = event.session_id
            state.folder = event.folder
            state.language = event.language
            state.forked_from = event.forked_from
        case happened.ModelChosen():
            state.model = event.model
        case happened.LanguageChosen():
            state.language = event.language
        case happened.ModeChosen():
            state.mode = event.mode
        case happened.SessionTitled():
            state.named = event.title
        case happened.TurnBegan() | happened.TurnEnded() | happened.LoopBegan():
            _pace(state, event)
        case happened.MessageAdded():
            _add_message(state, event)
        case happened.DecisionMade():
            decided(state, event)
        case happened.ActionStarted():
            if agent := state.agents.get(event.job):
                agent.doing = shorten(f"{event.action.operation} {event.action.about}", DOING)
            else:
                _note_ref(state, str(event.action.args.get("path", "")))
        case happened.ActionFinished():
            _note_changes(state, event)
            if not ((agent := state.agents.get(event.job)) and agent.only_reads):
                # A look-up by a reading agent proves nothing about the work.
                _note_evidence(state, event)
                _note_check(state, event)
            if event.asked:
                asked(state, event.asked)
        case happened.PermissionGiven():
            if event.scope == "session" and not state.forked_from:
                state.allowed.append(event.rule)
        case happened.PermissionTaken():
            state.allowed = [rule for rule in state.allowed if rule != event.rule]
        case happened.ChangesLimited():
            state.limited_to = event.names
        case happened.QuestionAsked():
            _open_question(state, event.question, event.at)
        case happened.QuestionClosed():
            _hear_answer(state, event)
            _close_question(state, event.question_id, event.at)
            state.heard |= bool(event.answer and event.answer.text)
        case happened.TurnUndone():
            _undo_changes(state, event)
        case happened.MessagesSetAside():
            state.aside.append((event.first, event.last))
        case happened.ContextPruned() | happened.PastSummarised() | happened.PastForgotten():
            apply_memory(state, event)
        case happened.PhaseMoved() | happened.StatusChanged():
            _move(state, event)
        case happened.ContextReferred():
            for name in event.conversations:
                _note_ref(state, f"{CONVERSATION}{name}")
        case happened.Reviewed():
            state.review = event.review
        case happened.FiveChanged():
            _change_five(state, event)
        case happened.PlanChanged():
            change_plan(state, event)
            _note_ref(state, f"{PLAN}{event.plan.plan_id}" if event.active else "")
            state.last_delta = shorten(f"plan: {event.plan.name} ({event.plan.status})", 200)
            follow_plan(state, event.plan)
        case WorkEvent():
            apply_work(state, event)
            if isinstance(event, StepChanged):
                follow_plan(state, state.plan)
        case ReviewEvent():
            _review(state, event)
        case happened.ProofTried():
            state.proof = event.proof
        case happened.VitalsChanged():
            state.vitals = event.vitals
            state.vitals_causes = [*state.vitals_causes, *event.causes][-CAUSES_LIMIT:]
        case happened.UsageReported():
            _count(state, event)
        case _:
            pass


def _review(state: AgentState, event: ReviewEvent) -> None:
    match event:
        case LineCommented():
            comments = [comment for comment in state.comments if comment.comment_id != event.comment.comment_id]
            state.comments = [*comments, event.comment]
        case CommentsLeft():
            state.comments = [comment for comment in state.comments if comment.comment_id not in event.comment_ids]
        case HunkMarked():
            hunk_ids = [hunk_id for hunk_id in state.reviewed if hunk_id != event.hunk_id]
            state.reviewed = [*hunk_ids, *((event.hunk_id,) if event.reviewed else ())][-MARKS_LIMIT:]
        case HunkMoved():
            hunks = [hunk for hunk in state.taken_back if hunk.hunk_id != event.hunk.hunk_id]
            state.taken_back = [*hunks, *((event.hunk,) if event.back else ())][-HISTORY_LIMIT:]
            _drop_outdated(state, (event.hunk.path,))
        case FindingMade():
            _withdraw(state, event.finding.agent_id, event.finding.place)
            state.findings = [*state.findings, event.finding][-HISTORY_LIMIT:]
        case FindingWithdrawn():
            _withdraw(state, event.agent_id, event.place)
        case _:
            pass


def _withdraw(state: AgentState, agent_id: str, place: str) -> None:
    state.findings = [finding for finding in state.findings if (finding.agent_id, finding.place) != (agent_id, place)]


def _pace(state: AgentState, event: happened.TurnBegan | happened.TurnEnded | happened.LoopBegan) -> None:
    match event:
        case happened.TurnBegan():
            state.turn = event.turn
            state.loop = 0
            state.turn_open = True
            state.turn_usage = Usage()
            state.review = state.proof = None
            if is_past(state, event.at):
                begin_anew(state)
            state.phase = Phase.PLANNING if state.phase is Phase.DONE else state.phase
            state.status = Status.IN_PROGRESS
        case happened.LoopBegan():
            state.loop, state.limit, state.profile = event.loop, event.limit, event.profile
        case happened.TurnEnded():
            state.turn_open = False
            state.pending_gate = None
            if event.outcome == "done":
                answered(state)
            elif event.outcome == "gate":
                begin_anew(state)


def _count(state: AgentState, event: happened.UsageReported) -> None:
    state.usage = state.usage.plus(event.usage)
    state.turn_usage = state.turn_usage.plus(event.usage)
    state.usage_by_model[event.model] = state.usage_by_model.get(event.model, Usage()).plus(event.usage)
    if agent := state.agents.get(event.job):
        agent.usage = agent.usage.plus(event.usage)


def _add_message(state: AgentState, event: happened.MessageAdded) -> None:
    if event.message.job:
        keep_for_job(state, event.message)
        return
    state.messages.append(event.message)
    _note_ref(state, event.file)
    state.title = event.title or state.title
    if event.message.role == "user":
        hear(state, event.constraints)


def _note_ref(state: AgentState, new: str) -> None:
    """Puts a reference (to a file, a plan or an earlier turn) at the end of the list of things being worked on. The
    list keeps only a few references of each kind."""
    if new:
        same_kind_refs = [ref for ref in state.context_refs if kind_of_ref(ref) == kind_of_ref(new) and ref != new]
        dropped_refs = {new, *same_kind_refs[: -REFS_LIMIT + 1]}
        state.context_refs = [*(ref for ref in state.context_refs if ref not in dropped_refs), new]


def _note_changes(state: AgentState, event: happened.ActionFinished) -> None:
    for path in event.result.changed:
        _has_changed(state, path, 0 if event.job in state.jobs else state.turn)


def _undo_changes(state: AgentState, event: happened.TurnUndone) -> None:
    """Brings the list of changed files up to date after an undo or a redo, and drops evidence that it made
    worthless."""
    _drop_outdated(state, event.changed)
    for path in () if event.back else event.changed:
        _has_changed(state, path, event.turn)
    if state.goal_turn in event.turns:
        begin_anew(state)
    state.undone_last = event.back and bool(event.changed)
    state.files_changed = [path for path in state.files_changed if path not in event.cleared]
    state.changed_in |= {path: set[int]() for path in event.cleared if path in state.changed_in}


def _has_changed(state: AgentState, path: str, turn: int) -> None:
    state.undone_last = False
    if path in state.files_changed:
        state.files_changed.remove(path)
    state.files_changed.append(path)
    state.changed_in.setdefault(path, set()).update({turn} if turn else ())
    del state.files_changed[:-HISTORY_LIMIT]
    state.changed_in = {changed: turns for changed, turns in state.changed_in.items() if changed in state.files_changed}


def _move(state: AgentState, event: happened.PhaseMoved | happened.StatusChanged) -> None:
    state.status = event.status
    if isinstance(event, happened.PhaseMoved):
        state.phase = event.target
        # The model knows the reason for its own move, so it is told only the reasons of Duckflow's moves.
        reason_note = f" ({event.why})" if event.why and event.by == "system" else ""
        state.last_delta = shorten(f"step: {event.source} → {event.target}{reason_note}", 200)
        state.transitions.append(Transition(source=event.source, target=event.target, why=event.why, by=event.by))
        del state.transitions[:-HISTORY_LIMIT]


def _change_five(state: AgentState, event: happened.FiveChanged) -> None:
    changed_items = event.delta.items()
    state.five = state.five.model_copy(update=changed_items)
    state.goal_turn = state.turn if event.delta.goal else state.goal_turn
    if changed_items:
        # The values themselves are in the state.
        state.last_delta = ", ".join(changed_items)
    if event.delta.decision:
        state.decision_log.append(event.delta.decision)
        del state.decision_log[:-HISTORY_LIMIT]


def _open_question(state: AgentState, question: Question, now: float) -> None:
    """Notes an open question. The question of a job or an agent is noted with that job or agent, so that it does not
    hide the conversation's question."""
    if job := state.jobs.get(question.job) or state.agents.get(question.job):
        job.question, job.asked_at = question, now
    else:
        state.pending_gate = question


def _hear_answer(state: AgentState, event: happened.QuestionClosed) -> None:
    """Notes the words with which the user has answered a question, unless they are a secret."""
    questions = [state.pending_gate, *(job.question for job in (*state.jobs.values(), *state.agents.values()))]
    question = next((each for each in questions if each and each.question_id == event.question_id), None)
    words = (event.answer.said or event.answer.text) if event.answer else ""
    if words and not (question and question.secret):
        state.said_last = shorten(words, 200)


def _close_question(state: AgentState, question_id: str, now: float) -> None:
    """Notes that a question is answered or taken back. The time for which a job waited for the answer does not count as
    work."""
    if state.pending_gate and state.pending_gate.question_id == question_id:
        state.pending_gate = None
    for job in (*state.jobs.values(), *state.agents.values()):
        if job.question and job.question.question_id == question_id:
            job.began += max(0.0, now - job.asked_at) if job.asked_at else 0.0
            job.question, job.asked_at = None, 0.0


def _note_evidence(state: AgentState, event: happened.ActionFinished) -> None:
    """Adds a finished command to the evidence (commands that show what works). If the command has changed files, older
    evidence about them is dropped first; a lesson that was stored makes no evidence worthless."""
    if event.result.effect != "memory":
        _drop_outdated(state, event.result.changed)
    if evidence := evidence_of(event.result):
        state.evidence.append(evidence)
        del state.evidence[:-EVIDENCE_KEPT]


def _drop_outdated(state: AgentState, changed: Sequence[str]) -> None:
    """Drops the evidence that a change of these files makes worthless."""
    state.evidence = [evidence for evidence in state.evidence if not any(map(evidence.outdated_by, changed))]


def _note_check(state: AgentState, event: happened.ActionFinished) -> None:
    """Notes the run of a check. A run that shows nothing does not replace an earlier run that showed something."""
    result = event.result
    if result.effect != "memory" and result.changed:
        stale_flag = {"outdated" if any(map(is_checked, result.changed)) else "before_edit": True}
        state.check_runs = [run.model_copy(update=stale_flag) for run in state.check_runs]
    if result.check and (result.check.ok is not None or result.check.in_doubt):
        state.check_runs = with_run(state.check_runs, result.check, state.turn, state.changed_in_turn)
        del state.check_runs[:-CHECKS_KEPT]
