"""Tab in bash, zsh and fish."""

import shutil
import subprocess

import pytest

from tests.cli.shell import DUCKFLOW, Shell

TAB = """
eval "$(duckflow completion bash)"
COMP_LINE="$LINE"; COMP_POINT=${#COMP_LINE}; COMPREPLY=()
_duckflow
printf '%s\\n' "${COMPREPLY[@]}"
"""


def offered(shell: Shell, line: str) -> list[str]:
    done = shell.sh(TAB, LINE=line)
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_offers_commands_options_and_values(bare: Shell) -> None:
    assert {"models", "doctor", "sessions", "audit"} <= set(offered(bare, "duckflow "))
    assert offered(bare, "duckflow mod") == ["models"]
    assert offered(bare, "duckflow --mo") == ["--model", "--mode"]
    assert offered(bare, "duckflow --mode p") == ["plan"]
    assert offered(bare, "duckflow --lang=j") == ["ja"]
    assert offered(bare, "duckflow models ") == ["pull", "list", "rm"]
    assert "--if-missing" in offered(bare, "duckflow models pull --")
    assert "--json" not in offered(bare, "duckflow models --")


def test_bash_offers_existing_models_and_sessions(bare: Shell) -> None:
    assert "local" in offered(bare, "duckflow -m loc")
    assert offered(bare, "duckflow doctor -m deepseek:") == ["deepseek-chat"]
    bare.run("-p", "hi", "-m", bare.script())
    session = next(bare.home.joinpath("data/sessions").rglob("*.db")).stem
    assert offered(bare, "duckflow -r ") == [session]
    assert offered(bare, f"duckflow audit {session[:4]}") == [session]


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_each_shell_can_read_its_script(bare: Shell, name: str) -> None:
    script = bare.run("completion", name, "--lang", "ja").stdout
    assert "duckflow completion sessions" in script or "duckflow completion $1" in script
    assert all(word in script for word in ("doctor", "if-missing", "full-auto"))
    if shutil.which(name):
        checked = subprocess.run([name, "-n"], input=script, capture_output=True, text=True, timeout=60, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_fish_offers_commands_options_and_values(bare: Shell) -> None:
    line = "source (duckflow completion fish | psub); complete -C 'duckflow --mode '; complete -C 'duckflow mod'"
    folder = bare.home / "bin"
    folder.mkdir(parents=True)
    (folder / "duckflow").write_text(f'#!/bin/sh\nexec {DUCKFLOW} "$@"\n')
    (folder / "duckflow").chmod(0o755)
    done = bare.sh(f"fish -c {line!r}", PATH=f"{folder}:{bare.environment['PATH']}")
    assert [row.split("\t")[0] for row in done.stdout.splitlines()] == [
        "ask",
        "auto",
        "auto-edit",
        "contained",
        "full-auto",
        "plan",
        "models",
    ]
