"""Merges of attempts: one after the other, never onto the wrong base, never over uncommitted work."""

import subprocess
from pathlib import Path

import pytest

from duckflow.cli.fleet_workshop import make_workshop
from duckflow.fleet.merge import MergeResult, merge
from duckflow.fleet.task import AttemptOrder, AttemptReport, FleetTask
from tests.fleet.yard import Yard

LINK = "link to "


class Merging(Yard):
    """Attempts that have ended already."""

    def attempt(self, name: str, file: str, text: str, **fields: object) -> AttemptReport:
        repository = self.repository
        base = str(fields.pop("base", "")) or repository.git("rev-parse", "main")
        repository.git("checkout", "-q", "--detach", base)
        if text.startswith(LINK):
            (repository.folder / file).parent.mkdir(parents=True, exist_ok=True)
            (repository.folder / file).symlink_to(text.removeprefix(LINK))
        else:
            repository.write(file, text)
        commit = repository.commit(name)
        repository.git("branch", f"duckflow/{name}-1", commit)
        repository.git("checkout", "-q", "main")
        given = {"name": name, "repository": str(repository.folder), "prompt": name, "base": base, "onto": "main"}
        order = AttemptOrder(fleet="f1", task=FleetTask.model_validate(given | fields), number=1)
        return AttemptReport(order=order, outcome="done", branch=order.branch, commit=commit)

    async def merge(self, report: AttemptReport) -> MergeResult:
        result = await merge(report, make_workshop(self.words, self.paths))
        assert self.repository.worktrees() == 0
        return result


@pytest.fixture
def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Merging:
    return Merging(tmp_path, monkeypatch)


async def test_attempts_are_merged_in_turn_and_uncommitted_work_stays(yard: Merging) -> None:
    repository = yard.repository
    one, two = yard.attempt("one", "one.txt", "1\n"), yard.attempt("two", "two.txt", "2\n", checks=["test -f one.txt"])
    repository.write("shop.py", "PRICE = 'mine'\n")
    repository.write("new.txt", "mine too\n")
    assert [(await yard.merge(report)).outcome for report in (one, two)] == ["merged", "merged"]
    assert repository.show("main", "two.txt") == "2" and (repository.folder / "one.txt").exists()
    assert repository.git("status", "--porcelain") == "M shop.py\n?? new.txt"
    assert (await yard.merge(one)).outcome == "already"


async def test_files_in_the_way_are_named_and_nothing_is_changed(yard: Merging) -> None:
    report, head = yard.attempt("one", "shop.py", "PRICE = 2\n"), yard.repository.git("rev-parse", "main")
    yard.repository.write("shop.py", "PRICE = 'mine'\n")
    result = await yard.merge(report)
    assert result.outcome == "refused" and result.why and "shop.py" in yard.words.phrase(result.why)
    assert yard.repository.git("rev-parse", "main") == head
    assert (yard.repository.folder / "shop.py").read_text() == "PRICE = 'mine'\n"


async def test_conflicts_and_checks_that_fail_together_can_be_mended(yard: Merging) -> None:
    one, two = yard.attempt("one", "shop.py", "PRICE = 2\n"), yard.attempt("two", "shop.py", "PRICE = 3\n")
    three = yard.attempt("three", "three.txt", "3\n", checks=["grep -q 1 shop.py"])
    assert (await yard.merge(one)).outcome == "merged"
    head = yard.repository.git("rev-parse", "main")
    for report, outcome in ((two, "conflict"), (three, "checks")):
        result = await yard.merge(report)
        assert (result.outcome, result.head, result.can_be_mended) == (outcome, head, True)
    assert yard.repository.git("rev-parse", "main") == head


async def test_a_branch_that_was_set_back_does_not_get_removed_commits_again(yard: Merging) -> None:
    first = yard.repository.git("rev-parse", "main")
    yard.repository.write("secret.txt", "oops\n")
    yard.repository.commit("to be taken out")
    report = yard.attempt("one", "one.txt", "1\n")
    yard.repository.git("reset", "-q", "--hard", first)
    result = await yard.merge(report)
    assert result.outcome == "refused" and result.why and result.why.key == "fleet.merge.base"


async def test_a_branch_that_is_not_checked_out_moves_without_touching_files(yard: Merging) -> None:
    report = yard.attempt("one", "one.txt", "1\n")
    yard.repository.git("checkout", "-q", "-b", "other")
    assert (await yard.merge(report)).outcome == "merged"
    assert yard.repository.show("main", "one.txt") == "1"
    assert not (yard.repository.folder / "one.txt").exists()


async def test_a_branch_that_is_being_rebased_is_refused(yard: Merging) -> None:
    report = yard.attempt("one", "one.txt", "1\n")
    yard.repository.git("checkout", "-q", "-b", "other")
    yard.repository.write("shop.py", "PRICE = 7\n")
    yard.repository.commit("seven")
    yard.repository.git("checkout", "-q", "main")
    yard.repository.write("shop.py", "PRICE = 8\n")
    head = yard.repository.commit("eight")
    with pytest.raises(subprocess.CalledProcessError):
        yard.repository.git("rebase", "-q", "other")
    result = await yard.merge(report)
    assert result.why and result.why.key == "fleet.merge.rebase"
    assert yard.repository.git("rev-parse", "main") == head


async def test_a_user_without_a_git_name_can_merge_too(yard: Merging, monkeypatch: pytest.MonkeyPatch) -> None:
    report = yard.attempt("one", "one.txt", "1\n")
    yard.repository.write("two.txt", "2\n")
    yard.repository.commit("meanwhile")
    for name in ("user.name", "user.email"):
        yard.repository.git("config", "--unset", name)
    for name, value in (("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_SYSTEM", "/dev/null"), ("EMAIL", "")):
        monkeypatch.setenv(name, value)
    for who in ("AUTHOR", "COMMITTER"):
        for what in ("NAME", "EMAIL"):
            monkeypatch.delenv(f"GIT_{who}_{what}", raising=False)
    assert (await yard.merge(report)).outcome == "merged"
    assert yard.repository.show("main", "one.txt") == "1"


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("file", "text"),
    [
        (".gitattributes", "* filter=evil\n"),
        ("deep/.gitattributes", "* diff=evil\n"),
        (".GitAttributes", "* merge=evil\n"),
        (".githooks/pre-commit", "#!/bin/sh\n"),
        (".husky/pre-push", "x\n"),
        (".claude/settings.json", "{}\n"),
        (".gitmodules", "[submodule]\n"),
        ("vendor/HEAD", "ref: x\n"),
        ("conf", f"{LINK}/etc"),
        ("deep/up", f"{LINK}../../outside"),
        ("round", f"{LINK}deep/../../x"),
        ("hooks", f"{LINK}.git/hooks"),
        ("above", f"{LINK}.."),
    ],
)
async def test_what_comes_in_and_runs_programs_or_leads_out_is_told(yard: Merging, file: str, text: str) -> None:
    result = await yard.merge(yard.attempt("one", file, text))
    assert result.outcome == "merged"
    assert [line.partition(" → ")[0] for line in result.brings] == [file]


ORDINARY = [("src/a.py", "x\n"), ("near", f"{LINK}shop.py"), ("a/b", f"{LINK}../shop.py")]


@pytest.mark.parametrize(("file", "text"), ORDINARY)
async def test_an_ordinary_change_is_merged_without_a_warning(yard: Merging, file: str, text: str) -> None:
    result = await yard.merge(yard.attempt("one", file, text))
    assert result.outcome == "merged" and result.brings == ()
