"""Duckflow's own changes, several turns, and diffs of them."""

import pytest
from playground import Playground

from duckflow.errors import DuckflowError, ToolError
from duckflow.state.changes import UndoScope


async def test_every_kind_of_own_change_is_undone_and_redone(ground: Playground) -> None:
    ground.fill(
        {
            "edited.py": "one\r\ntwo\r\n".encode("cp932"),
            "日本語.txt": "古い文です。\n".encode("cp932"),
            "moved.py": "moves\n",
            "gone.bin": bytes(range(256)),
            "folder/a.py": "a\n",
            "folder/sub/b.py": "b\n",
            "removed/.git/HEAD": "even a repository\n",
            "removed/ignored.log": "and what it ignores\n",
        }
    )
    (ground.folder / "gone.bin").chmod(0o751)
    (ground.folder / "link").symlink_to("edited.py")
    before = ground.picture()
    ground.next_turn()
    await ground.do("edit_file", path="edited.py", old="two", new="three")
    await ground.do("edit_file", path="日本語.txt", old="古い", new="新しい")
    await ground.do("write_file", path="new/deep/file.txt", content="made\n")
    await ground.do("make_folder", path="empty/folder")
    await ground.do("move_file", source="moved.py", target="elsewhere/moved.py")
    await ground.do("move_file", source="folder", target="renamed")
    await ground.do("delete_file", path="gone.bin")
    await ground.do("delete_file", path="removed", recursive=True)
    await ground.do("edit_file", path="link", old="three", new="four")
    assert (ground.folder / "edited.py").read_bytes() == b"one\r\nfour\r\n"
    await ground.there_and_back(before)
    await ground.undo.restore()
    assert (ground.folder / "removed/.git/HEAD").read_text() == "even a repository\n"


async def test_a_file_that_a_turn_made_and_removed_again_is_no_change(ground: Playground) -> None:
    ground.next_turn()
    await ground.do("write_file", path="a.txt", content="for a moment\n")
    await ground.do("delete_file", path="a.txt")
    with pytest.raises(DuckflowError, match=r"undo\.nothing"):
        await ground.undo.preview()


async def test_changes_and_commands_of_a_turn_belong_together(ground: Playground) -> None:
    ground.put("a.py", "one\n")
    ground.commit_all()
    before = ground.picture()
    ground.next_turn()
    await ground.do("edit_file", path="a.py", old="one", new="two")
    await ground.shell("sed -i s/two/three/ a.py && cp a.py b.py")
    await ground.do("edit_file", path="b.py", old="three", new="four")
    await ground.shell("rm a.py")
    preview = await ground.undo.diff()
    assert {(impact.path, impact.change) for impact in preview.impacts} == {("a.py", "delete"), ("b.py", "create")}
    await ground.there_and_back(before)


async def test_turns_are_undone_one_after_the_other_and_redone_in_order(ground: Playground) -> None:
    pictures = [ground.picture()]
    for number in range(4):
        ground.next_turn()
        await ground.do("write_file", path=f"{number}.txt", content="mine\n")
        await ground.shell(f"echo {number} >> shared.txt")
        pictures.append(ground.picture())
    for picture in pictures[-2::-1]:
        ground.restart()
        await ground.undo.restore()
        assert ground.picture() == picture
    with pytest.raises(DuckflowError, match=r"undo\.nothing"):
        await ground.undo.restore()
    for picture in pictures[1:]:
        ground.restart()
        await ground.undo.restore(back=False)
        assert ground.picture() == picture
    with pytest.raises(DuckflowError, match=r"undo\.nothing_to_redo"):
        await ground.undo.restore(back=False)
    with pytest.raises(DuckflowError, match=r"undo\.unknown_turn"):
        await ground.undo.diff(UndoScope(turn=99))


async def test_a_preview_shows_what_an_undo_does_and_a_diff_what_the_turn_did(ground: Playground) -> None:
    ground.fill({"a.py": "one\ntwo\nthree\n", "old.py": "same\n", "data.bin": b"\0\1", "run.sh": "#!/bin/sh\n"})
    ground.put("cp932.txt", "一行目\r\n".encode("cp932"))
    (ground.folder / "link").symlink_to("a.py")
    ground.next_turn()
    await ground.do("edit_file", path="a.py", old="two", new="2\n2½")
    await ground.shell("mv old.py new.py; printf '\\0' > data.bin; chmod +x run.sh; ln -sf run.sh link; mkdir folder")
    await ground.do("edit_file", path="cp932.txt", old="一行目", new="一行目\n二行目")
    did = await ground.undo.diff()
    assert did.turn == 1
    assert {(impact.path, impact.change, impact.added, impact.removed) for impact in did.impacts} == {
        ("a.py", "edit", 2, 1),
        ("old.py", "move", 0, 0),
        ("new.py", "create", 0, 0),
        ("data.bin", "edit", 0, 0),
        ("run.sh", "edit", 0, 0),
        ("link", "edit", 0, 0),
        ("folder/", "folder", 0, 0),
        ("cp932.txt", "edit", 1, 0),
    }
    for part in (
        "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2½\n three",
        "--- a/cp932.txt\n+++ b/cp932.txt\n@@ -1 +1,2 @@\n 一行目\n+二行目",
        "--- a/data.bin\n+++ b/data.bin\n@@ 2 B → 1 B @@",
        "+++ b/link → run.sh",
        "rename from old.py\nrename to new.py",
        "old mode 644\nnew mode 755",
        "+++ b/folder/",
    ):
        assert part in did.diff
    back = await ground.undo.preview()
    assert "--- a/a.py\n+++ b/a.py\n@@ -1,4 +1,3 @@\n one\n-2\n-2½\n+two\n three" in back.diff
    assert ("folder/", "delete") in {(impact.path, impact.change) for impact in back.impacts}
    assert "rename from new.py\nrename to old.py" in back.diff
    assert not back.conflicts
    assert not back.not_covered
    await ground.undo.restore()
    assert "+2\n+2½" in (await ground.undo.preview(back=False)).diff
    assert (await ground.undo.diff(UndoScope(turn=1))).diff == did.diff


async def test_names_cannot_fool_the_eye(ground: Playground) -> None:
    ground.next_turn()
    await ground.do("write_file", path="a\u202egpj.exe", content="one\x1b[31m\n")
    await ground.do("write_file", path="line\nbreak", content="x\n")
    preview = await ground.undo.diff()
    assert {impact.path for impact in preview.impacts} == {"a\\u202egpj.exe", "line\\nbreak"}
    assert "\x1b" not in preview.diff
    assert "\u202e" not in preview.diff


async def test_a_long_diff_is_cut_and_many_files_are_only_named(ground: Playground) -> None:
    ground.settings = ground.settings.model_copy(update={"diff_lines": 20, "compared_files": 3})
    ground.restart()
    ground.next_turn()
    await ground.shell("for n in 1 2 3 4 5; do seq 100 > $n.txt; done")
    preview = await ground.undo.diff()
    assert [impact.added for impact in preview.impacts] == [100, 100, 100, 0, 0]
    assert len(preview.diff.splitlines()) == 21
    assert preview.diff.splitlines()[-1].startswith("… +")


async def test_a_change_that_could_not_be_undone_is_not_made(ground: Playground) -> None:
    ground.put("a.txt", "as it was\n")
    ground.data.write_text("a file where the data should go")
    ground.next_turn()
    with pytest.raises(ToolError) as refused:
        await ground.do("delete_file", path="a.txt")
    assert refused.value.key == "undo.unavailable"
    with pytest.raises(ToolError):
        await ground.shell("rm a.txt")
    assert (ground.folder / "a.txt").read_text() == "as it was\n"
    with pytest.raises(DuckflowError, match=r"undo\.unusable"):
        await ground.undo.restore()


async def test_changes_work_while_undo_is_switched_off(ground: Playground) -> None:
    ground.settings = ground.settings.model_copy(update={"enabled": False})
    ground.data.write_text("a file where the data should go")
    ground.restart()
    ground.next_turn()
    await ground.do("write_file", path="a.txt", content="made\n")
    await ground.shell("rm a.txt")
    with pytest.raises(DuckflowError, match=r"undo\.off"):
        await ground.undo.restore()


async def test_a_file_that_replaced_a_moved_one_does_not_go_with_it(ground: Playground) -> None:
    ground.fill({"a.txt": "a\n", "b.txt": "b\n"})
    ground.next_turn()
    await ground.shell("mv a.txt moved.txt")
    ground.next_turn()
    await ground.shell("mv b.txt moved.txt")
    outcome = await ground.undo.restore(scope=UndoScope(turn=1))
    assert {phrase.values["path"] for phrase in outcome.conflicts} == {"a.txt", "moved.txt"}
    assert {name: data for name, (_, _, data) in ground.picture().items()} == {"moved.txt": b"b\n"}
    await ground.undo.restore(scope=UndoScope(turn=2))
    await ground.undo.restore(scope=UndoScope(turn=1))
    assert {name: data for name, (_, _, data) in ground.picture().items()} == {"a.txt": b"a\n", "b.txt": b"b\n"}


async def test_a_move_over_another_file_leaves_no_copy_behind_where_somebody_went_on(ground: Playground) -> None:
    ground.fill({"a.txt": "a\n", "b.txt": "b\n"})
    ground.next_turn()
    await ground.shell("mv a.txt b.txt")
    ground.next_turn()
    await ground.shell("mv b.txt c.txt")
    after = ground.picture()
    assert (await ground.undo.restore(scope=UndoScope(turn=1))).conflicts
    assert {name: data for name, (_, _, data) in ground.picture().items() if data == b"a\n"} == {"c.txt": b"a\n"}
    await ground.undo.restore(scope=UndoScope(turn=1), back=False)
    assert ground.picture() == after


async def test_a_copy_beside_a_moved_file_is_not_taken_for_it(ground: Playground) -> None:
    ground.put("a.txt", "1\n2\n3\n")
    ground.next_turn()
    await ground.shell("sed -i s/1/new/ a.txt")
    ground.next_turn()
    await ground.shell("cp a.txt b.txt; mv a.txt c.txt")
    await ground.undo.restore(scope=UndoScope(turn=1))
    assert (ground.folder / "b.txt").read_text() == "new\n2\n3\n"
    assert (ground.folder / "c.txt").read_text() == "1\n2\n3\n"
