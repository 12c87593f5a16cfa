"""The user's work after a turn is never lost by an undo."""

import pytest
from playground import Playground

from duckflow.state.changes import UndoScope


async def changed_by_both(ground: Playground) -> None:
    """Changes two files as Duckflow, then one of them as the user."""
    ground.fill({"a.txt": "as it was\n", "b.txt": "as it was\n"})
    ground.next_turn()
    await ground.do("edit_file", path="a.txt", old="as it was", new="by Duckflow")
    await ground.shell("echo by a command > b.txt; echo new > c.txt")
    ground.put("a.txt", "by the user\n")


async def test_a_file_that_the_user_changed_since_stays_and_the_others_are_undone(ground: Playground) -> None:
    await changed_by_both(ground)
    after = ground.picture()
    (conflict,) = (await ground.undo.preview()).conflicts
    assert (conflict.key, conflict.values) == ("undo.conflict", {"path": "a.txt"})
    assert (await ground.undo.restore()).conflicts == (conflict,)
    assert (ground.folder / "a.txt").read_text() == "by the user\n"
    assert (ground.folder / "b.txt").read_text() == "as it was\n"
    assert not (ground.folder / "c.txt").exists()
    await ground.undo.restore(back=False)
    assert ground.picture() == after


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
    turned = ground.picture()
    ground.run(undoes)
    users = {path: what for path, what in ground.picture().items() if turned.get(path) != what}
    outcome = await ground.undo.restore()
    assert outcome.conflicts
    assert users.items() <= ground.picture().items()


async def test_work_that_does_not_touch_the_turns_changes_is_no_conflict(ground: Playground) -> None:
    ground.fill({"a.txt": "as it was\n", "folder/x.txt": "x\n"})
    ground.next_turn()
    await ground.shell("echo changed > a.txt; mkdir made; echo x > made/by-command.txt; rm -r folder")
    ground.run("chmod 600 a.txt; echo mine > made/mine.txt; mkdir folder; echo y > folder/y.txt")
    outcome = await ground.undo.restore()
    assert (ground.folder / "a.txt").read_text() == "as it was\n"
    assert (ground.folder / "a.txt").stat().st_mode & 0o777 == 0o600
    assert (ground.folder / "made/mine.txt").read_text() == "mine\n"
    assert not (ground.folder / "made/by-command.txt").exists()
    assert [(phrase.key, phrase.values["names"]) for phrase in outcome.not_covered] == [("undo.folder_kept", "made")]
    assert sorted(path.name for path in (ground.folder / "folder").iterdir()) == ["x.txt", "y.txt"]


async def test_a_change_that_the_user_has_taken_back_already_is_left_alone(ground: Playground) -> None:
    ground.fill({"a.txt": "as it was\n", "b.txt": "as it was\n"})
    before = ground.picture()
    ground.next_turn()
    await ground.shell("echo x > a.txt; echo x > b.txt")
    ground.put("a.txt", "as it was\n")
    outcome = await ground.undo.restore()
    assert outcome.changed == ("b.txt",)
    assert ground.picture() == before


async def test_a_redo_does_not_lose_work_from_after_the_undo(ground: Playground) -> None:
    ground.put("a.txt", "0\n")
    ground.next_turn()
    await ground.shell("echo 1 > a.txt")
    await ground.undo.restore()
    ground.put("a.txt", "by the user\n")
    assert (await ground.undo.restore(back=False)).conflicts
    assert (ground.folder / "a.txt").read_text() == "by the user\n"


async def test_a_folder_swapped_for_a_link_is_not_written_through(ground: Playground) -> None:
    outside = ground.home / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("not ours\n")
    ground.fill({"folder/a.txt": "as it was\n", "folder/b.txt": "as it was\n"})
    ground.next_turn()
    await ground.shell("echo x > folder/a.txt; rm folder/b.txt")
    ground.run(f"mv folder kept && ln -s {outside} folder")
    outcome = await ground.undo.restore()
    # The file that was moved away with its folder is followed there.
    assert outcome.changed == ("kept/a.txt",)
    assert [phrase.values["path"] for phrase in outcome.conflicts] == ["folder/b.txt"]
    assert (ground.folder / "kept/a.txt").read_text() == "as it was\n"
    assert [path.name for path in outside.iterdir()] == ["a.txt"]
    assert (outside / "a.txt").read_text() == "not ours\n"


@pytest.mark.parametrize("edited_first", [False, True])
async def test_a_moved_file_that_others_changed_since_goes_back_with_their_lines(
    ground: Playground, edited_first: bool
) -> None:
    ground.put("old.txt", "1\n2\n3\n")
    mover = ground.next_turn()
    await ground.do("move_file", source="old.txt", target="new.txt")
    if edited_first:
        await ground.do("edit_file", path="new.txt", old="1", new="one")
    editor = ground.next_turn()
    await ground.do("edit_file", path="new.txt", old="3", new="three")
    outcome = await ground.undo.restore(scope=UndoScope(turn=mover))
    assert outcome.conflicts == ()
    assert (ground.folder / "old.txt").read_text() == "1\n2\nthree\n" and not (ground.folder / "new.txt").exists()
    await ground.undo.restore(scope=UndoScope(turn=editor))
    assert (ground.folder / "old.txt").read_text() == "1\n2\n3\n" and not (ground.folder / "new.txt").exists()


@pytest.mark.parametrize("mover", ["the user", "a turn"])
async def test_a_change_is_taken_back_where_the_file_was_moved(ground: Playground, mover: str) -> None:
    ground.put("old.txt", "1\n2\n3\n")
    editor = ground.next_turn()
    await ground.do("edit_file", path="old.txt", old="1", new="one")
    await ground.shell("true")
    ground.next_turn()
    if mover == "the user":
        ground.run("mv old.txt new.txt")
    else:
        await ground.shell("mkdir there && mv old.txt there/new.txt && mv there/new.txt .")
    outcome = await ground.undo.restore(scope=UndoScope(turn=editor))
    assert (outcome.changed, outcome.conflicts) == (("new.txt",), ())
    assert {name: data for name, (_, _, data) in ground.picture().items() if name != "there"} == {
        "new.txt": b"1\n2\n3\n"
    }


async def test_the_same_line_or_mode_changed_back_by_another_is_an_overlap(ground: Playground) -> None:
    ground.fill({"a": "0\n", "b": b"\x000"})
    turns = list[int]()
    for text, mode in (("1", "755"), ("0", "644"), ("1", "755")):
        turns.append(ground.next_turn())
        await ground.shell(f"echo {text} > a; printf '\\000{text}' > b; chmod {mode} a")
    after = ground.picture()
    outcome = await ground.undo.restore(scope=UndoScope(turn=turns[0]))
    assert {str(phrase.values["path"]) for phrase in outcome.conflicts} == {"a", "b"}
    assert ground.picture() == after


async def test_lines_that_others_removed_since_do_not_come_back(ground: Playground) -> None:
    maker = ground.next_turn()
    await ground.do("write_file", path="a.txt", content="a\n")
    remover = ground.next_turn()
    await ground.do("delete_file", path="a.txt")
    assert (await ground.undo.restore(scope=UndoScope(turn=maker))).conflicts
    await ground.undo.restore(scope=UndoScope(turn=remover))
    assert (ground.folder / "a.txt").exists()
    await ground.undo.restore(scope=UndoScope(turn=maker))
    assert not (ground.folder / "a.txt").exists()


async def test_files_come_back_into_a_folder_that_is_gone_meanwhile(ground: Playground) -> None:
    maker = ground.next_turn()
    await ground.shell("mkdir -p new/deep && chmod 700 new && echo made > new/deep/by_the_maker.txt")
    ground.put("new/deep/by_the_user.txt", "by the user\n")
    remover = ground.next_turn()
    await ground.shell("rm new/deep/by_the_user.txt; mv new/deep/by_the_maker.txt .")
    await ground.undo.restore(scope=UndoScope(turn=maker))
    ground.run("rm -rf new by_the_maker.txt")
    outcome = await ground.undo.restore(scope=UndoScope(turn=remover, paths=("new/deep/by_the_user.txt",)))
    assert outcome.conflicts == ()
    assert ground.picture() == {
        "new": ("folder", 0o700, b""),
        "new/deep": ("folder", 0o755, b""),
        "new/deep/by_the_user.txt": ("file", 0o644, b"by the user\n"),
    }


async def test_a_file_in_the_place_of_a_folder_stops_only_what_lay_in_that_folder(ground: Playground) -> None:
    ground.fill({"a/b.txt": "as it was\n", "c.txt": "as it was\n"})
    ground.next_turn()
    await ground.shell("rm -r a c.txt")
    ground.put("a", "by the user\n")
    outcome = await ground.undo.restore()
    assert {str(phrase.values["path"]) for phrase in outcome.conflicts} == {"a", "a/b.txt"}
    assert (ground.folder / "a").read_text() == "by the user\n"
    assert (ground.folder / "c.txt").read_text() == "as it was\n"


async def test_a_folder_with_others_files_does_not_go_for_a_file(ground: Playground) -> None:
    ground.fill({"a": "as it was\n", "c.txt": "as it was\n"})
    ground.next_turn()
    await ground.shell("rm a c.txt && mkdir -p a/b && echo made > a/b/made.txt")
    ground.put("a/b/mine.txt", "by the user\n")
    outcome = await ground.undo.restore()
    assert {str(phrase.values["path"]) for phrase in outcome.conflicts} == {"a"}
    assert (ground.folder / "a/b/mine.txt").read_text() == "by the user\n"
    assert (ground.folder / "c.txt").read_text() == "as it was\n"


@pytest.mark.parametrize("content", ["text\n", b"\0bytes"])
@pytest.mark.parametrize("mode_first", [True, False])
async def test_mode_and_content_by_different_turns_do_not_overlap(
    ground: Playground, content: str | bytes, mode_first: bool
) -> None:
    ground.put("a", content)
    begin = ground.picture()
    commands = ["chmod 755 a", "printf more >> a"] if mode_first else ["printf more >> a", "chmod 755 a"]
    turns = list[int]()
    for command in commands:
        turns.append(ground.next_turn())
        await ground.shell(command)
    outcome = await ground.undo.restore(scope=UndoScope(turn=turns[0]))
    assert (outcome.changed, outcome.conflicts) == (("a",), ())
    assert ground.picture() != begin
    outcome = await ground.undo.restore(scope=UndoScope(turn=turns[1]))
    assert (outcome.changed, outcome.conflicts) == (("a",), ())
    assert ground.picture() == begin


async def test_what_the_user_took_back_already_is_not_done_again(ground: Playground) -> None:
    ground.put("old.txt", "as it was\n")
    ground.next_turn()
    await ground.shell("mv old.txt new.txt; echo made > made.txt")
    ground.run("rm new.txt")
    assert sorted((await ground.undo.restore()).changed) == ["made.txt", "old.txt"]
    await ground.undo.restore(back=False)
    assert set(ground.picture()) == {"made.txt"}


@pytest.mark.parametrize("command", ["sed -i 2d a", "sed -i 2s/.*/new/ a", "chmod 755 a"])
async def test_a_new_file_of_the_same_name_does_not_get_lines_of_the_old_one(ground: Playground, command: str) -> None:
    ground.put("a", "1\n2\n3\n")
    first = ground.next_turn()
    await ground.shell(command)
    ground.next_turn()
    await ground.shell("rm a")
    ground.next_turn()
    await ground.shell("echo 4 > a; chmod 755 a")
    after = ground.picture()
    outcome = await ground.undo.restore(scope=UndoScope(turn=first))
    assert (outcome.changed, len(outcome.conflicts)) == ((), 1)
    assert ground.picture() == after
