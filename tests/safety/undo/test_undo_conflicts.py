"""What the user did after a turn is never lost to an undo."""

import pytest
from playground import Playground

from duckflow.errors import DuckflowError


async def changed_by_both(ground: Playground) -> None:
    """Duckflow changed two files; then the user changed one of them."""
    ground.fill({"a.txt": "as it was\n", "b.txt": "as it was\n"})
    ground.next_turn()
    await ground.do("edit_file", path="a.txt", old="as it was", new="by Duckflow")
    await ground.shell("echo by a command > b.txt; echo new > c.txt")
    ground.put("a.txt", "by the user\n")


async def test_an_undo_that_would_lose_the_users_work_does_nothing(ground: Playground) -> None:
    await changed_by_both(ground)
    before = ground.picture()
    (conflict,) = (await ground.undo.preview_undo()).conflicts
    assert (conflict.key, conflict.values) == ("undo.conflict", {"path": "a.txt"})
    outcome = await ground.undo.undo()
    assert not outcome.done
    assert outcome.conflicts == (conflict,)
    assert ground.picture() == before


async def test_the_other_files_can_be_undone(ground: Playground) -> None:
    await changed_by_both(ground)
    after = ground.picture()
    outcome = await ground.undo.undo(on_conflict="skip")
    assert outcome.done
    assert [one.values["path"] for one in outcome.conflicts] == ["a.txt"]
    assert (ground.folder / "a.txt").read_text() == "by the user\n"
    assert (ground.folder / "b.txt").read_text() == "as it was\n"
    assert not (ground.folder / "c.txt").exists()
    assert (await ground.undo.redo()).done
    assert ground.picture() == after


async def test_what_is_overwritten_on_purpose_comes_back_with_redo(ground: Playground) -> None:
    await changed_by_both(ground)
    after = ground.picture()
    assert (await ground.undo.undo(on_conflict="overwrite")).done
    assert (ground.folder / "a.txt").read_text() == "as it was\n"
    ground.restart()
    assert (await ground.undo.redo()).done
    assert ground.picture() == after
    assert (ground.folder / "a.txt").read_text() == "by the user\n"


@pytest.mark.parametrize(
    ("does", "undoes"),
    [
        ("rm a.txt", "echo new one > a.txt"),
        ("rm a.txt", "mkdir a.txt && echo x > a.txt/x"),
        ("rm a.txt", "ln -s b.txt a.txt"),
        ("echo x > new.txt", "echo more >> new.txt"),
        ("echo x > new.txt", "rm new.txt && mkdir new.txt"),
        ("chmod +x a.txt", "chmod 600 a.txt"),
        ("ln -s a.txt link", "ln -sf b.txt link"),
        ("rm -r folder", "echo a file now > folder"),
        ("mv folder other", "ln -s b.txt folder"),
    ],
)
async def test_the_users_later_work_is_a_conflict(ground: Playground, does: str, undoes: str) -> None:
    ground.fill({"a.txt": "as it was\n", "b.txt": "b\n", "folder/x.txt": "x\n"})
    ground.next_turn()
    await ground.shell(does)
    ground.run(undoes)
    after = ground.picture()
    outcome = await ground.undo.undo()
    assert outcome.conflicts
    assert not outcome.done
    assert ground.picture() == after


async def test_work_that_does_not_touch_the_turns_is_no_conflict(ground: Playground) -> None:
    ground.fill({"a.txt": "as it was\n", "folder/x.txt": "x\n"})
    ground.next_turn()
    await ground.shell("echo changed > a.txt; mkdir made; echo x > made/by-command.txt; rm -r folder")
    ground.run("chmod 600 a.txt; echo mine > made/mine.txt; mkdir folder; echo y > folder/y.txt")
    outcome = await ground.undo.undo()
    assert outcome.done
    assert (ground.folder / "a.txt").read_text() == "as it was\n"
    assert (ground.folder / "a.txt").stat().st_mode & 0o777 == 0o600
    assert (ground.folder / "made/mine.txt").read_text() == "mine\n"
    assert not (ground.folder / "made/by-command.txt").exists()
    assert [(one.key, one.values["names"]) for one in outcome.not_covered] == [("undo.folder_kept", "made")]
    assert sorted(path.name for path in (ground.folder / "folder").iterdir()) == ["x.txt", "y.txt"]


async def test_what_the_user_has_put_right_already_is_left_alone(ground: Playground) -> None:
    ground.fill({"a.txt": "as it was\n", "b.txt": "as it was\n"})
    before = ground.picture()
    ground.next_turn()
    await ground.shell("echo x > a.txt; echo x > b.txt")
    ground.put("a.txt", "as it was\n")
    outcome = await ground.undo.undo()
    assert outcome.changed == ("b.txt",)
    assert ground.picture() == before


async def test_an_earlier_turn_is_not_undone_over_a_later_one(ground: Playground) -> None:
    ground.put("a.txt", "0\n")
    first = ground.next_turn()
    await ground.shell("echo 1 > a.txt")
    ground.next_turn()
    await ground.shell("echo 2 > a.txt")
    assert not (await ground.undo.undo(first)).done
    assert (ground.folder / "a.txt").read_text() == "2\n"


async def test_a_redo_does_not_lose_what_came_after_the_undo(ground: Playground) -> None:
    ground.put("a.txt", "0\n")
    ground.next_turn()
    await ground.shell("echo 1 > a.txt")
    await ground.undo.undo()
    ground.put("a.txt", "by the user\n")
    assert not (await ground.undo.redo()).done
    assert (ground.folder / "a.txt").read_text() == "by the user\n"
    assert (await ground.undo.redo(on_conflict="overwrite")).done
    assert (ground.folder / "a.txt").read_text() == "1\n"
    await ground.undo.undo()
    assert (ground.folder / "a.txt").read_text() == "by the user\n"


async def test_when_one_file_cannot_be_brought_back_all_stays_as_it_is(ground: Playground) -> None:
    ground.fill({f"{number}.txt": f"{number}\n" for number in range(5)})
    ground.next_turn()
    await ground.shell("for n in 0 1 2 3 4; do echo x > $n.txt; done; rm 3.txt; mkdir new")
    ground.run("mkdir 3.txt; echo mine > 3.txt/mine")
    after = ground.picture()
    with pytest.raises(DuckflowError) as failed:
        await ground.undo.undo(on_conflict="overwrite")
    assert failed.value.key == "undo.failed"
    assert failed.value.values["path"] == "3.txt"
    assert ground.picture() == after
    assert not (await ground.undo.undo()).done
    ground.run("rm -r 3.txt")
    assert (await ground.undo.undo()).done


async def test_a_folder_swapped_for_a_link_is_not_written_through(ground: Playground) -> None:
    outside = ground.home / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("not ours\n")
    ground.fill({"folder/a.txt": "as it was\n", "folder/b.txt": "as it was\n"})
    ground.next_turn()
    await ground.shell("echo x > folder/a.txt; rm folder/b.txt")
    ground.run(f"mv folder kept && ln -s {outside} folder")
    for policy in ("refuse", "skip", "overwrite"):
        try:
            await ground.undo.undo(on_conflict=policy)
        except DuckflowError as problem:
            assert problem.key == "undo.failed"
    assert [path.name for path in outside.iterdir()] == ["a.txt"]
    assert (outside / "a.txt").read_text() == "not ours\n"
