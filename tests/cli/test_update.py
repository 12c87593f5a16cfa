"""How an installation is brought up to date, and a release that can be installed."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from duckflow.installation import Installation
from tests.cli.shell import Shell

PROJECT = Path(__file__).parents[2]


CLONE: dict[str, object] = {"url": "file:///src/my%20d", "dir_info": {}}
EDITABLE = {"url": "file:///src/d", "dir_info": {"editable": True}}
WHEEL: dict[str, object] = {"url": "file:///w/d.whl", "archive_info": {}}
REPOSITORY = {"url": "https://host.example/d.git", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}}
PULLED = "git -C '/src/my d' pull && "
PIPX, UV = "/home/u/.local/share/pipx/venvs/duckflow-companion", "/home/u/.local/share/uv/tools/duckflow-companion"


@pytest.mark.parametrize(
    ("prefix", "origin", "upgrade", "add"),
    [
        (PIPX, CLONE, PULLED + "pipx upgrade duckflow-companion", "pipx install --force '/src/my d[web]'"),
        (UV, CLONE, PULLED + "uv tool upgrade duckflow-companion", "uv tool install --force '/src/my d[web]'"),
        ("/home/u/v", {}, "/p -m pip install --upgrade '.'", "/p -m pip install '.[web]'"),
        ("/home/u/v", CLONE, PULLED + "/p -m pip install --upgrade '/src/my d'", "/p -m pip install '/src/my d[web]'"),
        ("/home/u/v", EDITABLE, "git -C /src/d pull && make -C /src/d install", "/p -m pip install -e '/src/d[web]'"),
        ("/active", CLONE, PULLED + "pip install --upgrade '/src/my d'", "pip install '/src/my d[web]'"),
        (
            "/home/u/v",
            WHEEL,
            "/p -m pip install --upgrade 'duckflow-companion @ file:///w/d.whl'",
            "/p -m pip install 'duckflow-companion[web] @ file:///w/d.whl'",
        ),
        (
            "/home/u/v",
            REPOSITORY,
            "/p -m pip install --upgrade 'duckflow-companion @ git+https://host.example/d.git'",
            "/p -m pip install 'duckflow-companion[web] @ git+https://host.example/d.git'",
        ),
    ],
)
def test_commands_name_where_this_copy_came_from(
    prefix: str, origin: dict[str, object], upgrade: str, add: str
) -> None:
    installation = Installation(prefix, "/p", json.dumps(origin) if origin else "", "/active")
    assert (installation.upgrade(), installation.add("web")) == (upgrade, add)


def test_uv_adds_a_part_where_there_is_no_pip() -> None:
    command = Installation("/home/u/v", "/p", json.dumps(EDITABLE), has_pip=False).add("fleet")
    assert command == "uv pip install --python /p -e '/src/d[fleet]'"


STRANGER = re.compile(
    r"(?:install|inject|upgrade|uvx|pipx run|download)(?:\s+-+[\w-]+(?:[ =]\S+)??)*\s+['\"]?duckflow(?![-\w/.])"
)
"""A command that would fetch the registry's `duckflow`, which is another person's program."""


NAME = re.compile(r"duckflow(?![-\w/.])")


def test_no_printed_command_can_fetch_the_other_program_of_that_name() -> None:
    texts = [*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md"), *PROJECT.glob("src/**/*.*"), PROJECT / "Makefile"]
    written = {path: path.read_text(errors="replace") for path in texts if path.suffix != ".pyc"}
    assert STRANGER.search("pip install 'duckflow[web]'") and STRANGER.search("uvx --refresh duckflow")
    assert not STRANGER.search("pip install 'duckflow-companion[web] @ file:///x'")
    # Looked for before each name that could be the stranger's: the whole text would take seconds.
    places = [(path, text, name.end()) for path, text in written.items() for name in NAME.finditer(text)]
    assert {str(path) for path, text, end in places if STRANGER.search(text[max(0, end - 300) : end + 1])} == set()


def test_the_way_to_update_is_shown_in_both_languages(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    assert "To update: " in shell.run("update").stdout
    assert "更新するには: " in shell.run("update", "--lang", "ja").stdout


@pytest.mark.slow
def test_wheel_and_sdist_install_and_run_in_a_clean_environment(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)], cwd=PROJECT, check=True)
    [wheel], [sdist] = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if not name.startswith("duckflow")]
    for number, package in enumerate((wheel, sdist)):
        home = tmp_path / str(number)
        subprocess.run([sys.executable, "-m", "venv", str(home / "venv")], check=True)
        subprocess.run([home / "venv/bin/pip", "install", "-q", str(package)], check=True)
        program, work = home / "venv/bin/duckflow", home / "work"
        work.mkdir()
        script = home / "script.jsonl"
        script.write_text(json.dumps({"text": "Good day."}))
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"}
        for line in (["--version"], ["models", "list"], ["-p", "hello", "-m", f"scripted:{script}"]):
            told = subprocess.run([program, *line], cwd=work, env=environment, stdout=subprocess.PIPE, check=True)
        assert told.stdout == b"Good day.\n"
