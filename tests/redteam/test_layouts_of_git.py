"""A folder in which git finds other settings than a reader of its files might: comments that seem to go on, pointers
with odd paths, git folders that are none. Where git would start a program, the folder counts as one that starts it."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from duckflow.safety.git_settings import is_harmless
from duckflow.safety.repository import git_runs_programs
from tests.journeys.story import Story, act, decide, respond

PARTS = ("objects", "refs", "config")


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=d", "-c", "user.email=d@p", *words], cwd=folder, check=True, capture_output=True
    )


def begun(folder: Path) -> None:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("x\n")
    git(folder, "add", "a.txt")
    git(folder, "commit", "-qm", "first")


def name_program(config: Path, before: str = "") -> None:
    with config.open("a") as file:
        file.write(before or '[core]\n\tfsmonitor = "touch $HIT; false"\n')
        file.write('[filter "x"]\n\tclean = "touch $HIT; cat"\n')


def look(folder: Path, hit: Path) -> bool:
    """Says whether git starts the program when it compares the files of the folder."""
    (folder / "a.txt").write_text("changed\n")
    (folder / ".gitattributes").write_text("* filter=x\n")
    variables = os.environ | {"HIT": str(hit)}
    for command in ("status", "diff"):
        subprocess.run(["git", command], cwd=folder, env=variables, capture_output=True, check=False)
    return hit.exists()


COMMENTS = (
    "# \\\n", "; \\\n", "#\\\\\\\n", "\t# x \\\n", "# \\\r\n", "x = y # \\\n", "x = y ;\\\n", 'x = "a" # "\\\n',
    'x = "a\\"b" ; \\\n', "x = a\\\\ # \\\n", "[user] name = d # \\\n", "# \\\n# \\\n",
)  # fmt: skip


@pytest.mark.parametrize("comment", COMMENTS)
def test_a_comment_that_ends_with_a_backslash_hides_no_setting(tmp_path: Path, comment: str) -> None:
    work = tmp_path / "work"
    begun(work)
    name_program(work / ".git/config", f'[branch "m"]\n{comment}')
    assert git_runs_programs(work)
    assert look(work, tmp_path / "hit"), "git starts it"


def test_a_value_that_goes_on_is_one_value(tmp_path: Path) -> None:
    begun(tmp_path / "work")
    with (tmp_path / "work/.git/config").open("a") as file:
        file.write('[branch "m"]\n\tdescription = one \\\n  fsmonitor = two "# \\\n three" # four\n')
    assert not git_runs_programs(tmp_path / "work")


LENGTH = 4050
"""The length of a path that git still follows."""
POINTERS = (
    ("gitdir: good\nx\n", "good\nx"), ("gitdir: good\n\nx", "good\n\nx"), ("gitdir: good \n", "good "),
    ("gitdir: good\t", "good\t"), ("gitdir:  good\n", " good"), ("gitdir: good\u00a0\n", "good\u00a0"),
    ("gitdir: good\x0b\n", "good\x0b"), ("gitdir: good\n/", "good\n"), ("gitdir: \nx\n", "\nx"),
    ("gitdir: LONG/evil\n", "evil"), ("gitdir: LONG/./evil", "evil"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "place"), POINTERS)
@pytest.mark.parametrize("inner", [False, True])
def test_a_pointer_with_an_odd_path_leads_where_git_follows_it(
    tmp_path: Path, text: str, place: str, inner: bool
) -> None:
    top = tmp_path / "work"
    begun(top)
    work = top / "part" if inner else top
    if inner:
        begun(work)
        git(top, "add", "part")
    shutil.copytree(work / ".git", work / "good")
    (work / ".git").rename(work / place)
    name_program(work / place / "config")
    (work / ".git").write_text(text.replace("LONG", f"{'/' * (LENGTH - len(str(work)))}{work}"))
    assert git_runs_programs(top)
    assert look(work, tmp_path / "hit"), "git starts it"


COMMON = (
    ("good\nx\n", "good\nx"), ("good \n", "good "), (" good\n", " good"), ("good\t\n", "good\t"),
    ("./" * 2010 + "evil\n", "evil"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "place"), COMMON)
@pytest.mark.parametrize("has_other", [False, True])
def test_a_common_folder_with_an_odd_path_is_the_one_that_git_takes(
    tmp_path: Path, text: str, place: str, has_other: bool
) -> None:
    work = tmp_path / "work"
    begun(work)
    folder = work / ".git"
    if has_other:
        shutil.copytree(folder, folder / "good")
    (folder / place).mkdir()
    for name in PARTS:
        (folder / name).rename(folder / place / name)
    name_program(folder / place / "config")
    (folder / "commondir").write_text(text)
    assert git_runs_programs(work)
    assert look(work, tmp_path / "hit"), "git starts it"


def folders(*names: str) -> Callable[[Path], None]:
    def make(place: Path) -> None:
        for name in names:
            (place / name).mkdir(parents=True, exist_ok=True)

    return make


def with_head(text: str, *names: str) -> Callable[[Path], None]:
    def make(place: Path) -> None:
        folders(*names)(place)
        (place / "HEAD").write_text(text)

    return make


def files(place: Path) -> None:
    place.mkdir(exist_ok=True)
    for name in ("HEAD", "objects", "refs"):
        (place / name).write_text("x")


def pointing_nowhere(place: Path) -> None:
    with_head("ref: refs/heads/m\n", "objects", "refs")(place)
    (place / "commondir").write_text("nowhere\n")


NONE: dict[str, Callable[[Path], None]] = {
    "an empty one": folders("."),
    "no HEAD": folders("objects", "refs"),
    "a HEAD that is a folder": folders("objects", "refs", "HEAD"),
    "an empty HEAD": with_head("", "objects", "refs"),
    "a HEAD that names nothing": with_head("x\n", "objects", "refs"),
    "a HEAD that names no branch": with_head("ref: x\n", "objects", "refs"),
    "no refs": with_head("ref: refs/heads/m\n", "objects"),
    "no objects": with_head("ref: refs/heads/m\n", "refs"),
    "a common folder that is none": pointing_nowhere,
    "files": files,
}


@pytest.mark.parametrize("name", NONE)
@pytest.mark.parametrize("way", [".git", "a link", "the folder itself"])
def test_behind_a_git_folder_that_is_none_git_finds_the_one_around(tmp_path: Path, name: str, way: str) -> None:
    work = tmp_path / "around/work"
    begun(work.parent)
    name_program(work.parent / ".git/config")
    place = work if way == "the folder itself" else work / ".git" if way == ".git" else work / "real"
    work.mkdir()
    NONE[name](place)
    if way == "a link":
        (work / ".git").symlink_to("real")
    assert git_runs_programs(work)
    assert look(work, tmp_path / "hit"), "git starts it"


@pytest.mark.parametrize("name", NONE)
def test_behind_a_git_folder_that_is_none_git_takes_the_folder_itself(tmp_path: Path, name: str) -> None:
    work = tmp_path / "work"
    begun(work)
    for path in list((work / ".git").iterdir()):
        path.rename(work / path.name)
    (work / ".git").rmdir()
    git(work, "config", "--file", "config", "core.bare", "false")
    git(work, "config", "--file", "config", "core.worktree", ".")
    name_program(work / "config")
    NONE[name](work / ".git")
    assert git_runs_programs(work)
    assert look(work, tmp_path / "hit"), "git starts it"


@pytest.mark.parametrize(
    "name",
    [
        "lfs.Extension.x.clean",
        "lfs.EXTENSION.x.smudge",
        "lfs.CustomTransfer.x.path",
        "lfs.customTRANSFER.x.path",
        "lfs.https://Host/a.standalonetransferagent",
        "lfs.extenSion.x.priority",
        "lfs.storage",
        "lfs.https://host/a.sslKey",
        "branch.main.mergeoptions",
        "branch.a.b.mergeoptions",
    ],
)
def test_a_setting_that_leads_to_a_program_or_a_file_is_known_in_any_spelling(name: str) -> None:
    assert not is_harmless(name, "evil")


@pytest.mark.parametrize(
    "name",
    [
        "lfs.url",
        "lfs.https://Host/a.b/info/lfs.access",
        "lfs.https://h/a.locksverify",
        "branch.main.merge",
        "user.name",
    ],
)
def test_settings_that_git_writes_by_itself_are_harmless(name: str) -> None:
    assert is_harmless(name, "https://host/a")


@pytest.mark.parametrize("text", COMMENTS[:6])
async def test_commit_starts_nothing_that_a_comment_hides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("HIT", str(tmp_path / "hit"))
    (tmp_path / "work").mkdir()
    (tmp_path / "work/settings").write_text(
        f'[branch "m"]\n{text}[filter "x"]\n\tclean = "touch {tmp_path}/hit; cat"\n'
    )
    script = "git init -q && cat settings >> .git/config && echo '* filter=x' > .gitattributes"
    (tmp_path / "work/build.sh").write_text(script)
    made = act("shell.run", command="sh build.sh")
    written = act("file_ops.write_file", path="a.txt", content="one\n")
    tries = [decide(made, written, respond("done"), step="EXECUTION", next_step="continue"), decide(respond("ok"))]
    story = Story(tmp_path, tries, mode="full-auto")
    await story.tell("go on")
    (tmp_path / "hit").unlink(missing_ok=True)
    await story.chat.run_command("/commit")
    await story.close()
    told = [str(detail.values.get("programs")) for question in story.questions for detail in question.details]
    assert any(".git/config" in text for text in told) and not (tmp_path / "hit").exists()
