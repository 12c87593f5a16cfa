"""Trust belongs to a folder itself: a folder that points to a trusted repository does not become trusted by that."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from duckflow.agent.trust import FolderTrust
from duckflow.events.types import Noticed
from duckflow.state.question import Answer
from tests.journeys.story import Story, act, decide, respond

HELLO = [decide(respond("Hello."), step="PLANNING")]


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=duck", "-c", "user.email=duck@pond")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def main_repository(top: Path) -> Path:
    """Makes a trusted repository with a worktree of its own."""
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
    """Puts the folder into the trusted repository. A home that is a repository would otherwise make every download
    trusted."""
    (main / "download/.claude/skills").mkdir(parents=True)


WAYS = (
    by_file, by_relative_file, by_the_worktree_of_another, by_commondir, by_a_worktree_of_its_own_making, by_a_link,
    by_a_link_to_the_file_of_a_worktree, by_lying_in_it,
)  # fmt: skip


BROKEN = {
    "a null byte": b"gitdir: /x\0y\n",
    "a long name": b"gitdir: /" + b"a" * 300 + b"\n",
    "a long path": b"gitdir: " + b"a/" * 4000 + b"\n",
    "many steps up": b"gitdir: " + b"../" * 2000 + b"x\n",
    "no letters": b"gitdir: \xff\xfe\n",
    "nothing": b"gitdir:\n",
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("named", ["gitdir", "commondir"])
@pytest.mark.parametrize("text", BROKEN)
async def test_a_pointer_that_no_system_takes_breaks_nothing(tmp_path: Path, text: str, named: str) -> None:
    work = tmp_path / "work"
    (work / "fake/refs").mkdir(parents=True)
    (work / ".git").write_bytes(BROKEN[text] if named == "gitdir" else b"gitdir: fake\n")
    (work / "fake/commondir").write_bytes(BROKEN[text].removeprefix(b"gitdir:").strip() + b"\n")
    story = Story(tmp_path, [decide(act("shell.run", command="ls"), respond("Listed.")), *HELLO])
    await story.tell("hello")
    await story.close()
    assert "Listed." in story.said()


@pytest.mark.one_in(2)
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


EVIL = "#!/bin/sh\ntouch {hit}\ncat\n"
SETTINGS = {
    "a monitor": "[core]\n\tfsmonitor = {evil}\n",
    "a filter": '[filter "evil"]\n\tclean = {evil}\n',
    "a driver": '[diff "evil"]\n\ttextconv = {evil}\n',
    "another file": "[include]\n\tpath = {top}/more\n",
    "hooks elsewhere": "[core]\n\thooksPath = {top}/hooks\n",
    "a difference": "[diff]\n\texternal = {evil}\n",
}


def hostile(work: Path, settings: str) -> Path:
    """Makes a repository whose settings name a program, and returns the path of the file that this program makes."""
    top, hit = work.parent, work.parent / "hit"
    evil = top / "evil"
    (top / "hooks").mkdir(parents=True)
    for program in (evil, top / "hooks/pre-commit", top / "hooks/post-index-change"):
        program.write_text(EVIL.format(hit=hit))
        program.chmod(0o755)
    work.mkdir()
    git(work, "init", "-q")
    (work / "a.txt").write_text("one\n")
    (work / ".gitattributes").write_text("*.txt filter=evil diff=evil\n")
    git(work, "add", ".")
    git(work, "commit", "-qm", "start")
    (work / "a.txt").write_text("two\n")
    (top / "more").write_text(f"[core]\n\tfsmonitor = {evil}\n")
    with (work / ".git/config").open("a") as file:
        file.write(settings.format(evil=evil, top=top))
    return hit


@pytest.mark.one_in(2)
@pytest.mark.parametrize("settings", SETTINGS)
async def test_a_hook_of_the_users_own_starts_no_program_of_an_untrusted_folder(tmp_path: Path, settings: str) -> None:
    hit = hostile(tmp_path / "work", SETTINGS[settings])
    calls = "git status; git diff"
    hooks = {"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": calls}]}]}}
    story = Story(tmp_path, HELLO * 2, settings=hooks)
    story.answers = [Answer(choice="no")]
    await story.tell("hello")
    await story.close()
    assert not hit.exists() and "hook.git_untrusted" in [event.what.key for event in story.all(Noticed)]
    trusting = Story(tmp_path, HELLO, settings=hooks)
    trusting.answers = [Answer(choice="trust")]
    await trusting.tell("hello")
    await trusting.close()
    assert hit.exists(), "and where the folder is trusted, it runs"


@pytest.mark.parametrize("hook", ["pre-commit", "commit-msg", "post-commit", "prepare-commit-msg", "post-rewrite", ""])
async def test_the_question_before_a_commit_names_what_git_starts(tmp_path: Path, hook: str) -> None:
    story = Story(tmp_path, [decide(act("file_ops.write_file", path="a.txt", content="one\n"), respond("Written."))])
    await asyncio.to_thread(git, story.folder, "init", "-q")
    if hook:
        (story.folder / ".git/hooks" / hook).write_text("#!/bin/sh\n")
        (story.folder / ".git/hooks" / hook).chmod(0o755)
    await story.tell("write it")
    story.answers = [Answer(choice="no")]
    await story.chat.run_command("/commit")
    told = [detail.values["programs"] for detail in story.questions[-1].details if detail.key == "commit.runs"]
    assert told == ([hook] if hook else [])
    await story.close()
