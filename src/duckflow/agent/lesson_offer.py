"""At the end of a plan, what it taught is offered: it goes through the Gate like any other change."""

from duckflow.agent.crew import Crew
from duckflow.agent.task_runner import reading_of
from duckflow.prompts.template import render
from duckflow.state.action import Action
from duckflow.state.job import Job

REMEMBERS = "memory.remember"


async def offer_lesson(crew: Crew, job: Job) -> None:
    """Only when the whole plan is completed, and its report says that something was learned."""
    state = crew.session.state
    plan, lesson = state.plans.get(job.plan_id), job.report.lesson if job.report else ""
    if not (crew.settings.offer_lessons and lesson and plan and plan.status == job.status == "completed"):
        return
    why = render(state.language, "lesson_offer", plan=plan.name)
    await crew.dispatcher.run(reading_of(Action(operation=REMEMBERS, args={"text": lesson}, reasoning=why), why))
