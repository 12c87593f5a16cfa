"""The fleets on the page: their questions, their results, and the actions of a person on them."""

from typing import Any

from starlette.requests import Request

from duckflow.errors import DuckflowError, UsageError
from duckflow.web.doing import is_enough, read_mode
from duckflow.web.ports import Fleets
from duckflow.web.services import Given, PageServices, number_of, read_body
from duckflow.web.telling import worded

CARRIED_OUT = ("cancel", "retry", "merge")
MOST_OPEN, MOST_AT_ONCE = 50, 1000
ALL_OF_IT = ("cancel", "merge")
"""The changes that can be made to a whole fleet."""
MOST_ATTEMPTS = 4


def mark(services: PageServices) -> object:
    """Returns a new mark every time, so that fleets are always read again: they may live in a database elsewhere."""
    return object()


async def fleets(services: PageServices, request: Request) -> Any:
    """Returns all fleets. Each task is a separate fact, so that only changed tasks are sent. Tasks that the page has
    open (`open=FLEET/TASK`) come with their details."""
    all_fleets = _fleets(services)
    open_tasks: dict[str, Any] = {}
    for task_path in request.query_params.getlist("open")[:MOST_OPEN]:
        fleet, _, name = task_path.partition("/")
        try:
            open_tasks[task_path] = dict(await all_fleets.task(fleet, name))
        except DuckflowError as problem:
            open_tasks[task_path] = {"problem": services.words.error(problem)}
    fleet_facts: dict[str, Any] = {"asked": list(await all_fleets.inbox()), "workers": list(await all_fleets.workers())}
    fleet_entries: list[dict[str, Any]] = []
    for fleet in await all_fleets.fleets():
        fleet_facts |= {f"{fleet['fleet']}/{task['name']}": task for task in fleet["tasks"]}
        fleet_entries.append({**fleet, "tasks": [task["name"] for task in fleet["tasks"]]})
    return worded(fleet_facts | {"fleets": fleet_entries, "closely": open_tasks}, services.words)


async def diff(services: PageServices, request: Request) -> Any:
    """Returns the change that an attempt has made."""
    query = request.query_params
    text = await _fleets(services).diff(query.get("fleet", ""), query.get("task", ""), number_of(request, "attempt"))
    return {"diff": worded(text, services.words)}


async def start(services: PageServices, request: Request) -> Any:
    """Starts a fleet from a form: tasks as lines or as TOML, and the default settings of the tasks."""
    body, all_fleets = await read_body(request), _fleets(services)
    return {"fleet": await all_fleets.start(body.text("folder"), body.text("tasks"), _flags(body))}


def _flags(body: Given) -> dict[str, list[str]]:
    mode, attempts, budget = body.text("mode"), min(body.count("attempts"), MOST_ATTEMPTS), body.text("budget")
    if budget and not budget.replace(".", "", 1).isdecimal():
        raise UsageError("serve.bad", what=budget)
    flags = {"--model": body.text("model").strip(), "--mode": read_mode(mode) if mode else ""}
    flags |= {"--attempts": str(attempts or ""), "--fleet-budget-usd": budget}
    switches = {"--toml": [""]} if body.flag("toml") else {}
    checks = [line.strip() for line in body.text("checks").splitlines() if line.strip()]
    return {flag: [value] for flag, value in flags.items() if value} | {"--check": checks} | switches


async def answer(services: PageServices, request: Request) -> Any:
    body, all_fleets = await read_body(request), _fleets(services)
    asked_id, choice = body.text("asked"), body.text("choice")
    gates = [entry["question"]["gate"] for entry in await all_fleets.inbox() if entry["asked_id"] == asked_id]
    if any(gate and not is_enough(choice, gate["risk"]) for gate in gates):
        return {"taken": "unclear", "told": [services.words("gate.word")]}
    question_was_open = await all_fleets.answer(asked_id, body.text("text"), choice, body.flag("for_all_same"))
    return {"taken": "answer" if question_was_open else "closed"}


async def change(services: PageServices, request: Request) -> Any:
    """Changes a whole fleet, an attempt, or all named tasks. If one task cannot be changed, the other tasks still are.
    The result of a merge reaches all pages with their list of fleets."""
    body, all_fleets = await read_body(request), _fleets(services)
    change_kind, fleet, number = body.text("what"), body.text("fleet"), body.count("attempt")
    tasks = body.texts("tasks")[:MOST_AT_ONCE]
    if change_kind == "pick" and len(tasks) == 1:
        await all_fleets.pick(fleet, tasks[0], number)
    elif change_kind == "work":
        await all_fleets.work(fleet)
    elif change_kind in (CARRIED_OUT if tasks else ALL_OF_IT):
        problems: list[str] = []
        for name in tasks or [""]:
            try:
                await all_fleets.carry_out(change_kind, fleet, name, number)
            except DuckflowError as problem:
                problems.append(services.words.error(problem))
        if change_kind == "retry" and len(problems) < len(tasks):
            await all_fleets.work(fleet)
        if problems:
            raise DuckflowError("talk.quoted", text=" ".join(dict.fromkeys(problems)))
    else:
        raise UsageError("serve.bad", what=change_kind)
    return {}


def _fleets(services: PageServices) -> Fleets:
    if services.fleet is None:
        raise UsageError("serve.no_fleet")
    return services.fleet
