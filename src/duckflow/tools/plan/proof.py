"""Whether a step is done, by what is on the record."""

from duckflow.state.agent import AgentState
from duckflow.state.plan import Step
from duckflow.tools.plan.ports import Folder

SHOWN_FILES = 6


def proof(state: AgentState, step: Step, folder: Folder) -> str:
    """The recorded result from after the last change that shows it; nothing when there is none.

    A command counts with its exit code, and where tasks were run only one of the step's own; without one, the files the
    step was to make must be there. When the last command failed, nothing is shown, whatever files there are."""
    last = state.evidence[-1] if state.evidence else None
    if last and not last.ok:
        return ""
    if last and (not step.tasks or any(task.effect == "run" for task in step.tasks)):
        return last.text
    files = made_by(step) or [path for path in state.files_changed if path in f"{step.description} {step.success}"]
    if not files or not all(folder.exists(path) for path in files):
        return ""
    return f"there: {', '.join(files[:SHOWN_FILES])}"


def made_by(step: Step) -> list[str]:
    """The files that the step's completed tasks have written."""
    return list(dict.fromkeys(path for task in step.tasks if task.status == "completed" for path in task.makes))
