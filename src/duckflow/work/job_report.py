"""The report of a job. Its counts come from the state. The model words it, if a model can be reached."""

from duckflow.agent.undo import UndoKeeper
from duckflow.errors import DuckflowError
from duckflow.i18n.template import note, one_line, render
from duckflow.i18n.words import languages_in
from duckflow.prompts.layers import record_line
from duckflow.state.agent import AgentState, Job, JobReport, JobStatus
from duckflow.state.changes import UndoScope
from duckflow.state.data import shorten
from duckflow.state.message import last_request
from duckflow.state.plan import Task
from duckflow.state.progress import progress, steps_of
from duckflow.tools.plan.drafting import Drafter, drafted

RESULT_LINES = 40
FILES = 12
CAUSE = 500
CHANGES = 60
LATEST_WORDS = 200


async def write_report(drafter: Drafter, undo: UndoKeeper, job: Job, status: JobStatus) -> JobReport:
    """Writes the report in the model's words. If these cannot be used, the report is computed from the state."""
    from duckflow.forms.schema import strict_schema
    from duckflow.tools.plan.drafts import ReportDraft, read_draft

    result_counts, language = count_results(drafter, job), drafter.state.language
    unverified = f" {note(language, 'step_unverified')}"
    job_progress, plan = progress(drafter.state, job), drafter.state.plans.get(job.plan_id)
    tasks = [task for step in steps_of(drafter.state, job) for task in step.tasks]
    # If there is no room for all tasks, reads are left out first and failures last.
    tasks.sort(key=lambda task: (task.status != "failed", task.effect == "read"))
    results = [f"- [{task.status}] {task.line}: {_result_line(task, 200)}" for task in tasks]
    values = {
        "status": status,
        "goal": plan.goal if plan else "",
        "steps": "; ".join(
            f"{step.name}: {step.status}{unverified if step.unverified else ''} {step.found}".rstrip()
            for step in steps_of(drafter.state, job)
        ),
        "counts": note(
            language,
            "job_counts",
            done=str(job_progress.done),
            failed=str(job_progress.failed),
            left=str(job_progress.left),
        ),
        "changes": await _changes(undo, job) if drafter.state.files_changed else "",
        "results": "\n".join(results[:RESULT_LINES]) or "-",
        "conversation": _words_in_another_language(drafter.state),
        "shown": record_line(drafter.state, FILES, drafter.folder.exists),
    }
    schema = strict_schema(ReportDraft.model_json_schema())
    try:
        words = await drafted(drafter.think, "report", values, schema, lambda text: read_draft(text, ReportDraft))
    except DuckflowError:
        return result_counts
    return result_counts.model_copy(
        update={
            "summary": words.summary,
            # A completed job has no causes, whatever the model says. Otherwise the recorded failures are added to its
            # words.
            "causes": (*words.causes, *result_counts.causes) if status != "completed" else (),
            "next_action": words.next_action,
            "lesson": words.lesson,
            "computed": False,
        }
    )


def _words_in_another_language(state: AgentState) -> str:
    """Returns the user's latest words, if they are in another language than the request; an empty text otherwise."""
    words = one_line(state.said_last or last_request(state.messages)[:LATEST_WORDS])
    return "" if languages_in(words, state.language)[-1] == state.language else words


async def _changes(undo: UndoKeeper, job: Job) -> str:
    """Lists every file that the job has changed, with the total of lines added and removed."""
    try:
        impacts = (await undo.diff(UndoScope(job=job.job_id))).impacts
    except DuckflowError:
        return ""
    files = [impact for impact in impacts if impact.change != "folder"]
    lines = [f"{one_line(impact.path)} ({impact.change} +{impact.added} -{impact.removed})" for impact in files]
    if unlisted_files := files[CHANGES:]:
        added_lines = sum(impact.added for impact in unlisted_files)
        removed_lines = sum(impact.removed for impact in unlisted_files)
        lines[CHANGES:] = [f"… {len(unlisted_files)} (+{added_lines} -{removed_lines})"]
    return "; ".join(lines)


def count_results(drafter: Drafter, job: Job) -> JobReport:
    """Computes the report from the state alone."""
    job_progress = progress(drafter.state, job)
    steps = steps_of(drafter.state, job)
    failed_tasks = [task for step in steps for task in step.tasks if task.status == "failed"]
    return JobReport(
        done=job_progress.done,
        failed=job_progress.failed,
        left=job_progress.left,
        causes=tuple(f"{task.line}: {_result_line(task, 0)}" for task in failed_tasks),
        shown=tuple(f"{step.name}: {step.evidence}" for step in steps if step.evidence),
        unverified=tuple(step.name for step in steps if step.unverified),
        computed=True,
    )


def _result_line(task: Task, room: int) -> str:
    """Shortens the result of a task; for a failure it returns the lines that say why."""
    if task.status != "failed":
        return shorten(task.result or "", room)
    from duckflow.tools.shell.causes import telling_part

    return telling_part(task.result or "", CAUSE).replace("\n", "\n  ")


def tell_end(language: str, job: Job, status: JobStatus, report: JobReport) -> str:
    """Returns the message by which the model learns that the job has ended."""
    return render(
        language,
        "job_ended",
        job=job.job_id,
        title=job.name,
        status=status,
        done=str(report.done),
        failed=str(report.failed),
        left=str(report.left),
        summary=report.summary,
        causes="\n".join(f"- {cause}" for cause in report.causes),
        next_action=report.next_action,
        lesson=report.lesson,
    )
