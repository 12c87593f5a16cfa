"""The context of a step: what it is told of the work before it, and the files it builds on. It has a size of its own,
however many steps are done already."""

import re

from duckflow.i18n.template import note, quoted
from duckflow.safety.secrets import mask, secret_name
from duckflow.state.noun import shorten
from duckflow.state.plan import Plan, Step
from duckflow.tools.plan.folder import made_by
from duckflow.tools.plan.ports import Folder

STEPS_TOLD = 6
FILES_TOLD = 8
FOUND_TOLD = 400
MATERIAL = 16_000
FILE_NAME = re.compile(r"[\w./-]*\w\.\w{1,8}")


def left_behind(plan: Plan, step: Step) -> str:
    """What earlier steps left: those it depends on, and the latest; each with its files and what shows it works."""
    done = [one for one in plan.steps if one.status == "completed" and one.step_id != step.step_id]
    needed = [one for one in done if one.step_id in step.depends_on]
    told = dict.fromkeys(one.step_id for one in [*needed, *reversed(done)])
    chosen = set(list(told)[:STEPS_TOLD])
    return "; ".join(_left_by(one) for one in done if one.step_id in chosen)


def _left_by(step: Step) -> str:
    left = [*made_by(step)[:FILES_TOLD], *filter(None, (step.evidence, shorten(step.found, FOUND_TOLD)))]
    return f"{step.name} ({', '.join(left)})"


def material(plan: Plan, step: Step, folder: Folder, language: str, texts: bool) -> str:
    """What failed, in its own words; and with `texts` the files the step names or builds on, as they are now."""
    failed = [task for task in step.tasks if task.status == "failed"]
    parts = [quoted(language, note(language, "failed_task", task=task.line), task.result or "") for task in failed]
    room = MATERIAL
    for path in files_of(plan, step) if texts else ():
        text = mask(folder.text(path)).text
        if text.strip() and len(text) <= room and not secret_name(path):
            room -= len(text)
            parts.append(quoted(language, path, text))
    return "\n\n".join(parts)


def files_of(plan: Plan, step: Step) -> list[str]:
    """Those it has made, those it names, and those made by the steps it depends on."""
    named = FILE_NAME.findall(f"{step.name} {step.description} {step.success}")
    before = [path for one in plan.steps if one.step_id in step.depends_on for path in made_by(one)]
    return list(dict.fromkeys([*made_by(step), *named, *before]))
