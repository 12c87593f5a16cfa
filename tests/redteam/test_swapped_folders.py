"""A command in the background that swaps a folder for a link, again and again, while Duckflow reads files there: no
file outside is read in the place of one in the work folder."""

import contextlib
import io
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from duckflow.cli.toolset import file_tools
from duckflow.errors import DuckflowError
from duckflow.extensions.agent_kinds import find_kinds
from duckflow.extensions.custom_commands import find_commands
from duckflow.extensions.skills import find_skills
from duckflow.fleet.task import FleetTask
from duckflow.fleet.worktree import bring_ignored
from duckflow.proof.reach import texts_of
from duckflow.review.change import uncommitted
from duckflow.safety.files import FolderEntry
from duckflow.safety.git import Git
from duckflow.safety.workspace import Workspace
from duckflow.tools.files.search import Search, search
from duckflow.tools.settings import FileSettings

FILES, SECONDS = 40, 0.002
OUTSIDE = "OUTSIDE"


@contextlib.contextmanager
def swapping(folder: Path, outside: Path) -> Generator[None]:
    real, link, has_ended = folder.with_name(".real"), folder.with_name(".link"), threading.Event()
    link.symlink_to(outside)

    def swap() -> None:
        while not has_ended.is_set():
            for source, target in ((folder, real), (link, folder), (folder, link), (real, folder)):
                source.rename(target)
                if target != real and source != folder:
                    time.sleep(SECONDS)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
        thread.join()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    for folder, text in ((work / "d/e", "mine\n"), (tmp_path / "outside/e", f"{OUTSIDE}\n")):
        folder.mkdir(parents=True)
        for number in range(FILES):
            (folder / f"f{number}").write_text(text)
            (folder.parent / f"f{number}").write_text(text)
    return work


def commit(work: Path, *added: str, ignored: str = "") -> None:
    (work / ".gitignore").write_text(f".real\n.link\n{ignored}\n")
    name = ["-c", "user.name=d", "-c", "user.email=d@p"]
    for words in (["init", "-q"], ["add", ".gitignore", *added], [*name, "commit", "-qm", "start"]):
        subprocess.run(["git", "-C", str(work), *words], check=True, capture_output=True)


@pytest.mark.parametrize("place", ["d", "d/e"])
@pytest.mark.parametrize("is_tracked", [True, False])
async def test_a_review_reads_nothing_outside(work: Path, place: str, is_tracked: bool) -> None:
    commit(work, *(["d"] if is_tracked else []))
    for path in work.glob("d/**/f*"):
        path.write_text("changed\n")
    outside = work.parent / "outside" / os.path.relpath(place, "d")
    diffs: list[str] = []
    with swapping(work / place, outside):
        for _ in range(8):
            with contextlib.suppress(DuckflowError):
                diffs.append((await uncommitted(Git(work))).diff)
    assert not any(OUTSIDE in diff for diff in diffs)
    assert "changed" in (await uncommitted(Git(work))).diff


@pytest.mark.parametrize("place", ["d", "d/e"])
@pytest.mark.parametrize("pattern", ["d", "d/**"])
async def test_a_worktree_gets_nothing_from_outside(work: Path, place: str, pattern: str) -> None:
    commit(work, ignored="d")
    outside, tree = work.parent / "outside" / os.path.relpath(place, "d"), work.parent / "tree"
    tree.mkdir()
    task = FleetTask(name="x", repository=str(work), prompt="x", base="", include=(pattern,))
    with swapping(work / place, outside):
        for _ in range(8):
            with contextlib.suppress(DuckflowError):
                await bring_ignored(task, Git(work), tree, lambda phrase: None)
    assert not any(OUTSIDE in path.read_text() for path in tree.rglob("f*"))
    # Links that were copied as links while the folders were swapped would be in the way.
    (calm_tree := work.parent / "calm").mkdir()
    await bring_ignored(task, Git(work), calm_tree, lambda phrase: None)
    assert (calm_tree / "d/f1").read_text() == "mine\n"


@pytest.mark.parametrize("place", [".duckflow", ".duckflow/skills", ".duckflow/skills/s", ".duckflow/commands"])
def test_what_a_folder_brings_is_not_read_outside(tmp_path: Path, place: str) -> None:
    work, outside, texts = tmp_path / "work", tmp_path / "outside", list[str]()
    for top, text in ((work, "mine"), (outside, OUTSIDE)):
        for name in ("skills/s/SKILL.md", "skills/s/more.md", "commands/c.md", "agents/a.md"):
            path = top / ".duckflow" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"---\nname: s\ndescription: {text}\n---\n{text}\n")
    with swapping(work / place, outside / place):
        for _ in range(150):
            with contextlib.suppress(OSError):
                texts += [command.description for command in find_commands(None, work)]
                texts += [kind.prompt for kind in find_kinds(None, work)]
                texts += [text for skill in find_skills(None, work) for text in (skill.description, skill.body(work))]
    assert not any(OUTSIDE in text for text in texts)
    assert "mine" in find_skills(None, work)[0].body(work)


def test_the_code_that_a_proof_looks_through_does_not_lie_outside(work: Path) -> None:
    found = set[str]()
    with swapping(work / "d", work.parent / "outside"):
        for _ in range(60):
            found |= {*(texts_of(work, seconds=10) or {}).values()}
    assert found == {"mine\n"}


def lead_outside(folder: Path, outside: Path) -> None:
    folder.rename(folder.with_name(".real"))
    folder.symlink_to(outside)


class SwappedAfterTheLook(Workspace):
    """A folder that becomes a link as soon as somebody has looked at what it is."""

    def stat(self, path: str, follow: bool = True) -> FolderEntry:
        found = super().stat(path, follow)
        if path == "d" and not (self.root / path).is_symlink():
            lead_outside(self.root / path, self.root.parent / "outside")
        return found


async def found_in(workspace: Workspace, path: str) -> str:
    """Returns what a search tells of a folder, in which files and outside the same line can be found."""
    tool = next(tool for tool in file_tools(workspace, FileSettings()) if tool.operation == "file_ops.grep")
    try:
        return (await tool.run(tool.args.model_validate({"pattern": f"{OUTSIDE}|mine", "path": path}))).for_model
    except DuckflowError as problem:
        return str(problem)


async def test_a_search_does_not_start_outside(work: Path) -> None:
    assert "mine" in await found_in(Workspace(work), "d")
    assert OUTSIDE not in (await found_in(SwappedAfterTheLook(work), "d")).replace(f"{OUTSIDE}|mine", "")


@pytest.mark.skipif(not shutil.which("rg"), reason="without ripgrep Python searches, see the next test")
async def test_ripgrep_does_not_go_outside(work: Path) -> None:
    """It waits for a pipe in place of a file with rules. By then it has read what lies beside that folder."""
    (work / "a").mkdir()
    (work / "mine.txt").write_text("mine\n")
    os.mkfifo(pipe := work / "a/.gitignore")

    def swap() -> None:
        with pipe.open("w"):
            lead_outside(work / "d", work.parent / "outside")

    thread = threading.Thread(target=swap)
    thread.start()
    found = await found_in(Workspace(work), ".")
    # Where the kernel cannot keep ripgrep in the folder, Python searches, and nobody has opened the pipe.
    os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
    thread.join()
    assert "mine.txt" in found and OUTSIDE not in found


def test_the_search_by_python_does_not_go_outside(work: Path) -> None:
    (work / "a.txt").write_text("mine\n")

    class Output(io.BytesIO):
        def flush(self) -> None:
            if not (work / "d").is_symlink():
                lead_outside(work / "d", work.parent / "outside")

    output = Output()
    search(Search(str(work), ".", f"{OUTSIDE}|mine", "", False, 1000), output)
    assert b"a.txt" in output.getvalue() and OUTSIDE.encode() not in output.getvalue()
