"""A model that reads what lies outside the work folder: by links, by names, by programs. The system's own files are
there for every command; the homes of people and other users' temporary files are not."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from duckflow.events.types import ActionFinished
from duckflow.safety.sandbox.landlock import version
from duckflow.safety.sandbox.paths import GitPlaces, SandboxPaths
from duckflow.safety.sandbox.settings import SandboxSettings
from tests.journeys.story import Story, act, decide, respond

SANDBOXES = [
    pytest.param("landlock", marks=pytest.mark.skipif(version() < 3, reason="the kernel has no Landlock")),
    pytest.param("bubblewrap", marks=pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")),
]
DIARY = "dear diary, the pond was quiet"
READS = [
    "cat conf/diary.txt",
    "cat letter",
    "grep -R diary conf",
    "grep -r diary conf/",
    "find -L conf -type f -exec cat {} +",
    "head -1 conf/diary.txt",
    "cd conf && cat diary.txt",
    "cat < letter",
    "cat ~/diary.txt",
    "cat $HOME/diary.txt",
    "cat {home}/diary.txt",
    "cat {other}/diary.txt",
    "cat ../other/diary.txt",
    "cat /proc/self/root{home}/diary.txt",
    "cat /proc/self/cwd/../me/diary.txt",
    "python3 -c 'print(open(\"{home}/diary.txt\").read())'",
    "ln -s {home} way && cat way/diary.txt",
    "cp -rL conf mine; cat mine/diary.txt",
    "tar ch conf | cat",
    "cat {home}/.bashrc",
    "cat {home}/projects/other/notes.txt",
    "rev letter | rev",
]
GIT = ("HEAD", "objects", "refs")
POINTERS = {
    "a file": {".git": "gitdir: {other}"},
    "a file by a relative path": {".git": "gitdir: ../me/projects/other"},
    "a file through a link": {".git": "gitdir: conf/projects/other"},
    "a link": {".git": "->{other}"},
    "a link to a link": {".git": "->conf/projects/other"},
    "another main repository": {**{f".git/{name}": "" for name in GIT}, ".git/commondir": "{other}"},
    "one by a relative path": {**{f".git/{name}": "" for name in GIT}, ".git/commondir": "../../me/projects/other"},
    "another main repository of a bare one": {**dict.fromkeys(GIT, ""), "commondir": "{other}"},
    "a file that points to a pointer": {".git": "gitdir: fake", "fake/commondir": "{other}"},
    "a worktree that names itself": {
        ".git": "gitdir: fake/worktrees/a",
        "fake/worktrees/a/gitdir": "{work}/.git",
        "fake/worktrees/a/commondir": "{other}",
    },
    "a submodule that names itself": {
        ".git": "gitdir: fake",
        "fake/config": "[core]\n\tworktree = {work}\n",
        "fake/commondir": "{other}",
    },
}
"""What lies in the work folder and calls a folder of the home a part of its repository."""
NEEDED = ["cat ~/.cargo/registry/a", "cat ~/.gitconfig", "cat ~/.cache/tool/x", "cat ~/.local/bin/tool", "cat ~/.m2/r"]


def make_repository(folder: Path) -> None:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)


def sh(folder: Path, command: str) -> None:
    subprocess.run(["/bin/sh", "-c", command], cwd=folder, check=True)


async def run(top: Path, command: str, sandbox: str, monkeypatch: pytest.MonkeyPatch, first: str = "") -> str:
    """What comes back to the model in full-auto, when the user says no to everything. `first`: a command before it."""
    home, other = top / "me", top / "other"
    for folder in (home / "projects/other", home / ".cargo/registry", home / ".cache/tool", home / ".local/bin", other):
        folder.mkdir(parents=True)
    (home / ".m2").mkdir()
    for path in (home / "diary.txt", other / "diary.txt", home / ".bashrc", home / "projects/other/notes.txt"):
        path.write_text(DIARY)
    for name in (".cargo/registry/a", ".gitconfig", ".cache/tool/x", ".local/bin/tool", ".m2/r"):
        (home / name).write_text("[needed]\n")
    monkeypatch.setenv("HOME", str(home))
    tried = [
        decide(
            act("shell.run", command=text.replace("{home}", str(home)).replace("{other}", str(other))),
            next_step="continue",
        )
        for text in (first, command)
        if text
    ]
    done = decide(respond("done"), step="PLANNING")
    sandboxed = {"kind": sandbox, "shown": ["data"], "writable": ["cache"]}
    story = Story(top, [*tried, done, done], settings={"sandbox": sandboxed})
    (story.folder / "conf").symlink_to(home)
    (story.folder / "letter").symlink_to(home / "diary.txt")
    await story.tell("go on")
    results = [event.result.for_model for event in story.all(ActionFinished)]
    await story.close()
    return results[len(tried) - 1]


SWAPS = [
    "mv .venv old; ln -s {home} .venv",
    "mv .venv old; ln -s {home}/projects .venv",
    "mv .venv old; ln -s ../me .venv",
    "mv .venv old; mkdir .venv; ln -s {home} .venv/bin",
    "ln -sf {home}/projects/none .venv/bin/ruby",
    "rm -f .venv/bin/python3; ln -s {home}/none .venv/bin/python3",
    "ln -sf {home}/diary.txt .venv/bin/node",
    "rmdir data; ln -s {home} data",
    "ln -s {home} cache",
    "ln -s /oldroot{home} cache",
]
"""What a command puts in the place of a folder that PATH or the settings name, so that the next one is shown more."""


@pytest.mark.parametrize("session", ["the same", "the next"])
@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize("swap", SWAPS)
async def test_a_place_that_was_swapped_for_a_link_opens_nothing(
    tmp_path: Path, swap: str, sandbox: str, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if session == "the next" and swap.endswith((" data", " cache")):
        pytest.skip("the user names these places themselves, links among them")
    work = tmp_path / "work"
    (work / ".venv/bin").mkdir(parents=True)
    (work / "data").mkdir()
    monkeypatch.setenv("PATH", f"{work}/.venv/bin{os.pathsep}{os.environ['PATH']}")
    read = "cat {home}/projects/other/notes.txt {home}/diary.txt .venv/diary.txt data/diary.txt cache/diary.txt"
    read += "; touch {home}/hit cache/hit"
    if session == "the next":
        swap = swap.replace("{home}", str(tmp_path / "me"))
        sh(work, swap)
        swap = ""
    assert DIARY not in await run(tmp_path, read, sandbox, monkeypatch, first=swap)
    assert not (tmp_path / "me/hit").exists()


@pytest.mark.parametrize("sandbox", SANDBOXES)
async def test_a_toolchain_behind_a_link_of_the_folder_stays(
    tmp_path: Path, sandbox: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "me/tools"
    (tools / "bin").mkdir(parents=True)
    (tools / "bin/python3").symlink_to("/bin/true")
    (tools / "needed").write_text("[needed]\n")
    (tmp_path / "work").mkdir()
    (tmp_path / "work/.venv").symlink_to(tools)
    monkeypatch.setenv("PATH", f"{tmp_path}/work/.venv/bin{os.pathsep}{os.environ['PATH']}")
    assert "[needed]" in await run(tmp_path, "cat .venv/needed", sandbox, monkeypatch)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize("command", READS)
async def test_the_homes_of_people_are_not_read(
    tmp_path: Path, command: str, sandbox: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert DIARY not in await run(tmp_path, command, sandbox, monkeypatch)


@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize("command", NEEDED)
async def test_what_tools_keep_in_the_home_folder_stays(
    tmp_path: Path, command: str, sandbox: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "[needed]" in await run(tmp_path, command, sandbox, monkeypatch)


@pytest.mark.parametrize("sandbox", SANDBOXES)
async def test_the_files_of_the_system_stay(tmp_path: Path, sandbox: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "root:" in await run(tmp_path, "cat /etc/passwd", sandbox, monkeypatch)


@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize("command", ["cat {home}/diary.txt", "cat ~/.bashrc", "cat letter"])
async def test_a_repository_that_holds_a_home_does_not_open_it(
    tmp_path: Path, command: str, sandbox: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some people keep their whole home folder in git."""
    make_repository(tmp_path)
    assert DIARY not in await run(tmp_path, command, sandbox, monkeypatch)


def point(top: Path, files: dict[str, str]) -> Path:
    work = top / "work"
    for name, text in files.items():
        path, text = work / name, text.replace("{other}", str(top / "me/projects/other")).replace("{work}", str(work))
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("->"):
            path.symlink_to(text.removeprefix("->"))
        else:
            path.write_text(text)
    return work


@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize("files", POINTERS.values(), ids=POINTERS)
async def test_a_pointer_in_the_folder_opens_nothing(
    tmp_path: Path, files: dict[str, str], sandbox: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    point(tmp_path, files)
    command = "python3 -c 'print(open(\"{home}/projects/other/notes.txt\").read())'"
    assert DIARY not in await run(tmp_path, command, sandbox, monkeypatch)


def test_worktrees_and_submodules_see_their_repository(tmp_path: Path) -> None:
    def git(folder: Path, *words: str) -> None:
        settings = ("-c", "user.name=d", "-c", "user.email=d@p", "-c", "protocol.file.allow=always")
        subprocess.run(["git", *settings, "-C", str(folder), *words], check=True, capture_output=True)

    for name in ("main", "other"):
        make_repository(tmp_path / name)
        git(tmp_path / name, "commit", "-q", "--allow-empty", "-m", "start")
    git(tmp_path / "main", "worktree", "add", "-q", "../tree")
    git(tmp_path / "main", "submodule", "add", "-q", str(tmp_path / "other"), "inner")
    for folder, seen in (("tree", "main/.git"), ("main/inner", "main/.git/modules/inner")):
        git_places = GitPlaces.of(tmp_path / folder)
        paths = SandboxPaths(tmp_path / folder, tmp_path / "home", SandboxSettings(), git=git_places)
        assert tmp_path / seen / "objects" in paths.opened()
        assert tmp_path / seen not in paths.opened(), "only git's own files"
