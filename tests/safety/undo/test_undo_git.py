"""Undo and git: commits, branches and staged files come back, and no program of the repository runs."""

import hashlib
from pathlib import Path

import pytest
from playground import Playground, keys


def insides(folder: Path) -> dict[str, str]:
    """Returns every file of a repository, with its bytes."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): f"{path.stat().st_mtime_ns} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files}


async def test_work_thrown_away_by_git_checkout_comes_back(ground: Playground) -> None:
    ground.fill({"a.py": "one\n", "b.py": "one\n", "c.py": "one\n"})
    ground.commit_all()
    ground.fill({"a.py": "two\n", "b.py": "two\n"})
    ground.git("add", "b.py")
    ground.put("b.py", "three\n")
    ground.put("untracked.txt", "mine\n")
    before = ground.picture()
    ground.next_turn()
    await ground.shell("git checkout -q . && git clean -fdq && git reset -q --hard")
    assert (ground.folder / "a.py").read_text() == "one\n"
    assert await ground.not_covered() == set()
    await ground.there_and_back(before)
    await ground.undo.restore()
    assert ground.git("diff", "--cached", "--name-only") == "b.py\n", "what was staged is staged again"


async def test_the_users_repository_stays_as_it_is_byte_by_byte(ground: Playground) -> None:
    ground.fill({"a.py": "one\n", "b/c.py": "two\n"})
    ground.commit_all()
    ground.put("a.py", "changed\n")
    ground.git("add", "a.py")
    before = insides(ground.folder / ".git")
    for command in ("sed -i s/changed/again/ a.py", "rm -r b", "echo new > new.py"):
        ground.next_turn()
        await ground.shell(command)
    await ground.undo.restore()
    await ground.undo.restore()
    await ground.undo.restore(back=False)
    assert insides(ground.folder / ".git") == before


def history(ground: Playground) -> str:
    """Returns what is checked out and staged, and every branch, tag and stash; it fails where an object of them is
    missing."""
    ground.git("fsck", "--full", "--strict")
    questions = ("for-each-ref", "stash list", "log --all --format=%H%T", "ls-files --stage", "rev-parse HEAD")
    told = [ground.git(*question.split()) for question in questions]
    return "".join([(ground.folder / ".git/HEAD").read_text(), *told])


DEEDS = (
    ("git commit -qam more"),
    ("git commit -q --amend -am other"),
    ("git checkout -qb other"),
    ("git checkout -qf HEAD~1"),
    ("git tag v1; git tag -d old"),
    ("git stash -q"),
    ("git stash drop -q"),
    ("git add a.py"),
    ("git branch -D side"),
    ("git reset -q --hard HEAD~1 && git reflog expire --expire=now --all && git gc -q --prune=now"),
    ("git checkout -q . && git rebase -q --root"),
    ("git checkout -q . && git merge -q --no-ff -m merged side"),
    ("git checkout -q . && git cherry-pick side || git status"),
    ("git pack-refs --all && git update-ref -d refs/tags/old"),
    ("git worktree add -q ../linked"),
    ("rm -rf .git/refs .git/HEAD .git/index .git/logs"),
    ("find .git -type f ! -name '*.pack' ! -name '*.idx' -delete"),
    ("chmod -R u+w .git/objects; for f in .git/objects/??/*; do echo broken > $f; done"),
    ("echo x > .git/hooks/pre-commit; git config core.pager 'touch /tmp/x'"),
    ("echo /nowhere > .git/objects/info/alternates"),
)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
@pytest.mark.parametrize("deed", DEEDS)
async def test_changes_of_a_command_to_git_are_taken_back(ground: Playground, deed: str, packed: bool) -> None:
    ground.put("a.py", "zero\n")
    ground.commit_all()
    ground.run("git checkout -qb side && echo s > s.py && git add s.py && git commit -qm side && git checkout -q main")
    ground.put("a.py", "one\n")
    ground.commit_all()
    ground.run("git tag old && echo kept > a.py && git stash -q")
    if packed:
        ground.run("git gc -q")
    ground.run("echo staged > b.py && git add b.py && echo two > a.py")
    before, picture = history(ground), ground.picture()
    ground.next_turn()
    await ground.shell(f"touch a.py; {deed} || true")
    assert await ground.not_covered() == set()
    outcome = await ground.undo.restore()
    assert outcome.changed and not outcome.conflicts
    assert history(ground) == before and ground.picture() == picture
    ground.restart()
    await ground.undo.restore(back=False)
    await ground.undo.restore()
    assert history(ground) == before and ground.picture() == picture


@pytest.mark.parametrize("command", ["git status", "git diff; git log", "touch a.py; git status"])
async def test_reading_with_git_is_no_change(ground: Playground, command: str) -> None:
    """A status or diff rewrites the index to remember a file's new time, which is no change."""
    ground.put("a.py", "zero\n")
    ground.commit_all()
    ground.next_turn()
    await ground.do("write_file", path="other.txt", content="so that there is something to undo")
    await ground.shell(f"touch a.py; {command}")
    assert [impact.path for impact in (await ground.undo.preview()).impacts] == ["other.txt"]


async def test_commits_of_the_user_made_since_are_not_taken_back(ground: Playground) -> None:
    ground.put("a.py", "zero\n")
    ground.commit_all()
    ground.next_turn()
    await ground.shell("echo one > a.py; echo new > b.py; git add b.py; git commit -qam one")
    ground.put("mine.py", "mine\n")
    ground.commit_all()
    after = history(ground)
    outcome = await ground.undo.restore()
    assert [str(phrase.values["path"]) for phrase in outcome.conflicts] == [".git"]
    assert history(ground) == after, "the objects of the turn's commit stay, since the user's commit needs them"
    assert (ground.folder / "a.py").read_text() == "zero\n"


async def test_a_git_status_by_the_user_is_no_conflict(ground: Playground) -> None:
    ground.put("a.py", "zero\n")
    ground.commit_all()
    ground.put("a.py", "one\n")
    before = history(ground)
    ground.next_turn()
    await ground.shell("git add a.py")
    ground.run("touch a.py; git status")
    outcome = await ground.undo.restore()
    assert outcome.changed == (".git",) and not outcome.conflicts
    assert history(ground) == before


async def test_a_moved_head_is_shown(ground: Playground) -> None:
    ground.put("a.py", "one\n")
    ground.commit_all()
    old = ground.git("rev-parse", "HEAD").strip()
    ground.next_turn()
    await ground.shell("git checkout -qb other && echo two > a.py && git commit -qam two")
    preview = await ground.undo.preview()
    assert [impact.path for impact in preview.impacts] == [".git", "a.py"]
    assert "-ref: refs/heads/other\n+ref: refs/heads/main" in preview.diff and "a/.git/refs/heads/other" in preview.diff
    await ground.undo.restore()
    assert ground.git("rev-parse", "HEAD").strip() == old
    assert ground.git("branch", "--format=%(refname:short)") == "main\n"


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "loose"])
async def test_a_command_that_deletes_all_with_the_repository_is_undone(ground: Playground, packed: bool) -> None:
    ground.fill({f"folder/{number}.txt": f"file {number}\n" * number for number in range(50)})
    ground.commit_all()
    if packed:
        ground.git("gc", "-q")
    before = ground.picture()
    ground.next_turn()
    await ground.shell("find . -mindepth 1 -delete")
    assert list(ground.folder.iterdir()) == []
    ground.restart()
    assert await ground.not_covered() == ({"undo.packs"} if packed else set())
    await ground.undo.restore()
    assert ground.picture() == before
    if not packed:
        assert ground.git("status", "--porcelain") == ""
        ground.git("fsck", "--full", "--strict")


async def test_objects_that_the_user_prunes_are_not_missed(ground: Playground) -> None:
    ground.put("a.py", "first\n")
    ground.commit_all()
    ground.put("a.py", "staged once\n")
    ground.git("add", "a.py")
    ground.next_turn()
    await ground.shell("true")
    ground.git("reset", "-q")
    ground.git("gc", "-q", "--prune=now")
    before = ground.picture()
    await ground.shell("echo lost > a.py")
    await ground.there_and_back(before)


ATTRIBUTES = "*.crlf text eol=crlf\n*.id ident\n*.secret filter=rot\n*.wide text working-tree-encoding=UTF-16LE\n"


async def test_bytes_are_exact_where_git_converts_them(ground: Playground) -> None:
    rot = "tr a-zA-Z n-za-mN-ZA-M"
    (ground.home / ".gitconfig").write_text(
        f'[core]\n\tautocrlf = true\n[filter "rot"]\n\tclean = {rot}\n\tsmudge = {rot}\n\trequired = true\n'
    )
    ground.fill(
        {
            ".gitattributes": ATTRIBUTES,
            "windows.txt": b"one\r\ntwo\r\n",
            "unix.txt": b"one\ntwo\n",
            "mixed.txt": b"one\r\ntwo\n",
            "a.crlf": b"one\r\ntwo\r\n",
            "a.id": b"$Id$\n",
            "a.secret": b"plain text\n",
            "a.wide": "wide\n".encode("utf-16-le"),
        }
    )
    ground.commit_all()
    # The files are checked out anew, so that git has converted each of them.
    ground.run("rm -f *.* && git checkout -q . && git status")
    assert b"$Id: " in (ground.folder / "a.id").read_bytes()
    assert (ground.folder / "unix.txt").read_bytes() == b"one\r\ntwo\r\n"
    before = ground.picture()
    ground.next_turn()
    await ground.shell("for file in *.*; do echo more >> $file; done; rm a.id windows.txt; git checkout -q unix.txt")
    await ground.there_and_back(before)


async def test_no_program_of_the_repository_is_run(ground: Playground) -> None:
    trap = ground.home / "sprung"
    ground.put(".gitattributes", "* filter=trap diff=trap\n")
    ground.commit_all()
    ground.put("a.txt", "one\n")
    for name, value in (
        ("filter.trap.clean", f"touch {trap}; cat"),
        ("filter.trap.process", f"touch {trap}"),
        ("diff.trap.textconv", f"touch {trap}"),
        ("core.fsmonitor", f"touch {trap}"),
        ("core.pager", f"touch {trap}"),
        ("core.hooksPath", str(ground.home / "hooks")),
        ("alias.ls-files", f"!touch {trap}"),
    ):
        ground.git("config", name, value)
    hook = ground.home / "hooks/post-index-change"
    hook.parent.mkdir()
    hook.write_text(f"#!/bin/sh\ntouch {trap}\n")
    hook.chmod(0o755)
    before = ground.picture()
    ground.next_turn()
    await ground.shell("echo two > a.txt; rm .gitattributes")
    await ground.there_and_back(before)
    assert not trap.exists()


async def test_a_turn_that_only_changed_something_inside_git_is_not_skipped(ground: Playground) -> None:
    ground.next_turn()
    await ground.do("write_file", path="a.py", content="one\n")
    ground.commit_all()
    last = ground.next_turn()
    await ground.shell("git checkout -qb other")
    outcome = await ground.undo.restore()
    assert outcome.turn == last
    assert outcome.changed == (".git",)
    assert keys(outcome.not_covered) == set()
    assert (await ground.undo.preview()).turn < last
