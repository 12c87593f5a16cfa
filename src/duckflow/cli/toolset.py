"""The tools of a conversation, made when the first of them is needed. A new tool is named here, and nowhere else."""

import os
from collections.abc import Callable

from duckflow.agent.jobs import JobRunner
from duckflow.agent.memory import ConversationMemory
from duckflow.agent.session import Session
from duckflow.config.settings import Settings
from duckflow.memory.castle import FILE as LESSONS
from duckflow.memory.castle import with_lesson
from duckflow.safety.workspace import Workspace
from duckflow.tools.agent_run import AgentRun, RunsAgents
from duckflow.tools.files.toolset import file_tools
from duckflow.tools.memory.recall import Recall
from duckflow.tools.memory.remember import Remember
from duckflow.tools.plan.drafting import Drafter
from duckflow.tools.plan.plan_tools import GetPlan, Propose, Revise, UpdateStep
from duckflow.tools.plan.task_tools import CancelJob, GenerateList, JobStatus, PauseJob, ResumeJob, RunTasks
from duckflow.tools.tool import AnyTool
from duckflow.tools.web.fetch import FetchPage
from duckflow.tools.web.search import SearchWeb


def make_tools(
    session: Session,
    workspace: Workspace,
    settings: Settings,
    shell: AnyTool,
    drafter: Drafter,
    jobs: JobRunner,
    remembering: ConversationMemory,
    lessons_heading: str,
    agents: Callable[[], RunsAgents],
) -> list[AnyTool]:
    """Everything that does more than talk, in the order in which the model is told of it."""
    state, emit = session.state, session.emit
    network = settings.sandbox.network
    return [
        *file_tools(workspace, settings.files),
        shell,
        Propose(state, emit, drafter),
        GetPlan(state),
        Revise(state, emit, drafter),
        UpdateStep(state, emit, drafter.folder),
        GenerateList(state, emit, drafter),
        RunTasks(state, jobs),
        JobStatus(state),
        PauseJob(jobs),
        ResumeJob(jobs),
        CancelJob(jobs),
        AgentRun(agents),
        Recall(remembering.find),
        Remember(workspace, settings.files, LESSONS, lessons_heading, with_lesson),
        FetchPage(settings.web, network),
        SearchWeb(settings.web, network, settings.web.engine(os.environ)),
    ]
