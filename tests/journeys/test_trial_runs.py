"""Trial runs of the project's code: within an approved plan they ask nothing, elsewhere one yes covers their kind, as
far as sandbox and undo take them back."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import ActionFinished
from tests.journeys.plans import Typing
from tests.journeys.story import Story, act, decide, respond
from tests.journeys.test_fewer_gates import CHECK, TESTED, Agreeing, both, go_on, run

TRIAL, OTHER_TRIAL = "python3 -m pond 'two ducks'", "timeout 60 python3 -m pond --help | head -3"
STEPS: list[dict[str, Any]] = [
    {"name": "Read pond.py"},
    {"name": "Two ducks", "success": 'pond.py contains "ducks = 2"', "depends_on": [1]},
    {"name": "Test it", "success": f"`{CHECK}` passes", "depends_on": [2]},
    {"name": "Try it and commit", "success": "pond.py is committed", "depends_on": [3]},
]
PROPOSE = decide(
    act("plan_tool.propose", goal="two ducks", name="Ducks", steps=STEPS), step="PLANNING", next_step="pending_user"
)
READ = act("file_ops.read_file", path="pond.py")
EDIT = act("file_ops.edit_file", path="pond.py", edits=[{"old": "ducks = 1", "new": "ducks = 2"}])
COMMIT = run("git add -A && git commit -qm 'Two ducks'")
END = decide(respond("Two ducks."))


def prepared(story: Story) -> None:
    (story.folder / "pond.py").write_text("ducks = 1\n")
    (story.folder / "test_pond.py").write_text(TESTED)
    (story.folder / ".gitignore").write_text("__pycache__/\n")
    for words in ("init -q", "config user.email d@example.com", "config user.name d", "add -A", "commit -qm One"):
        subprocess.run(["git", *words.split()], cwd=story.folder, check=True)


def codes(story: Story) -> list[object]:
    results = [event.result for event in story.events if isinstance(event, ActionFinished)]
    return [one.for_user.values.get("code") for one in results if one.operation == "shell.run"]


@both
async def test_an_approved_plan_with_tests_trial_runs_and_a_commit_asks_at_most_four_times(
    tmp_path: Path, native: bool
) -> None:
    work = [READ, EDIT, run(CHECK), run(TRIAL), run(OTHER_TRIAL), run('python3 -c "import pond; print(pond.ducks)"')]
    replies = [PROPOSE, *map(go_on, work), go_on(COMMIT), *[END] * 3]
    story = Agreeing(tmp_path, replies, mode="ask", native=native)
    prepared(story)
    await story.tell("two ducks instead of one: tests, a trial run, and commit it, with a plan")
    await story.tell("yes")
    gates = [question.gate for question in story.gates() if question.gate]
    assert [gate.operations for gate in gates] == [("file_ops.edit_file",), ("shell.run",)]
    assert [gate.risk for gate in gates] == ["medium", "medium"], "a commit can be taken back here, too"
    assert codes(story) == [0] * 5
    assert (story.folder / ".git/logs/HEAD").read_text().strip().endswith("commit: Two ducks")


@pytest.mark.parametrize(
    ("command", "other"),
    [
        (TRIAL, {"network": True}),
        (f"{TRIAL} > /tmp/out.txt", {}),
        (f"{TRIAL} && rm -rf build", {}),
        (TRIAL, {"background": True}),
        ("npx pond", {}),
    ],
)
async def test_in_a_plan_only_what_sandbox_and_undo_take_back_asks_nothing(
    tmp_path: Path, command: str, other: dict[str, Any]
) -> None:
    story = Agreeing(tmp_path, [PROPOSE, go_on(run(command, **other)), *[END] * 3], mode="ask", native=True)
    prepared(story)
    await story.tell("two ducks, with a plan")
    await story.tell("yes")
    assert len(story.gates()) == 1


async def test_a_trial_run_that_could_lose_an_ignored_file_is_asked_about(tmp_path: Path) -> None:
    story = Agreeing(tmp_path, [PROPOSE, go_on(run(TRIAL)), *[END] * 3], mode="ask", native=True)
    prepared(story)
    (story.folder / ".gitignore").write_text("*.db\n")
    (story.folder / "pond.db").write_text("ducks\n")
    await story.tell("two ducks, with a plan")
    await story.tell("yes")
    assert len(story.gates()) == 1


async def test_other_words_end_the_trial_runs_of_a_plan(tmp_path: Path) -> None:
    replies = [PROPOSE, go_on(run(TRIAL)), END, go_on(run(OTHER_TRIAL)), *[END] * 3]
    story = Agreeing(tmp_path, replies, mode="ask", native=True)
    prepared(story)
    await story.tell("two ducks, with a plan")
    await story.tell("yes")
    assert not story.gates()
    await story.tell("How does it look with other options?")
    assert len(story.gates()) == 1


async def test_one_yes_for_the_session_covers_trial_runs_of_the_same_kind(tmp_path: Path) -> None:
    later = [run(OTHER_TRIAL), run("python3 - <<'EOF'\nimport pond\nEOF")]
    replies = [*map(go_on, [run(TRIAL), *later, run(TRIAL, network=True)]), *[END] * 2]
    story = Typing(tmp_path, replies, mode="ask", native=True)
    prepared(story)
    turn = asyncio.create_task(story.tell("try it"))
    first = await story.asked()
    assert [choice.key for choice in first.choices] == ["yes", "no", "session", "edit"], "not for good"
    await story.chat.take("3")
    second = await story.asked(2)
    assert second.gate and second.gate.risk == "high"
    await story.chat.take("no")
    await turn
    assert codes(story)[:3] == [0, 0, 0]
    assert [rule.values["kind"] for _, rule in story.chat.choices.permissions()] == ["code"]
