"""Undo when Duckflow dies in the middle of something."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from playground import Playground

from duckflow.errors import DuckflowError
from duckflow.state.changes import UndoScope

DIES = """
    import asyncio, os, subprocess, sys
    from pathlib import Path
    from duckflow.safety.undo.settings import UndoSettings
    from duckflow.safety.undo.undo import Undo
    from duckflow.safety.workspace import Workspace
    from duckflow.state.changes import WorkAuthor

    work, data = map(Path, sys.argv[1:])

    async def main():
        undo = Undo(Workspace(work), data, UndoSettings(), "s1")
        async with undo.{around}:
            {deed}
            os._exit(9)

    asyncio.run(main())
"""


def die(ground: Playground, around: str, deed: str) -> None:
    """Works as Duckflow in another process, which dies without a chance to say anything."""
    run_to_death(ground, textwrap.dedent(DIES).format(around=around, deed=deed))
    ground.next_turn()


def run_to_death(ground: Playground, script: str) -> None:
    died = subprocess.run([sys.executable, "-c", script, ground.folder, ground.data], env=os.environ, check=False)
    assert died.returncode == 9


async def test_a_crash_before_the_change_means_nothing_happened(ground: Playground) -> None:
    ground.put("a.txt", "as it was\n")
    die(ground, 'change(WorkAuthor(1), ["a.txt"])', "pass")
    with pytest.raises(DuckflowError, match=r"undo\.nothing"):
        await ground.undo.diff()


async def test_after_a_crash_the_change_can_be_undone_but_is_asked_about(ground: Playground) -> None:
    ground.put("a.txt", "as it was\n")
    deed = '(work / "a.txt").write_text("changed"); (work / "new").mkdir()'
    die(ground, 'change(WorkAuthor(1), ["a.txt", "new/b.txt"])', deed)
    preview = await ground.undo.preview()
    assert preview.maybe_yours[0].values["names"] == "a.txt, new"
    await ground.undo.restore()
    assert (ground.folder / "a.txt").read_text() == "as it was\n"
    assert not (ground.folder / "new").exists()
    await ground.undo.restore(back=False)
    assert (ground.folder / "a.txt").read_text() == "changed"


async def test_a_crash_during_a_command_that_deletes_everything_is_undone(ground: Playground) -> None:
    ground.fill({f"src/{number}.py": f"print({number})\n" for number in range(20)})
    ground.commit_all()
    ground.put("untracked.txt", "mine\n")
    before = ground.picture()
    deed = 'subprocess.run(["bash", "-c", "find . -mindepth 1 -delete"], cwd=work, check=True)'
    die(ground, "command(WorkAuthor(1))", deed)
    assert ground.picture() == {}
    preview = await ground.undo.preview()
    assert {phrase.key for phrase in preview.not_covered} == set()
    assert preview.maybe_yours
    await ground.undo.restore()
    assert ground.picture() == before


async def test_the_users_work_after_the_crash_is_not_lost(ground: Playground) -> None:
    ground.put("a.txt", "as it was\n")
    die(ground, "command(WorkAuthor(1))", '(work / "a.txt").write_text("by the command")')
    ground.put("mine.txt", "written after the crash\n")
    ground.run("echo by the user >> a.txt")
    after = ground.picture()
    assert (await ground.undo.preview()).nothing_else
    await ground.undo.restore(only_own=True)
    assert ground.picture() == after


async def test_the_next_command_is_measured_from_where_the_crash_left_the_folder(ground: Playground) -> None:
    ground.put("a.txt", "as it was\n")
    die(ground, "command(WorkAuthor(1))", '(work / "a.txt").write_text("by the command")')
    crashed = ground.picture()
    ground.next_turn()
    await ground.shell("echo second > b.txt")
    assert (await ground.undo.diff(UndoScope(turn=1))).impacts
    await ground.undo.restore()
    assert ground.picture() == crashed


async def test_a_command_that_fails_or_is_cancelled_is_covered_all_the_same(ground: Playground) -> None:
    ground.put("a.txt", "as it was\n")
    before = ground.picture()
    ground.next_turn()
    try:
        await ground.shell("echo half > a.txt; exit 3")
    except subprocess.CalledProcessError as failed:
        assert failed.returncode == 3
    await ground.there_and_back(before)


async def test_a_large_file_moved_by_a_command_that_died_is_not_lost(tmp_path: Path) -> None:
    ground = Playground(tmp_path)
    ground.put("other.txt", "0\n")
    os.truncate(ground.put("huge.bin", b"head"), 100 * 1024 * 1024)
    deed = '(work / "there").mkdir(); (work / "huge.bin").rename(work / "there/huge.bin")'
    die(ground, "command(WorkAuthor(1))", deed)
    outcome = await ground.undo.restore()
    assert "undo.large" in {phrase.key for phrase in outcome.not_covered}
    assert (ground.folder / "there/huge.bin").stat().st_size == 100 * 1024 * 1024


DIES_UNDOING = """
    import asyncio, os, sys, threading, time
    from pathlib import Path
    from duckflow.safety.undo.settings import UndoSettings
    from duckflow.safety.undo.undo import Undo
    from duckflow.safety.workspace import Workspace
    from duckflow.state.changes import WorkAuthor

    work, data = map(Path, sys.argv[1:])

    def die():
        while not (work / "d4/204.txt").exists():
            time.sleep(0.001)
        os._exit(9)

    threading.Thread(target=die).start()
    asyncio.run(Undo(Workspace(work), data, UndoSettings(), "s1").restore())
"""


async def test_after_a_crash_in_the_middle_of_an_undo_the_next_one_finishes_it(ground: Playground) -> None:
    ground.fill({f"d{number % 10}/{number}.txt": f"{number}\n" for number in range(400)})
    before = ground.picture()
    ground.next_turn()
    await ground.shell("rm -r *")
    after = ground.picture()
    run_to_death(ground, textwrap.dedent(DIES_UNDOING))
    assert after != ground.picture() != before
    await ground.undo.restore()
    assert ground.picture() == before
    await ground.undo.restore(back=False)
    assert ground.picture() == after
