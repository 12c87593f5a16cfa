"""Makes the tools of a conversation, group by group when a group is first needed: loading all tools takes time. A new
tool is named here; `make fix` then writes its description to `tools/operations.json`."""

import os
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from duckflow.agent.memory import ConversationMemory
from duckflow.agent.session import Session
from duckflow.agent.session_secrets import SessionSecrets
from duckflow.cli.code_sense import CodeSense
from duckflow.cli.sandboxes import Sandboxes
from duckflow.cli.setup import Setup
from duckflow.events.ports import Ask, UndoPort
from duckflow.safety.secrets import Hide, hiding_by_look
from duckflow.safety.workspace import Workspace
from duckflow.tools.agent_run import RunsAgents
from duckflow.tools.plan.drafting import Drafter
from duckflow.tools.plan.ports import Approval
from duckflow.tools.settings import FileSettings
from duckflow.tools.tool import AnyTool
from duckflow.work.jobs import JobRunner


class ToolParts(NamedTuple):
    """The parts that the tools are made of."""

    session: Session
    folder: Workspace
    setup: Setup
    sandboxes: Sandboxes
    drafter: Drafter
    jobs: JobRunner
    memory: ConversationMemory
    agents: Callable[[], RunsAgents]
    approval: Approval
    undo: UndoPort
    ask: Ask
    code: CodeSense
    secrets: SessionSecrets


def make_tools(group: str, parts: ToolParts) -> list[AnyTool]:
    """Makes the tools of a group. A tool's name begins with its group's name, such as `file_ops.read_file`."""
    return GROUPS[group](parts) if group in GROUPS else []


def _files(parts: ToolParts) -> list[AnyTool]:
    return file_tools(parts.folder, parts.setup.settings.files, parts.secrets.hider)


def file_tools(
    workspace: Workspace, settings: FileSettings, hider: Callable[[], Awaitable[Hide]] = hiding_by_look
) -> list[AnyTool]:
    """Makes the file tools. They share the record of the files that the model has seen."""
    from duckflow.tools.files.delete_file import DeleteFile
    from duckflow.tools.files.edit_file import EditFile
    from duckflow.tools.files.file_tool import SeenFiles
    from duckflow.tools.files.grep import Grep
    from duckflow.tools.files.list_files import FindFiles, ListFiles
    from duckflow.tools.files.make_folder import MakeFolder
    from duckflow.tools.files.move_file import MoveFile
    from duckflow.tools.files.read_file import ReadFile
    from duckflow.tools.files.write_file import WriteFile

    seen_files = SeenFiles()
    looking = [kind(workspace, seen_files, settings) for kind in (ListFiles, FindFiles)]
    changing = [kind(workspace, seen_files, settings) for kind in (MoveFile, DeleteFile, MakeFolder)]
    hiding = [kind(workspace, seen_files, settings, hider) for kind in (Grep, EditFile)]
    texts = [kind(workspace, seen_files, settings) for kind in (ReadFile, WriteFile)]
    return [*looking, hiding[0], *texts, hiding[1], *changing]


def _shell(parts: ToolParts) -> list[AnyTool]:
    return [parts.sandboxes.runner()]


def _plans(parts: ToolParts) -> list[AnyTool]:
    from duckflow.tools.plan.plan_tools import Approve, GetPlan, Propose, Revise, UpdateStep

    state, emit, drafter = parts.session.state, parts.session.emit, parts.drafter
    return [
        Propose(state, emit, drafter),
        GetPlan(state),
        Approve(state, parts.approval),
        Revise(state, emit, drafter),
        UpdateStep(state, emit, drafter.folder),
    ]


def _tasks(parts: ToolParts) -> list[AnyTool]:
    from duckflow.tools.plan.task_tools import GenerateList

    return [GenerateList(parts.session.state, parts.session.emit, parts.drafter)]


def _jobs(parts: ToolParts) -> list[AnyTool]:
    from duckflow.tools.plan.task_tools import CancelJob, JobStatus, MessageJob, PauseJob, ResumeJob, RunTasks

    state, jobs, message = parts.session.state, parts.jobs, MessageJob(parts.session.state, parts.session.emit)
    return [RunTasks(state, jobs), JobStatus(state), message, PauseJob(jobs), ResumeJob(jobs), CancelJob(jobs)]


def _undo(parts: ToolParts) -> list[AnyTool]:
    from duckflow.tools.undo_turn import TakeTurnBack

    return [TakeTurnBack(parts.session.state, parts.undo, parts.ask)]


def _agents(parts: ToolParts) -> list[AnyTool]:
    from duckflow.tools.agent_run import AgentRun

    return [AgentRun(parts.agents)]


def _remembering(parts: ToolParts) -> list[AnyTool]:
    from duckflow.memory.castle import FILE, with_lesson
    from duckflow.tools.memory.remember import Recall, Remember

    heading = parts.setup.words("lessons.heading")
    files = parts.setup.settings.files
    return [Recall(parts.memory.find), Remember(parts.folder, files, FILE, heading, with_lesson)]


def _web(parts: ToolParts) -> list[AnyTool]:
    from duckflow.tools.web.fetch import FetchPage
    from duckflow.tools.web.search import SearchWeb

    settings = parts.setup.settings
    network = settings.sandbox.network
    return [FetchPage(settings.web, network), SearchWeb(settings.web, network, settings.web.engine(os.environ))]


def _code(parts: ToolParts) -> list[AnyTool]:
    return parts.code.tools()


GROUPS: dict[str, Callable[[ToolParts], list[AnyTool]]] = {
    "file_ops": _files,
    "shell": _shell,
    "plan_tool": _plans,
    "task_tool": _tasks,
    "task_loop": _jobs,
    "agent": _agents,
    "memory": _remembering,
    "code": _code,
    "web": _web,
    "undo": _undo,
}
"""The functions that make each group of tools. The model gets the groups in this order."""
