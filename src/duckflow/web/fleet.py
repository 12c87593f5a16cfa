"""The fleets on the page: what they ask, what came of them, and what a person does about them."""

from typing import Any

from starlette.requests import Request

from duckflow.errors import DuckflowError, UsageError
from duckflow.web.desk import PageDesk, number_of, read_body
from duckflow.web.doing import is_enough
from duckflow.web.ports import Fleets
from duckflow.web.telling import worded

CARRIED_OUT = ("cancel", "retry", "merge")
MOST_OPEN = 50
ALL_OF_IT = ("cancel", "merge")
"""What can be done to a whole fleet."""


def mark(desk: PageDesk) -> object:
    """Fleets may live in a database elsewhere: they are always read."""
    return object()


async def fleets(desk: PageDesk, request: Request) -> Any:
    """All of them, and closely the tasks that the page has open (`open=FLEET/TASK`)."""
    known = _fleets(desk)
    closely: dict[str, Any] = {}
    for place in request.query_params.getlist("open")[:MOST_OPEN]:
        fleet, _, name = place.partition("/")
        try:
            closely[place] = dict(await known.task(fleet, name))
        except DuckflowError as problem:
            closely[place] = {"problem": desk.words.error(problem)}
    facts = {"asked": list(await known.inbox()), "fleets": list(await known.fleets()), "closely": closely}
    return worded(facts, desk.words)


async def diff(desk: PageDesk, request: Request) -> Any:
    """The change that an attempt has made."""
    place = request.query_params
    text = await _fleets(desk).diff(place.get("fleet", ""), place.get("task", ""), number_of(request, "attempt"))
    return {"diff": worded(text, desk.words)}


async def answer(desk: PageDesk, request: Request) -> Any:
    given, known = await read_body(request), _fleets(desk)
    asked, choice = given.text("asked"), given.text("choice")
    gates = [one["question"]["gate"] for one in await known.inbox() if one["asked_id"] == asked]
    if any(gate and not is_enough(choice, gate["risk"]) for gate in gates):
        return {"taken": "unclear", "told": [desk.words("gate.word")]}
    was_open = await known.answer(asked, given.text("text"), choice, given.flag("for_all_same"))
    return {"taken": "answer" if was_open else "closed"}


async def change(desk: PageDesk, request: Request) -> Any:
    """What it comes to is told with the fleets, to all pages."""
    given, known = await read_body(request), _fleets(desk)
    what, fleet, name, number = given.text("what"), given.text("fleet"), given.text("task"), given.count("attempt")
    if what == "pick":
        await known.pick(fleet, name, number)
    elif what in (CARRIED_OUT if name else ALL_OF_IT):
        await known.carry_out(what, fleet, name, number)
    else:
        raise UsageError("serve.bad", what=what)
    return {}


def _fleets(desk: PageDesk) -> Fleets:
    if desk.fleet is None:
        raise UsageError("serve.no_fleet")
    return desk.fleet
