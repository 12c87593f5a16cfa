"""Several things at once: background jobs, other sessions, an event loop that must not stand still."""

import asyncio
import contextlib
from collections import Counter

import pytest
from playground import Playground

from benchmarks.undo_at_once import tell
from duckflow.errors import DuckflowError
from duckflow.state.changes import UndoScope, WorkAuthor


async def test_a_background_command_and_a_later_turn_are_undone_separately(ground: Playground) -> None:
    ground.fill({"job.txt": "0\n", "chat.txt": "0\n", "shell.txt": "0\n"})
    job = ground.next_turn()
    async with ground.undo.command(ground.author):
        ground.put("job.txt", "by the job\n")
        chat = ground.next_turn()
        await ground.do("edit_file", path="chat.txt", old="0", new="by the chat")
        ground.put("job.txt", "by the job, later\n")
    by_job, by_chat = [(await ground.undo.diff(UndoScope(turn=turn))).impacts for turn in (job, chat)]
    assert [impact.path for impact in by_job] == ["job.txt"]
    assert [impact.path for impact in by_chat] == ["chat.txt"]
    await ground.undo.restore()
    await ground.undo.restore()
    assert {data for _, _, data in ground.picture().values()} == {b"0\n"}


async def written_side_by_side(ground: Playground) -> tuple[UndoScope, UndoScope]:
    """Runs a job's command and one of a later turn at the same time; each writes a file of its own."""
    ground.fill({"job.txt": "0\n", "chat.txt": "0\n"})
    async with ground.undo.command(WorkAuthor(1, "j", "s")), ground.undo.command(WorkAuthor(2)):
        ground.put("job.txt", "by the job\n")
        ground.put("chat.txt", "by the chat\n")
    return UndoScope(turn=2), UndoScope(job="j")


async def test_what_two_commands_at_once_may_have_written_is_taken_back_for_both(ground: Playground) -> None:
    turn, job = await written_side_by_side(ground)
    after = ground.picture()
    outcome = await ground.undo.restore(scope=turn)
    assert outcome.changed == () and ground.picture() == after
    assert {(phrase.key, phrase.values["path"]) for phrase in outcome.conflicts} == {
        ("undo.shared", "job.txt"),
        ("undo.shared", "chat.txt"),
    }
    assert sorted((await ground.undo.restore(scope=job)).changed) == ["chat.txt", "job.txt"]
    assert {data for _, _, data in ground.picture().values()} == {b"0\n"}
    for _ in range(2):
        await ground.undo.restore(back=False)
        assert ground.picture() == after
    assert (await ground.undo.restore(scope=job)).changed == ()


async def test_one_file_of_two_commands_at_once_is_taken_back_by_its_name(ground: Playground) -> None:
    await written_side_by_side(ground)
    assert (await ground.undo.restore(scope=UndoScope(paths=("chat.txt",)))).changed == ("chat.txt",)
    assert {name: data for name, (_, _, data) in ground.picture().items()} == {
        "job.txt": b"by the job\n",
        "chat.txt": b"0\n",
    }


async def test_what_a_job_wrote_beside_the_users_own_command_stays(ground: Playground) -> None:
    ground.put("a.txt", "0\n")
    async with ground.undo.command(WorkAuthor(1, "j", "s")), ground.undo.watch():
        ground.put("a.txt", "by one of them\n")
    (conflict,) = (await ground.undo.restore(scope=UndoScope(job="j"))).conflicts
    assert conflict.key == "undo.shared"
    assert (ground.folder / "a.txt").read_text() == "by one of them\n"


async def test_a_command_left_running_is_named(ground: Playground) -> None:
    ground.next_turn()
    async with ground.command(left_running="npm run dev"):
        ground.put("a.txt", "made\n")
    (phrase,) = (await ground.undo.preview()).not_covered
    assert (phrase.key, phrase.values["names"]) == ("undo.background", "npm run dev")


async def test_an_undo_while_a_command_runs_is_not_taken_for_the_commands_doing(ground: Playground) -> None:
    ground.put("a.txt", "0\n")
    ground.next_turn()
    await ground.shell("echo 1 > a.txt")
    second = ground.next_turn()
    async with ground.command():
        await ground.undo.restore()
        ground.put("b.txt", "by the command\n")
    assert [impact.path for impact in (await ground.undo.diff(UndoScope(turn=second))).impacts] == ["b.txt"]


async def test_what_a_running_command_did_stays_its_own_when_others_work_is_taken_back(ground: Playground) -> None:
    lines = [f"{number}\n" for number in range(40)]
    ground.put("a.txt", "".join(lines))
    job, turn = WorkAuthor(1, "j", "s"), WorkAuthor(2)
    async with ground.undo.command(job):
        async with ground.undo.change(turn, ["a.txt"]):
            ground.put("a.txt", "".join(["by the turn\n", *lines[1:]]))
        ground.put("a.txt", "".join(["by the turn\n", *lines[1:-1], "by the job\n"]))
        ground.put("b.txt", "by the job\n")
        await ground.undo.restore(scope=UndoScope(turn=2))
        assert (ground.folder / "a.txt").read_text() == "".join([*lines[:-1], "by the job\n"])
    outcome = await ground.undo.restore(scope=UndoScope(job="j"))
    assert sorted(outcome.changed) == ["a.txt", "b.txt"]
    assert {name: data for name, (_, _, data) in ground.picture().items()} == {"a.txt": "".join(lines).encode()}


async def test_the_users_own_command_beside_a_running_one_is_not_taken_back(ground: Playground) -> None:
    ground.fill({"job.txt": "0\n", "mine.txt": "0\n"})
    async with ground.undo.command(WorkAuthor(1, "j", "s")):
        ground.put("job.txt", "by the job\n")
        async with ground.undo.watch():
            ground.run("echo by the user > mine.txt")
    await ground.undo.restore(scope=UndoScope(job="j"))
    assert {name: data for name, (_, _, data) in ground.picture().items()} == {
        "job.txt": b"0\n",
        "mine.txt": b"by the user\n",
    }


async def test_two_sessions_in_one_folder_do_not_disturb_each_other(ground: Playground) -> None:
    ground.fill({"a.txt": "0\n", "b.txt": "0\n"})
    first = ground.undo
    ground.next_turn()
    async with first.command(WorkAuthor(1)):
        ground.put("a.txt", "by the first\n")
        second = ground.restart("s2")
        ground.next_turn()
        await ground.do("edit_file", path="b.txt", old="0", new="by the second")
    assert [impact.path for impact in (await first.diff()).impacts] == ["a.txt"]
    assert [impact.path for impact in (await second.diff()).impacts] == ["b.txt"]
    await first.restore()
    assert (ground.folder / "b.txt").read_text() == "by the second\n"
    with pytest.raises(DuckflowError, match=r"undo\.nothing"):
        await first.restore()
    await second.restore()


async def test_a_command_begun_during_a_change_does_not_forget_what_was_there_before_it(ground: Playground) -> None:
    ground.fill({".gitignore": ".env\n", ".env": "KEY=1\n"})
    first = ground.undo
    ground.next_turn()
    async with first.change(WorkAuthor(1), [".env"]):
        ground.put(".env", "KEY=2\n")
        ground.restart("s2")
        ground.next_turn()
        await ground.shell("true")
    assert (await first.restore()).changed == (".env",)
    assert (ground.folder / ".env").read_text() == "KEY=1\n"


async def test_the_event_loop_goes_on_meanwhile(ground: Playground) -> None:
    ground.fill({f"{number}.txt": f"{number}\n" for number in range(1000)})
    ground.next_turn()
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    async with ground.command():
        assert ticks > 10
    ticking.cancel()


async def test_a_cancelled_turn_still_notes_what_was_done(ground: Playground) -> None:
    ground.put("a.txt", "as it was\n")
    ground.next_turn()
    started = asyncio.Event()

    async def work() -> None:
        async with ground.command():
            ground.put("a.txt", "half done\n")
            started.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await ground.undo.restore()).changed == ("a.txt",)
    assert (ground.folder / "a.txt").read_text() == "as it was\n"


async def at_once(ground: Playground, *texts: str) -> list[UndoScope]:
    """Runs commands at the same time, each in a turn of its own; returns the scopes of the turns."""
    async with contextlib.AsyncExitStack() as windows:
        for number, text in enumerate(texts, 1):
            await windows.enter_async_context(ground.undo.command(WorkAuthor(number), text=text))
        for text in texts:
            ground.run(text)
    return [UndoScope(turn=number) for number, _ in enumerate(texts, 1)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("echo 1 >> a.txt; mkdir -p new/deep; echo 1 > new/deep/x.txt", "sed -i 's/^0$/2/' b.txt; rm c.txt"),
        ("mv a.txt moved.txt", "cp b.txt copy.txt; chmod 700 c.txt"),
        ("echo 1 > a.txt", "sh -c 'echo 2 > b.txt; rm c.txt'"),
        ("rm a.txt", "sh -c 'mv b.txt other.txt; echo 2 >> c.txt'"),
    ],
)
async def test_what_only_one_of_two_commands_can_have_written_is_its_own(
    ground: Playground, first: str, second: str
) -> None:
    ground.fill({"a.txt": "0\n", "b.txt": "0\n", "c.txt": "other\n"})
    before = ground.picture()
    ground.run(first)
    after_first = ground.picture()
    ground.run("rm -rf *")
    ground.fill({"a.txt": "0\n", "b.txt": "0\n", "c.txt": "other\n"})
    _, turn = await at_once(ground, first, second)
    outcome = await ground.undo.restore(scope=turn)
    # A script may have written to the same file.
    assert {phrase.values["path"] for phrase in outcome.conflicts} <= ({"a.txt"} if "sh -c" in second else set())
    assert ground.picture() == after_first
    await ground.undo.restore(scope=UndoScope(turn=1))
    assert ground.picture() == before


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("echo 1 > a.txt", "sh -c 'mv a.txt b.txt; echo 2 >> b.txt'"),
        ("echo 1 > new.txt", "sh -c 'mv new.txt b.txt; echo 2 >> b.txt'"),
        ("mv a.txt new.txt", "sh -c 'mv new.txt b.txt'"),
        ("echo 1 > link", "sh -c 'ln -sfn b.txt link'"),
        ("mv a.txt b.txt", "echo 2 >> b.txt"),
        ("echo 1 > $PWD/a.txt", "sh -c 'echo 2 > b.txt'"),
        ("cd . && echo 1 > a.txt", "sh -c 'echo 2 > b.txt'"),
        ("sed -i 's/0/1/w b.txt' a.txt", "sh -c 'echo 2 >> b.txt'"),
    ],
)
async def test_what_one_command_may_have_moved_or_written_for_another_stays_with_both(
    ground: Playground, first: str, second: str
) -> None:
    ground.fill({"a.txt": "0\n", "c.txt": "other\n"})
    before = ground.picture()
    turns = await at_once(ground, first, second)
    after = ground.picture()
    for turn in reversed(turns[1:]):
        assert {phrase.key for phrase in (await ground.undo.restore(scope=turn)).conflicts} == {"undo.shared"}
        assert ground.picture() == after
    await ground.undo.restore(scope=turns[0])
    assert ground.picture() == before


def test_stories_of_commands_at_once_end_as_if_what_was_taken_back_had_never_been() -> None:
    counts = Counter[str]()
    wrong_stories = [log for seed in range(12) if (log := asyncio.run(tell(seed, counts, opaque=0.5)))]
    assert not wrong_stories, "\n".join(wrong_stories[0])
    assert counts["undos"] > 12
