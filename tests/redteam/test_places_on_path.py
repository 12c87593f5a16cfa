"""Places on PATH are there for commands, and the secrets deep in them are not."""

import os
from pathlib import Path
from typing import Literal

import pytest

from duckflow.safety.sandbox.choose import choose
from duckflow.safety.sandbox.settings import SandboxSettings
from tests.redteam.test_outside_files import SANDBOXES, said

OWN = ["deploy/.env", "deploy/id_rsa", "a/b/c/.netrc", "secrets/x", "deploy/.git/config", "data/.env.local"]
IN_LIBRARIES = ["lib/.env", "packages/api/.env", "share/id_rsa", "lib/a/b/.netrc", "jars/.npmrc", "libexec/.pgpass"]
MANY = 150
LIKE_THOSE_OF_PACKAGES = ["conf/credentials.json", "conf/prod.pem", "x/token.json"]


def visible(top: Path, on_path: Path, kind: Literal["landlock", "bubblewrap"], monkeypatch: pytest.MonkeyPatch) -> str:
    """Returns the names of the files in a place on PATH that a command can read."""
    for name in (*OWN, *LIKE_THOSE_OF_PACKAGES, "deploy/plain.txt"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(f"pond {name}\n")
    work = top.parents[1] / "work"
    work.mkdir()
    monkeypatch.setenv("PATH", f"{on_path}{os.pathsep}{os.environ['PATH']}")
    sandbox = choose(SandboxSettings(kind=kind), work, home=top.parents[1] / "me")
    return said(sandbox, f"grep -rh pond {top} 2> /dev/null")


@pytest.mark.parametrize("kind", SANDBOXES)
@pytest.mark.parametrize("place", ["me/scripts", "me/bin", "opened/bin"])
def test_scripts_on_path_show_no_secret_deep_beside_them(
    tmp_path: Path, place: str, kind: Literal["landlock", "bubblewrap"], monkeypatch: pytest.MonkeyPatch
) -> None:
    top = tmp_path / place
    assert visible(top, top, kind, monkeypatch) == "pond deploy/plain.txt\n"


@pytest.mark.parametrize("kind", SANDBOXES)
def test_an_installation_shows_no_secret_deep_in_it(
    tmp_path: Path, kind: Literal["landlock", "bubblewrap"], monkeypatch: pytest.MonkeyPatch
) -> None:
    top = tmp_path / "me/app"
    (top / "bin").mkdir(parents=True)
    (top / "lib").mkdir()
    told = {line.removeprefix("pond ") for line in visible(top, top / "bin", kind, monkeypatch).splitlines()}
    assert told == {"deploy/plain.txt", *LIKE_THOSE_OF_PACKAGES}


@pytest.mark.parametrize("kind", SANDBOXES)
@pytest.mark.parametrize("name", ["bin", "."])
@pytest.mark.parametrize("secret", IN_LIBRARIES)
def test_no_secret_is_shown_among_libraries_or_behind_many_folders(
    tmp_path: Path, name: str, secret: str, kind: Literal["landlock", "bubblewrap"], monkeypatch: pytest.MonkeyPatch
) -> None:
    top = tmp_path / "me/app"
    for number in range(MANY):
        (top / f"lib/part{number}/x").mkdir(parents=True)
    for path in (secret, f"lib/part{MANY - 1}/x/.env"):
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text("pond secret\n")
    assert "pond secret" not in visible(top, top / name, kind, monkeypatch)
