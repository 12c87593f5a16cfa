"""A recorded session done again: the commands that end differently, and a comparison of ways to go on."""

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from duckflow.bench.replay import RecordedDeed
from duckflow.bench.trajectory import mapped
from duckflow.events.types import ActionFinished, Event, LoopBegan, TurnBegan, TurnEnded, UsageReported
from duckflow.i18n.words import Words, money
from duckflow.safety.path_names import shown
from duckflow.state.action import RUN_AGENT, Action, ActionResult, exit_code
from duckflow.state.agent import AgentState
from duckflow.state.checks import state_of
from duckflow.state.data import shorten
from duckflow.state.message import Usage
from duckflow.state.phrase import LEFT_OUT, REFUSED, WISHED, Phrase, say

DONE_AGAIN = ("read", "write", "run")
TIMES = re.compile(r"\b\d+(?:[.,]\d+)?(?: ?(?:ms|s|sec|seconds?)\b)|\b\d\d:\d\d:\d\d\b|0x[0-9a-f]{6,}")
"""Durations, times of the day and addresses, which differ in every run."""
SHOWN_LINE = 80


def is_done_again(deed: RecordedDeed) -> bool:
    """Says whether a deed is done again: nothing that was refused, nothing on the network, and of an agent only what it
    did itself."""
    if deed.result.for_user.key in (REFUSED, WISHED, LEFT_OUT) or deed.action.operation == RUN_AGENT:
        return False
    return deed.result.effect in DONE_AGAIN


def moved(action: Action, folder: Path, copy: Path) -> Action:
    """Returns the action, moved into a copy of the folder."""
    pattern = re.compile(rf"{re.escape(str(folder))}(?![\w.-])")
    return action.model_copy(update={"args": mapped(action.args, lambda text: pattern.sub(lambda _: str(copy), text))})


def differences(before: ActionResult, after: ActionResult, folder: Path, copy: Path) -> Iterator[Phrase]:
    """Says how the same action has ended differently."""
    if after.for_user.key == LEFT_OUT:
        yield say("replay.needs_yes")
        return
    codes = [exit_code(result) for result in (before, after)]
    if codes[0] != codes[1]:
        yield say("replay.code", before=_told(codes[0]), after=_told(codes[1]))
    elif before.ok != after.ok:
        yield say("replay.went_well" if after.ok else "replay.went_wrong")
    if (files := [", ".join(map(shown, sorted(set(result.changed)))) for result in (before, after)])[0] != files[1]:
        yield say("replay.changed", before=files[0] or "–", after=files[1] or "–")
    texts = [TIMES.sub("…", result.for_model.replace(str(copy), str(folder))).split("\n") for result in (before, after)]
    for tag, first, last, new_first, new_last in SequenceMatcher(None, *texts, autojunk=False).get_opcodes():
        if tag != "equal":
            lines = texts[0][first:last], texts[1][new_first:new_last]
            old, new = (shorten(next(filter(str.strip, part), "–").strip(), SHOWN_LINE) for part in lines)
            yield say("replay.line", before=old, after=new)
            return


def _told(code: int | None) -> str:
    return "–" if code is None else str(code)


class WayOn(NamedTuple):
    """The course of a session from a step on: its result, and what it cost."""

    outcome: str
    checks: str
    proof: str
    usage: Usage
    steps: int
    files: frozenset[str]


def way_on(state: AgentState, events: Iterable[Event]) -> WayOn:
    """Sums up the events after a step, which belong to one turn. `state` is the state at their end."""
    outcome, usage, steps, files = "interrupted", Usage(), 0, set[str]()
    for event in events:
        match event:
            case UsageReported():
                usage = usage.plus(event.usage)
            case LoopBegan():
                steps += 1
            case ActionFinished():
                files.update(event.result.changed)
            case TurnEnded():
                outcome = event.outcome
            case _:
                pass
    proof = state.proof.verdict if state.proof else "none"
    return WayOn(outcome, state_of(state.check_runs).removesuffix("_before"), proof, usage, steps, frozenset(files))


def side_by_side(ways: dict[str, WayOn], words: Words) -> list[list[str]]:
    """Returns rows of cells, with a column for each way on."""
    columns = ways.values()
    return [
        ["", *ways],
        [words("replay.row.outcome"), *(words(f"replay.outcome.{way.outcome}") for way in columns)],
        [words("replay.row.checks"), *(words(f"replay.checks.{way.checks}") for way in columns)],
        [words("replay.row.proof"), *(words(f"replay.proof.{way.proof}") for way in columns)],
        [words("replay.row.requests"), *(str(way.usage.calls) for way in columns)],
        [
            words("replay.row.tokens"),
            *(f"{way.usage.prompt_tokens} + {way.usage.completion_tokens}" for way in columns),
        ],
        [words("replay.row.cost"), *(money(way.usage.cost_usd) for way in columns)],
        [words("replay.row.files"), *(str(len(way.files)) for way in columns)],
    ]


class Fork(NamedTuple):
    """The place in a journal right before one of the model's steps, and the number of the turn's last event."""

    number: int
    turn: int
    end: int


def find_step(events: Iterable[tuple[int, Event]], wanted: int) -> Fork | None:
    """Returns the place before a step of the session, counted from 1."""
    turn, steps, number_before, last_number = 0, 0, 0, 0
    for number, event in events:
        match event:
            case TurnBegan() if number_before:
                return Fork(number_before, turn, last_number)
            case TurnBegan():
                turn = event.turn
            case LoopBegan() if not number_before:
                steps += 1
                number_before = number - 1 if steps == wanted else 0
            case _:
                pass
        last_number = number
    return Fork(number_before, turn, last_number) if number_before else None
