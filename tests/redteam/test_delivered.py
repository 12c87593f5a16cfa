"""Results that the user has Duckflow deliver: the push, and gh and glab after it, run with the user's rights and
logins. Nothing in the repository tells them what to start or where to send a login."""

import os
import subprocess
from pathlib import Path

import pytest

from duckflow.fleet.deliver import check_state, deliver, push_place
from duckflow.fleet.task import AttemptOrder, AttemptReport, FleetTask
from duckflow.i18n.words import Words
from duckflow.safety.git import Git


def git(folder: Path, *words: str) -> str:
    call = ["git", "-c", "user.name=d", "-c", "user.email=d@p", *words]
    return subprocess.run(call, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def report_of(folder: Path) -> AttemptReport:
    task = FleetTask(name="t", repository=str(folder), prompt="p", onto="main")
    order = AttemptOrder(fleet="f", task=task, number=1)
    commit = git(folder, "rev-parse", "HEAD")
    return AttemptReport.model_validate({"order": order, "outcome": "done", "commit": commit, "branch": "duckflow/t-1"})


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    (work / "deep").mkdir(parents=True)
    git(work, "init", "-q", "-b", "main")
    git(work, "commit", "-q", "--allow-empty", "-m", "first")
    for place in (work / "sub.git", work / "deep/a b.git", tmp_path / "outside.git"):
        git(work, "init", "-q", "--bare", str(place))
        hook = place / "hooks/pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hit\n")
        hook.chmod(0o755)
    (tmp_path / "way").symlink_to(work)
    return work


ADDRESSES = (
    "sub.git", "./sub.git", "sub", "deep/../sub.git", "../work/sub.git", "{work}/sub.git", "file://{work}/sub.git",
    "file://localhost{work}/sub.git", "file://{work}/%73ub.git", "{top}/way/sub.git", "deep/a b.git",
    "file://{work}/deep/a%20b.git", "FILE://{work}/sub.git",
)  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("name", ["url", "pushurl"])
async def test_a_push_starts_no_hook_of_a_repository_in_the_folder(work: Path, address: str, name: str) -> None:
    git(work, "config", "remote.origin.url", "https://nowhere.invalid/a")
    git(work, "config", f"remote.origin.{name}", address.format(work=work, top=work.parent))
    delivered = await deliver(report_of(work), "push", "", Words("en"))
    assert not (work.parent / "hit").exists()
    assert delivered.why and delivered.why.key in ("fleet.deliver.own_remote", "fleet.git")


@pytest.mark.parametrize("address", ["{top}/outside.git", "file://{top}/outside.git"])
async def test_a_push_to_a_repository_elsewhere_goes_there(work: Path, address: str) -> None:
    git(work, "config", "remote.origin.url", address.format(top=work.parent))
    assert (await deliver(report_of(work), "push", "", Words("en"))).where


SEEN = """#!/bin/sh
cat > /dev/null
folder=$(git rev-parse --absolute-git-dir)
cat "$folder/glab-cli/config.yml" .envrc .git/glab-cli/config.yml 2>/dev/null > {hit}.read && touch {hit}
git status --porcelain > /dev/null 2>&1
git config --local --get-regexp 'alias|credential|core.sshcommand' > {hit}.read && touch {hit}
git remote get-url origin > {top}/remote
echo '{{"state": "OPEN"}}'
"""
WAYS = ("glab", "fsmonitor", "sshCommand", "credential", "alias", "hook", "path")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", ["gh", "glab"])
@pytest.mark.parametrize("does", ["look", "open"])
async def test_gh_and_glab_read_no_settings_of_the_repository(
    work: Path, monkeypatch: pytest.MonkeyPatch, way: str, program: str, does: str
) -> None:
    top, hit = work.parent, work.parent / "hit"
    evil = top / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {hit}\n")
    evil.chmod(0o755)
    (top / "programs").mkdir()
    stand_in = top / "programs" / program
    stand_in.write_text(SEEN.format(hit=hit, top=top))
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{work}/bin{os.pathsep}{top}/programs{os.pathsep}/usr/bin{os.pathsep}/bin")
    git(work, "config", "remote.origin.url", f"{top}/outside.git")
    (top / "outside.git/hooks/pre-receive").unlink()
    report = report_of(work)
    match way:
        case "glab":
            (work / ".git/glab-cli").mkdir()
            (work / ".git/glab-cli/config.yml").write_text("api_host: evil.invalid\n")
        case "path":
            (work / "bin").mkdir()
            for name in ("git", "gh", "glab"):
                (work / "bin" / name).symlink_to(evil)
        case "hook":
            (work / ".git/hooks/post-index-change").parent.mkdir(exist_ok=True)
            (work / ".git/hooks/post-index-change").write_text(evil.read_text())
            (work / ".git/hooks/post-index-change").chmod(0o755)
            (work / "new").write_text("x")
        case "alias":
            git(work, "config", "alias.x", f"!{evil}")
        case "credential":
            git(work, "config", "credential.helper", str(evil))
        case _:
            git(work, "config", f"core.{way}", str(evil))
    if does == "look":
        await check_state(report)
    else:
        assert (await deliver(report, "pull-request", "", Words("en"))).where
    assert not hit.exists()
    assert (top / "remote").read_text() == f"{top}/outside.git\n"


INCLUDED = {
    "receivepack": '[remote "origin"]\n\treceivepack = {evil}',
    "sshCommand": '[core]\n\tsshCommand = {evil}\n[remote "origin"]\n\tpushurl = ssh://a.invalid/x',
    "gitProxy": '[core]\n\tgitProxy = {evil}\n[remote "origin"]\n\tpushurl = git://a.invalid/x',
    "another address": '[remote "origin"]\n\tpushurl = {top}/other.git',
    "rewritten": '[url "{top}/other.git"]\n\tpushInsteadOf = {top}/outside.git',
    "helper": '[protocol "ext"]\n\tallow = always\n[url "ext::{evil} "]\n\tpushInsteadOf = {top}/',
    "its own include": "[include]\n\tpath = {work}/deep/more.cfg",
}


@pytest.mark.parametrize("where", ["the repository", "the user", "the user, by a folder"])
@pytest.mark.parametrize("way", INCLUDED)
async def test_a_push_is_led_by_no_file_of_the_folder_that_settings_include(
    work: Path, monkeypatch: pytest.MonkeyPatch, way: str, where: str
) -> None:
    top, hit, home = work.parent, work.parent / "hit", work.parent / "user"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    (top / "outside.git/hooks/pre-receive").unlink()
    git(work, "init", "-q", "--bare", str(top / "other.git"))
    git(work, "config", "remote.origin.url", f"{top}/outside.git")
    include = f'includeIf "gitdir:{work}/"' if where.endswith("folder") else "include"
    settings = work / ".git/config" if where == "the repository" else home / ".gitconfig"
    with settings.open("a") as config:
        config.write(f"[{include}]\n\tpath = {work}/more.cfg\n")
    evil = top / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {hit}\n")
    evil.chmod(0o755)
    (work / "deep/more.cfg").write_text(f'[remote "origin"]\n\treceivepack = {evil}\n')
    (work / "more.cfg").write_text(INCLUDED[way].format(evil=evil, top=top, work=work))
    delivered = await deliver(report_of(work), "push", "", Words("en"))
    assert not hit.exists() and not list((top / "other.git/refs/heads").iterdir())
    assert delivered.where == f"{top}/outside.git duckflow/t-1"


async def test_a_push_takes_the_users_own_settings_for_the_folder(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top, home = work.parent, work.parent / "user"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    (top / "outside.git/hooks/pre-receive").unlink()
    (home / ".gitconfig").write_text(f'[includeIf "gitdir:{work}/"]\n\tpath = work.cfg\n')
    (home / "work.cfg").write_text(f'[url "{top}/"]\n\tinsteadOf = "ducks:"\n')
    git(work, "config", "remote.origin.url", "ducks:outside.git")
    assert (await deliver(report_of(work), "push", "", Words("en"))).where == f"{top}/outside.git duckflow/t-1"
    assert git(top / "outside.git", "rev-parse", "duckflow/t-1") == git(work, "rev-parse", "HEAD")
    assert git(work, "rev-parse", "origin/duckflow/t-1") == git(work, "rev-parse", "HEAD")


CHANGED = (".git/config", "more.cfg", "new.cfg", "user/.gitconfig", ".git/config.worktree", "sub/.git/config")


@pytest.mark.parametrize("changed", CHANGED)
async def test_nothing_is_pushed_where_settings_have_changed_since_the_question(
    work: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    (work.parent / "user").mkdir()
    monkeypatch.setenv("HOME", str(work.parent / "user"))
    (work.parent / "outside.git/hooks/pre-receive").unlink()
    git(work, "init", "-q", "sub")
    git(work / "sub", "commit", "-q", "--allow-empty", "-m", "s")
    git(work, "add", "sub")
    git(work, "config", "remote.origin.url", f"{work.parent}/outside.git")
    for name in ("more.cfg", "new.cfg"):
        git(work, "config", "--add", "include.path", f"../{name}")
    (work / "more.cfg").write_text("")
    report, agreed = report_of(work), await push_place(Git(work))
    settings = work.parent / changed if changed.startswith("user") else work / changed
    with settings.open("a") as config:
        config.write("[core]\n\tabbrev = 10\n")
    delivered = await deliver(report, "push", "", Words("en"), agreed=agreed)
    assert delivered.why and delivered.why.key == "fleet.deliver.moved"
    assert (await deliver(report, "push", "", Words("en"), agreed=await push_place(Git(work)))).where
