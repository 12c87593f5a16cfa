"""The work of one job: its steps as their dependencies allow, side by side where they are independent."""

import asyncio
from collections import Counter

from duckflow.agent.actor import Actor
from duckflow.agent.dispatcher import Dispatcher
from duckflow.agent.settings import AgentSettings
from duckflow.pacemaker.pacemaker import Pacemaker
from duckflow.state.job import Job
from duckflow.state.plan import Plan
from duckflow.state.schedule import startable
from duckflow.tools.plan.drafting import Drafter
from duckflow.work.agents import Agents
from duckflow.work.lanes import Lanes
from duckflow.work.step_tasks import StepTasks
from duckflow.work.step_work import StepWork
from duckflow.work.task_runner import TaskRunner

STARTS = 2
"""So often a job begins a step: a check of another step may open it again, but not for ever."""


class JobWork:
    """Starts a step when what it depends on is completed; which files it touches is seen when its tasks are known."""

    def __init__(
        self,
        job: Job,
        actor: Actor,
        dispatcher: Dispatcher,
        drafter: Drafter,
        agents: Agents,
        pacemaker: Pacemaker,
        settings: AgentSettings,
        lanes: Lanes,
    ) -> None:
        self._plan_id = job.plan_id
        self._step_ids = job.step_ids
        self._actor = actor
        self._drafter = drafter
        self._agents = agents
        self._pacemaker = pacemaker
        self._at_once = settings.steps_at_once
        self._lanes = lanes
        self._runner = TaskRunner(actor, dispatcher, drafter, settings)

    async def run(self) -> bool:
        """Whether all its steps are completed. After a failure nothing new is started; what runs beside it ends."""
        running: dict[asyncio.Task[bool], str] = {}
        going_well, begun = True, Counter[str]()
        try:
            while True:
                ready = startable(self._plan, self._step_ids, running.values()) if going_well else []
                ready = [step for step in ready if begun[step.step_id] < STARTS]
                for step in ready[: self._at_once - len(running)]:
                    begun[step.step_id] += 1
                    running[asyncio.create_task(self._carry_out(step.step_id))] = step.step_id
                if not running:
                    break
                over, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for one in over:
                    del running[one]
                    going_well &= one.result()
        finally:
            for one in running:
                one.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        return all(step.status == "completed" for step in self._plan.steps if step.step_id in self._step_ids)

    @property
    def _plan(self) -> Plan:
        return self._drafter.state.plans[self._plan_id]

    async def _carry_out(self, step_id: str) -> bool:
        tasks = StepTasks(
            self._plan_id, step_id, self._actor, self._drafter.state, self._runner, self._pacemaker, self._lanes
        )
        alone = len(self._step_ids) == 1
        self._lanes.begin(step_id)
        try:
            return await StepWork(tasks, self._actor, self._drafter, self._runner, self._agents, alone).carry_out()
        finally:
            self._lanes.end(step_id)
