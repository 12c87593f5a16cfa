"""`duckflow fleet deliver`: what is done leaves the machine, after one yes for all of it."""

import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

from duckflow.cli.fleet_table import tell
from duckflow.cli.parser import Options
from duckflow.errors import UsageError
from duckflow.fleet.attempt import Workshop
from duckflow.fleet.deliver import Delivered, check_state, deliver, push_address
from duckflow.fleet.engine import Engine, TaskState
from duckflow.fleet.merge import merge
from duckflow.fleet.ranking import rank
from duckflow.fleet.task import AttemptReport
from duckflow.i18n.answers import read_answer
from duckflow.i18n.plain import plain
from duckflow.safety.git import Git
from duckflow.ui.streams import print_err, print_out

CREATOR = "DUCKFLOW_PULL_REQUEST"


async def deliver_fleet(engine: Engine, fleet: str, task: str, options: Options, workshop: Workshop) -> int:
    """0 when everything that is done was delivered."""
    words = workshop.words
    here, states = options.place or platform.node(), engine.tasks(fleet)
    open_ones = [state for state in states if state.state in ("done", "merged") and not state.delivered]
    if elsewhere := sorted({state.place for state in open_ones} - {here}):
        print_err(plain(words("fleet.deliver.elsewhere", places=", ".join(elsewhere))))
    states = [state for state in states if task in ("", state.task.name) and state.place == here]
    wanted = [state for state in states if state.task.deliver != "branch" or options.deliver]
    ready = [(state, report) for state in wanted if not state.delivered and (report := _picked(engine, state))]
    if not ready:
        raise UsageError("fleet.deliver.none", fleet=fleet)
    for state, report in ready:
        how = options.deliver or state.task.deliver
        repository = Path(report.order.task.repository)
        workshop.admit(repository)
        told = {"task": state.task.name, "branch": report.branch, "repository": state.task.remote or str(repository)}
        line = words(f"fleet.deliver.will_{how}", **told, remote=await push_address(Git(repository)) or "–")
        print_err(plain(line))
    if not options.yes and not _agreed(words("fleet.deliver.sure"), words.language):
        tell(words("fleet.deliver.not"))
        return 1
    results: list[dict[str, Any]] = []
    for state, report in ready:
        delivered = await _one(engine, state, report, options, workshop)
        why = words.phrase(delivered.why) if delivered.why else ""
        results.append({"task": state.task.name, "where": delivered.where, "why": why})
        if not options.json:
            key = "fleet.deliver.failed_task" if why else "fleet.deliver.done"
            tell(words(key, task=state.task.name, where=delivered.where, why=why))
    if options.json:
        print_out(json.dumps(results, ensure_ascii=False))
    return 0 if all(result["where"] for result in results) else 1


async def _one(
    engine: Engine, state: TaskState, report: AttemptReport, options: Options, workshop: Workshop
) -> Delivered:
    how = options.deliver or state.task.deliver
    name = state.task.name
    if how == "merge" and state.state != "merged":
        result = await merge(report, workshop)
        if result.outcome not in ("merged", "already"):
            return Delivered(why=result.why)
        engine.merged(state.fleet, name, result.commit)
    delivered = await deliver(report, how, os.environ.get(CREATOR, ""), workshop.words)
    if delivered.where:
        engine.delivered(state.fleet, name, delivered.where)
    return delivered


async def tell_checks(engine: Engine, fleet: str, task: str, options: Options, workshop: Workshop) -> int:
    """How the checks of the pull requests are. 0 when all have passed."""
    words, results = workshop.words, list[dict[str, str]]()
    for state in engine.tasks(fleet):
        if task in ("", state.task.name) and "://" in state.delivered and (report := _picked(engine, state)):
            workshop.admit(Path(report.order.task.repository))
            checks = await check_state(report)
            results.append({"task": state.task.name, "where": state.delivered, "checks": checks})
            if not options.json:
                tell(f"{state.task.name}  {state.delivered}  {words(f'fleet.ci.{checks}')}")
    if not results:
        raise UsageError("fleet.ci.no_requests", fleet=fleet)
    if options.json:
        print_out(json.dumps(results, ensure_ascii=False))
    return 0 if all(result["checks"] == "passed" for result in results) else 1


def _picked(engine: Engine, state: TaskState) -> AttemptReport | None:
    if state.state not in ("done", "merged"):
        return None
    reports = [attempt.report for attempt in engine.attempts(state.fleet, state.task.name) if attempt.report]
    return next((report for report in rank(reports) if report.order.number == state.picked), None)


def _agreed(question: str, language: str) -> bool:
    if not sys.stdin.isatty():
        return False
    answer = read_answer(input(question), language=language)
    return answer is not None and answer.choice == "yes"
