"""The full sandbox apart from attacks: what commands can and cannot do in it."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from yard import PYTHON, SECRET, Yard

from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.safety.sandbox.settings import SandboxSettings

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")

SERVE_AND_ASK = """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=lambda: server.accept()[0].sendall(b"hello")).start()
print(socket.create_connection(server.getsockname()).recv(9).decode())
"""
POOL = """
import multiprocessing
if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        print(sum(pool.map(abs, [-1, -2])))
"""


@pytest.fixture
def sandbox(place: Yard) -> Sandbox:
    return place.sandbox(SandboxSettings())


def test_bubblewrap_is_chosen_where_it_works_and_says_so(sandbox: Sandbox) -> None:
    assert (sandbox.kind, sandbox.says.key) == ("bubblewrap", "sandbox.bubblewrap")


def test_work_is_done_in_the_work_folder(place: Yard, sandbox: Sandbox) -> None:
    ran = place.run(sandbox, "mkdir -p a/b && echo x > a/b/c && mv a/b/c d && ln d e && chmod 600 d && pwd")
    assert (ran.code, ran.output.strip()) == (0, str(place.folder))
    assert (place.folder / "d").read_text() == "x\n"


def test_the_exit_code_is_the_commands(place: Yard, sandbox: Sandbox) -> None:
    assert place.run(sandbox, "exit 42").code == 42
    assert place.run(sandbox, "kill -9 $$").code == 137


def test_temporary_files_last_from_one_command_to_the_next_and_not_longer(place: Yard, sandbox: Sandbox) -> None:
    place.run(sandbox, "echo kept > /tmp/note; echo more > /var/tmp/more; echo own > $TMPDIR/own")
    assert place.run(sandbox, "cat /tmp/note /var/tmp/more /tmp/own").output.split() == ["kept", "more", "own"]
    scratch = sandbox.paths.scratch.top
    assert (scratch / "tmp/note").exists()
    sandbox.close()
    assert not scratch.exists()


def test_removing_temporary_files_follows_no_link(place: Yard, sandbox: Sandbox) -> None:
    place.run(sandbox, "mkdir $TMPDIR/shut; ln -s $O $TMPDIR/link; ln -s $O $TMPDIR/shut/link; chmod 0 $TMPDIR/shut")
    mode = place.outside.stat().st_mode
    sandbox.close()
    assert (place.outside / "file").exists() and place.outside.stat().st_mode == mode


def test_a_command_that_only_reads_gets_a_read_only_folder(place: Yard, sandbox: Sandbox) -> None:
    (place.folder / "file").write_text("hello")
    ran = place.run(sandbox, "cat file; echo x > file; touch new; echo x > $TMPDIR/x", writes=False)
    assert "hello" in ran.output and "Read-only file system" in ran.output
    assert [path.name for path in place.folder.iterdir()] == ["file"]


def test_its_own_network_works_without_the_network(place: Yard, sandbox: Sandbox) -> None:
    (place.folder / "serve.py").write_text(SERVE_AND_ASK)
    assert place.run(sandbox, f"{PYTHON} serve.py").output == "hello\n"


def test_processes_can_be_forked_and_share_memory(place: Yard, sandbox: Sandbox) -> None:
    (place.folder / "pool.py").write_text(POOL)
    assert place.run(sandbox, f"{PYTHON} pool.py").output == "3\n"


CONNECT = '"$PYTHON" -I -c \'import os, socket; socket.create_connection(("127.0.0.1", int(os.environ["TCP"])), 2)\''
LOCAL = "\"$PYTHON\" -I -c 'import socket; socket.socket(socket.AF_UNIX)'"


def test_the_network_is_there_when_allowed_for_a_command_or_for_all(place: Yard, sandbox: Sandbox) -> None:
    assert place.run(sandbox, CONNECT).code != 0
    assert place.run(sandbox, CONNECT, network=True).code == 0
    assert place.run(place.sandbox(SandboxSettings(network=True)), CONNECT).code == 0


def test_local_sockets_are_a_setting_of_their_own(place: Yard, sandbox: Sandbox) -> None:
    assert place.run(sandbox, LOCAL, network=True).code != 0
    assert place.run(place.sandbox(SandboxSettings(unix_sockets=True)), LOCAL).code == 0


def test_settings_add_writable_and_hidden_places_and_show_others(place: Yard) -> None:
    sandbox = place.sandbox(
        SandboxSettings(
            writable=(str(place.outside / "folder"),), hidden=(str(place.outside / "file"),), shown=("~/.netrc",)
        )
    )
    ran = place.run(sandbox, "echo x > $O/folder/new; cat $O/file; cat ~/.netrc; cat ~/.ssh/*")
    assert (place.outside / "folder/new").exists()
    assert "as it was" not in ran.output
    assert ran.output.count(SECRET) == 1


def test_secrets_in_the_work_folder_stay_hidden_and_in_place(place: Yard) -> None:
    (place.home / ".config/gh").mkdir(parents=True)
    (place.home / ".config/gh/hosts.yml").write_text(SECRET)
    place.folder = place.home
    sandbox = place.sandbox(SandboxSettings())
    ran = place.run(sandbox, "echo x > new; cat .ssh/* .config/gh/*; mv .ssh a; mv .config b; rm -rf .config")
    assert SECRET not in ran.output
    assert SECRET not in place.run(sandbox, "cat .ssh/* .config/gh/* a/* b/gh/*").output
    assert (place.home / "new").exists() and (place.home / ".config/gh/hosts.yml").read_text() == SECRET


def test_a_work_folder_inside_a_hidden_folder_is_visible(place: Yard) -> None:
    place.folder = place.home / ".ssh/project"
    place.folder.mkdir()
    ran = place.run(place.sandbox(SandboxSettings()), "echo x > new; cat ../id_ed25519")
    assert (place.folder / "new").exists() and SECRET not in ran.output


def test_a_repository_that_holds_a_home_beside_the_work_folder_works(place: Yard) -> None:
    subprocess.run(["git", "init", "-q", place.top], check=True)
    (place.top / ".env").write_text(SECRET)
    ran = place.run(place.sandbox(SandboxSettings()), "echo x > new; cat ~/.netrc ../.env")
    assert (place.folder / "new").exists() and SECRET not in ran.output


@pytest.fixture
def below_tmp(place: Yard) -> Generator[Path]:
    """Makes a folder below /tmp, whatever TMPDIR says."""
    top = Path(tempfile.mkdtemp(prefix="home-", dir="/tmp"))
    yield top
    shutil.rmtree(top)


def test_a_home_below_tmp_is_hidden_except_for_places_that_tools_need(place: Yard, below_tmp: Path) -> None:
    shutil.copytree(place.home, below_tmp, symlinks=True, dirs_exist_ok=True)
    (below_tmp / "notes").write_text("as it was")
    (below_tmp / ".m2/repository").mkdir(parents=True)
    (below_tmp / ".m2/repository/a").write_text("as it was")
    place.home = below_tmp
    command = "cat ~/.m2/repository/a; cat ~/.ssh/*; cat ~/.netrc; ls ~/notes; echo x > ~/notes"
    ran = place.run(place.sandbox(SandboxSettings()), command)
    assert ran.output.startswith("as it was") and "Read-only" in ran.output and SECRET not in ran.output
    assert "cannot access" in ran.output


def test_a_work_folder_in_a_home_below_tmp_can_be_written(place: Yard, below_tmp: Path) -> None:
    place.home, place.folder = below_tmp, below_tmp / "work"
    place.folder.mkdir()
    (below_tmp / "notes").write_text("as it was")
    command = "echo a > mine; cat ../notes; echo x > ../notes; echo x > /tmp/mine"
    ran = place.run(place.sandbox(SandboxSettings()), command)
    assert (place.folder / "mine").read_text() == "a\n" and "Read-only" in ran.output
    assert "as it was" not in ran.output
    assert (below_tmp / "notes").read_text() == "as it was" and not Path("/tmp/mine").exists()


def test_settings_of_tools_are_read_and_stay_as_they_are(place: Yard) -> None:
    for name in (".gitconfig", ".config/pip/pip.conf", ".config/git/ignore"):
        (place.home / name).parent.mkdir(parents=True, exist_ok=True)
        (place.home / name).write_text(name)
    sandbox = place.sandbox(SandboxSettings(writable=("~/.config/git",)))
    command = "cat ~/.gitconfig ~/.config/pip/pip.conf ~/.config/git/ignore; for f in .gitconfig .config/pip/pip.conf"
    ran = place.run(sandbox, f"{command} new .config/new; do echo x > ~/$f; rm ~/$f; mv ~/$f ~/$f.old; done")
    assert ran.output.startswith(".gitconfig.config/pip/pip.conf.config/git/ignore")
    assert ran.output.count("Read-only") >= 8
    assert (place.home / ".gitconfig").read_text() == ".gitconfig" and not (place.home / "new").exists()
    assert (place.home / ".config/git/ignore").read_text() == ".config/git/ignore"


def test_programs_below_tmp_on_the_path_are_visible(
    place: Yard, below_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, library = below_tmp / "bin/greet", below_tmp / "lib/words"
    for file, text in ((program, '#!/bin/sh\ncat "${0%/*}/../lib/words"\n'), (library, "hello")):
        file.parent.mkdir()
        file.write_text(text)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    assert place.run(place.sandbox(SandboxSettings()), "greet").output == "hello"


def test_only_the_three_streams_are_open(place: Yard, sandbox: Sandbox) -> None:
    listed = place.run(sandbox, "for f in /proc/self/fd/*; do echo ${f##*/}; done").output.split()
    assert set(listed) <= {"0", "1", "2", "3"}
