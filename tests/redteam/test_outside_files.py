"""A model that reads outside the work folder: by links, by names, by programs. Every command may read the system's own
files, and the places in the home folder that tools need, and nothing else of the machine."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

import pytest

from duckflow.events.types import ActionFinished
from duckflow.programs.launch import Launch
from duckflow.safety.sandbox.choose import choose
from duckflow.safety.sandbox.landlock import version
from duckflow.safety.sandbox.paths import GitPlaces, SandboxPaths
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.safety.sandbox.settings import SandboxSettings
from tests.journeys.story import Story, act, decide, respond

SANDBOXES = [
    pytest.param("landlock", marks=pytest.mark.skipif(version() < 3, reason="the kernel has no Landlock")),
    pytest.param("bubblewrap", marks=pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")),
]
DIARY = "dear diary, the pond was quiet"
READS = [
    "cat conf/diary.txt",
    "cat letter",
    "grep -R diary conf",
    "grep -r diary conf/",
    "find -L conf -type f -exec cat {} +",
    "head -1 conf/diary.txt",
    "cd conf && cat diary.txt",
    "cat < letter",
    "cat ~/diary.txt",
    "cat $HOME/diary.txt",
    "cat {home}/diary.txt",
    "cat {other}/diary.txt",
    "cat ../other/diary.txt",
    "cat /proc/self/root{home}/diary.txt",
    "cat /proc/self/cwd/../me/diary.txt",
    "python3 -c 'print(open(\"{home}/diary.txt\").read())'",
    "ln -s {home} way && cat way/diary.txt",
    "cp -rL conf mine; cat mine/diary.txt",
    "tar ch conf | cat",
    "cat {home}/.bashrc",
    "cat {home}/projects/other/notes.txt",
    "rev letter | rev",
]
GIT = ("HEAD", "objects", "refs")
POINTERS = {
    "a file": {".git": "gitdir: {other}"},
    "a file by a relative path": {".git": "gitdir: ../me/projects/other"},
    "a file through a link": {".git": "gitdir: conf/projects/other"},
    "a link": {".git": "->{other}"},
    "a link to a link": {".git": "->conf/projects/other"},
    "another main repository": {**{f".git/{name}": "" for name in GIT}, ".git/commondir": "{other}"},
    "one by a relative path": {**{f".git/{name}": "" for name in GIT}, ".git/commondir": "../../me/projects/other"},
    "another main repository of a bare one": {**dict.fromkeys(GIT, ""), "commondir": "{other}"},
    "a file that points to a pointer": {".git": "gitdir: fake", "fake/commondir": "{other}"},
    "a worktree that names itself": {
        ".git": "gitdir: fake/worktrees/a",
        "fake/worktrees/a/gitdir": "{work}/.git",
        "fake/worktrees/a/commondir": "{other}",
    },
    "a submodule that names itself": {
        ".git": "gitdir: fake",
        "fake/config": "[core]\n\tworktree = {work}\n",
        "fake/commondir": "{other}",
    },
}
"""Files in the work folder that call a folder of the home a part of its repository."""
NEEDED = [
    "cat ~/.cargo/registry/a",
    "cat ~/.gitconfig",
    "cat ~/.cache/uv/x",
    "cat ~/.local/bin/tool",
    "cat ~/.m2/settings.xml",
]


ELSEWHERE = ["/srv", "/mnt", "/media", "/var/lib", "/var/log", "/var/spool", "/var/opt", "/run", "/boot", "/", "/var"]
"""Places that are neither the system's own nor anybody's home: other projects, disks, data of services."""
WAYS = ["cat {file}", "cd {folder} && cat *", "ln -s {folder} way && cat way/diary.txt", "cat /proc/self/root{file}"]
LOGINS = {
    **dict.fromkeys([
        ".composer/auth.json", ".config/composer/auth.json", ".hex/hex.config", ".ivy2/.credentials",
        ".sbt/.credentials", ".local/share/uv/credentials/credentials.toml", ".android/adbkey",
        ".sbt/1.0/credentials.sbt", ".conda/aau_token",
        ".julia/servers/pkg/auth.toml", ".pub-cache/credentials.json", ".cache/google-chrome/x", ".cache/mozilla/x",
        ".cache/huggingface/stored_tokens", ".cache/evolution/mail/x", "go/src/x/.netrc", "bin/.env",
        ".local/bin/a.env", ".rye/credentials", ".cargo/credentials.toml", ".m2/settings-security.xml",
        ".dotnet/corefx/x509/key",
    ], DIARY),
    ".m2/settings.xml": f"<server><password>{DIARY}</password></server>",
    ".config/pip/pip.conf": f"[global]\nindex-url = https://me:{DIARY}@example.org/simple\n",
    ".config/pnpm/rc": f"//registry.example.org/:_authToken={DIARY}\n",
    ".nuget/NuGet/NuGet.Config": f'<add key="ClearTextPassword" value="{DIARY}" />',
    ".cargo/config.toml": f'[registry]\ntoken = "{DIARY}"\n',
    ".gitconfig": f"[http]\n\textraHeader = Authorization: Basic {DIARY}\n",
    ".bundle/config": f'BUNDLE_GEMS__EXAMPLE__ORG_TOKEN: "{DIARY}"\n',
    ".condarc": f"channels:\n  - https://conda.example.org/t/me-{DIARY}/main\n",
}  # fmt: skip


def make_repository(folder: Path) -> None:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)


def sh(folder: Path, command: str) -> None:
    subprocess.run(["/bin/sh", "-c", command], cwd=folder, check=True)


async def run(top: Path, command: str, sandbox: str, monkeypatch: pytest.MonkeyPatch, first: str = "") -> str:
    """Returns the output that comes back to the model in full-auto, when the user says no to everything. `first` is a
    command before it."""
    home, other = top / "me", top / "other"
    for folder in (home / "projects/other", home / ".cargo/registry", home / ".cache/uv", home / ".local/bin", other):
        folder.mkdir(parents=True)
    (home / ".m2").mkdir()
    for path in (home / "diary.txt", other / "diary.txt", home / ".bashrc", home / "projects/other/notes.txt"):
        path.write_text(DIARY)
    for name in (".cargo/registry/a", ".gitconfig", ".cache/uv/x", ".local/bin/tool", ".m2/settings.xml"):
        (home / name).write_text("[needed]\n")
    monkeypatch.setenv("HOME", str(home))
    tried = [
        decide(
            act("shell.run", command=text.replace("{home}", str(home)).replace("{other}", str(other))),
            next_step="continue",
        )
        for text in (first, command)
        if text
    ]
    done = decide(respond("done"), step="PLANNING")
    sandboxed = {"kind": sandbox, "shown": ["data"], "writable": ["cache"]}
    story = Story(top, [*tried, done, done], settings={"sandbox": sandboxed})
    (story.folder / "conf").symlink_to(home)
    (story.folder / "letter").symlink_to(home / "diary.txt")
    await story.tell("go on")
    results = [event.result.for_model for event in story.all(ActionFinished)]
    await story.close()
    return results[len(tried) - 1]


SWAPS = [
    "mv .venv old; ln -s {home} .venv",
    "mv .venv old; ln -s {home}/projects .venv",
    "mv .venv old; ln -s ../me .venv",
    "mv .venv old; mkdir .venv; ln -s {home} .venv/bin",
    "ln -sf {home}/projects/none .venv/bin/ruby",
    "rm -f .venv/bin/python3; ln -s {home}/none .venv/bin/python3",
    "ln -sf {home}/diary.txt .venv/bin/node",
    "rmdir data; ln -s {home} data",
    "ln -s {home} cache",
    "ln -s /oldroot{home} cache",
]
"""Things that a command puts in the place of a folder that PATH or the settings name, so that the next command would
see more."""


@pytest.mark.one_in(4)
@pytest.mark.parametrize("session", ["the same", "the next"])
@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize("swap", SWAPS)
async def test_a_place_that_was_swapped_for_a_link_opens_nothing(
    tmp_path: Path, swap: str, sandbox: str, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if session == "the next" and swap.endswith((" data", " cache")):
        pytest.skip("the user names these places themselves, links among them")
    work = tmp_path / "work"
    (work / ".venv/bin").mkdir(parents=True)
    (work / "data").mkdir()
    monkeypatch.setenv("PATH", f"{work}/.venv/bin{os.pathsep}{os.environ['PATH']}")
    read = "cat {home}/projects/other/notes.txt {home}/diary.txt .venv/diary.txt data/diary.txt cache/diary.txt"
    read += "; touch {home}/hit cache/hit"
    if session == "the next":
        swap = swap.replace("{home}", str(tmp_path / "me"))
        sh(work, swap)
        swap = ""
    assert DIARY not in await run(tmp_path, read, sandbox, monkeypatch, first=swap)
    assert not (tmp_path / "me/hit").exists()


@pytest.mark.parametrize("sandbox", SANDBOXES)
async def test_a_toolchain_behind_a_link_of_the_folder_stays(
    tmp_path: Path, sandbox: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "me/tools"
    (tools / "bin").mkdir(parents=True)
    (tools / "lib").mkdir()
    (tools / "bin/python3").symlink_to("/bin/true")
    (tools / "needed").write_text("[needed]\n")
    (tmp_path / "work").mkdir()
    (tmp_path / "work/.venv").symlink_to(tools)
    monkeypatch.setenv("PATH", f"{tmp_path}/work/.venv/bin{os.pathsep}{os.environ['PATH']}")
    assert "[needed]" in await run(tmp_path, "cat .venv/needed", sandbox, monkeypatch)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize("command", READS)
async def test_the_homes_of_people_are_not_read(
    tmp_path: Path, command: str, sandbox: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert DIARY not in await run(tmp_path, command, sandbox, monkeypatch)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize("command", NEEDED)
async def test_what_tools_keep_in_the_home_folder_stays(
    tmp_path: Path, command: str, sandbox: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "[needed]" in await run(tmp_path, command, sandbox, monkeypatch)


@pytest.mark.parametrize("sandbox", SANDBOXES)
async def test_the_files_of_the_system_stay(tmp_path: Path, sandbox: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "root:" in await run(tmp_path, "cat /etc/passwd", sandbox, monkeypatch)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize("command", ["cat {home}/diary.txt", "cat ~/.bashrc", "cat letter"])
async def test_a_repository_that_holds_a_home_does_not_open_it(
    tmp_path: Path, command: str, sandbox: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some people keep their whole home folder in git."""
    make_repository(tmp_path)
    assert DIARY not in await run(tmp_path, command, sandbox, monkeypatch)


def point(top: Path, files: dict[str, str]) -> Path:
    work = top / "work"
    for name, text in files.items():
        path, text = work / name, text.replace("{other}", str(top / "me/projects/other")).replace("{work}", str(work))
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("->"):
            path.symlink_to(text.removeprefix("->"))
        else:
            path.write_text(text)
    return work


@pytest.mark.one_in(2)
@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize("files", POINTERS.values(), ids=POINTERS)
async def test_a_pointer_in_the_folder_opens_nothing(
    tmp_path: Path, files: dict[str, str], sandbox: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    point(tmp_path, files)
    command = "python3 -c 'print(open(\"{home}/projects/other/notes.txt\").read())'"
    assert DIARY not in await run(tmp_path, command, sandbox, monkeypatch)


def test_worktrees_and_submodules_see_their_repository(tmp_path: Path) -> None:
    def git(folder: Path, *words: str) -> None:
        settings = ("-c", "user.name=d", "-c", "user.email=d@p", "-c", "protocol.file.allow=always")
        subprocess.run(["git", *settings, "-C", str(folder), *words], check=True, capture_output=True)

    for name in ("main", "other"):
        make_repository(tmp_path / name)
        git(tmp_path / name, "commit", "-q", "--allow-empty", "-m", "start")
    git(tmp_path / "main", "worktree", "add", "-q", "../tree")
    git(tmp_path / "main", "submodule", "add", "-q", str(tmp_path / "other"), "inner")
    for folder, seen in (("tree", "main/.git"), ("main/inner", "main/.git/modules/inner")):
        git_places = GitPlaces.of(tmp_path / folder)
        paths = SandboxPaths(tmp_path / folder, tmp_path / "home", SandboxSettings(), git=git_places)
        assert tmp_path / seen / "objects" in paths.opened()
        assert tmp_path / seen not in paths.opened(), "only git's own files"


def said(sandbox: Sandbox, command: str) -> str:
    launch = sandbox.confine(Launch(("/bin/sh", "-c", command), sandbox.paths.folder, {"PATH": os.defpath}))
    try:
        done = subprocess.run(
            launch.argv, pass_fds=launch.fds, env=launch.environment, capture_output=True, text=True, check=False
        )
    finally:
        launch.close()
    return done.stdout + done.stderr


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", SANDBOXES)
@pytest.mark.parametrize("place", ELSEWHERE)
def test_only_the_systems_own_places_are_there(
    tmp_path: Path, place: str, kind: Literal["landlock", "bubblewrap"]
) -> None:
    if not os.access(place, os.W_OK):
        pytest.skip(f"nothing can be put into {place} here")
    with tempfile.TemporaryDirectory(prefix="duckflow-other-", dir=place) as other:
        (Path(other) / "diary.txt").write_text(DIARY)
        sandbox = choose(SandboxSettings(kind=kind), tmp_path, home=tmp_path / "me")
        for way in WAYS:
            told = said(sandbox, way.replace("{file}", f"{other}/diary.txt").replace("{folder}", other))
            assert DIARY not in told and told
        assert "there" in said(sandbox, "ls /usr/bin /etc/passwd && echo there")
        shown = choose(SandboxSettings(kind=kind, shown=(other,)), tmp_path, home=tmp_path / "me")
        assert DIARY in said(shown, f"cat {other}/diary.txt")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", SANDBOXES)
@pytest.mark.parametrize("name", LOGINS)
def test_logins_beside_what_tools_need_are_not_there(
    tmp_path: Path, name: str, kind: Literal["landlock", "bubblewrap"], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "me" / name
    path.parent.mkdir(parents=True)
    path.write_text(LOGINS[name])
    programs = [tmp_path / "me" / place / "bin" for place in (".cargo", ".local", "go", ".bundle", ".")]
    for place in (*programs, tmp_path / "me/work"):
        place.mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, programs), os.environ["PATH"]]))
    sandbox = choose(SandboxSettings(kind=kind), tmp_path / "me/work", home=tmp_path / "me")
    assert DIARY not in said(sandbox, f"cat '{path}'; grep -r pond {tmp_path}/me 2>&1")


BESIDE_BIN = ["notes.txt", "data/x.csv", "src/main.c", ".git/config", "lib/settings.txt", ".env"]


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
@pytest.mark.parametrize("name", BESIDE_BIN)
async def test_a_place_of_programs_does_not_show_what_lies_beside_it(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "mine/project"
    (project / "bin").mkdir(parents=True)
    (project / ".git").mkdir()
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    (project / name).write_text(DIARY)
    monkeypatch.setenv("PATH", f"{project / 'bin'}{os.pathsep}{os.environ['PATH']}")
    command = f"python3 -c \"print(open('{project / name}').read())\""
    assert DIARY not in await run(tmp_path, command, "bubblewrap", monkeypatch)


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
async def test_an_installation_shows_its_libraries_and_not_its_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = tmp_path / "installed/tool"
    (top / "bin").mkdir(parents=True)
    (top / "lib").mkdir()
    (top / "lib/part.txt").write_text("a part of it")
    (top / ".env").write_text(DIARY)
    monkeypatch.setenv("PATH", f"{top / 'bin'}{os.pathsep}{os.environ['PATH']}")
    command = f"python3 -c \"[print(open('{top}/' + n).read()) for n in ('lib/part.txt', '.env')]\""
    result = await run(tmp_path, command, "bubblewrap", monkeypatch)
    assert "a part of it" in result and DIARY not in result


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
@pytest.mark.parametrize("on_path", ["bin", "shims"])
@pytest.mark.parametrize("home", [".pyenv", "tools/asdf", "rbenv"])
async def test_the_shims_of_a_cloned_version_manager_start_what_they_stand_for(
    tmp_path: Path, on_path: str, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = tmp_path / "managers" / home
    for name in ("bin", "shims", "libexec", "versions/3.9/bin", ".git"):
        (top / name).mkdir(parents=True)
    (top / "version").write_text("3.9")
    (top / "secrets.txt").write_text(DIARY)
    programs = {
        "shims/quack": f'exec {top}/libexec/start "$(cat {top}/version)" "$@"',
        "libexec/start": f'exec {top}/versions/$1/bin/quack "$2"',
        "versions/3.9/bin/quack": 'echo "a duck of 3.9"; cat "$1"',
    }
    for name, line in programs.items():
        (top / name).write_text(f"#!/bin/sh\n{line}\n")
        (top / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{top / on_path}{os.pathsep}{os.environ['PATH']}")
    result = await run(tmp_path, f"{top}/shims/quack {top}/secrets.txt", "bubblewrap", monkeypatch)
    assert "a duck of 3.9" in result and DIARY not in result


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
@pytest.mark.parametrize(
    ("config", "is_shown"),
    [
        ("[remote]\n\turl = https://git.example/p\n", True),
        ("[remote]\n\turl = https://duck:pa55-of-duck@git.example/p\n", False),
        ("[http]\n\textraHeader = Authorization: Basic cGE1NS1vZi1kdWNr\n", False),
        ("[credential]\n\thelper = store\n\ttoken = pa55-of-duck\n", False),
        ("# password = pa55-of-duck\n", False),
    ],
)
async def test_a_login_for_a_plugin_of_a_version_manager_is_hidden(
    tmp_path: Path, config: str, is_shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = tmp_path / "managers/.pyenv"
    for name in ("bin", "shims", "libexec", "plugins/p/.git", ".git"):
        (top / name).mkdir(parents=True)
    (top / "plugins/p/.git/config").write_text(config)
    (top / "bin/python").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{top / 'bin'}{os.pathsep}{os.environ['PATH']}")
    result = await run(tmp_path, f"cat {top}/plugins/p/.git/config", "bubblewrap", monkeypatch)
    assert (config.splitlines()[0] in result) == is_shown
