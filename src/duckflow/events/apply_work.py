"""Applies events of plans and jobs to the state."""

from duckflow.events import types as happened
from duckflow.events.work import (
    AgentEnded,
    AgentStarted,
    JobChanged,
    JobEnded,
    JobStarted,
    StepChanged,
    StepTold,
    TaskChanged,
    TasksPlanned,
    WorkEvent,
)
from duckflow.state.agent import AGENTS_KEPT, ENDED, AgentState
from duckflow.state.message import Message
from duckflow.state.plan import Step

JOBS_KEPT = 20
MESSAGES_KEPT = 24


def apply_work(state: AgentState, event: WorkEvent) -> None:
    match event:
        case TasksPlanned():
            if step := _step(state, event.plan_id, event.step_id):
                step.task_list.tasks = [task.model_copy() for task in event.tasks]
        case StepChanged():
            _change_step(state, event)
        case StepTold():
            if step := _step(state, event.plan_id, event.step_id):
                state.plans[event.plan_id].hear(step, event.words)
        case TaskChanged():
            step = _step(state, event.plan_id, event.step_id)
            for task in step.tasks if step else ():
                if task.task_id == event.task_id:
                    task.status, task.result = event.status, event.result
                    if event.status == "in_progress":
                        task.began = event.at
                    elif event.status == "completed":
                        task.seconds = event.at - task.began
                    break
        case JobStarted():
            beginning = {"began": event.at, "messages_before": len(state.messages)}
            state.jobs[event.job.job_id] = event.job.model_copy(deep=True, update=beginning)
            _forget_old_jobs(state)
        case JobChanged():
            if job := state.jobs.get(event.job_id):
                if event.status == "interrupted":
                    job.was_running, job.question, job.asked_at = job.status == "running", None, 0.0
                job.status = event.status
        case JobEnded():
            if job := state.jobs.get(event.job_id):
                job.status, job.report, job.question, job.messages = event.status, event.report, None, []
                job.ended_at = event.at
        case AgentStarted():
            state.agents.pop(event.agent.agent_id, None)
            state.agents[event.agent.agent_id] = event.agent.model_copy(update={"began": event.at})
            _forget_old_agents(state)
        case AgentEnded():
            if agent := state.agents.get(event.agent_id):
                if event.status != "interrupted":
                    agent.seconds += max(0.0, event.at - agent.began)
                agent.status, agent.report, agent.question, agent.doing = event.status, event.report, None, ""
        case _:
            pass


def change_plan(state: AgentState, event: happened.PlanChanged) -> None:
    # The plan is copied: the one in the state changes, the event's stays as it was.
    state.plans[event.plan.plan_id] = event.plan.copied()
    if event.active:
        state.active_plan = event.plan.plan_id
    elif state.active_plan == event.plan.plan_id:
        state.active_plan = ""


def keep_for_job(state: AgentState, message: Message) -> None:
    """Stores a message in its job, which keeps only the latest messages of each step."""
    if job := state.jobs.get(message.job):
        step_messages = [earlier_message for earlier_message in job.messages if earlier_message.step == message.step]
        dropped_messages = step_messages[: max(0, len(step_messages) + 1 - MESSAGES_KEPT)]
        job.messages = [
            *(earlier_message for earlier_message in job.messages if earlier_message not in dropped_messages),
            message,
        ]


def _change_step(state: AgentState, event: StepChanged) -> None:
    plan, step = state.plans.get(event.plan_id), _step(state, event.plan_id, event.step_id)
    if plan is None or step is None:
        return
    if event.status == "in_progress":
        step.began = event.at
    else:
        for job in state.jobs.values():
            job.messages = [message for message in job.messages if message.step != step.step_id]
    if event.status == "completed" and step.status != "completed":
        step.answered = len(step.said)
    step.status, step.evidence, step.lacking, step.found = event.status, event.evidence, event.lacking, event.found
    if all(plan_step.status == "completed" for plan_step in plan.steps):
        plan.status = "completed"
    elif plan.status in ("approved", "completed"):
        plan.status = "in_progress"


def _step(state: AgentState, plan_id: str, step_id: str) -> Step | None:
    plan = state.plans.get(plan_id)
    return next((step for step in plan.steps if step.step_id == step_id), None) if plan else None


def _forget_old_jobs(state: AgentState) -> None:
    ended_jobs = [job_id for job_id, job in state.jobs.items() if job.status in ENDED]
    for job_id in ended_jobs[: max(0, len(state.jobs) - JOBS_KEPT)]:
        del state.jobs[job_id]


def _forget_old_agents(state: AgentState) -> None:
    ended_agents = [agent_id for agent_id, agent in state.agents.items() if agent.status != "running"]
    for agent_id in ended_agents[: max(0, len(state.agents) - AGENTS_KEPT)]:
        del state.agents[agent_id]
