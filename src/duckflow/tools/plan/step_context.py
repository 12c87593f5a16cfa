"""The context of a step: what it is told of the work before it, and the files it builds on. It has a size of its own,
however many steps are done already."""

import re

from duckflow.i18n.template import note, quoted
from duckflow.state.action import PROPOSE_PLAN
from duckflow.state.agent import AgentState
from duckflow.state.noun import shorten
from duckflow.state.plan import Plan, Step
from duckflow.tools.plan.criterion import FILE
from duckflow.tools.plan.folder import made_by

STEPS_TOLD = 6
FILES_TOLD = 8
FOUND_TOLD = 400
ANSWERS_TOLD = 3
WISHES_TOLD = 60
LEAST_WISH = 80
FILE_NAME = re.compile(rf"[\w.-]*/[\w./-]*\w\.\w{{1,8}}|{FILE}")
"""A name with a dot in it is a file's where it has a folder or a usual ending; `package.module` is none."""


def left_behind(plan: Plan, step: Step) -> str:
    """Tells what earlier steps left: those it depends on, and the latest; each with its files and what shows it
    works."""
    done = [other for other in plan.steps if other.status == "completed" and other.step_id != step.step_id]
    needed = [other for other in done if other.step_id in step.depends_on]
    order = dict.fromkeys(other.step_id for other in [*needed, *reversed(done)])
    chosen = set(list(order)[:STEPS_TOLD])
    return "; ".join(_left_by(other) for other in done if other.step_id in chosen)


def _left_by(step: Step) -> str:
    left = [*made_by(step)[:FILES_TOLD], *filter(None, (step.evidence, shorten(step.found, FOUND_TOLD)))]
    return f"{step.name} ({', '.join(left)})"


def failures(step: Step, language: str) -> list[str]:
    """Quotes what failed, in its own words."""
    failed = [task for task in step.tasks if task.status == "failed"]
    return [quoted(language, note(language, "failed_task", task=task.line), task.result or "") for task in failed]


def files_of(plan: Plan, step: Step) -> list[str]:
    """Gives the files it has made, those it names, and those made by the steps it depends on."""
    named = FILE_NAME.findall(step.text)
    before = [path for other in plan.steps if other.step_id in step.depends_on for path in made_by(other)]
    return list(dict.fromkeys([*made_by(step), *named, *before]))


def wishes(state: AgentState, plan: Plan, room: int) -> str:
    """Gives what the user wished for and corrected, in order, since another plan was carried out. Short lines are told
    whole, long ones share the room."""
    others = {other.goal for other in state.plans.values() if other.plan_id != plan.plan_id and other.status != "draft"}
    said: list[str] = []
    for message in state.messages:
        actions = message.decision.actions if message.decision else []
        proposed = [one.args.get("text") or one.args.get("goal") for one in actions if one.operation == PROPOSE_PLAN]
        if not others.isdisjoint(map(str, proposed)):
            said.clear()
        elif message.role == "user":
            said.append(" ".join(message.text.split()))
    said = said if len(said) <= WISHES_TOLD else [said[0], *said[1 - WISHES_TOLD :]]
    for left, number in enumerate(sorted(range(len(said)), key=lambda number: len(said[number]))):
        share = max(LEAST_WISH, room // (len(said) - left))
        said[number] = shorten(said[number], share)
        room -= len(said[number])
    return " / ".join(said)


def answers_given(state: AgentState) -> str:
    """Gives the latest answers of the conversation: they tell what it has found."""
    decisions = [message.decision for message in state.messages if message.decision]
    answers = [answer for decision in decisions for answer in decision.said() if answer.strip()]
    return " / ".join(shorten(answer, FOUND_TOLD) for answer in answers[-ANSWERS_TOLD:])
