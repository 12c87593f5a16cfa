"""The profile for macOS, as text."""

from pathlib import Path

import pytest

from duckflow.safety.sandbox.grounds import Grounds
from duckflow.safety.sandbox.seatbelt import Seatbelt, profile
from duckflow.safety.sandbox.settings import SandboxSettings


@pytest.fixture
def grounds(tmp_path: Path) -> Grounds:
    (tmp_path / "home/.ssh").mkdir(parents=True)
    (tmp_path / 'my "work"').mkdir()
    return Grounds(tmp_path / 'my "work"', tmp_path / "home", SandboxSettings())


def lines(grounds: Grounds, network: bool = False, writes: bool = True) -> list[str]:
    return profile(grounds, network, writes).splitlines()


def test_brackets_are_balanced_and_names_are_quoted(grounds: Grounds) -> None:
    text = profile(grounds, network=False, writes=True)
    unquoted = text.replace('\\"', "")
    assert unquoted.count('"') % 2 == 0
    outside = "".join(unquoted.split('"')[::2])
    assert outside.count("(") == outside.count(")")
    assert 'my \\"work\\"' in text


def test_writing_is_denied_then_allowed_in_the_folder_then_denied_for_git(grounds: Grounds) -> None:
    found = lines(grounds)
    denied = found.index("(deny file-write*)")
    allowed = next(index for index, line in enumerate(found) if line.startswith("(allow file-write* (subpath"))
    guarded = next(index for index, line in enumerate(found) if "hooks" in line)
    assert denied < allowed < guarded
    assert 'my \\"work\\"' in found[allowed]


def test_a_command_that_only_reads_may_write_temporary_files_only(grounds: Grounds) -> None:
    allowed = next(line for line in lines(grounds, writes=False) if line.startswith("(allow file-write*"))
    assert "work" not in allowed and str(grounds.scratch.folder) in allowed


def test_secrets_are_denied(grounds: Grounds) -> None:
    assert any(line.startswith("(deny file-read*") and "/.ssh" in line for line in lines(grounds))


def test_the_network_is_denied_unless_allowed(grounds: Grounds) -> None:
    assert "(deny network*)" in lines(grounds)
    assert "(deny network*)" not in lines(grounds, network=True)
    assert any("unix-socket" in line for line in lines(grounds, network=True))


def test_the_command_runs_under_the_profile(grounds: Grounds) -> None:
    launch = Seatbelt(grounds).launch(("bash", "-c", "true"))
    assert launch.argv[:2] == ("/usr/bin/sandbox-exec", "-p")
    assert launch.argv[3:] == ("bash", "-c", "true")
