"""The fleets on the page: what they ask, what came of them, and what a person does about them."""

from typing import Any

from starlette.requests import Request

from duckflow.errors import DuckflowError, UsageError
from duckflow.web.desk import Given, PageDesk, number_of, read_body
from duckflow.web.doing import is_enough, read_mode
from duckflow.web.ports import Fleets
from duckflow.web.telling import worded

CARRIED_OUT = ("cancel", "retry", "merge")
MOST_OPEN, MOST_AT_ONCE = 50, 1000
ALL_OF_IT = ("cancel", "merge")
"""What can be done to a whole fleet."""
MOST_ATTEMPTS = 4


def mark(desk: PageDesk) -> object:
    """Fleets may live in a database elsewhere: they are always read."""
    return object()


async def fleets(desk: PageDesk, request: Request) -> Any:
    """All of them, each task as a fact of its own, so that only what has changed is sent; and closely the tasks that
    the page has open (`open=FLEET/TASK`)."""
    known = _fleets(desk)
    closely: dict[str, Any] = {}
    for place in request.query_params.getlist("open")[:MOST_OPEN]:
        fleet, _, name = place.partition("/")
        try:
            closely[place] = dict(await known.task(fleet, name))
        except DuckflowError as problem:
            closely[place] = {"problem": desk.words.error(problem)}
    facts: dict[str, Any] = {"asked": list(await known.inbox()), "workers": list(await known.workers())}
    listed: list[dict[str, Any]] = []
    for fleet in await known.fleets():
        facts |= {f"{fleet['fleet']}/{task['name']}": task for task in fleet["tasks"]}
        listed.append({**fleet, "tasks": [task["name"] for task in fleet["tasks"]]})
    return worded(facts | {"fleets": listed, "closely": closely}, desk.words)


async def diff(desk: PageDesk, request: Request) -> Any:
    """The change that an attempt has made."""
    place = request.query_params
    text = await _fleets(desk).diff(place.get("fleet", ""), place.get("task", ""), number_of(request, "attempt"))
    return {"diff": worded(text, desk.words)}


async def start(desk: PageDesk, request: Request) -> Any:
    """A fleet from a form: tasks as lines, or as TOML where it says so, and what holds for those that say nothing."""
    given, known = await read_body(request), _fleets(desk)
    return {"fleet": await known.start(given.text("folder"), given.text("tasks"), _flags(given))}


def _flags(given: Given) -> dict[str, list[str]]:
    mode, attempts, budget = given.text("mode"), min(given.count("attempts"), MOST_ATTEMPTS), given.text("budget")
    if budget and not budget.replace(".", "", 1).isdecimal():
        raise UsageError("serve.bad", what=budget)
    flags = {"--model": given.text("model").strip(), "--mode": read_mode(mode) if mode else ""}
    flags |= {"--attempts": str(attempts or ""), "--fleet-budget-usd": budget}
    on = {"--toml": [""]} if given.flag("toml") else {}
    checks = [line.strip() for line in given.text("checks").splitlines() if line.strip()]
    return {flag: [value] for flag, value in flags.items() if value} | {"--check": checks} | on


async def answer(desk: PageDesk, request: Request) -> Any:
    given, known = await read_body(request), _fleets(desk)
    asked, choice = given.text("asked"), given.text("choice")
    gates = [one["question"]["gate"] for one in await known.inbox() if one["asked_id"] == asked]
    if any(gate and not is_enough(choice, gate["risk"]) for gate in gates):
        return {"taken": "unclear", "told": [desk.words("gate.word")]}
    was_open = await known.answer(asked, given.text("text"), choice, given.flag("for_all_same"))
    return {"taken": "answer" if was_open else "closed"}


async def change(desk: PageDesk, request: Request) -> Any:
    """Does it to a whole fleet, to an attempt, or to all tasks that are named; those to which it cannot be done do not
    keep it from the others. What a merge comes to is told with the fleets, to all pages."""
    given, known = await read_body(request), _fleets(desk)
    what, fleet, number = given.text("what"), given.text("fleet"), given.count("attempt")
    tasks = given.texts("tasks")[:MOST_AT_ONCE]
    if what == "pick" and len(tasks) == 1:
        await known.pick(fleet, tasks[0], number)
    elif what == "work":
        await known.work(fleet)
    elif what in (CARRIED_OUT if tasks else ALL_OF_IT):
        problems: list[str] = []
        for name in tasks or [""]:
            try:
                await known.carry_out(what, fleet, name, number)
            except DuckflowError as problem:
                problems.append(desk.words.error(problem))
        if what == "retry" and len(problems) < len(tasks):
            await known.work(fleet)
        if problems:
            raise DuckflowError("talk.quoted", text=" ".join(dict.fromkeys(problems)))
    else:
        raise UsageError("serve.bad", what=what)
    return {}


def _fleets(desk: PageDesk) -> Fleets:
    if desk.fleet is None:
        raise UsageError("serve.no_fleet")
    return desk.fleet
