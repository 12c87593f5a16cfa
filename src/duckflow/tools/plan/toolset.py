"""All tools of plans, tasks and jobs."""

from duckflow.tools.plan.plan_tools import GetPlan, Propose, Revise, UpdateStep
from duckflow.tools.plan.ports import Jobs, Table
from duckflow.tools.plan.task_tools import CancelJob, GenerateList, JobStatus, PauseJob, ResumeJob, RunTasks
from duckflow.tools.tool import AnyTool


def plan_tools(table: Table, jobs: Jobs) -> list[AnyTool]:
    """In the order in which the model is told of them."""
    drafting = [kind(table) for kind in (Propose, GetPlan, Revise, UpdateStep, GenerateList)]
    running = [kind(table.state, jobs) for kind in (RunTasks, JobStatus, PauseJob, ResumeJob, CancelJob)]
    return [*drafting, *running]
