"""Undo in repositories within, around and of unusual kinds."""

from pathlib import Path

import pytest
from playground import Playground, keys


async def test_a_repository_inside_is_covered(ground: Playground) -> None:
    ground.put("a.py", "one\n")
    ground.commit_all()
    ground.put("vendor/inner/b.py", "one\n")
    ground.put("vendor/inner/node_modules/x.js", "made anew at will\n")
    ground.run("cd vendor/inner && git init -q -b main && git add b.py && git commit -qm inner")
    before = ground.picture()
    ground.next_turn()
    await ground.shell("cd vendor/inner && echo two > b.py && git commit -qam two && rm -r node_modules")
    preview = await ground.undo.preview()
    assert keys(preview.not_covered) == {"undo.ignored"}
    (ignored,) = [phrase for phrase in preview.not_covered if phrase.key == "undo.ignored"]
    assert ignored.values == {"count": 1, "names": "vendor/inner/node_modules"}
    await ground.undo.restore()
    del before["vendor/inner/node_modules"], before["vendor/inner/node_modules/x.js"]
    assert ground.picture() == before


async def test_a_submodule_is_covered(ground: Playground, tmp_path: Path) -> None:
    other = Playground(tmp_path / "other")
    other.put("lib.py", "one\n")
    other.commit_all()
    ground.put("a.py", "one\n")
    ground.commit_all()
    ground.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other.folder), "lib")
    ground.git("commit", "-qm", "with a submodule")
    before = ground.picture()
    ground.next_turn()
    await ground.shell("echo two > lib/lib.py && echo three > a.py && cd lib && git commit -qam two")
    assert await ground.not_covered() == set()
    await ground.there_and_back(before)


async def test_a_linked_work_tree_is_covered(ground: Playground, tmp_path: Path) -> None:
    ground.put("a.py", "one\n")
    ground.commit_all()
    ground.git("worktree", "add", "-q", str(tmp_path / "linked"))
    linked = Playground(tmp_path, folder=tmp_path / "linked")
    before = linked.picture()
    linked.next_turn()
    await linked.shell("echo two > a.py && git commit -qam two")
    assert await linked.not_covered() == {"undo.head", "undo.index"}
    await linked.there_and_back(before)


async def test_a_work_folder_inside_a_repository_is_covered(ground: Playground) -> None:
    ground.fill(
        {".gitignore": "*.log\n/part/out/\n", "part/a.py": "one\n", "part/x.log": "log\n", "part/out/x": "made\n"}
    )
    ground.commit_all()
    part = Playground(ground.folder.parent, folder=ground.folder / "part")
    before = part.picture()
    part.next_turn()
    await part.shell("echo two > a.py; echo more >> x.log; rm -r out; git commit -qam 'from below'")
    preview = await part.undo.preview()
    assert keys(preview.not_covered) == {"undo.ignored", "undo.head", "undo.index"}
    (ignored,) = [phrase for phrase in preview.not_covered if phrase.key == "undo.ignored"]
    assert ignored.values == {"count": 1, "names": "out"}
    await part.undo.restore()
    assert part.picture()["a.py"] == before["a.py"]


@pytest.mark.parametrize(
    "setup",
    ["git init -q --object-format=sha256", "git init -q && git config core.splitIndex true", "git init -q --bare .git"],
    ids=["sha256", "split index", "no work tree"],
)
async def test_unusual_repositories_are_covered(ground: Playground, setup: str) -> None:
    ground.run(setup)
    ground.fill({"a.py": "one\n", ".gitignore": "*.log\n", "x.log": "log\n"})
    ground.run("git add -A && git commit -qm all || true")
    before = ground.picture()
    ground.next_turn()
    await ground.shell("echo two > a.py; mkdir new; mv .gitignore new/")
    await ground.there_and_back(before)


async def test_a_damaged_repository_does_no_harm(ground: Playground) -> None:
    ground.put("a.py", "one\n")
    ground.commit_all()
    (ground.folder / ".git/index").write_bytes(b"garbage")
    (ground.folder / ".git/HEAD").write_bytes(b"\xff\xfe nonsense")
    (ground.folder / ".git/config").write_text("[broken")
    before = ground.picture()
    ground.next_turn()
    await ground.shell("echo two > a.py")
    await ground.there_and_back(before)
