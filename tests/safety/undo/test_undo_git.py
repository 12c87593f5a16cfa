"""Undo beside a git repository: nothing in it is touched, nothing in it is trusted, and what moves in it is said."""

import hashlib
from pathlib import Path

import pytest
from playground import Playground, keys


def insides(folder: Path) -> dict[str, str]:
    """Every file of a repository, with the bytes it has."""
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
    assert await ground.not_covered() == {"undo.index"}
    await ground.there_and_back(before)


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


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("git commit -qam more", {"undo.head", "undo.index"}),
        ("git checkout -qb other", {"undo.head"}),
        ("git checkout -qf HEAD~1", {"undo.head", "undo.index"}),
        ("git tag v1", {"undo.refs"}),
        ("git stash -q", {"undo.refs"}),
        ("git add a.py", {"undo.index"}),
        ("git status", set[str]()),
        ("git diff; git log", set[str]()),
        ("git gc -q", set[str]()),
    ],
)
async def test_what_moves_inside_git_is_said(ground: Playground, command: str, expected: set[str]) -> None:
    ground.put("a.py", "zero\n")
    ground.commit_all()
    ground.put("a.py", "one\n")
    ground.commit_all()
    ground.put("a.py", "two\n")
    ground.next_turn()
    await ground.do("write_file", path="other.txt", content="so that there is something to undo")
    # A status or diff rewrites the index to remember a file's new time; that is no change worth a word.
    await ground.shell(f"touch a.py; {command}")
    assert await ground.not_covered() == expected


async def test_a_moved_head_is_named(ground: Playground) -> None:
    ground.put("a.py", "one\n")
    ground.commit_all()
    ground.next_turn()
    await ground.shell("git checkout -qb other && echo two > a.py && git commit -qam two")
    (head,) = [one for one in (await ground.undo.preview()).not_covered if one.key == "undo.head"]
    old, _, new = str(head.values["names"]).partition(" → ")
    assert old == f"main {ground.git('rev-parse', 'main')[:7]}"
    assert new == f"other {ground.git('rev-parse', 'other')[:7]}"


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
    assert await ground.not_covered() == {"undo.git_gone"}
    await ground.undo.restore()
    assert ground.picture() == before


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
    # Checked out anew, so that git has converted each of them.
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


async def test_a_turn_that_only_moved_something_inside_git_is_not_passed_over(ground: Playground) -> None:
    ground.next_turn()
    await ground.do("write_file", path="a.py", content="one\n")
    ground.commit_all()
    last = ground.next_turn()
    await ground.shell("git checkout -qb other")
    outcome = await ground.undo.restore()
    assert outcome.turn == last
    assert outcome.changed == ()
    assert keys(outcome.not_covered) == {"undo.head"}
    assert (await ground.undo.preview()).turn < last
