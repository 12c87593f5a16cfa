"""The profile for macOS, as text."""

from pathlib import Path

import pytest

from duckflow.programs.launch import Launch
from duckflow.safety.sandbox.paths import SandboxPaths
from duckflow.safety.sandbox.seatbelt import Seatbelt, profile
from duckflow.safety.sandbox.settings import SandboxSettings


@pytest.fixture
def paths(tmp_path: Path) -> SandboxPaths:
    (tmp_path / "home/.ssh").mkdir(parents=True)
    (tmp_path / 'my "work"').mkdir()
    return SandboxPaths(tmp_path / 'my "work"', tmp_path / "home", SandboxSettings())


def lines(paths: SandboxPaths, network: bool = False, writes: bool = True) -> list[str]:
    return profile(paths, network, writes).splitlines()


def test_brackets_are_balanced_and_names_are_quoted(paths: SandboxPaths) -> None:
    text = profile(paths, network=False, writes=True)
    unquoted = text.replace('\\"', "")
    assert unquoted.count('"') % 2 == 0
    outside = "".join(unquoted.split('"')[::2])
    assert outside.count("(") == outside.count(")")
    assert 'my \\"work\\"' in text


def test_writing_is_denied_then_allowed_in_the_folder_then_denied_for_git(paths: SandboxPaths) -> None:
    profile_lines = lines(paths)
    denied = profile_lines.index("(deny file-write*)")
    allowed = next(index for index, line in enumerate(profile_lines) if line.startswith("(allow file-write* (subpath"))
    guarded = next(index for index, line in enumerate(profile_lines) if "hooks" in line)
    assert denied < allowed < guarded
    assert 'my \\"work\\"' in profile_lines[allowed]


def test_a_command_that_only_reads_may_write_temporary_files_only(paths: SandboxPaths) -> None:
    allowed = next(line for line in lines(paths, writes=False) if line.startswith("(allow file-write*"))
    assert "work" not in allowed and str(paths.scratch.folder) in allowed


def test_secrets_are_denied(paths: SandboxPaths) -> None:
    assert any(line.startswith("(deny file-read*") and "/.ssh" in line for line in lines(paths))


def test_the_network_is_denied_unless_allowed(paths: SandboxPaths) -> None:
    assert "(deny network*)" in lines(paths)
    assert "(deny network*)" not in lines(paths, network=True)
    assert any("unix-socket" in line for line in lines(paths, network=True))


def test_the_command_runs_under_the_profile(paths: SandboxPaths) -> None:
    launch = Seatbelt(paths).confine(Launch(("bash", "-c", "true"), paths.folder, {}))
    assert launch.argv[:2] == ("/usr/bin/sandbox-exec", "-p")
    assert launch.argv[3:] == ("bash", "-c", "true")
