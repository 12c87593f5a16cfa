"""Programs that Duckflow starts with the user's rights start others by their names: none of these is one that a command
has put into the work folder, where PATH leads when an environment of the project is active."""

import asyncio
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from duckflow.cli.fleet_workshop import call_hook, make_workshop
from duckflow.fleet.engine import Happening
from duckflow.fleet.merge import merge
from duckflow.i18n.words import Words
from duckflow.programs.find import find_program
from duckflow.safety.brought.own_programs import served_from
from duckflow.safety.git import Git
from duckflow.state.question import Answer
from duckflow.ui.console.keys import edit_text
from tests.fleet.test_merge import Merging
from tests.journeys.story import Story, act, decide, respond
from tests.redteam.ground import END

PLANT = "printf '#!/bin/sh\\ntouch {hit}\\nexit 1\\n' > {place}/{name}; chmod +x {place}/{name}"
PLACES = [".venv/bin", "node_modules/.bin", "bin", "."]


def story_of(top: Path, *commands: str, **settings: Any) -> Story:
    tries = [decide(act("shell.run", command=text), respond("done"), next_step="continue") for text in commands]
    return Story(top, [*tries, END, END], settings=settings)


async def plant(top: Path, place: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = top / "work" / place
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    story = story_of(top, PLANT.format(hit=top / "hit", place=place, name=name))
    await story.tell("go")
    await story.close()
    assert (folder / name).exists(), "it is planted without a question"


async def served(top: Path, **server: Any) -> Story:
    story = story_of(top, "sleep 1", mcp={"servers": {"own": server}})
    await story.tell("go on")
    await story.close()
    return story


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["node", "python3"])
async def test_a_server_of_the_users_own_starts_no_program_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, name: str
) -> None:
    script = tmp_path / "server"
    script.write_text(f"#!/usr/bin/env {name}\n")
    script.chmod(0o755)
    await plant(tmp_path, place, name, monkeypatch)
    await served(tmp_path, command=str(script))
    assert not (tmp_path / "hit").exists()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("name", "setting", "words"),
    [
        ("ssh", ("remote.origin.url", "git@nowhere.invalid:a/b"), ("ls-remote", "origin")),
        ("git-remote-duck", ("remote.origin.url", "duck://a"), ("ls-remote", "origin")),
        ("helper", ("alias.x", "!helper"), ("x",)),
    ],
)
async def test_git_of_duckflows_own_starts_no_program_of_the_folder(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    name: str,
    setting: tuple[str, str],
    words: tuple[str, ...],
) -> None:
    (tmp_path / "work").mkdir()
    git = Git(tmp_path / "work")
    await git("init", "-q")
    await plant(tmp_path, place, name, monkeypatch)
    await git("config", *setting)
    async with asyncio.timeout(20):
        await git.ends(*words)
    assert not (tmp_path / "hit").exists()


@pytest.mark.parametrize(
    ("command", "args", "cwd"),
    [
        ("WORK/server", [], ""),
        ("server", [], "."),
        ("/bin/sh", ["WORK/server"], ""),
        ("sh", ["./server"], "."),
        ("sh", ["-e", "WORK/../work/deep/../server"], ""),
        ("sh", ["link/server"], "OUTSIDE"),
        ("env", ["X=1", "sh", "WORK/server"], ""),
        ("node", ["--require=WORK/server", "/dev/null"], ""),
        ("python3", ["WORK"], ""),
    ],
)
async def test_a_server_of_the_users_own_is_no_file_of_the_folder(
    tmp_path: Path, command: str, args: list[str], cwd: str
) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "deep").mkdir(parents=True)
    outside.mkdir()
    (outside / "link").symlink_to(work)
    for name in ("server", "__main__.py"):
        (work / name).write_text(
            f"#!/bin/sh\ntouch {tmp_path}/hit\n" if name == "server" else f"open('{tmp_path}/hit', 'w')\n"
        )
        (work / name).chmod(0o755)
    words = [word.replace("WORK", str(work)) for word in (command, *args)]
    await served(tmp_path, command=words[0], args=words[1:], cwd=cwd.replace("OUTSIDE", str(outside)))
    assert not (tmp_path / "hit").exists()


async def test_a_server_of_the_users_own_that_gets_the_folder_as_data_runs(tmp_path: Path) -> None:
    script = tmp_path / "server"
    script.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/ran\n')
    script.chmod(0o755)
    await served(tmp_path, command=str(script), args=[str(tmp_path / "work")])
    assert (tmp_path / "ran").exists()


STARTED = (
    "npx --prefix WORK srv", "npx --prefix=WORK srv", "npx WORK", "npx -y WORK", "npx -y --package WORK srv",
    "npx -p WORK srv", "npx file:WORK", "npx -y -c 'cd WORK && ./server'", "uvx --from WORK srv",
    "uvx --python 3.12 --from WORK srv", "uvx --with-editable WORK x", "uvx --directory WORK x", "bunx --cwd=WORK x",
    "bash -c 'cd WORK && ./server'", "bash -c 'node WORK/server'", "sh -c 'cd WORK; exec node server'",
    "bash -lc WORK/server", "bash -c 'exec nice WORK/server'", "sh -c 'node < WORK/server'", "sh -c '$0' WORK/server",
    "env PYTHONPATH=WORK python3 -m mod", "env -C WORK ./server", "env -S 'node WORK/server'", "timeout 9 WORK/server",
    "nice WORK/server", "setsid node WORK/server", "nohup WORK/server", "xargs WORK/server", "stdbuf -oL WORK/server",
    "sudo WORK/server", "timeout -k 5 9 nice -n 3 WORK/server", "awk -f WORK/server", "find WORK -exec {} ;",
    "script -qc WORK/server /dev/null", "python3 -c 'exec(open(\"WORK/server\").read())'", "node WORK/server.js",
    "node -e 'require(\"WORK/server\")'", "perl -IWORK -Mmod -e 0", "make -C WORK srv",
    "docker compose -f WORK/server up",
    "lua WORK/server", "Rscript WORK/server", "pipx run --spec WORK srv", "just -f WORK/server", "nix run WORK",
    "npx -y ./way/server", "node ~/way/server", "bash -c 'cd ~/way && ./server'",
)  # fmt: skip
DATA = (
    "npx -y @modelcontextprotocol/server-filesystem WORK", "npx server --root WORK",
    "uvx mcp-server-git --repository WORK",
    "uvx --from mcp-server-git mcp-server-git --repository WORK", "server WORK", "/opt/server --root=WORK",
    "docker run -i --rm -v WORK:/w mcp/server /w", "bash -c 'exec npx -y server WORK'", "nice server WORK",
    "env A=b npx -y server WORK",
)  # fmt: skip


@pytest.mark.parametrize("line", STARTED)
def test_a_command_that_makes_something_of_the_folder_run_starts_no_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    work, home = folders_of(tmp_path, monkeypatch)
    assert served_from(shlex.split(line.replace("WORK", str(work))), home, work)


@pytest.mark.parametrize("line", DATA)
def test_a_command_that_takes_the_folder_as_data_starts_its_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    work, home = folders_of(tmp_path, monkeypatch)
    assert not served_from(shlex.split(line.replace("WORK", str(work))), home, work)


def folders_of(top: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    work, home = top / "work", top / "user"
    for folder in (work, home):
        folder.mkdir()
    (work / "server").touch()
    (home / "way").symlink_to(work)
    monkeypatch.setenv("HOME", str(home))
    return work, home


@pytest.mark.parametrize(
    "line", ["npx --prefix WORK srv", "timeout 9 WORK/srv", "sh -c 'cd WORK && ./srv'", "npx WORK"]
)
async def test_such_a_server_is_not_started(tmp_path: Path, line: str) -> None:
    work = tmp_path / "work"
    put(work, "srv", tmp_path / "hit")
    put(work / "node_modules/.bin", "srv", tmp_path / "hit")
    (work / "package.json").write_text('{"name": "srv", "version": "1.0.0", "bin": "srv"}')
    command, *args = shlex.split(line.replace("WORK", str(work)))
    await served(tmp_path, command=command, args=args)
    assert not (tmp_path / "hit").exists()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["git", "node", "python3", "fzf", "rg"])
def test_an_editor_starts_no_program_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, name: str
) -> None:
    put(tmp_path / "work" / place, name, tmp_path / "hit")
    put(tmp_path / "programs", name, tmp_path / "right")
    editor = tmp_path / "programs/editor"
    editor.write_text(f'#!/bin/sh\n{name}\n[ -e .exrc ] && touch {tmp_path}/hit\necho changed > "$1"\n')
    editor.chmod(0o755)
    (tmp_path / "work/.exrc").write_text("!touch hit\n")
    places = (str(tmp_path / "work" / place), str(tmp_path / "programs"), os.environ["PATH"])
    monkeypatch.setenv("PATH", os.pathsep.join(places))
    monkeypatch.setenv("VISUAL", "editor")
    monkeypatch.chdir(tmp_path / "work")
    assert edit_text("text") == "changed\n"
    assert (tmp_path / "right").exists() and not (tmp_path / "hit").exists()


COPY = '#!/bin/sh\ntouch {hit}\nexec {program} "$@"\n'


def put(folder: Path, name: str, hit: Path, program: str = "/bin/true") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(COPY.format(hit=hit, program=program))
    (folder / name).chmod(0o755)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["git", "gpg", "ssh-keygen", "clean-lfs", "true"])
async def test_a_commit_starts_no_program_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, name: str
) -> None:
    work, home, outside = tmp_path / "work", tmp_path / "user", tmp_path / "programs"
    for folder in (work, home, outside):
        folder.mkdir()
    settings = {
        "gpg": "[commit]\n\tgpgSign = true\n",
        "ssh-keygen": f"[commit]\n\tgpgSign = true\n[gpg]\n\tformat = ssh\n[user]\n\tsigningKey = {home}/key\n",
        "clean-lfs": f'[core]\n\tattributesFile = {home}/attributes\n[filter "lfs"]\n\tclean = clean-lfs\n',
    }
    (home / "attributes").write_text("*.txt filter=lfs\n")
    (home / ".gitconfig").write_text(f"[user]\n\tname = d\n\temail = d@p\n{settings.get(name, '')}")
    put(outside, name, tmp_path / "right", find_program(name) or "cat")
    put(work / place, name, tmp_path / "hit")
    hook = work / ".git/hooks/pre-commit"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", os.pathsep.join((str(work / place), str(outside), os.environ["PATH"])))
    await Git(work)("init", "-q")
    hook.write_text("#!/bin/sh\nenv true\n")
    hook.chmod(0o755)
    (tmp_path / "right").unlink(missing_ok=True)
    story = Story(tmp_path, [decide(act("file_ops.write_file", path="a.txt", content="one\n"), respond("Written."))])
    await story.tell("write it")
    (tmp_path / "hit").unlink(missing_ok=True)
    story.answers = [Answer(choice="yes")] * 2
    await story.chat.run_command("/commit")
    await story.close()
    assert not (tmp_path / "hit").exists() and (tmp_path / "right").exists()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["git", "clean-lfs"])
async def test_an_attempt_uses_no_program_of_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, name: str
) -> None:
    yard = Merging(tmp_path, monkeypatch)
    report = yard.attempt("one", "one.txt", "1\n")
    (tmp_path / "gitconfig").write_text(
        f'[core]\n\tattributesFile = {tmp_path}/attributes\n[filter "lfs"]\n\tsmudge = clean-lfs\n\tclean = clean-lfs\n'
    )
    (tmp_path / "attributes").write_text("*.txt filter=lfs\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    folder = yard.repository.folder / place
    put(folder, name, tmp_path / "hit", "/usr/bin/git" if name == "git" else "cat")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    await merge(report, make_workshop(yard.words, yard.paths))
    assert not (tmp_path / "hit").exists()


FIND = "import duckflow.programs.find as find, pathlib; print(find.find_program('rg', pathlib.Path.cwd()))"


@pytest.mark.parametrize("place", PLACES)
def test_the_process_of_an_attempt_finds_no_program_of_the_repository(tmp_path: Path, place: str) -> None:
    put(tmp_path / "shop" / place, "rg", tmp_path / "hit")
    (tmp_path / "tree").mkdir()
    variables = {
        "PATH": f"{tmp_path}/shop/{place}{os.pathsep}{os.environ['PATH']}",
        "DUCKFLOW_FLEET_REPOSITORY": str(tmp_path / "shop"),
    }
    command = [sys.executable, "-c", FIND]
    told = subprocess.check_output(command, cwd=tmp_path / "tree", env=os.environ | variables, text=True)
    assert "shop" not in told


@pytest.mark.parametrize(
    "line", ["SHOP/srv", "sh SHOP/srv", "timeout 9 SHOP/srv", "sh -c 'cd SHOP && ./srv'", "npx SHOP"]
)
async def test_an_attempt_starts_no_server_of_its_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    shop = tmp_path / "shop"
    put(shop, "srv", tmp_path / "hit")
    (shop / "package.json").write_text('{"name": "srv", "version": "1.0.0", "bin": "srv"}')
    monkeypatch.setenv("DUCKFLOW_FLEET_REPOSITORY", str(shop))
    command, *args = shlex.split(line.replace("SHOP", str(shop)))
    await served(tmp_path, command=command, args=args)
    assert not (tmp_path / "hit").exists()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["python3", "python"])
async def test_an_attempt_asks_no_python_of_the_repository_for_a_missing_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, name: str
) -> None:
    put(tmp_path / "shop" / place, name, tmp_path / "hit")
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/shop/{place}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("DUCKFLOW_FLEET_REPOSITORY", str(tmp_path / "shop"))
    story = story_of(tmp_path, "ponddoctor --all")
    await story.tell("go on")
    await story.close()
    assert not (tmp_path / "hit").exists()


@pytest.mark.parametrize("place", PLACES)
def test_the_command_for_events_of_a_fleet_starts_no_program_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    put(tmp_path / "work" / place, "notify", tmp_path / "hit")
    put(tmp_path / "programs", "notify", tmp_path / "right")
    places = (str(tmp_path / "work" / place), str(tmp_path / "programs"), os.environ["PATH"])
    monkeypatch.setenv("PATH", os.pathsep.join(places))
    monkeypatch.setenv("DUCKFLOW_FLEET_HOOK", "notify")
    monkeypatch.chdir(tmp_path / "work")
    call_hook(Words("en"), Happening("done", "f", "t"))
    end = time.monotonic() + 20
    while not (tmp_path / "right").exists() and time.monotonic() < end:
        time.sleep(0.01)
    assert (tmp_path / "right").exists() and not (tmp_path / "hit").exists()


INSTALL = """\
import asyncio, sys
sys.executable = sys.argv[1]
from duckflow.llm.local.runtime import install_runtime
asyncio.run(install_runtime())
"""


@pytest.mark.parametrize("settings", ["uv.toml", "pyproject.toml", "pip.conf", ".python-version", "setup.cfg"])
def test_an_installer_reads_no_settings_of_the_folder(tmp_path: Path, settings: str) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / settings).write_text("evil\n")
    installer = tmp_path / "installer"
    installer.write_text(f"#!/bin/sh\nls -a > {tmp_path}/seen\nexit 1\n")
    installer.chmod(0o755)
    command = [sys.executable, "-c", INSTALL, str(installer)]
    assert subprocess.call(command, cwd=tmp_path / "work", stderr=subprocess.DEVNULL), "this installer fails"
    assert settings not in (tmp_path / "seen").read_text().split()
