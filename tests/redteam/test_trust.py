"""Trust belongs to a folder itself: a folder that points to a trusted repository is not trusted by that."""

import subprocess
from pathlib import Path

import pytest

from duckflow.agent.trust import FolderTrust
from duckflow.state.question import Answer
from tests.journeys.story import Story, decide, respond

HELLO = [decide(respond("Hello."), step="PLANNING")]


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=duck", "-c", "user.email=duck@pond")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def main_repository(top: Path) -> Path:
    """A trusted repository with a worktree of its own."""
    main = top / "main"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "start")
    git(main, "worktree", "add", "-q", str(top / "tree"))
    return main


def by_file(main: Path, work: Path) -> None:
    (work / ".git").write_text(f"gitdir: {main}/.git\n")


def by_relative_file(main: Path, work: Path) -> None:
    (work / ".git").write_text("gitdir: ../main/.git\n")


def by_the_worktree_of_another(main: Path, work: Path) -> None:
    (work / ".git").write_text(f"gitdir: {main}/.git/worktrees/tree\n")


def by_commondir(main: Path, work: Path) -> None:
    fake = work / ".git"
    (fake / "refs").mkdir(parents=True)
    (fake / "HEAD").write_text("ref: refs/heads/master\n")
    (fake / "commondir").write_text(f"{main}/.git\n")


def by_a_worktree_of_its_own_making(main: Path, work: Path) -> None:
    fake = work / "fake/worktrees/tree"
    fake.mkdir(parents=True)
    (fake / "commondir").write_text(f"{main}/.git\n")
    (fake / "gitdir").write_text(f"{work}/.git\n")
    (work / ".git").write_text(f"gitdir: {fake}\n")


def by_a_link(main: Path, work: Path) -> None:
    (work / ".git").symlink_to(main / ".git")


def by_a_link_to_the_file_of_a_worktree(main: Path, work: Path) -> None:
    (work / ".git").symlink_to(main.parent / "tree/.git")


def by_lying_in_it(main: Path, work: Path) -> None:
    """A home that is a repository would otherwise make every download trusted."""
    (main / "download/.claude/skills").mkdir(parents=True)


WAYS = (
    by_file, by_relative_file, by_the_worktree_of_another, by_commondir, by_a_worktree_of_its_own_making, by_a_link,
    by_a_link_to_the_file_of_a_worktree, by_lying_in_it,
)  # fmt: skip


@pytest.mark.parametrize("known", ["main", "main/.git"])
@pytest.mark.parametrize("way", WAYS)
async def test_a_pointer_to_a_trusted_repository_makes_nothing_trusted(tmp_path: Path, way: object, known: str) -> None:
    assert callable(way)
    main, work = main_repository(tmp_path), tmp_path / "work"
    (work / ".claude/skills").mkdir(parents=True)
    way(main, work)
    story = Story(tmp_path, HELLO)
    kept = tmp_path / "home/trusted.json"
    kept.write_text(f'["{tmp_path / known}"]')
    story.answers = [Answer(choice="no")]
    assert await story.tell("hello") == "done"
    assert [question.title.key for question in story.questions] == ["trust.question"]
    assert not FolderTrust(main / "download", tmp_path / "user", kept).trusted
    assert FolderTrust(main, tmp_path / "user", kept).trusted, "an earlier yes is kept"
    assert FolderTrust(tmp_path / "tree", tmp_path / "user", kept).trusted, "and so is that of its own worktree"
