"""Modules in the work folder with the names of modules that Duckflow imports: none of them runs in Duckflow itself or
in its own processes, however Python is told to look there."""

import sys
from pathlib import Path

import pytest

from duckflow.programs.find import keep_modules_out, user_environment
from duckflow.programs.launch import Launch
from duckflow.safety.sandbox.choose import choose
from duckflow.safety.sandbox.settings import SandboxSettings
from duckflow.tools.shell.causes import other_ways
from tests.cli.shell import Shell
from tests.journeys.story import act, decide, respond

NAMES = ("asyncio", "json", "sqlite3", "pydantic", "httpx", "difflib", "xml", "tomllib", "logging", "shlex", "nosuch")
EVIL = "open({hit!r}, 'a').write(__name__)\n"


def planted(folder: Path, hit: Path) -> None:
    for name in NAMES:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(EVIL.format(hit=str(hit)))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "place", [None, "", ".", "src", "{work}", "{work}/src", "src/../src:.", "{top}/link", "./src/"]
)
def test_no_module_of_the_folder_is_loaded(tmp_path: Path, place: str | None) -> None:
    shell, hit = Shell(tmp_path), tmp_path / "hit"
    planted(shell.work / "src", hit)
    planted(shell.work, hit)
    (tmp_path / "link").symlink_to(shell.work / "src")
    named = {} if place is None else {"PYTHONPATH": place.format(work=shell.work, top=tmp_path)}
    # A pattern that is not plain ASCII is looked for by a Python process of Duckflow's own.
    looks = act("file_ops.grep", pattern="池.x"), act("shell.run", command="nosuch.mod; python3 -m nosuch.mod")
    replies = decide(*looks, next_step="continue"), decide(respond("Quack."), step="PLANNING")
    model = shell.script(*replies)
    # Duckflow starts as a module of the interpreter, which puts the folder first on the path.
    line = f"duckflow -p hello --mode full-auto -m {model}"
    done = shell.sh(line, **named)
    assert "Quack." in done.stdout, done.stderr
    assert not hit.exists(), hit.read_text()


@pytest.mark.parametrize("near", ["{work}", "{work}/src", "{work}/src/..", "{top}", "{work}/deep/site-packages"])
def test_a_place_in_the_folder_or_around_it_is_left_out(
    tmp_path: Path, near: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, place = tmp_path / "work", near.format(work=tmp_path / "work", top=tmp_path)
    (work / "src").mkdir(parents=True)
    elsewhere = str(tmp_path.parent / "elsewhere")
    monkeypatch.setattr(sys, "path", [place, elsewhere, *sys.path])
    monkeypatch.setenv("PYTHONPATH", f"{place}:{elsewhere}")
    before = [path for path in sys.path if path != place]
    keep_modules_out(str(work))
    assert sys.path == before, "and everything else stays"
    assert user_environment()["PYTHONPATH"], "programs of the user's get it as it was"


@pytest.mark.parametrize("name", ["evil.x", "evil.deep.x", "a-evil.x", "evil.x-y", "pip3.evil"])
async def test_a_missing_program_makes_nobody_import_a_package(tmp_path: Path, name: str) -> None:
    """Python may find the folder's packages though nobody names it: by an editable installation."""
    for package in ("evil", "a_evil", "pip3"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(EVIL.format(hit=str(tmp_path / "hit")))
    launch = Launch((), tmp_path / "work", {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(tmp_path)})
    (tmp_path / "work").mkdir()
    sandbox = choose(SandboxSettings(), tmp_path / "work")
    await other_ways(f"bash: {name}: command not found", launch, sandbox)
    sandbox.close()
    assert not (tmp_path / "hit").exists()
