"""How an installation is brought up to date, and a release that can be installed."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from duckflow.cli.update import upgrade_command
from tests.cli.shell import Shell

PROJECT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("prefix", "origin", "command"),
    [
        ("/home/u/.local/share/pipx/venvs/duckflow", {}, "pipx upgrade duckflow"),
        ("/home/u/.local/share/uv/tools/duckflow", {}, "uv tool upgrade duckflow"),
        ("/home/u/.cache/uv/archive-v0/x", {}, "uvx --refresh duckflow"),
        ("/home/u/v", {}, "/p -m pip install --upgrade duckflow"),
        ("/home/u/v", {"url": "file:///src/d", "dir_info": {}}, "/p -m pip install --upgrade /src/d"),
        (
            "/home/u/v",
            {"url": "file:///src/my%20d", "dir_info": {}},
            "/p -m pip install --upgrade '/src/my d'",
        ),
        (
            "/home/u/v",
            {"url": "file:///src/my%20d", "dir_info": {"editable": True}},
            "git -C '/src/my d' pull && make -C '/src/my d' install",
        ),
        (
            "/home/u/v",
            {"url": "file:///src/d", "dir_info": {"editable": True}},
            "git -C /src/d pull && make -C /src/d install",
        ),
    ],
)
def test_how_to_update(prefix: str, origin: dict[str, object], command: str) -> None:
    assert upgrade_command(prefix, "/p", json.dumps(origin) if origin else "") == command


def test_it_is_told_in_both_languages(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    assert "To bring it up to date: " in shell.run("update").stdout
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
