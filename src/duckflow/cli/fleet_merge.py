"""`duckflow fleet merge`, `deliver` and `ci`: merges the picked attempts one after the other, and delivers them."""

import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckflow.cli.fleet_table import agreed, aligned, tell
from duckflow.cli.parser import Options
from duckflow.errors import UsageError
from duckflow.fleet.attempt import Workshop
from duckflow.fleet.deliver import Delivered, PushPlace, check_state, deliver, push_place, require_unmoved
from duckflow.fleet.engine import TaskState
from duckflow.fleet.merge import MergeResult, merge
from duckflow.fleet.ranking import rank, side_by_side, why_first
from duckflow.fleet.task import AttemptReport
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.safety.git import Git
from duckflow.safety.secrets import secret_parts
from duckflow.state.data import said
from duckflow.ui.streams import print_err, print_out

if TYPE_CHECKING:
    from duckflow.fleet.database_engine import Engine

CREATOR = "DUCKFLOW_PULL_REQUEST"


async def deliver_fleet(engine: "Engine", fleet: str, task: str, options: Options, workshop: Workshop) -> int:
    """Delivers the tasks that are done. Returns 0 when all of them were delivered."""
    words = workshop.words
    undelivered_tasks = [
        state
        for state in _in_order(engine.tasks(fleet))
        if task in ("", state.task.name)
        and (state.task.deliver != "branch" or options.deliver)
        and state.state in ("done", "merged")
        and not state.delivered
    ]
    local_tasks = _of_this_machine(engine, undelivered_tasks, "deliver", words)
    ready_tasks = [(state, report) for state in local_tasks if (report := _picked(engine, state))]
    if not ready_tasks:
        raise UsageError("fleet.deliver.none", fleet=fleet)
    agreed_places: list[PushPlace] = []
    for state, report in ready_tasks:
        delivery_way = options.deliver or state.task.deliver
        repository = Path(report.order.task.repository)
        workshop.admit(repository)
        values = {"task": state.task.name, "branch": report.branch, "onto": state.task.onto}
        values |= {"repository": state.task.remote or str(repository)}
        agreed_places.append(await push_place(Git(repository)))
        print_err(plain(words(f"fleet.deliver.will_{delivery_way}", **values, remote=agreed_places[-1].remote or "–")))
    if not options.yes and not (sys.stdin.isatty() and agreed("fleet.deliver.sure", words)):
        tell(words("fleet.deliver.not"))
        return 1
    results: list[dict[str, Any]] = []
    for (state, report), place in zip(ready_tasks, agreed_places, strict=True):
        delivery = await _deliver_one(engine, state, report, options, workshop, place)
        reason = words.phrase(delivery.why) if delivery.why else ""
        results.append({"task": state.task.name, "where": delivery.where, "why": reason})
        if not options.json:
            key = "fleet.deliver.failed_task" if reason else "fleet.deliver.done"
            tell(words(key, task=state.task.name, where=delivery.where, why=reason))
    if options.json:
        print_out(json.dumps(results, ensure_ascii=False))
    return 0 if all(result["where"] for result in results) else 1


async def _deliver_one(
    engine: "Engine", state: TaskState, report: AttemptReport, options: Options, workshop: Workshop, place: PushPlace
) -> Delivered:
    delivery_way = options.deliver or state.task.deliver
    name = state.task.name
    if delivery_way == "merge" and state.state != "merged":
        try:
            await require_unmoved(Git(Path(report.order.task.repository)), place)
        except UsageError as problem:
            return Delivered(why=said(problem))
        merge_result = await merge(report, workshop)
        if merge_result.outcome not in ("merged", "already"):
            return Delivered(why=merge_result.why)
        engine.merged(state.fleet, name, merge_result.commit)
    # Attempts were searched for secrets when they were made. This searches everything that was committed since.
    secrets = secret_parts(os.environ.get(variable, "") for variable in state.task.secrets)
    delivery = await deliver(report, delivery_way, os.environ.get(CREATOR, ""), workshop.words, secrets, place)
    if delivery.where:
        engine.delivered(state.fleet, name, delivery.where)
    return delivery


async def tell_checks(engine: "Engine", fleet: str, task: str, options: Options, workshop: Workshop) -> int:
    """Prints the state of the checks of the pull requests. Returns 0 when all of them have passed."""
    words, results = workshop.words, list[dict[str, str]]()
    requests = [state for state in engine.tasks(fleet) if task in ("", state.task.name) and "://" in state.delivered]
    for state in _of_this_machine(engine, requests, "ci", words):
        if report := _picked(engine, state):
            workshop.admit(Path(report.order.task.repository))
            checks_state = await check_state(report)
            results.append({"task": state.task.name, "where": state.delivered, "checks": checks_state})
            if not options.json:
                tell(f"{state.task.name}  {state.delivered}  {words(f'fleet.ci.{checks_state}')}")
    if not results:
        raise UsageError("fleet.ci.no_requests", fleet=fleet)
    if options.json:
        print_out(json.dumps(results, ensure_ascii=False))
    return 0 if all(result["checks"] == "passed" for result in results) else 1


def _in_order(states: Sequence[TaskState]) -> list[TaskState]:
    """Sorts tasks so that each comes after those that it has waited for."""
    names = TopologicalSorter({state.task.name: state.task.after for state in states}).static_order()
    turns = {name: turn for turn, name in enumerate(names)}
    return sorted(states, key=lambda state: turns[state.task.name])


def _of_this_machine(engine: "Engine", states: Sequence[TaskState], what: str, words: Words) -> list[TaskState]:
    """Returns the tasks whose branches are on this machine. Prints the names of the machines that have the other
    branches."""
    if places := sorted({state.place for state in states if not engine.is_here(state)}):
        print_err(plain(words("fleet.elsewhere", places=", ".join(places), what=what)))
    return [state for state in states if engine.is_here(state)]


def _picked(engine: "Engine", state: TaskState) -> AttemptReport | None:
    reports = [attempt.report for attempt in engine.attempts(state.fleet, state.task.name) if attempt.report]
    return next((report for report in rank(reports) if report.order.number == state.picked), None)


Work = Callable[[], Awaitable[bool]]
"""A function that lets workers work on the fleet. It returns True if the fleet has come to its end."""


class FleetMerge:
    """Merges the tasks of one fleet."""

    def __init__(self, engine: "Engine", fleet: str, options: Options, workshop: Workshop) -> None:
        self._engine = engine
        self._fleet = fleet
        self._options = options
        self._workshop = workshop
        self._words = workshop.words
        self.results: list[dict[str, Any]] = []

    async def run(self, task: str, work: Work) -> int:
        """Merges the named task, or all tasks. Returns 0 when every task that was ready was merged."""
        states = [state for state in self._engine.tasks(self._fleet) if task in ("", state.task.name)]
        open_tasks = [state for state in _in_order(states) if state.state in ("choose", "done")]
        open_tasks = _of_this_machine(self._engine, open_tasks, "merge", self._words)
        if not open_tasks:
            raise UsageError("fleet.merge.none", fleet=self._fleet)
        tasks_sent_back: list[TaskState] = []
        for state in open_tasks:
            waits = any(sent_back_task.task.name in state.task.after for sent_back_task in tasks_sent_back)
            if waits or not await self._merge(state, last=False):
                tasks_sent_back.append(state)
        if tasks_sent_back and await work():
            for state in tasks_sent_back:
                await self._merge(state, last=True)
        all_merged = all(merge_fields["outcome"] in ("merged", "already") for merge_fields in self.results)
        return 0 if all_merged and len(self.results) == len(open_tasks) else 1

    async def _merge(self, state: TaskState, last: bool) -> bool:
        """Merges one task. Returns True if the task is merged or left to the user; False if its attempt was started
        again to resolve a conflict."""
        name, words = state.task.name, self._words
        report = self._picked(state)
        if report is None:
            self._tell(name, MergeResult("refused"), words("fleet.merge.unpicked", task=name))
            return True
        self._engine.pick(self._fleet, name, report.order.number)
        merge_result = await merge(report, self._workshop)
        reason = words.phrase(merge_result.why) if merge_result.why else ""
        if merge_result.outcome in ("merged", "already"):
            self._engine.merged(self._fleet, name, merge_result.commit)
            place_values = {"onto": state.task.onto, "repository": report.order.task.repository}
            done_text = words(
                "fleet.merge.done", task=name, branch=report.branch, commit=merge_result.commit[:12], **place_values
            )
            brought_lines = (
                [words("fleet.merge.brings", files=", ".join(merge_result.brings))] if merge_result.brings else []
            )
            self._tell(name, merge_result, "\n".join([done_text, *brought_lines]))
        elif merge_result.can_be_mended and not last and not report.order.mend:
            print_err(plain(words("fleet.merge.sent_back", task=name, why=reason)))
            self._engine.retry(self._fleet, name, report.order.number, mend=merge_result.head)
            return False
        else:
            self._tell(name, merge_result, words("fleet.merge.yours", task=name, branch=report.branch, why=reason))
        return True

    def _picked(self, state: TaskState) -> AttemptReport | None:
        """Returns the report of the attempt to merge: the one named on the command line, else the one picked before,
        else the best attempt or the user's choice."""
        reports = [attempt.report for attempt in self._engine.attempts(self._fleet, state.task.name) if attempt.report]
        fit_reports = {report.order.number: report for report in rank(reports)}
        if number := self._options.attempt:
            if number not in fit_reports:
                raise UsageError("fleet.merge.unfit", attempt=number, task=state.task.name)
            return fit_reports[number]
        if not fit_reports:
            return None
        if state.state == "done" and state.picked in fit_reports:
            return fit_reports[state.picked]
        best_number = next(iter(fit_reports))
        if len(fit_reports) == 1 or self._options.pick == "best":
            return fit_reports[best_number]
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            return None
        tell(state.task.name)
        for line in (*aligned(side_by_side(reports, self._words)), *why_first(reports, self._words)):
            tell(line)
        line = input(self._words("fleet.merge.which", best=best_number)).strip().removeprefix("#")
        return fit_reports[best_number] if not line else fit_reports.get(int(line)) if line.isdecimal() else None

    def _tell(self, task: str, result: MergeResult, text: str) -> None:
        self.results.append({"task": task, "outcome": result.outcome, "commit": result.commit, "text": text})
        if not self._options.json:
            tell(text)


async def merge_fleet(engine: "Engine", fleet: str, task: str, options: Options, workshop: Workshop, work: Work) -> int:
    fleet_merge = FleetMerge(engine, fleet, options, workshop)
    code = await fleet_merge.run(task, work)
    if options.json:
        print_out(json.dumps(fleet_merge.results, ensure_ascii=False))
    return code
