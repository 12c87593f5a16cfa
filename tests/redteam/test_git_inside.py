"""Programs that a folder brings in by the settings of another repository than the one on top: git asks before it is
let near them, and is free where the same repositories name no program."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.journeys.story import Story, act, decide, respond

LOOKS = (
    "git status",
    "git status --short",
    "git diff",
    "git diff --submodule=log HEAD",
    "git ls-files",
    "git ls-files --recurse-submodules",
    "git log -1",
    "git grep x",
)
SETTINGS = (
    "core.fsmonitor", "core.hooksPath", "diff.external", "filter.x.clean", "include.path", "core.sshCommand",
    "gc.recentObjectsHook", "init.templateDir",
)  # fmt: skip


def git(folder: Path, *words: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    options = ("-c", "user.name=d", "-c", "user.email=d@p", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *options, *words], cwd=folder, check=True, capture_output=True)


def begun(folder: Path) -> None:
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("x\n")
    git(folder, "add", "a.txt")
    git(folder, "commit", "-qm", "first")


def submodule(work: Path) -> Path:
    begun(work.parent / "lib")
    begun(work)
    git(work, "submodule", "--quiet", "add", str(work.parent / "lib"), "sub")
    return work / ".git/modules/sub/config"


def submodule_of_a_submodule(work: Path) -> Path:
    begun(work.parent / "deep")
    begun(work.parent / "lib")
    git(work.parent / "lib", "submodule", "--quiet", "add", str(work.parent / "deep"), "inner")
    git(work.parent / "lib", "commit", "-qm", "inner")
    begun(work)
    git(work, "submodule", "--quiet", "add", str(work.parent / "lib"), "sub")
    git(work, "submodule", "--quiet", "update", "--init", "--recursive")
    return work / ".git/modules/sub/modules/inner/config"


def embedded(work: Path) -> Path:
    begun(work)
    begun(work / "vendor/part")
    git(work, "add", "vendor/part")
    return work / "vendor/part/.git/config"


def moved_away(work: Path) -> Path:
    """A `.git` that is a file, in a repository that was added like a file."""
    begun(work)
    begun(work / "part")
    (work / "part/.git").rename(work / "elsewhere")
    (work / "part/.git").write_text("gitdir: ../elsewhere\n")
    git(work, "add", "part")
    return work / "elsewhere/config"


def bare_layout(work: Path) -> Path:
    """A folder that is a git folder itself, with its files beside."""
    begun(work)
    for path in list((work / ".git").iterdir()):
        path.rename(work / path.name)
    (work / ".git").rmdir()
    git(work, "config", "-f", "config", "core.bare", "true")
    return work / "config"


def bare_above(work: Path) -> Path:
    """The same, one folder further up."""
    return bare_layout(work.parent)


PLACES: tuple[Callable[[Path], Path], ...] = (
    submodule,
    submodule_of_a_submodule,
    embedded,
    moved_away,
    bare_layout,
    bare_above,
)


async def asks(top: Path, command: str) -> bool:
    story = Story(top, [decide(act("shell.run", command=command), respond("ok"))], mode="ask")
    await story.tell("look")
    asked = bool(story.questions)
    await story.close()
    return asked


@pytest.mark.one_in(3)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
@pytest.mark.parametrize("command", LOOKS)
async def test_a_program_named_further_in_is_asked_about(
    tmp_path: Path, place: Callable[[Path], Path], command: str
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    config = place(work)
    name = SETTINGS[LOOKS.index(command) % len(SETTINGS)]
    git(config.parent.parent, "config", "-f", str(config), name, str(tmp_path / "evil.sh"))
    assert await asks(tmp_path, command)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
async def test_the_same_repositories_without_programs_are_free(tmp_path: Path, place: Callable[[Path], Path]) -> None:
    work = tmp_path / "work"
    work.mkdir()
    place(work)
    assert not await asks(tmp_path, "git status --short")


@pytest.mark.parametrize(
    "command",
    [
        "cd x.git && git log",
        "git -C x.git log",
        "git --git-dir=x.git log",
        "git --git-dir x.git status",
        "GIT_DIR=x.git git log",
        "cd x.git; git status",
    ],
)
async def test_a_bare_repository_further_in_is_asked_about(tmp_path: Path, command: str) -> None:
    work = tmp_path / "work"
    begun(work)
    git(work, "init", "-q", "--bare", "x.git")
    assert await asks(tmp_path, command)
