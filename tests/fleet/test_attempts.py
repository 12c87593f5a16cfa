"""An attempt from its worktree to its report: real repositories, a Duckflow process of its own, a scripted model."""

from pathlib import Path

import pytest

from duckflow.fleet.task import Answered
from tests.fleet.yard import MemoryDesk, Yard, write
from tests.journeys.story import act, decide, respond

TAX = write("tax.py", "TAX = 2\n")


@pytest.fixture
def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    return Yard(tmp_path, monkeypatch)


async def test_an_attempt_ends_with_checks_a_commit_and_a_report(yard: Yard) -> None:
    desk = MemoryDesk()
    report = await yard.carry_out(yard.task([TAX], checks=["grep -q 2 tax.py"]), desk)
    assert report.outcome == "done", (report.open, desk.notes)
    assert report.passed and report.branch == "duckflow/raise-1"
    assert [(file.path, file.added, file.removed) for file in report.files] == [("tax.py", 1, 0)]
    assert yard.repository.show(report.branch, "tax.py") == "TAX = 2"
    assert yard.repository.git("rev-parse", report.branch) == report.commit
    assert not (yard.repository.folder / "tax.py").exists()
    assert yard.repository.worktrees() == 0
    assert report.tokens > 0 and report.session_id


async def test_a_gate_is_answered_at_the_desk(yard: Yard) -> None:
    desk = MemoryDesk(Answered(asked_id="", choice="yes"))
    report = await yard.carry_out(yard.task([TAX], mode="ask"), desk)
    assert report.outcome == "done", (report.open, desk.notes)
    (asked,) = desk.asked
    assert asked.question.gate and "TAX = 2" in asked.question.gate.diff
    assert "waiting" in desk.states


async def test_failing_checks_are_told_once(yard: Yard) -> None:
    replies = [TAX, write("tax.py", "TAX = 3\n")]
    report = await yard.carry_out(yard.task(replies, checks=["grep -q 3 tax.py"]))
    assert report.passed
    report = await yard.carry_out(yard.task([TAX, decide(respond("No.")), TAX], name="b", checks=["false"]))
    assert report.outcome == "failed" and not report.passed
    assert report.open and report.open.key == "fleet.checks_failed"
    assert [check.code for check in report.checks] == [1]
    assert yard.repository.show(report.branch, "tax.py") == "TAX = 2"


async def test_what_it_should_not_touch_puts_it_out(yard: Yard) -> None:
    replies = [decide(act("file_ops.write_file", path="other/a.txt", content="x\n"), *TAX["actions"])]
    report = await yard.carry_out(yard.task(replies, may_touch=["tax.py", "src"]))
    assert report.touched_outside == ("other/a.txt",)
    assert not report.passed and report.outcome == "failed"
