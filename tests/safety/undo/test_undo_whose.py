"""A person's changes while a command runs are reported, and stay when nobody asks to undo them."""

from pathlib import Path

import pytest
from playground import Playground

from duckflow.safety.commands.parse import named_targets


async def both_at_work(ground: Playground) -> None:
    """Lets a command write one file; meanwhile the user writes and makes others."""
    ground.fill({"made.txt": "0\n", "notes.txt": "0\n"})
    ground.next_turn()
    async with ground.command(text="sleep 1; make > made.txt"):
        ground.put("made.txt", "by the command\n")
        ground.put("notes.txt", "by the user\n")


async def test_other_changes_while_a_command_ran_are_reported(ground: Playground) -> None:
    await both_at_work(ground)
    preview = await ground.undo.preview()
    (phrase,) = preview.maybe_yours
    assert (phrase.key, phrase.values) == ("undo.maybe_yours", {"count": 1, "names": "notes.txt"})
    assert not preview.nothing_else
    await ground.undo.restore()
    assert not (await ground.undo.preview(back=False)).maybe_yours


async def test_files_that_the_command_is_known_to_write_are_not_doubted(ground: Playground) -> None:
    ground.fill({"a.txt": "0\n", "folder/b.txt": "0\n", "notes.txt": "0\n"})
    ground.next_turn()
    async with ground.command(text="rm -r a.txt ./folder"):
        ground.run("rm -r a.txt folder")
        ground.put("notes.txt", "by the user\n")
        ground.put("new/mine.txt", "by the user\n")
    preview = await ground.undo.preview()
    assert not preview.nothing_else
    assert preview.maybe_yours[0].values["names"] == "new, new/mine.txt, notes.txt"
    outcome = await ground.undo.restore(only_own=True)
    assert sorted(outcome.changed) == ["a.txt", "folder", "folder/b.txt"]
    assert [(phrase.key, phrase.values["count"]) for phrase in outcome.not_covered] == [("undo.spared", 3)]
    assert (ground.folder / "notes.txt").read_text() == "by the user\n"
    assert (ground.folder / "a.txt").read_text() == "0\n"
    after = ground.picture()
    await ground.undo.restore(back=False)
    assert (ground.folder / "notes.txt").read_text() == "by the user\n"
    await ground.undo.restore(only_own=True)
    assert ground.picture() == after


async def test_duckflows_own_changes_are_not_doubted(ground: Playground) -> None:
    ground.put("a.txt", "one\n")
    ground.next_turn()
    await ground.do("edit_file", path="a.txt", old="one", new="two")
    assert not (await ground.undo.preview()).maybe_yours


async def test_the_users_work_between_two_changes_of_a_turn_stays(ground: Playground) -> None:
    ground.put("a.txt", "one\n")
    ground.next_turn()
    await ground.do("edit_file", path="a.txt", old="one", new="two")
    ground.put("a.txt", "two\nby the user\n")
    await ground.do("edit_file", path="a.txt", old="two", new="three")
    assert not (await ground.undo.preview()).maybe_yours
    await ground.undo.restore(only_own=True)
    assert (ground.folder / "a.txt").read_text() == "one\nby the user\n"


@pytest.mark.parametrize(
    ("command", "targets"),
    [
        ("rm -r a folder/b", ["a", "folder/b"]),
        ("mv a.txt b.txt", ["a.txt", "b.txt"]),
        ("cp a.txt b.txt", ["b.txt"]),
        ("echo 'x; y' > out.txt", ["out.txt"]),
        ("cat notes.txt >> out.txt", ["out.txt"]),
        ("sed -i s/a/b/ a.txt", ["s/a/b", "a.txt"]),
        ("sed -n p notes.txt > out", ["out"]),
        ("pytest tests/test_a.py", []),
        ("rm $FILE", []),
        ("rm *.txt", ["one.txt"]),
        ("cd below && rm a.txt; make > log", ["below/a.txt", "below/log"]),
        ("cd $there && rm a.txt", []),
        ("rm a.txt\npytest", ["a.txt"]),
        ('rm "$(cat list)"', []),
        ("(rm a.txt) | tee b.txt", ["a.txt", "b.txt"]),
        ("", []),
    ],
)
def test_the_paths_that_a_command_writes_are_known(command: str, targets: list[str], tmp_path: Path) -> None:
    (tmp_path / "one.txt").touch()
    named = [str(Path(path).relative_to(tmp_path)) for path in named_targets(command, tmp_path)]
    assert named == targets
