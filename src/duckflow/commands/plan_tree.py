"""A plan as a tree, and its jobs as lines."""

import re

from duckflow.i18n.words import Words, joined
from duckflow.state.agent import ENDED, AgentState, Job, JobReport, JobStatus
from duckflow.state.plan import Plan, Step
from duckflow.state.progress import job_progress, progress
from duckflow.view.items import told_evidence

MARKS = {"pending": "○", "in_progress": "▶", "completed": "✓", "failed": "✗"}
UNVERIFIED, WITHDRAWN = "?", "–"
RISK_LEVELS = ("low", "medium", "high")
SHOWN_WHEN_CHANGED = frozenset({"draft", "in_progress"})
"""States of a plan in which the plan is shown whenever it changes, whoever changed it."""


def plan_tree(plan: Plan, words: Words) -> str:
    """Returns the plan's name and state, and its steps as branches."""
    status = words(f"plan.status.{plan.status}")
    is_withdrawn = plan.status == "withdrawn"
    done_steps = 0 if is_withdrawn else plan.done()
    lines = [words("plan.title", name=plan.name, status=status, done=done_steps, total=len(plan.steps))]
    if plan.goal != plan.name:
        lines.append(f"│ {words('plan.goal', goal=plan.goal)}")
    numbers = {step.step_id: number for number, step in enumerate(plan.steps, 1)}
    for number, step in enumerate(plan.steps, 1):
        is_last = number == len(plan.steps)
        lines.append(f"{'└─' if is_last else '├─'} {_step(step, number, numbers, words, is_withdrawn)}")
        success_text = words("plan.success", success=step.success) if step.success else ""
        description = step.description if step.description != step.name else ""
        files = words("plan.files", files=", ".join(step.files)) if step.files else ""
        lines += [f"{'  ' if is_last else '│ '}   {text}" for text in (description, files, success_text) if text]
    if plan.risks:
        risk_lines = (risk_line(risk, words) for risk in plan.risks)
        lines.append(words("plan.risks", risks="; ".join(risk_lines)))
    if plan.checks and plan.status == "draft":
        lines += [words("plan.checks"), *(f"  $ {check}" for check in plan.checks)]
    return "\n".join(lines)


def risk_line(risk: str, words: Words) -> str:
    """Returns the risk with its level in the user's language, if the text names a level."""
    for level in RISK_LEVELS:
        level_words = joined(f"plans.{level}", risk, words.language)
        if match := re.fullmatch(
            rf"(?is)\s*(?:[\[(（【]\s*{level_words}\s*[\])）】]|{level_words}\s*[:：])\s*(.+)", risk
        ):
            return f"{words(f'gate.risk.{level}')}: {match[1].strip()}"
    return risk


def _step(step: Step, number: int, numbers: dict[str, int], words: Words, is_withdrawn: bool) -> str:
    if is_withdrawn:
        return f"{WITHDRAWN} {number}. {step.name}"
    notes: list[str] = []
    if step.depends_on:
        needed_numbers = ", ".join(str(numbers[need]) for need in step.depends_on if need in numbers)
        notes.append(words("plan.after", steps=needed_numbers))
    if step.tasks:
        notes.append(words("plan.tasks", done=step.tasks_done(), total=len(step.tasks)))
    if step.unverified:
        notes.append(words("plan.unverified"))
    elif step.evidence:
        notes.append(told_evidence(step.evidence, words))
    if step.added and step.status == "pending":
        notes.append(words("plan.added", number=number))
    status_mark = UNVERIFIED if step.unverified else MARKS[step.status]
    return f"{status_mark} {number}. {step.name}" + (f"  ({'; '.join(notes)})" if notes else "")


def job_lines(state: AgentState, words: Words) -> str:
    """Returns a line for every job, the latest last."""
    return "\n".join(_job(state, job, words) for job in state.jobs.values()) or words("job.none")


def _job(state: AgentState, job: Job, words: Words) -> str:
    if job.status in ENDED:
        current_progress = progress(state, job)
        status = words(f"job.status.{job.status}")
        return words(
            "job.line", job=job.name, status=status, done=current_progress.steps_done, total=current_progress.steps
        )
    return "\n".join(map(words.phrase, job_progress(state, job)))


def job_summary(name: str, status: JobStatus, report: JobReport, words: Words) -> str:
    """Returns the text shown when a job has ended."""
    step_counts = {"done": report.done, "failed": report.failed, "left": report.left}
    lines = [words(f"job.ended.{status}", job=name, **step_counts), report.summary]
    lines += [words("job.cause", cause=cause) for cause in report.causes]
    lines += [words("job.shown", shown=told_evidence(evidence, words)) for evidence in report.shown]
    lines += [words("job.unverified", step=step) for step in report.unverified]
    if report.next_action or status != "completed":
        lines.append(words("job.next", next=report.next_action or words(f"job.next_{status}")))
    return "\n".join(line for line in lines if line)


def plan_bar(state: AgentState, words: Words) -> str:
    """Returns the progress of the current plan, for the status bar."""
    plan = state.plan
    if plan is None or not plan.under_way:
        return ""
    values = {"name": plan.name, "done": plan.done(), "total": len(plan.steps)}
    current_step = plan.current()
    return words("plan.bar_now", **values, step=current_step.name) if current_step else words("plan.bar", **values)
