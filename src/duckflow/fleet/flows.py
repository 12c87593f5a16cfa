"""The workflows of a fleet. Everything in them that does something is a step: once it has ended, nobody does it again,
whatever becomes of the worker."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypedDict, TypeVar

from dbos import DBOS, SetWorkflowID

from duckflow.fleet.engine import AttemptState
from duckflow.fleet.worker import Worker

Result = TypeVar("Result")

TASK_FLOW = "duckflow.task"
ENDED = "ended"
A_WHILE = 600.0
"""Seconds after which a task looks by itself whether its attempts have ended."""


class Begun(TypedDict):
    """What a task's workflow has to know. A step gives it: it is the same when the workflow is gone through again."""

    numbers: list[int]
    place: str
    model_queue: str | None
    cancel_losers: bool


def tasks_queue(place: str) -> str:
    """Where the workflows of tasks wait: without a limit."""
    return f"duckflow-tasks-{place}"


def attempts_queue(place: str) -> str:
    """Where attempts wait for a place on their machine."""
    return f"duckflow-attempts-{place}"


def model_queue(model: str) -> str:
    """Where attempts wait for their model, if it has a limit."""
    return f"duckflow-model-{model}"


def task_id(fleet: str, task: str, in_round: int) -> str:
    return f"{fleet}.{task}.r{in_round}"


def register_flows(worker: Worker) -> None:
    """Tell DBOS what this process can do. The steps are done in the loop of the worker."""
    loop = asyncio.get_running_loop()

    async def here(work: Coroutine[Any, Any, Result]) -> Result:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))

    @DBOS.step(name="duckflow.begin")
    async def begin(fleet: str, task: str, in_round: int) -> Begun:
        return await here(_begin(worker, fleet, task, in_round))

    @DBOS.step(name="duckflow.carry_out")
    async def carry_out(fleet: str, task: str, number: int) -> None:
        await here(worker.carry(fleet, task, number))

    @DBOS.step(name="duckflow.waiting")
    async def still_live(fleet: str, task: str, numbers: list[int]) -> list[int]:
        attempts = await here(_attempts(worker, fleet, task, numbers))
        return [each.number for each in attempts if each.live]

    @DBOS.step(name="duckflow.cancel_losers")
    async def cancel_losers(fleet: str, task: str, numbers: list[int], live: list[int]) -> None:
        if await asyncio.to_thread(worker.endings.best, fleet, task, numbers, more=True) is not None:
            for number in live:
                await asyncio.to_thread(worker.endings.cancel, fleet, task, number)

    @DBOS.step(name="duckflow.settle")
    async def settle(fleet: str, task: str, in_round: int, numbers: list[int]) -> None:
        await asyncio.to_thread(worker.endings.settle, fleet, task, in_round, numbers)

    @DBOS.workflow(name="duckflow.attempt", max_recovery_attempts=None)
    async def attempt_flow(fleet: str, task: str, number: int, parent: str) -> None:
        await carry_out(fleet, task, number)
        await DBOS.send_async(parent, number, ENDED)

    @DBOS.workflow(name="duckflow.turn", max_recovery_attempts=None)
    async def turn_flow(fleet: str, task: str, number: int, parent: str, place: str) -> None:
        """Holds a place at the model while the attempt waits for one on its machine and uses it."""
        with SetWorkflowID(f"{parent}.{number}"):
            handle = await DBOS.enqueue_workflow_async(attempts_queue(place), attempt_flow, fleet, task, number, parent)
        await handle.get_result()

    @DBOS.workflow(name=TASK_FLOW, max_recovery_attempts=None)
    async def task_flow(fleet: str, task: str, in_round: int) -> None:
        begun = await begin(fleet, task, in_round)
        own_id, place, live = task_id(fleet, task, in_round), begun["place"], begun["numbers"]
        for number in live:
            if queue := begun["model_queue"]:
                with SetWorkflowID(f"{own_id}.{number}.turn"):
                    await DBOS.enqueue_workflow_async(queue, turn_flow, fleet, task, number, own_id, place)
            else:
                with SetWorkflowID(f"{own_id}.{number}"):
                    await DBOS.enqueue_workflow_async(attempts_queue(place), attempt_flow, fleet, task, number, own_id)
        while live:
            await DBOS.recv_async(ENDED, timeout_seconds=A_WHILE)
            live = await still_live(fleet, task, begun["numbers"])
            if live and begun["cancel_losers"]:
                await cancel_losers(fleet, task, begun["numbers"], live)
        await settle(fleet, task, in_round, begun["numbers"])

    # DBOS keeps them by their names.
    assert task_flow


async def _attempts(worker: Worker, fleet: str, task: str, numbers: list[int]) -> list[AttemptState]:
    attempts = await asyncio.to_thread(worker.store.attempts, fleet, task)
    return [each for each in attempts if each.number in numbers]


async def _begin(worker: Worker, fleet: str, task: str, in_round: int) -> Begun:
    numbers = await asyncio.to_thread(worker.store.begin_round, fleet, task, in_round)
    states = await asyncio.to_thread(worker.store.tasks, fleet, task)
    if not states:
        # The fleet was taken out of the database.
        return Begun(numbers=[], place="", model_queue=None, cancel_losers=False)
    state = states[0]
    limits = [limit for limit in await asyncio.to_thread(worker.store.limits) if limit.covers(state.task.model)]
    queue = model_queue(limits[0].model) if limits else None
    return Begun(numbers=numbers, place=state.place, model_queue=queue, cancel_losers=state.task.cancel_losers)
