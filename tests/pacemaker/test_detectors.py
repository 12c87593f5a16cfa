"""Ways of going in circles, and ways of working that look like it."""

from itertools import cycle, islice

import pytest

from duckflow.pacemaker.interventions import DuckCall, Reason, Replan
from duckflow.pacemaker.pacemaker import Pacemaker
from duckflow.pacemaker.signatures import LoopStep, decided_nothing
from tests.pacemaker.story import bad_edit, edit, grep, read, rewrite, run, say_it, tell

A, B, C, D, E = (read(f"{name}.py") for name in "abcde")


def forever(*steps: LoopStep) -> list[LoopStep]:
    return list(islice(cycle(steps), 60))


STUCK = {
    "same_call": ([A, B, A, C, A, D, A, E, A], Reason.STAGNATION, 7),
    "cycle": (forever(edit("x", "1"), edit("x", "2")), Reason.STAGNATION, 6),
    "same_call_fails": (
        [bad_edit("x", "y", error) for error in ("no match", "timed out", "lock held", "disk busy", "no match")],
        Reason.ERROR_CASCADE,
        4,
    ),
    "same_error": ([bad_edit("x", str(number)) for number in range(9)], Reason.ERROR_CASCADE, 4),
    "only_talk": ([say_it(f"Now I am thinking about {word}.") for word in "abcdefghijk"], Reason.STAGNATION, 8),
    "nothing_decided": ([decided_nothing()] * 3, Reason.STAGNATION, 2),
    "rewriting": ([rewrite("x", str(number)) for number in range(9)], Reason.STAGNATION, 5),
    "focus_lost": ([A, *(grep(str(number)) for number in range(9))], Reason.FOCUS_LOST, 8),
}


@pytest.mark.parametrize("key", STUCK)
def test_it_plans_anew_and_then_asks(key: str) -> None:
    steps, reason, after = STUCK[key]
    verdicts = tell(Pacemaker(), steps)
    call = verdicts[-1]
    assert isinstance(call, DuckCall), "it never asked"
    assert (call.findings[0].key, call.reason, len(verdicts)) == (key, reason, after)
    assert [type(verdict) for verdict in verdicts].count(Replan) == 1, "one replan comes before"


WORK = {
    "reading many files": [read(f"{number}.py") for number in range(50)],
    "three actions of the same name": [A, B, C],
    "one repeat of a pair": [A, B, C, D, C, D],
    "edit and test": [
        step
        for number in range(20)
        for step in (edit("x", str(number)), run("pytest", f"{20 - number} failed", failed=True))
    ],
    "the same fix again and again, while a check fails less each time": [
        step
        for number in range(12)
        for step in (
            run("sed -i '0,/False/s//True/' data.py", "")._replace(changed=("data.py",)),
            run("python3 -m unittest", f"FAILED (failures={12 - number})", failed=True),
        )
    ],
    "changing things while the tests go on passing": [
        step for number in range(40) for step in (edit(str(number), "x"), run("pytest", "all passed"))
    ],
    "looking again after each edit": [
        step for number in range(40) for step in (edit("x", str(number)), A, run("t", "ok"))
    ],
    "a search that finds nothing now and then": [
        step for number in range(20) for step in (grep(str(number)), read(f"{number}.py"))
    ],
    "a note between steps": [step for name in "abcdefgh" for step in (say_it("Next file."), read(name))],
    "two failures, then another way": [bad_edit("x", "1"), bad_edit("x", "2"), A, edit("x", "3")],
}


@pytest.mark.parametrize("story", WORK)
def test_ordinary_work_is_not_interrupted(story: str) -> None:
    assert not any(isinstance(verdict, DuckCall) for verdict in tell(Pacemaker(), WORK[story]))


@pytest.mark.parametrize("length", [2, 3, 4, 5])
def test_cycles_of_two_to_five_steps_are_found(length: int) -> None:
    steps = forever(*(edit("x", str(number)) for number in range(length)))
    verdicts = tell(Pacemaker(), steps)
    assert isinstance(verdicts[-1], DuckCall)
    assert len(verdicts) <= 3 * length + 1


def test_a_finding_says_what_how_often_since_when_and_what_it_cost() -> None:
    steps = [A, B, *[LoopStep("file_ops.grep", {"pattern": "x"}, "one hit", kind="search", tokens=100)] * 4]
    call = tell(Pacemaker(), steps)[-1]
    assert isinstance(call, DuckCall)
    finding = call.findings[0]
    assert (finding.label, finding.times, finding.since, finding.steps) == ("file_ops.grep x", 4, 3, 4)
    assert finding.tokens == 400
    assert finding.phrase().key == "pacemaker.found.same_call"
    assert finding.cost().values == {"steps": 4, "tokens": 400}
