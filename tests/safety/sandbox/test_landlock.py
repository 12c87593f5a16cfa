"""What commands can and cannot do in the lesser sandbox, besides being attacked from."""

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


def test_signals_mean_what_they_mean_elsewhere(place: Yard, sandbox: Sandbox) -> None:
    assert place.run(sandbox, "yes | head -n 1").output == "y\n"


def test_a_command_that_only_reads_gets_a_read_only_folder(place: Yard, sandbox: Sandbox) -> None:
    (place.folder / "file").write_text("hello")
    ran = place.run(sandbox, "cat file; echo x > file; touch new; echo x > $TMPDIR/x", writes=False)
    assert "hello" in ran.output and "ermission denied" in ran.output
    assert [path.name for path in place.folder.iterdir()] == ["file"]


def test_the_network_is_there_when_allowed(place: Yard, sandbox: Sandbox) -> None:
    assert place.run(sandbox, CONNECT).code != 0
    assert place.run(sandbox, CONNECT, network=True).code == 0


def test_what_lies_beside_a_secret_can_be_read(place: Yard, sandbox: Sandbox) -> None:
    (place.home / ".gitconfig").write_text("[user] name = Duck")
    ran = place.run(sandbox, "cat ~/.gitconfig; ls ~/.ssh; cat ~/.ssh/*; ls / > $TMPDIR/list")
    assert "Duck" in ran.output and SECRET not in ran.output


def test_it_recommends_bubblewrap_only_when_not_asked_for(sandbox: Sandbox) -> None:
    assert (sandbox.kind, sandbox.says.key) == ("landlock", "sandbox.landlock")
