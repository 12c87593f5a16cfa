"""Files that make git run programs stay as they are, whatever a command does in the work folder."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from attacks import fingerprint
from yard import Yard

from duckflow.safety.sandbox.landlock import version
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.safety.sandbox.settings import SandboxSettings

needs_bubblewrap = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")
needs_landlock = pytest.mark.skipif(version() < 3, reason="the kernel has no Landlock, or an old one")

EVIL = "printf '#!/bin/sh\\necho GOT\\n' > evil; chmod +x evil; "
ON_HOOKS = [
    "cp evil {git}/hooks/pre-commit",
    "rm -rf {git}/hooks; mkdir {git}/hooks && cp evil {git}/hooks/pre-commit",
    "mv {git}/hooks {git}/old; mkdir {git}/hooks; cp evil {git}/hooks/pre-commit",
    "git -C {git}/.. config core.hooksPath /",
    "echo '[alias] x = !evil' >> {git}/config",
    "rm {git}/config; echo '[alias] x = !evil' > {git}/config",
    "echo '[alias] x = !evil' > new; mv -f new {git}/config",
    "mv {git} {git}2; mkdir -p {git}/hooks; cp evil {git}/hooks/pre-commit",
    "mv $(dirname {git}) moved; mkdir -p {git}/hooks; cp evil {git}/hooks/pre-commit",
    "rm -rf {git}; mkdir -p {git}/hooks; cp evil {git}/hooks/pre-commit",
]


def git(folder: Path, *arguments: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    identity = ("-c", "user.name=Duck", "-c", "user.email=duck@example.org")
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


def guarded(git_folder: Path) -> list[object]:
    return [fingerprint(git_folder / "hooks"), (git_folder / "config").read_bytes()]


@pytest.fixture
def sandbox(place: Yard) -> Sandbox:
    return place.sandbox(SandboxSettings(kind="bubblewrap"))


@pytest.mark.one_in(2)
@needs_bubblewrap
@pytest.mark.parametrize("attack", ON_HOOKS)
@pytest.mark.parametrize("where", [".", "nested"])
def test_hooks_and_configuration_cannot_be_changed(place: Yard, sandbox: Sandbox, attack: str, where: str) -> None:
    repository = place.folder / where
    git(repository, "init", "-q")
    before = guarded(repository / ".git")
    place.run(sandbox, EVIL + attack.format(git=f"{where}/.git"))
    assert guarded(repository / ".git") == before


@needs_bubblewrap
def test_missing_hooks_and_configuration_cannot_be_made(place: Yard, sandbox: Sandbox) -> None:
    git(place.folder, "init", "-q")
    shutil.rmtree(place.folder / ".git/hooks")
    (place.folder / ".git/config").unlink()
    place.run(sandbox, EVIL + "mkdir -p .git/hooks; cp evil .git/hooks/pre-commit; git config alias.x '!evil'")
    assert not (place.folder / ".git/hooks/pre-commit").exists()
    assert not (place.folder / ".git/config").exists() or not (place.folder / ".git/config").read_text()


@needs_bubblewrap
def test_git_cannot_be_sent_to_another_folder(place: Yard, sandbox: Sandbox) -> None:
    git(place.folder, "init", "-q")
    ran = place.run(
        sandbox, "cp -r .git evil; git config -f evil/config alias.x '!echo GOT'; echo ../evil > .git/commondir"
    )
    assert ran.meddled == (".git/commondir",)
    with pytest.raises(subprocess.CalledProcessError):
        git(place.folder, "x")


@needs_bubblewrap
def test_a_worktree_and_a_submodule_keep_their_git_folder(place: Yard, sandbox: Sandbox) -> None:
    git(place.folder, "init", "-q")
    git(place.folder, "commit", "-q", "--allow-empty", "-m", "first")
    git(place.folder, "worktree", "add", "-q", "tree")
    module = place.folder / ".git/modules/group/part"
    git(module.parent, "init", "-q", "--bare", "part")
    before = (place.folder / "tree/.git").read_text()
    place.run(
        sandbox,
        "rm -f tree/.git; echo 'gitdir: ../evil' > tree/.git; echo ../evil > .git/worktrees/tree/commondir;"
        " echo evil >> .git/modules/group/part/config; touch .git/modules/group/part/hooks/pre-commit",
    )
    assert (place.folder / "tree/.git").read_text() == before
    assert (place.folder / ".git/worktrees/tree/commondir").read_text() == "../..\n"
    assert "evil" not in (module / "config").read_text()
    assert not (module / "hooks/pre-commit").exists()


@needs_bubblewrap
def test_git_itself_works(place: Yard, sandbox: Sandbox) -> None:
    git(place.folder, "init", "-q")
    identity = "git -c user.name=Duck -c user.email=duck@example.org"
    ran = place.run(
        sandbox, f"echo x > a && git add a && {identity} commit -qm first && git checkout -qb b && git gc -q"
    )
    assert (ran.code, ran.meddled) == (0, ()), ran.output
    assert git(place.folder, "log", "--format=%s").strip() == "first"
    assert place.run(sandbox, "git init -q new && cd new && git status").code == 0


@needs_bubblewrap
def test_links_planted_for_the_next_command_open_nothing(place: Yard, sandbox: Sandbox) -> None:
    place.run(
        sandbox, "mkdir -p a/.git b/.git; ln -s ~/.ssh a/.git/hooks; ln -s $O b/.git/hooks; mkdir c; ln -s $O c/.git"
    )
    ran = place.run(
        sandbox, "cat a/.git/hooks/*; echo x > b/.git/hooks/file; echo x > c/.git/file; echo x > c/.git/config"
    )
    assert "secret" not in ran.output
    assert (place.outside / "file").read_text() == "as it was\n"
    assert sorted(os.listdir(place.outside)) == ["file", "folder"]


@needs_landlock
def test_landlock_cannot_guard_these_files_but_reports_changes(place: Yard) -> None:
    git(place.folder, "init", "-q")
    ran = place.run(place.sandbox(SandboxSettings(kind="landlock")), EVIL + "cp evil .git/hooks/pre-commit")
    assert ran.meddled == (".git/hooks/pre-commit",)


@needs_landlock
def test_a_change_that_sets_size_and_time_back_is_reported(place: Yard) -> None:
    git(place.folder, "init", "-q")
    config = place.folder / ".git/config"
    config.write_text("[core]\n\tbare = false\n\tpager = cat\n")
    place_of_cat = config.read_text().index("cat")
    in_place = f"printf dog | dd of=.git/config bs=1 seek={place_of_cat} conv=notrunc"
    swap = f"cp -p .git/config kept; {in_place}; touch -r kept .git/config; rm kept"
    ran = place.run(place.sandbox(SandboxSettings(kind="landlock")), swap)
    assert "dog" in config.read_text()
    assert ran.meddled == (".git/config",)
