"""How a job is cut off: at a good moment where there is time for one, and so that nothing is done twice afterwards."""

import asyncio
import logging

from duckflow.agent.session import Session
from duckflow.events.work import JobChanged, TaskChanged
from duckflow.state.agent import AgentState
from duckflow.state.job import Job
from duckflow.state.progress import only_asked, steps_of

log = logging.getLogger(__name__)


async def until_settled(session: Session, seconds: float) -> None:
    """Until no job is in the middle of a task's deed, but not for ever."""
    happened = asyncio.Event()
    unsubscribe = session.subscribe(lambda _: happened.set())
    try:
        async with asyncio.timeout(seconds):
            while any(_in_the_middle(session.state, job) for job in session.state.live_jobs()):
                await happened.wait()
                happened.clear()
    except TimeoutError:
        log.info("a task takes long, and is cut off")
    finally:
        unsubscribe()


def mark_interrupted(session: Session, job: Job) -> None:
    """What was begun is marked, and asked about before it is run again; a task that only waited at the Gate begins
    anew, with its question."""
    status = "pending" if only_asked(session.state, job) else "interrupted"
    for step in steps_of(session.state, job):
        for task in step.tasks:
            if task.status == "in_progress":
                session.emit(
                    TaskChanged(plan_id=job.plan_id, step_id=step.step_id, task_id=task.task_id, status=status)
                )
    session.emit(JobChanged(job_id=job.job_id, status="interrupted"))


def _in_the_middle(state: AgentState, job: Job) -> bool:
    begun = any(task.status == "in_progress" for step in steps_of(state, job) for task in step.tasks)
    return begun and job.status == "running" and job.question is None
