"""Rules of plans: dependencies, which steps may start, criteria, and changes that the user makes."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckflow.errors import UsageError
from duckflow.state.agent import AgentState
from duckflow.state.plan import (
    Plan,
    Step,
    Task,
    TaskList,
    circular,
    clash,
    dependency_problems,
    held,
    moved,
    next_task,
    renamed,
    startable,
    touched,
    without,
)
from duckflow.tools.plan.criterion import named_in
from duckflow.tools.plan.step_files import files_of


def step(name: str, *needs: str, files: tuple[str, ...] = (), status: Any = "pending") -> Step:
    tasks = [
        Task(operation="file_ops.write_file", args={"path": path}, effect="write", touches=(path,)) for path in files
    ]
    return Step(step_id=name, name=name, depends_on=list(needs), status=status, task_list=TaskList(tasks=tasks))


def plan(*steps: Step) -> Plan:
    return Plan(name="p", goal="g", steps=list(steps))


def names(steps: list[Step]) -> list[str]:
    return [one.name for one in steps]


def test_unknown_and_circular_dependencies_are_named() -> None:
    assert dependency_problems([step("a"), step("b", "a")]) == []
    assert "'x', which is no step" in dependency_problems([step("a", "x")])[0]
    assert "circle: a -> b" in dependency_problems([step("a", "b"), step("b", "a"), step("c")])[0]
    assert circular([step("a", "a")]) == ["a"]


@given(st.lists(st.sets(st.integers(0, 11)), min_size=1, max_size=12))
def test_every_step_starts_some_day_where_no_circle_is_reported(needs: list[set[int]]) -> None:
    steps = [step(str(n), *(str(m) for m in before if m < len(needs))) for n, before in enumerate(needs)]
    whole = plan(*steps)
    wanted = [one.step_id for one in steps]
    while ready := startable(whole, wanted):
        for one in ready:
            one.status = "completed"
    stuck = {one.name for one in steps if one.status != "completed"}
    assert stuck == set(circular(steps))


def test_steps_start_only_after_what_they_depend_on() -> None:
    whole = plan(step("a", status="completed"), step("b", "a"), step("c", "b"), step("d"))
    everything = ["a", "b", "c", "d"]
    assert names(startable(whole, everything)) == ["b", "d"]
    assert names(startable(whole, ["c", "d"], busy=["d"])) == []


def test_the_files_of_a_step_are_also_those_of_the_two_steps_before_it() -> None:
    first, second, third = step("a", files=("a.py",)), step("b", "a", files=("b.py",)), step("c", "b")
    for task in first.tasks + second.tasks:
        task.status, task.makes = "completed", task.touches
    assert files_of(plan(third, first, second, step("d", files=("d.py",))), third) == ["a.py", "b.py"]


def test_two_steps_clash_when_they_may_change_the_same_file() -> None:
    left, right, same = step("l", files=("l.py",)), step("r", files=("r.py",)), step("s", files=("l.py",))
    assert clash(touched(left), touched(same)) and not clash(touched(left), touched(right))
    anything = Step(name="x", task_list=TaskList(tasks=[Task(operation="shell.run", args={"command": "make"})]))
    assert clash(touched(anything), touched(left)), "a command may touch any file"
    assert touched(anything, named=True) == touched(step("n")) == frozenset()
    left.tasks[0].status = "completed"
    assert (touched(left), held(left)) == (frozenset(), frozenset({"l.py"})), "what it has changed stays its own"


def test_a_failed_task_stops_its_list() -> None:
    one = step("a", files=("a", "b", "c"))
    assert next_task(one) is one.tasks[0]
    one.tasks[0].status = "completed"
    assert next_task(one) is one.tasks[1]
    one.tasks[1].status = "failed"
    assert next_task(one) is None


def test_changes_by_hand_give_a_new_plan() -> None:
    whole = plan(step("a"), step("b", "a"), step("c", "b"))
    assert names(renamed(whole, "2", "Better").steps) == ["a", "Better", "c"]
    assert renamed(whole, "0", "Other").name == "Other"
    assert names(without(whole, "b").steps) == ["a", "c"]
    assert without(whole, "b").steps[1].depends_on == ["a"], "what depended on it now depends on what it depended on"
    assert names(moved(plan(step("a"), step("b"), step("c")), "3", "1").steps) == ["c", "a", "b"]
    assert names(whole.steps) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("change", "arguments", "key"),
    [
        (moved, ("2", "1"), "plan.needs_before"),
        (moved, ("1", "9"), "plan.no_place"),
        (moved, ("1", "x"), "plan.no_place"),
        (without, ("zzz",), "plan.no_step"),
        (without, ("1",), "plan.step_begun"),
        (renamed, ("1", " "), "plan.edit_usage"),
    ],
)
def test_impossible_changes_say_why(change: Callable[..., Plan], arguments: tuple[str, ...], key: str) -> None:
    with pytest.raises(UsageError) as problem:
        change(plan(step("a", status="in_progress"), step("b", "a")), *arguments)
    assert problem.value.key == key


@pytest.mark.parametrize(
    ("success", "named"),
    [
        ("python -m unittest tests.test_a passes", ["python -m unittest tests.test_a"]),
        ("pytest -q tests/test_a.py::test_b が通る", ["pytest -q tests/test_a.py::test_b"]),
        ("pytest -q passes", ["pytest -q"]),
        ("pytest -k stats -x is green", ["pytest -k stats -x"]),
        ("mypy -p shop exits with 0", ["mypy -p shop"]),
        ("command: python -m pytest -q tests -k 'a or b' ends with 0", ["python -m pytest -q tests -k 'a or b'"]),
        ('pytest -m "not slow" passes', ['pytest -m "not slow"']),
        ("python -m unittest discover -s t -p 'test_*.py'", ["python -m unittest discover -s t -p 'test_*.py'"]),
        ("pytest with -x passes", ["pytest"]),
        ("python cli.py -n 5 prints 5", ["python cli.py -n 5"]),
        ("`python -m pytest -q` passes; pytest -q is green", ["python -m pytest -q"]),
        ("python game.py --help prints the rules.", ["python game.py --help"]),
        ("pytest and/or ruff check pass", ["pytest", "ruff check"]),
        ("pytest passes, a.py exists", ["pytest", "a.py"]),
        ("after python main.py out.json exists", ["python main.py", "out.json"]),
        ("python main.py で out.txt ができる", ["python main.py", "out.txt"]),
        ("pytest e.g. with v8.3 passes.Then done", ["pytest"]),
        ("src/cart.test.ts and vite.config.js exist", ["src/cart.test.ts", "vite.config.js"]),
        ("changelog/724.feature.rst is there.", ["changelog/724.feature.rst"]),
        (".eslintrc.json があり、a.min.js ができる", [".eslintrc.json", "a.min.js"]),
    ],
)
def test_a_command_has_its_arguments_and_no_words_of_the_sentence(success: str, named: list[str]) -> None:
    assert [one.name for one in named_in(success)] == named


@pytest.mark.parametrize(
    ("success", "texts", "unchecked"),
    [
        ("README.md names --missing", ("--missing",), ()),
        ("docs/use.md shows the option --dry-run and how it works", ("--dry-run",), ()),
        ("README.md に --dry-run の説明を書く", ("--dry-run",), ()),
        ("README.md names the new option", (), ("the new option",)),
        ("README.md tells how to use it", (), ("how to use it",)),
        ("README.md exists", (), ()),
    ],
)
def test_a_file_that_is_only_there_does_not_show_what_it_should_say(
    success: str, texts: tuple[str, ...], unchecked: tuple[str, ...]
) -> None:
    [thing] = named_in(success)
    assert (thing.texts, thing.unchecked) == (texts, unchecked)


def test_words_to_several_steps_are_one_message_and_can_be_forgotten() -> None:
    work = plan(step("a", status="completed"), step("b"), step("c"))
    for name in "bc":
        found = work.step(name)
        assert found
        work.hear(found, "use the name Rosalind")
    work.hear(work.steps[1], "and tabs")
    assert [(said.words, said.to, said.after) for said in work.said] == [
        ("use the name Rosalind", ("b", "c"), ("a",)),
        ("and tabs", ("b",), ("a",)),
    ]
    AgentState(plans={work.plan_id: work}).forget("rosalind")
    assert [said.words for said in work.said] == ["and tabs"]
    assert work.steps[1].said == ["", "and tabs"] and work.steps[2].said == [""]
