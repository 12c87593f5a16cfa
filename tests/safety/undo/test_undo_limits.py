"""People are told what undo does not cover: ignored, large, unreadable, too many files. The kept data have a limit."""

import os
import time
from pathlib import Path

import pytest
from playground import Playground

from duckflow.errors import DuckflowError
from duckflow.safety.undo.undo import Undo
from duckflow.safety.workspace import Workspace
from duckflow.state.changes import UndoScope
from duckflow.state.data import Phrase

MB = 1024 * 1024


async def known(ground: Playground, turn: int) -> bool:
    try:
        return bool(await ground.undo.diff(UndoScope(turn=turn)))
    except DuckflowError:
        return False


async def said(ground: Playground) -> dict[str, Phrase]:
    return {phrase.key: phrase for phrase in (await ground.undo.preview()).not_covered}


async def test_ignored_files_that_a_command_changed_are_counted_and_named(ground: Playground) -> None:
    ground.fill({".gitignore": "*.log\nbuild/\n.env\n", "a.txt": "a\n", ".env": "KEY=1\n", "x.log": "x\n"})
    ground.fill({f"build/{number}.o": "object\n" for number in range(10)})
    ground.commit_all()
    ground.next_turn()
    await ground.shell("echo b > a.txt; echo KEY=2 > .env; rm build/1.o; echo > build/new.o; touch build/2.o")
    phrase = (await said(ground))["undo.ignored"]
    assert phrase.values == {"count": 2, "names": ".env, build"}
    await ground.undo.restore()
    assert (ground.folder / "a.txt").read_text() == "a\n"
    assert (ground.folder / ".env").read_text() == "KEY=2\n"


async def test_a_command_that_leaves_ignored_files_alone_says_nothing(ground: Playground) -> None:
    ground.fill({".gitignore": "*.log\n", "a.txt": "a\n", "x.log": "x\n", "node_modules/x/y.js": "y\n"})
    ground.commit_all()
    ground.next_turn()
    await ground.shell("cat x.log > a.txt")
    assert await said(ground) == {}


async def test_a_file_that_stops_being_ignored_does_not_count_as_new(ground: Playground) -> None:
    ground.fill({".gitignore": ".env\nout/\n", ".env": "KEY=1\n", "out/x": "x\n"})
    before = ground.picture()
    ground.next_turn()
    await ground.shell("rm .gitignore")
    assert [impact.path for impact in (await ground.undo.preview()).impacts] == [".gitignore"]
    await ground.there_and_back(before)


async def test_a_file_that_begins_to_be_ignored_is_still_covered(ground: Playground) -> None:
    ground.fill({"a.txt": "a\n", "out/x": "x\n"})
    before = ground.picture()
    ground.next_turn()
    await ground.shell("printf 'a.txt\\nout/\\n' > .gitignore; echo b > a.txt; rm out/x")
    await ground.there_and_back(before)


async def test_large_files_are_named_and_never_touched(tmp_path: Path) -> None:
    ground = Playground(tmp_path, largest_file_mb=1)
    ground.fill({"big.bin": os.urandom(2 * MB), "small.txt": "small\n", "victim.bin": os.urandom(2 * MB)})
    ground.next_turn()
    await ground.shell("echo x >> big.bin; echo x > small.txt; head -c 3M /dev/urandom > made.bin; rm victim.bin")
    after = ground.picture()
    phrases = await said(ground)
    assert phrases["undo.large"].values == {"count": 3, "names": "big.bin, made.bin, victim.bin"}
    assert phrases.keys() == {"undo.large"}
    outcome = await ground.undo.restore()
    assert outcome.changed == ("small.txt",)
    assert {phrase.key for phrase in outcome.not_covered} == {"undo.large"}
    assert (ground.folder / "small.txt").read_text() == "small\n"
    await ground.undo.restore(back=False)
    assert ground.picture() == after


async def test_a_large_file_that_was_moved_stays_and_is_named(tmp_path: Path) -> None:
    ground = Playground(tmp_path, largest_file_mb=1)
    ground.fill({"big.bin": os.urandom(2 * MB), "other.bin": os.urandom(2 * MB), "small.txt": "small\n"})
    ground.next_turn()
    await ground.do("move_file", source="big.bin", target="deep/down/big.bin")
    await ground.shell("mkdir there; mv other.bin there/; echo x > small.txt")
    after = ground.picture()
    phrases = await said(ground)
    assert phrases["undo.large"].values == {
        "count": 4,
        "names": "big.bin, deep/down/big.bin, other.bin, there/other.bin",
    }
    outcome = await ground.undo.restore()
    assert (ground.folder / "small.txt").read_text() == "small\n"
    assert {"undo.large", "undo.folder_kept"} == {phrase.key for phrase in outcome.not_covered}
    await ground.undo.restore(back=False)
    assert ground.picture() == after


async def test_a_huge_file_is_not_read(ground: Playground) -> None:
    """Makes two gigabytes that take no room on the disk: nothing may read them."""
    ground.put("small.txt", "small\n")
    os.truncate(ground.put("huge.bin", b""), 2 * 1024 * MB)
    ground.next_turn()
    await ground.do("delete_file", path="huge.bin")
    assert (await said(ground)).keys() == {"undo.large"}
    assert ground.data.stat().st_size < MB


async def test_too_many_files_are_reported_and_own_changes_still_undone(tmp_path: Path) -> None:
    ground = Playground(tmp_path, files=50)
    ground.fill({f"{number}.txt": "x\n" for number in range(60)})
    ground.next_turn()
    before = ground.picture()
    await ground.shell("rm 1.txt")
    await ground.do("delete_file", path="2.txt")
    phrase = (await said(ground))["undo.too_many"]
    assert phrase.values["count"] == 50
    assert "2.txt" in (await ground.undo.restore()).changed
    assert ground.picture() | {"1.txt": before["1.txt"]} == before


async def test_a_folder_with_too_many_files_is_named_when_duckflow_deletes_it(tmp_path: Path) -> None:
    ground = Playground(tmp_path, files=50)
    ground.fill({f"many/{number}.txt": "x\n" for number in range(60)})
    ground.next_turn()
    await ground.do("delete_file", path="many", recursive=True)
    assert (await said(ground))["undo.too_many"].values == {"count": 50, "names": "many"}


async def test_more_data_than_may_be_copied_are_reported(tmp_path: Path) -> None:
    ground = Playground(tmp_path, copied_mb=1)
    ground.fill({f"{number}.bin": os.urandom(MB // 2) for number in range(5)})
    ground.next_turn()
    await ground.shell("rm *.bin")
    assert (await said(ground))["undo.unkept"].values["count"] == 3
    assert len((await ground.undo.restore()).changed) == 2


async def test_unwatched_ignored_folders_are_named(tmp_path: Path) -> None:
    ground = Playground(tmp_path, watched_files=10)
    ground.fill({f"node_modules/pack{number}/x.js": "x\n" for number in range(30)})
    ground.put("a.txt", "a\n")
    ground.next_turn()
    await ground.shell("echo b > a.txt; rm -r node_modules/pack*/; printf x > .gitignore")
    assert "undo.ignored" in await said(ground)
    ground.next_turn()
    ground.fill({f"node_modules/pack{number}/x.js": "x\n" for number in range(30)})
    await ground.shell("echo c > a.txt; echo y >> node_modules/pack29/x.js; echo y >> node_modules/pack1/x.js")
    assert (await said(ground))["undo.blind"].values["names"] == "node_modules"


async def test_special_files_are_named_and_do_not_hang(ground: Playground) -> None:
    ground.put("a.txt", "a\n")
    ground.run("mkfifo pipe")
    ground.next_turn()
    await ground.shell("echo b > a.txt; mkfifo another")
    assert (await said(ground))["undo.special"].values["names"] == "another"
    assert (await ground.undo.restore()).changed == ("a.txt",)
    assert (ground.folder / "another").is_fifo()


async def test_unreadable_files_are_named(ground: Playground) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    ground.fill({"a.txt": "a\n", "secret.txt": "s\n", "closed/x.txt": "x\n"})
    ground.run("chmod 0 secret.txt; chmod 0 closed")
    ground.next_turn()
    await ground.shell("echo b > a.txt; rm -f secret.txt")
    assert (await said(ground))["undo.unkept"].values["names"] == "secret.txt"
    assert (await ground.undo.restore()).changed == ("a.txt",)
    ground.run("chmod 700 closed")


async def test_without_git_on_the_machine_commands_are_still_undone(
    ground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground.fill({"a.txt": "a\n", "src/b.txt": "b\n"})
    ground.commit_all()
    ground.put("node_modules/x.js", "x\n")
    before = ground.picture()
    monkeypatch.setenv("PATH", str(ground.home))
    ground.restart()
    ground.next_turn()
    async with ground.command():
        (ground.folder / "a.txt").write_text("changed\n")
        (ground.folder / "src/b.txt").unlink()
        (ground.folder / "node_modules/x.js").unlink()
    assert (await said(ground))["undo.ignored"].values["names"] == "node_modules"
    (ground.folder / "node_modules/x.js").write_text("x\n")
    await ground.there_and_back(before)


async def test_old_turns_are_forgotten_and_people_are_told(tmp_path: Path) -> None:
    ground = Playground(tmp_path, kept_turns=3)
    for number in range(6):
        ground.next_turn()
        await ground.do("write_file", path=f"{number}.txt", content=f"{number}\n")
    assert (await ground.undo.diff(UndoScope(turn=4))).impacts
    assert (await said(ground))["undo.forgotten"].values == {"turn": 3}
    with pytest.raises(DuckflowError, match=r"undo\.forgotten_turn"):
        await ground.undo.diff(UndoScope(turn=2))
    for _ in range(3):
        await ground.undo.restore()
    assert sorted(ground.picture()) == ["0.txt", "1.txt", "2.txt"]


async def test_the_kept_data_stay_within_their_limit(tmp_path: Path) -> None:
    ground = Playground(tmp_path, kept_mb=3)
    ground.put("a.bin", os.urandom(MB))
    for number in range(8):
        ground.next_turn()
        await ground.shell(f"head -c 1M /dev/urandom > a.bin; echo {number} > b.txt")
    turns = [turn for turn in range(1, 9) if await known(ground, turn)]
    assert len(turns) < 4
    await ground.undo.close()
    assert sum(path.stat().st_size for path in ground.data.rglob("*") if path.is_file()) < 5 * MB
    ground.restart()
    before = ground.picture()
    for _ in turns:
        await ground.undo.restore()
    for _ in turns:
        await ground.undo.restore(back=False)
    assert ground.picture() == before


@pytest.mark.slow
async def test_ten_thousand_files_are_undone(ground: Playground) -> None:
    ground.fill({f"d{number // 100}/{number}": f"{number}\n" for number in range(10_000)})
    before = ground.picture()
    ground.next_turn()
    await ground.shell("rm -r d*")
    assert len((await ground.undo.preview()).impacts) == 10_100
    await ground.undo.restore()
    assert ground.picture() == before


async def test_the_data_may_lie_inside_the_work_folder(tmp_path: Path) -> None:
    ground = Playground(tmp_path, folder=tmp_path)
    ground.put("a.txt", "a\n")
    ground.next_turn()
    await ground.shell("echo b > a.txt")
    assert (await ground.undo.restore()).changed == ("a.txt",)
    assert (ground.folder / "a.txt").read_text() == "a\n"


async def test_private_places_in_the_work_folder_are_not_copied(ground: Playground) -> None:
    ground.fill({".ssh/id": "key\n", "a.txt": "a\n"})
    ground.undo = Undo(Workspace(ground.folder, private=[ground.folder / ".ssh"]), ground.data, ground.settings, "s1")
    ground.next_turn()
    await ground.shell("echo b > a.txt; echo other > .ssh/id")
    assert (await ground.undo.restore()).changed == ("a.txt",)
    assert (ground.folder / ".ssh/id").read_text() == "other\n"


@pytest.mark.parametrize(
    "path", ["__pycache__/a.pyc", ".pytest_cache/v/last", "src/.mypy_cache/x", ".eslintcache", "web/.parcel-cache/1"]
)
async def test_a_cache_that_a_command_filled_is_no_lost_work(ground: Playground, path: str) -> None:
    ground.fill({".gitignore": ".eslintcache\n.parcel-cache\n", "a.txt": "a\n", path: "old\n"})
    ground.commit_all()
    ground.put("node_modules/x.js", "x\n")
    ground.next_turn()
    await ground.shell(f"echo b > a.txt; echo new > {path}; echo new > {Path(path).parent}/more.pyc")
    assert "undo.ignored" not in await said(ground)
    ground.next_turn()
    await ground.shell("echo c > a.txt; rm -r node_modules")
    assert (await said(ground))["undo.ignored"].values["names"] == "node_modules"


@pytest.mark.parametrize(
    "path", [".coverage", "htmlcov/index.html", "junit-1.xml", "run.log", "dist/a.js", "duck.egg-info/SOURCES.txt"]
)
@pytest.mark.parametrize("is_new", [False, True])
async def test_a_report_that_each_run_writes_is_not_told(ground: Playground, path: str, is_new: bool) -> None:
    ground.fill(
        {".gitignore": f"{path}\n.env\n", "a.txt": "a\n", ".env": "KEY=1\n"} | ({} if is_new else {path: "old\n"})
    )
    ground.commit_all()
    ground.next_turn()
    await ground.shell(f"echo b > a.txt; mkdir -p $(dirname {path}); echo new > {path}; echo KEY=2 > .env")
    assert (await said(ground))["undo.ignored"].values == {"count": 1, "names": ".env"}


async def test_planning_takes_as_long_as_there_are_files(ground: Playground) -> None:
    """The record of the work is read once, not for each of its files."""
    seconds = list[float]()
    for count in (150, 1200):
        ground.fill({f"{count}/{number}.txt": f"{number}\n" for number in range(count)})
        ground.next_turn()
        await ground.shell(f"rm -r {count}")
        began = time.process_time()
        await ground.undo.preview()
        seconds.append(time.process_time() - began)
    assert seconds[1] < 24 * seconds[0]
