"""When a command fails because a program has another name here, the model is told that name."""

import shutil
from pathlib import Path

import pytest
from shelling import Shell, shell_in

ORDINARY = ("sh", "bash", "env", "cat", "make")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH, with a few ordinary programs and no Python."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ORDINARY:
        (programs / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(programs))
    return programs


@pytest.fixture
def shell(tmp_path: Path, machine: Path) -> Shell:
    work = tmp_path / "work"
    work.mkdir()
    return shell_in(work)


def python_without_modules(folder: Path, name: str, *modules: str) -> None:
    """Makes a program that knows only these modules when it is asked by `find_spec`."""
    known = "|".join(modules) or "none"
    (folder / name).write_text(f'#!/bin/sh\ncase "$3" in {known}) exit 0;; esac\nexit 1\n')
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    "command",
    ["python x.py", "cd . && python x.py", "env python x.py", "sh -c 'python x.py'", "python x.py | cat && false"],
)
async def test_python_is_there_under_its_other_name(shell: Shell, machine: Path, command: str) -> None:
    python_without_modules(machine, "python3")
    told = (await shell.run(command)).for_model
    assert "There is no `python` here; use `python3`." in told


async def test_python_is_suggested_where_python3_is_missing(shell: Shell, machine: Path) -> None:
    python_without_modules(machine, "python")
    assert "use `python`." in (await shell.run("python3 x.py")).for_model


async def test_a_python_that_make_does_not_find_is_suggested_too(shell: Shell, machine: Path) -> None:
    python_without_modules(machine, "python3")
    (shell.sandbox.paths.folder / "Makefile").write_text("all:\n\tpython x.py\n")
    assert "use `python3`." in (await shell.run("make")).for_model


@pytest.mark.parametrize(("missing", "way"), [("pytest -q", "pytest"), ("pip3 list", "pip"), ("ruff check", "ruff")])
async def test_a_program_that_is_only_a_module_is_called_as_one(
    shell: Shell, machine: Path, missing: str, way: str
) -> None:
    python_without_modules(machine, "python3", way)
    assert f"use `python3 -m {way}`." in (await shell.run(missing)).for_model


async def test_a_program_of_the_folders_environment_is_named(shell: Shell, machine: Path) -> None:
    program = shell.sandbox.paths.folder / ".venv/bin/pytest"
    program.parent.mkdir(parents=True)
    program.touch()
    assert "use `.venv/bin/pytest`." in (await shell.run("pytest")).for_model


@pytest.mark.parametrize("command", ["no-such-program", "cat notes.txt", "python x.py"])
async def test_where_there_is_no_other_way_nothing_is_said(shell: Shell, machine: Path, command: str) -> None:
    if not command.startswith("python"):
        python_without_modules(machine, "python3")
    assert "use `" not in (await shell.run(command)).for_model
