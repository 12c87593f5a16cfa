"""The lesser sandbox apart from attacks: what commands can and cannot do in it."""

import subprocess

import pytest
from yard import SECRET, Yard

from duckflow.safety.sandbox.landlock import version
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.safety.sandbox.settings import SandboxSettings

pytestmark = pytest.mark.skipif(version() < 3, reason="the kernel has no Landlock, or an old one")

CONNECT = '"$PYTHON" -I -c \'import os, socket; socket.create_connection(("127.0.0.1", int(os.environ["TCP"])), 2)\''


@pytest.fixture
def sandbox(place: Yard) -> Sandbox:
    return place.sandbox(SandboxSettings(kind="landlock"))


def test_work_is_done_in_the_work_folder_and_in_temporary_files(place: Yard, sandbox: Sandbox) -> None:
    ran = place.run(
        sandbox, "mkdir -p a/b && echo x > a/b/c && mv a/b/c d && ln d e && chmod 600 d && echo x > $TMPDIR/x"
    )
    assert ran.code == 0, ran.output
    assert (place.folder / "d").read_text() == "x\n"


def test_the_exit_code_is_the_commands(place: Yard, sandbox: Sandbox) -> None:
    assert place.run(sandbox, "exit 42").code == 42
    assert place.run(sandbox, "kill -9 $$").code == 137


def test_signals_work_as_they_do_elsewhere(place: Yard, sandbox: Sandbox) -> None:
    assert place.run(sandbox, "yes | head -n 1").output == "y\n"


def test_a_command_that_only_reads_gets_a_read_only_folder(place: Yard, sandbox: Sandbox) -> None:
    (place.folder / "file").write_text("hello")
    ran = place.run(sandbox, "cat file; echo x > file; touch new; echo x > $TMPDIR/x", writes=False)
    assert "hello" in ran.output and "ermission denied" in ran.output
    assert [path.name for path in place.folder.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "change",
    ["chmod 600 file", "touch -d 2001-01-01 file", "touch -m file", "chmod o-x .", "chgrp $(id -g) file"],
)
def test_a_command_that_only_reads_changes_no_modes_and_times(place: Yard, sandbox: Sandbox, change: str) -> None:
    (place.folder / "file").write_text("hello")
    before = [path.stat() for path in (place.folder / "file", place.folder)]
    place.run(sandbox, change, writes=False)
    after = [path.stat() for path in (place.folder / "file", place.folder)]
    assert [(facts.st_mode, facts.st_mtime_ns, facts.st_ctime_ns) for facts in after] == [
        (facts.st_mode, facts.st_mtime_ns, facts.st_ctime_ns) for facts in before
    ]


def test_a_command_may_set_its_own_priority_and_cores(place: Yard, sandbox: Sandbox) -> None:
    ran = place.run(sandbox, "nice -n 3 true && taskset -c 0 true && ionice -c 3 true")
    assert ran.code == 0, ran.output


def test_a_message_queue_of_somebody_else_cannot_be_taken_away(place: Yard, sandbox: Sandbox) -> None:
    made = subprocess.run(["ipcmk", "-Q"], capture_output=True, text=True, check=True).stdout
    number = made.rpartition(":")[2].strip()
    try:
        place.run(sandbox, f"ipcrm -q {number}")
        listed = subprocess.run(["ipcs", "-q"], capture_output=True, text=True, check=True).stdout
        assert f" {number} " in listed
    finally:
        subprocess.run(["ipcrm", "-q", number], check=False)


def test_the_network_is_there_when_allowed(place: Yard, sandbox: Sandbox) -> None:
    assert place.run(sandbox, CONNECT).code != 0
    assert place.run(sandbox, CONNECT, network=True).code == 0


def test_files_beside_a_secret_can_be_read(place: Yard, sandbox: Sandbox) -> None:
    (place.home / ".gitconfig").write_text("[user] name = Duck")
    ran = place.run(sandbox, "cat ~/.gitconfig; ls ~/.ssh; cat ~/.ssh/*; ls / > $TMPDIR/list")
    assert "Duck" in ran.output and SECRET not in ran.output


def test_it_recommends_bubblewrap_only_when_not_asked_for(sandbox: Sandbox) -> None:
    assert (sandbox.kind, sandbox.says.key) == ("landlock", "sandbox.landlock")
