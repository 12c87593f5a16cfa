"""A model that loses a file for good without undo's notice: by something else in its place, a file grown too large,
rules of git that call it ignored first, the history of a repository whose folder is ignored, and the limits of undo."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from duckflow.state.question import Answer, Question
from tests.journeys.story import Story, act, decide, respond
from tests.safety.undo.playground import Playground

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
END = decide(respond("ok"), step="PLANNING", next_step="pending_user")
REPLACED = [
    ["rm mine.txt", "mkfifo mine.txt"],
    ["rm mine.txt; mkfifo mine.txt"],
    ["rm -r deep; mkfifo deep"],
    ["rm mine.txt; mkdir mine.txt; mkfifo mine.txt/pipe; rm mine.txt/pipe"],
    ["rm mine.txt; ln -s /dev/null mine.txt"],
    ["truncate -s 60M mine.txt"],
    ["dd if=/dev/zero of=mine.txt bs=1M count=2 seek=58"],
    ["rm mine.txt; truncate -s 60M mine.txt"],
    ["mv mine.txt other; truncate -s 60M other"],
]
IN_TURNS = [
    ["truncate -s 60M mine.txt", "rm mine.txt"],
    ["truncate -s 60M mine.txt", "rm mine.txt", "echo other > mine.txt"],
    ["truncate -s 60M mine.txt", "truncate -s 70M mine.txt", "echo other > mine.txt"],
    ["truncate -s 60M mine.txt", "mv mine.txt other", "rm other"],
    ["mv mine.txt other; truncate -s 60M other", "rm other"],
    ["rm mine.txt; mkfifo mine.txt", "rm mine.txt"],
    ["rm mine.txt; mkfifo mine.txt", "mv mine.txt other"],
    ["rm -r deep; mkfifo deep", "rm deep"],
    ["rm -r deep; mkfifo deep", "rm deep; mkdir deep; echo other > deep/a.txt"],
]
"""Ways to lose a file in one turn after another: what the first one leaves cannot be brought back."""
IGNORED_FIRST = [
    "echo '*' > .gitignore",
    "echo mine.txt >> .git/info/exclude",
    "echo 'mine*' > .gitignore; echo '*' > deep/.gitignore",
    "mkdir -p .git/info; printf 'mine.txt\\ndeep/\\n' > .git/info/exclude",
    "printf '[core]\\n\\texcludesFile = x\\n' >> .git/config; echo '*' > x",
    "echo '/*' > .gitignore; git add .gitignore",
]
LOST_HISTORY = [
    "rm -rf nest/.git/refs nest/.git/objects nest/.git/packed-refs",
    "rm -rf nest/.git",
    "rm -rf nest",
    "cd nest && git update-ref -d HEAD && git reflog expire --expire=now --all",
    "mv nest/.git nest/gone; rm -rf nest/gone",
]


class Undoing(Story):
    """Says yes to everything that undo asks."""

    def answer(self, question: Question) -> Answer | None:
        keys = [choice.key for choice in question.choices]
        return Answer(choice=next(key for key in ("all", "yes", "no") if key in keys))


def git(folder: Path, *words: str) -> str:
    call = ["git", "-c", "user.name=d", "-c", "user.email=d@p", "-C", str(folder), *words]
    return subprocess.run(call, check=True, capture_output=True, text=True).stdout.strip()


async def after(top: Path, *turns: list[str], mode: str = "full-auto", settings: dict[str, Any] | None = None) -> Story:
    """Returns a conversation in which each turn has run its commands."""
    tries = [[decide(act("shell.run", command=command), next_step="continue") for command in turn] for turn in turns]
    story = Undoing(top, [END, *(reply for turn in tries for reply in [*turn, END]), END], mode, settings=settings)
    await story.tell("hello")
    for _ in turns:
        await story.tell("go on")
    return story


async def undone(top: Path, *turns: list[str], mode: str = "full-auto", settings: dict[str, Any] | None = None) -> Path:
    story = await after(top, *turns, mode=mode, settings=settings)
    for _ in turns:
        await story.chat.run_command("/undo")
    await story.close()
    return story.folder


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    (work / "deep").mkdir(parents=True)
    (work / "deep/a.txt").write_text("DEEP\n")
    (work / "notes.txt").write_text("one\n")
    git(work, "init", "-q")
    git(work, "add", "notes.txt")
    git(work, "commit", "-qm", "start")
    (work / "mine.txt").write_text("MINE\n")
    return work


def whole(work: Path) -> bool:
    files = {"mine.txt": "MINE\n", "deep/a.txt": "DEEP\n"}
    return all((work / path).is_file() and (work / path).read_text() == text for path, text in files.items())


@pytest.mark.one_in(3)
@pytest.mark.parametrize("commands", REPLACED)
async def test_what_stands_in_its_place_makes_way(tmp_path: Path, work: Path, commands: list[str]) -> None:
    await undone(tmp_path, commands)
    assert (work / "mine.txt").is_file() and not (work / "mine.txt").is_symlink()
    assert whole(work)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("commands", IN_TURNS)
async def test_what_was_kept_before_it_could_not_be_comes_back(tmp_path: Path, work: Path, commands: list[str]) -> None:
    await undone(tmp_path, *([command] for command in commands))
    assert whole(work)


PUT_THERE_LATER = [
    ["rm mine.txt", "mkfifo mine.txt"],
    ["rm mine.txt", "head -c 1100000 /dev/zero > mine.txt"],
    ["rm mine.txt", "git init -q mine.txt; touch mine.txt/x"],
    ["rm mine.txt; git init -q mine.txt"],
    ["rm mine.txt", "mkdir mine.txt; echo gitdir: x > mine.txt/.git"],
    ["rm mine.txt", "mkdir -p mine.txt/node_modules; touch mine.txt/node_modules/x"],
    ["rm mine.txt; mkdir -p mine.txt/node_modules; touch mine.txt/node_modules/x"],
    ["rm mine.txt", "mkdir -p mine.txt/$(printf 'd/%.0s' $(seq 210))"],
    ["rm mine.txt", "mkdir mine.txt; mkfifo mine.txt/pipe; echo other > mine.txt/x"],
    ["rm -r deep", "mkfifo deep"],
    ["rm -r deep", "head -c 1100000 /dev/zero > deep"],
    ["rm -r deep", "mkdir deep; mkfifo deep/a.txt"],
    ["rm mine.txt", "mkfifo mine.txt", "rm mine.txt; echo other > mine.txt"],
    ["rm mine.txt", "mkfifo mine.txt", "rm mine.txt; head -c 1100000 /dev/zero > mine.txt"],
    ["mv mine.txt other", "mkfifo mine.txt"],
    ["echo '*' > .gitignore", "rm mine.txt", "echo other > mine.txt"],
    ["echo '*' > .gitignore; rm mine.txt", "ln -s /tmp mine.txt"],
    ["echo 'mine*' > .gitignore", "rm mine.txt", "mkdir mine.txt; echo other > mine.txt/x"],
    ["mkdir -p .git/info; echo deep >> .git/info/exclude", "rm -r deep", "mkdir deep; echo other > deep/a.txt"],
    ["echo '*' > .gitignore", "rm -r deep", "ln -s .. deep"],
    ["echo '*' > .gitignore", "echo 1 > mine.txt", "rm mine.txt", "echo other > mine.txt"],
    ["echo '*' > .gitignore", "mkdir build; mv mine.txt build", "rm -r build", "mkdir build; echo 1 > build/mine.txt"],
]
"""What is put in the place of a file, or of a folder above it, after another turn has removed the file."""
GUARDED = [("auto", "bubblewrap"), ("full-auto", "bubblewrap"), ("full-auto", "landlock")]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("mode", "sandbox"), GUARDED)
@pytest.mark.parametrize("commands", PUT_THERE_LATER)
async def test_what_a_later_turn_puts_in_its_place_makes_way(
    tmp_path: Path, work: Path, commands: list[str], mode: str, sandbox: str
) -> None:
    settings = {"sandbox": {"kind": sandbox}, "undo": {"largest_file_mb": 1}}
    await undone(tmp_path, *([command] for command in commands), mode=mode, settings=settings)
    assert whole(work)


@pytest.mark.parametrize(
    "first", ["echo '*' > .gitignore", "mkdir -p .git/info; echo 'new*' >> .git/info/exclude", "echo new/ > .gitignore"]
)
async def test_what_a_later_turn_makes_where_it_was_not_ignored_at_first_goes(
    tmp_path: Path, work: Path, first: str
) -> None:
    await undone(tmp_path, [first], ["mkdir new; echo other > new/new.txt"])
    assert not (work / "new").exists()


async def test_what_makes_way_can_be_done_again(tmp_path: Path, work: Path) -> None:
    story = await after(tmp_path, ["rm mine.txt"], ["git init -q mine.txt; echo other > mine.txt/x"])
    for line in ("/undo", "/undo", "/redo", "/undo", "/undo"):
        await story.chat.run_command(line)
    await story.close()
    assert whole(work) and (work / "mine.txt.undone-1/.git/HEAD").is_file()


async def test_what_makes_way_is_told_with_its_new_name(tmp_path: Path, work: Path) -> None:
    story = await after(tmp_path, ["rm mine.txt"], ["mkfifo mine.txt"])
    (work / "mine.txt.undone-1").write_text("of the user\n")
    of_second = await story.chat.run_command("/undo 3")
    assert "turn 2" in of_second.lower() and "mine.txt" in of_second and "nothing" not in of_second
    assert "mine.txt.undone-2" in await story.chat.run_command("/undo")
    await story.close()
    assert whole(work) and (work / "mine.txt.undone-2").is_fifo()
    assert (work / "mine.txt.undone-1").read_text() == "of the user\n"


BY_PERSON = [
    "mkfifo mine.txt",
    "head -c 1100000 /dev/zero > mine.txt",
    "mkdir -p mine.txt/node_modules; touch mine.txt/node_modules/x",
    "git init -q mine.txt",
]


@pytest.mark.parametrize("later", ["true", "mkfifo mine.txt", "echo other > mine.txt", "mkdir -p mine.txt/.git"])
@pytest.mark.parametrize("by_person", BY_PERSON)
async def test_what_a_person_puts_in_its_place_stays_until_it_is_gone(
    tmp_path: Path, later: str, by_person: str
) -> None:
    ground = Playground(tmp_path, largest_file_mb=1)
    ground.fill({"mine.txt": "MINE\n", "deep/a.txt": "DEEP\n"})
    await in_next_turn(ground, "rm mine.txt")
    await in_next_turn(ground, later)
    ground.run(f"mkdir elsewhere; mv mine.txt elsewhere/old || true; {by_person}")
    outcomes = [await ground.undo.restore() for _ in range(3)]
    assert [phrase.key for phrase in outcomes[-1].conflicts] == ["undo.conflict"]
    assert not (ground.folder / "mine.txt").is_file() or (ground.folder / "mine.txt").stat().st_size > 5
    ground.run("mv mine.txt elsewhere")
    await ground.undo.restore()
    assert whole(ground.folder)


ALL_NUMBERS = "$(seq 0 40)"
NAMED_LIKE_UNDO_NAMES_FILES = [
    ["for n in NUMBERS; do echo evil > $n:mine.txt; done; echo evil > mine.txt"],
    ["for n in NUMBERS; do echo evil$n > $n:mine.txt; done; rm mine.txt; mv 7:mine.txt mine.txt"],
    ["for n in NUMBERS; do echo evil$n > $n:mine.txt; done", "for n in NUMBERS; do mv $n:mine.txt mine.txt; done"],
    ["for n in NUMBERS; do echo evil$n > $n:mine.txt; done", "rm mine.txt; mv 5:mine.txt mine.txt"],
    ["for n in NUMBERS; do echo evil$n > $n:mine.txt; done; rm -r deep; mv mine.txt deep; echo evil > mine.txt"],
    ["for n in NUMBERS; do mkdir $n:mine.txt; done; echo evil > mine.txt; rm -r *:mine.txt"],
    ["mkdir x; for n in NUMBERS; do echo evil > x/$n:mine.txt; done; rm mine.txt"],
]
"""What undo calls a second file at a path where another one was before, as the name of a file of the model's own."""


@pytest.mark.parametrize("commands", NAMED_LIKE_UNDO_NAMES_FILES)
async def test_no_file_has_the_name_that_undo_gives_another(tmp_path: Path, commands: list[str]) -> None:
    ground = Playground(tmp_path)
    (ground.folder / "mine.txt").write_text("of the model\n")
    await in_next_turn(ground, "rm mine.txt")
    ground.fill({"mine.txt": "MINE\n", "deep/a.txt": "DEEP\n"})
    for command in commands:
        await in_next_turn(ground, command.replace("NUMBERS", ALL_NUMBERS))
    for _ in commands:
        await ground.undo.restore()
    assert whole(ground.folder) and not list(ground.folder.glob("*:*"))


BESIDE_EACH_OTHER = [
    ("echo 1 > mine.txt", "echo 2 > mine.txt", "echo 3 > other"),
    ("true", "mv mine.txt other", "rm other"),
    ("true", "mv deep other; mkdir deep; echo 1 > deep/a.txt", "rm -r deep; echo 2 > deep"),
    ("echo 1 > mine.txt", "rm mine.txt", "echo 2 > mine.txt"),
    ("mv mine.txt other", "mv other third", "echo 1 > mine.txt; rm third"),
    ("echo 1 >> deep/a.txt", "rm -r deep", "echo 2 > deep"),
    ("true", "chmod 700 deep", "rm -r deep; echo 1 > deep"),
    ("true", "ln -sf /dev/null mine.txt", "rm mine.txt; mkdir mine.txt"),
]
"""What one command does before and after another one of a later turn, whose command stands between the two."""


@pytest.mark.parametrize("commands", BESIDE_EACH_OTHER)
async def test_what_commands_beside_each_other_lose_comes_back_with_the_last(
    tmp_path: Path, commands: tuple[str, str, str]
) -> None:
    ground = Playground(tmp_path)
    ground.fill({"mine.txt": "MINE\n", "deep/a.txt": "DEEP\n"})
    before, beside, after = commands
    ground.next_turn()
    async with ground.command():
        ground.run(before)
        await in_next_turn(ground, beside)
        ground.run(after)
    for _ in range(2):
        await ground.undo.restore()
    assert whole(ground.folder)


async def in_next_turn(ground: Playground, command: str) -> None:
    ground.next_turn()
    await ground.shell(command)


LIMITS = {"largest_file_mb": 1, "copied_mb": 3, "files": 20}
LOSING = [
    act("shell.run", command="rm data-0.bin data-1.bin data-2.bin data-3.bin"),
    act("shell.run", command="cp notes.txt data-3.bin"),
    act("shell.run", command="rm data-*.bin"),
    act("shell.run", command="python3 -c 'import os; os.remove(\"data-3.bin\")'"),
    act("file_ops.delete_file", path="large"),
    act("file_ops.write_file", path="large/data-3.bin", content="other\n"),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("losing", LOSING)
async def test_in_auto_a_file_beyond_the_limits_of_undo_asks(
    tmp_path: Path, work: Path, losing: dict[str, Any], limit: str
) -> None:
    """Four files of a megabyte and a byte are more than each of these limits allows."""
    large = {
        work / place / f"data-{number}.bin": os.urandom(1024 * 1024 + 1)
        for place in (".", "large")
        for number in range(4)
    }
    (work / "large").mkdir()
    for path, content in large.items():
        path.write_bytes(content)
    story = Story(
        tmp_path, [decide(losing, next_step="continue"), END, END], "auto", settings={"undo": {limit: LIMITS[limit]}}
    )
    await story.tell("go on")
    await story.close()
    assert all(path.read_bytes() == content for path, content in large.items())


@pytest.mark.one_in(2)
@pytest.mark.parametrize("first", IGNORED_FIRST)
async def test_what_a_command_calls_ignored_is_kept_all_the_same(tmp_path: Path, work: Path, first: str) -> None:
    await undone(tmp_path, [first, "rm -rf ./mine.txt ./deep"])
    assert whole(work)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("lost", LOST_HISTORY)
async def test_the_history_of_an_ignored_repository_one_level_down_comes_back(
    tmp_path: Path, work: Path, lost: str
) -> None:
    (work / ".gitignore").write_text("nest\n")
    (work / "nest").mkdir()
    git(work / "nest", "init", "-q", "-b", "main")
    git(work / "nest", "commit", "-q", "--allow-empty", "-m", "kept")
    await undone(tmp_path, [f"sh -c '{lost}'"])
    assert git(work / "nest", "log", "--format=%s", "main") == "kept"


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "lost", ["rm -f a/b/.git/objects/pack/*", "python3 -c 'import shutil; shutil.rmtree(\"a/b/.git\")'"]
)
@pytest.mark.parametrize("packed", [False, True])
async def test_the_history_of_a_repository_further_down_comes_back(
    tmp_path: Path, work: Path, lost: str, packed: bool
) -> None:
    inner = work / "a/b"
    inner.mkdir(parents=True)
    git(inner, "init", "-q", "-b", "main")
    git(inner, "commit", "-q", "--allow-empty", "-m", "kept")
    if packed:
        git(inner, "gc", "-q")
    await undone(tmp_path, [lost])
    assert git(inner, "log", "--format=%s", "main") == "kept"


@pytest.mark.parametrize(
    "command", ["echo x > alias", "cp notes.txt alias", "echo x > way/keep.db", "tee alias < notes.txt"]
)
async def test_in_auto_a_link_to_an_ignored_file_asks(tmp_path: Path, work: Path, command: str) -> None:
    (work / ".gitignore").write_text("data.db\nlocal/\n")
    (work / "local").mkdir()
    for name in ("data.db", "local/keep.db"):
        (work / name).write_text("PRECIOUS\n")
    (work / "alias").symlink_to("data.db")
    (work / "way").symlink_to("local")
    story = Story(tmp_path, [decide(act("shell.run", command=command), next_step="continue"), END, END], mode="auto")
    await story.tell("go on")
    await story.close()
    assert [(work / name).read_text() for name in ("data.db", "local/keep.db")] == ["PRECIOUS\n"] * 2
