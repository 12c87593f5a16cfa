"""An attempt from its worktree to its report: real repositories, a Duckflow process of its own, a scripted model."""

import asyncio
import json
import os
import shutil
from pathlib import Path

import pytest

from duckflow.agent.trust import FolderTrust
from duckflow.allowance import CallWanted
from duckflow.cli.fleet_workshop import make_workshop
from duckflow.errors import BudgetSpent, UsageError
from duckflow.fleet.deliver import request_body
from duckflow.fleet.merge import merge
from duckflow.fleet.ranking import choose, clearly_good, rank, side_by_side
from duckflow.fleet.task import Answered, AttemptOrder, AttemptReport
from duckflow.fleet.worktree import place_of
from duckflow.i18n.words import Words
from duckflow.proof.rules import KeptRule
from duckflow.proof.settings import RULES
from duckflow.remote.conversation import RemoteConversation
from duckflow.state.checks import ProofVerdict
from tests.fleet.yard import MemoryDesk, Yard, write
from tests.journeys.story import act, decide, respond

TAX = write("tax.py", "TAX = 2\n")


@pytest.fixture
def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    return Yard(tmp_path, monkeypatch)


async def test_an_attempt_ends_with_checks_a_commit_and_a_report(yard: Yard) -> None:
    link = MemoryDesk()
    report = await yard.carry_out(yard.task([TAX], checks=["grep -q 2 tax.py"]), link)
    assert report.outcome == "done", (report.open, link.notes)
    assert report.passed and report.branch == "duckflow/raise-1"
    assert [(file.path, file.added, file.removed) for file in report.files] == [("tax.py", 1, 0)]
    assert yard.repository.show(report.branch, "tax.py") == "TAX = 2"
    assert yard.repository.git("rev-parse", report.branch) == report.commit
    assert not (yard.repository.folder / "tax.py").exists()
    assert yard.repository.worktrees() == 0
    assert link.tokens > 0 and report.session_id


async def test_equal_questions_are_told_apart_after_a_change_of_folder(yard: Yard) -> None:
    """An answer for all that ask the same must not reach a command that does something else."""
    same: list[str] = []
    for name, folder in ("a", "."), ("b", ""), ("c", ""):
        folder = folder or str(place_of(yard.paths.worktrees, yard.repository.folder, f"f1.{name}.1"))
        command = decide(act("shell.run", command=f"cd / && git clean -fdx {folder}/build"), next_step="continue")
        link = MemoryDesk(Answered(asked_id="", choice="no"))
        await yard.carry_out(yard.task([command, decide(respond("No."))], name=name, mode="ask"), link)
        same.append(link.asked[0].same)
    assert same[0] != same[1] == same[2]


async def test_ignored_files_are_copied_only_where_they_are_named(yard: Yard) -> None:
    link, task = MemoryDesk(), yard.task([TAX], include=[".env", "*.log"], checks=["grep -q secret .env"])
    report = await yard.carry_out(task)
    assert report.open and report.open.key == "fleet.include_missing" and report.open.values == {"file": ".env"}
    yard.repository.write(".env", "secret\n")
    report = await yard.carry_out(task, link, go=2)
    assert report.passed and [file.path for file in report.files] == ["tax.py"], (report, link.notes)
    report = await yard.carry_out(task.model_copy(update={"name": "b", "include": ("shop.py",)}))
    assert report.open and report.open.key == "fleet.include_known"


async def test_an_attempt_is_held_to_the_rules_that_the_repository_holds(yard: Yard) -> None:
    yard.repository.write(f"{RULES}/print.toml", KeptRule(words="never print", pattern="print").text())
    yard.repository.commit("a rule")
    breach, mended = write("tax.py", "TAX = 2\nprint(TAX)\n"), write("tax.py", "TAX = 2\n")
    report = await yard.carry_out(yard.task([breach, mended]))
    assert report.outcome == "done" and yard.repository.show(report.branch, "tax.py") == "TAX = 2", report


@pytest.mark.slow
async def test_a_cut_off_attempt_is_continued(yard: Yard) -> None:
    """Its worker was killed and left a folder with uncommitted work, beside files that the set-up had made."""
    first, link = MemoryDesk(), MemoryDesk()
    task = yard.task([write("tax.py", "TAX = 2\n"), TAX], mode="ask", setup="mkdir made; echo 1 > made/it")
    going = asyncio.create_task(yard.carry_out(task, first))
    await first.until("waiting")
    (folder,) = (yard.paths.data.parent / "data-worktrees").glob("*/*.raise.1")
    copied = shutil.copytree(folder, yard.top / "copy")
    spared = folder.with_name(f"{folder.name}.spared.json")
    kept = spared.read_text()
    going.cancel()
    assert (await going).outcome == "cancelled"
    yard.repository.git("worktree", "add", "-q", "--detach", str(folder), "main")
    spared.write_text(kept)
    shutil.copytree(copied / "made", folder / "made")
    (folder / "half.py").write_text("HALF = 1\n")
    yard.repository.git("branch", "-f", "duckflow/raise-1", "main")
    done = yard.model(write("tax.py", "TAX = 2\n"))
    task = task.model_copy(update={"model": done, "mode": "full-auto"})
    report = await yard.carry_out(task, link, go=2)
    assert [file.path for file in report.files] == ["half.py", "tax.py"], (report, link.notes)


async def test_a_gate_is_answered_at_the_desk(yard: Yard) -> None:
    link = MemoryDesk(Answered(asked_id="", choice="yes"))
    report = await yard.carry_out(yard.task([TAX], mode="ask"), link)
    assert report.outcome == "done", (report.open, link.notes)
    (asked,) = link.asked
    assert asked.question.gate and "TAX = 2" in asked.question.gate.diff
    assert "waiting" in link.states


@pytest.mark.slow
async def test_the_model_is_told_once_about_failing_checks(yard: Yard) -> None:
    replies = [TAX, write("tax.py", "TAX = 3\n")]
    report = await yard.carry_out(yard.task(replies, checks=["grep -q 3 tax.py"]))
    assert report.passed
    report = await yard.carry_out(yard.task([TAX, decide(respond("No.")), TAX], name="b", checks=["false"]))
    assert report.outcome == "failed" and not report.passed
    assert report.open and report.open.key == "fleet.checks_failed"
    assert [check.code for check in report.checks] == [1]
    assert yard.repository.show(report.branch, "tax.py") == "TAX = 2"


@pytest.mark.slow
async def test_an_attempt_that_touches_forbidden_files_fails(yard: Yard) -> None:
    replies = [decide(act("file_ops.write_file", path="other/a.txt", content="x\n"), *TAX["actions"])]
    report = await yard.carry_out(yard.task(replies, may_touch=["tax.py", "src"]))
    assert report.touched_outside == ("other/a.txt",)
    assert not report.passed and report.outcome == "failed"


class ThriftyDesk(MemoryDesk):
    """A link that grants no call after a dollar is spent, as the fleet's ledger does with a budget of one."""

    async def allow(self, wanted: CallWanted) -> int:
        if self.cost_usd >= 1.0:
            raise BudgetSpent("fleet.budget_spent", what="task")
        return await super().allow(wanted)


@pytest.mark.slow
async def test_time_and_money_have_a_limit_and_waiting_costs_no_time(yard: Yard) -> None:
    slow = decide(act("shell.run", command="sleep 60"), next_step="continue")
    report = await yard.carry_out(yard.task([slow], minutes=0.08))
    assert report.outcome == "budget" and report.open and report.open.key == "fleet.too_long"
    dear = {"json": TAX, "usage": {"cost_usd": 2.0, "prompt_tokens": 10, "completion_tokens": 10}}
    look = decide(act("file_ops.read_file", path="shop.py"), next_step="continue")
    spending = ThriftyDesk()
    report = await yard.carry_out(yard.task([{**dear, "json": look}, TAX], name="b", budget_usd=1.0), spending)
    assert report.outcome == "budget" and (spending.cost_usd, len(spending.calls)) == (2.0, 1), report
    link = MemoryDesk(Answered(asked_id="", choice="yes"), seconds=6.0)
    report = await yard.carry_out(yard.task([TAX], name="c", mode="ask", minutes=0.1), link)
    assert report.outcome == "done", report


def test_among_equal_attempts_the_proof_of_their_tests_decides(yard: Yard) -> None:
    verdicts: list[ProofVerdict | None] = ["hollow", "unknown", None, "guards", "proven"]
    reports = [
        AttemptReport(
            order=AttemptOrder(fleet="f1", task=yard.task([TAX]), number=number),
            outcome="done",
            commit="c",
            proof=verdict,
        )
        for number, verdict in enumerate(verdicts, 1)
    ]
    assert [report.order.number for report in rank(reports)] == [5, 4, 3, 2, 1]
    lines = {line for report in reports for line in request_body(report, Words("en")).splitlines()}
    assert len([line for line in lines if "tests" in line]) == 4 and not [line for line in lines if "proof_" in line]


@pytest.mark.slow
async def test_the_best_of_several_attempts_is_found_by_review(yard: Yard) -> None:
    reports: list[AttemptReport] = []
    link = MemoryDesk()
    for number, (rating, findings) in enumerate([(4, ["tax.py: no tests"]), (9, []), (0, [])], 1):
        review = decide(respond(json.dumps({"rating": rating, "findings": findings})))
        # The model of the review starts the script anew and uses the reply whose cue is in the review's prompt.
        replies = [{"json": review, "when": "Read only"}] if rating else []
        task = yard.task([*replies, TAX], attempts=3, checks=["true"])
        reports.append(await yard.carry_out(task, link, number=number))
    assert link.notes.count(yard.words("fleet.note.no_review")) == 1
    assert [report.rating for report in reports] == [4, 9, 0], reports
    assert [report.order.number for report in rank(reports)] == [2, 1, 3]
    assert [clearly_good(report) for report in reports] == [False, True, False]
    assert choose(reports, True) == 2
    rows = side_by_side(reports, yard.words)
    assert rows[0] == ["", "#2", "#1", "#3"] and rows[-1][2] == "tax.py: no tests"


async def test_the_attempt_is_prompted_in_the_users_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    yard = Yard(tmp_path, monkeypatch, "ja")
    link = MemoryDesk()
    replies = [{"json": write("税.py", "税 = 2\n"), "when": "専用のワークツリー"}]
    report = await yard.carry_out(yard.task(replies, name="税率", prompt="税率を上げる", may_touch=["税.py"]), link)
    assert report.passed and report.branch == "duckflow/税率-1", (report, link.notes)
    assert any("で様子を見られます" in note for note in link.notes)


@pytest.mark.slow
async def test_questions_edits_and_plans_come_to_the_desk(yard: Yard) -> None:
    """The model asks a question, a command is edited at the Gate, and an unclear answer is asked again."""
    asks = decide(respond("Which rate, 2 or 3?"), next_step="pending_user")
    run = decide(act("shell.run", command="echo 1 > rate.txt"), respond("Written."), next_step="done")
    said = ["2, please", "maybe", "5", "echo 2 > rate.txt"]
    link = MemoryDesk(*(Answered(asked_id="", text=text) for text in said))
    report = await yard.carry_out(yard.task([asks, {"json": run, "when": "2, please"}], mode="ask"), link)
    assert report.outcome == "done", (report.open, link.notes, link.asked)
    assert [asked.question.kind for asked in link.asked] == ["text", "gate", "gate", "edit"]
    assert len(link.asked[2].question.details) > len(link.asked[1].question.details)
    assert yard.repository.show(report.branch, "rate.txt") == "2"


@pytest.mark.slow
async def test_a_question_answered_in_the_attempt_itself_leaves_the_inbox(yard: Yard) -> None:
    link = MemoryDesk()
    going = asyncio.create_task(yard.carry_out(yard.task([TAX], mode="ask"), link))
    await link.until("waiting")
    (socket,) = (yard.paths.data / "sessions").glob("*/*.sock")
    attached = RemoteConversation(socket)
    await attached.attach()
    await attached.answer(attached.questions[0].question_id, choice="yes")
    report = await going
    await attached.aclose()
    assert report.outcome == "done" and link.withdrawn == link.asked, report


async def test_git_runs_no_program_of_an_untrusted_repository(yard: Yard) -> None:
    """Git filters would run outside of the sandbox as soon as the worktree is made."""
    ran, repository = yard.top / "ran", yard.repository
    repository.write(".gitattributes", "*.py filter=trap\n")
    repository.commit("with attributes")
    repository.git("config", "filter.trap.smudge", f"touch '{ran}'; cat")
    task = yard.task([TAX])
    report = await yard.carry_out(task)
    assert report.outcome == "failed" and report.open and report.open.key == "fleet.untrusted" and not ran.exists()
    done = report.model_copy(update={"outcome": "done", "commit": task.base})
    result = await merge(done, make_workshop(yard.words, yard.paths))
    assert result.outcome == "refused" and result.why and result.why.key == "fleet.untrusted" and not ran.exists()
    FolderTrust(repository.folder, Path.home(), yard.paths.trusted).trust()
    assert (await yard.carry_out(task)).outcome == "done" and ran.exists()


async def test_without_a_sandbox_checks_run_only_if_the_user_has_turned_it_off(
    yard: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "bin" / "bwrap"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{broken.parent}:{os.environ['PATH']}")
    config = yard.paths.user_config
    config.parent.mkdir(parents=True, exist_ok=True)
    order = AttemptOrder(fleet="f1", task=yard.task([TAX], checks=["true"]), number=1)
    run = make_workshop(yard.words, yard.paths).run
    config.write_text('[sandbox]\nkind = "bubblewrap"\n')
    with pytest.raises(UsageError, match="no_sandbox"):
        await run(order, yard.repository.folder, "true", False)
    config.write_text('[sandbox]\nkind = "none"\n')
    assert (await run(order, yard.repository.folder, "true", False)).code == 0
