"""What Duckflow starts beside the commands of the model, outside the sandbox: it runs nothing that the model wrote,
though Python finds the folder by an installation to be edited, or a program asks the folder what it has to start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.journeys.story import act, decide, respond

END = decide(respond("Quack."), step="PLANNING")
SRC = str(Path(__file__).parents[2] / "src")
HIT = "open('{hit}', 'a').write('x')"
WRITTEN = {
    "a module": 'echo "{code}" > src/sitecustomize.py',
    "a package": 'mkdir src/sitecustomize && echo "{code}" > src/sitecustomize/__init__.py',
    "a link": 'echo "{code}" > a.txt && ln -s ../a.txt src/sitecustomize.py',
    "another name first": 'echo "{code}" > src/a && mv src/a src/sitecustomize.py',
    "compiled": (
        'echo "{code}" > src/sitecustomize.py && python3 -c "import py_compile as c; '
        "c.compile('src/sitecustomize.py', 'src/sitecustomize.pyc')\" && rm src/sitecustomize.py"
    ),
}
MISSING = ["nosuchtool", "sh -c 'echo foo: command not found; exit 1'"]


def environment_with(top: Path, *places: str) -> Path:
    """Makes a virtual environment outside the work folder, whose packages lie in these places, too."""
    made = top / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made)], check=True)
    (packages,) = made.glob("lib/python3*/site-packages")
    (packages / "_edited.pth").write_text("\n".join(places))
    return made / "bin"


def tell(shell: Shell, *commands: str | dict[str, object], python: str = sys.executable, **variables: str) -> None:
    calls = [act("shell.run", command=call) if isinstance(call, str) else call for call in commands]
    model = shell.script(*(decide(call, next_step="continue") for call in calls), END, END, END)
    line = f"{python} -m duckflow -p hello --mode full-auto -m {model}"
    done = shell.sh(line, **variables)
    assert "Quack." in done.stdout, done.stderr


@pytest.mark.one_in(5)
@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("written", WRITTEN)
def test_a_missing_program_starts_no_python_that_loads_the_folder(tmp_path: Path, written: str, missing: str) -> None:
    shell, hit = Shell(tmp_path), tmp_path / "hit"
    (shell.work / "src").mkdir()
    programs = environment_with(tmp_path, str(shell.work / "src"))
    write = WRITTEN[written].format(code=HIT.format(hit=hit))
    tell(shell, write, missing, PATH=f"{programs}:{os.environ['PATH']}")
    assert not hit.exists()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("place", [".venv/bin", "venv/bin", "bin", "node_modules/.bin", "."])
def test_no_script_in_place_of_python_finds_a_shell_of_the_folder(tmp_path: Path, place: str) -> None:
    """As with the `shims` of pyenv, where the folder's environment is active."""
    shell, hit, shims = Shell(tmp_path), tmp_path / "hit", tmp_path / "shims"
    shims.mkdir()
    for name in ("python3", "python"):
        (shims / name).write_text(f'#!/usr/bin/env bash\nexec {sys.executable} "$@"\n')
        (shims / name).chmod(0o755)
    (shell.work / place).mkdir(parents=True, exist_ok=True)
    write = f"printf '#!/bin/sh\\ntouch {hit}\\n' > {place}/bash && chmod +x {place}/bash"
    tell(shell, write, "nosuchtool", PATH=f"{shell.work / place}:{shims}:{os.environ['PATH']}")
    assert not hit.exists()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("written", WRITTEN)
def test_no_process_of_its_own_loads_the_folder(tmp_path: Path, written: str) -> None:
    """Duckflow may be installed in the environment in which the project is installed to be edited."""
    shell, hit = Shell(tmp_path), tmp_path / "hit"
    (shell.work / "src").mkdir()
    own = [path for path in sys.path if path.endswith("site-packages")]
    programs = environment_with(tmp_path, SRC, *own, str(shell.work / "src"))
    write = WRITTEN[written].format(code=HIT.format(hit=hit))
    # A pattern that is not plain ASCII is looked for by a Python process of Duckflow's own.
    tell(shell, write, act("file_ops.grep", pattern="池.x"), python=str(programs / "python"))
    assert not hit.exists()


SHIMS = {
    "a script": '#!/bin/sh\nexec "$(cat .tool)"\n',
    "by env": '#!/usr/bin/env sh\nexec "$(cat .tool)"\n',
    "upwards": '#!/bin/sh\nwhile [ ! -e .tool ] && [ "$PWD" != / ]; do cd ..; done\nexec "$(cat .tool)"\n',
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("is_link", [False, True])
@pytest.mark.parametrize("shim", SHIMS)
def test_no_version_manager_asks_the_folder_what_searches(tmp_path: Path, shim: str, is_link: bool) -> None:
    shell, hit, shims = Shell(tmp_path), tmp_path / "hit", tmp_path / "shims"
    (tmp_path / "tools").mkdir()
    shims.mkdir()
    manager = tmp_path / "tools/manager" if is_link else shims / "rg"
    manager.write_text(SHIMS[shim])
    manager.chmod(0o755)
    if is_link:
        (shims / "rg").symlink_to(manager)
    (shell.work / "deep").mkdir()
    write = f"printf '#!/bin/sh\\ntouch {hit}\\n' > rg && chmod +x rg && echo \"$PWD/rg\" > .tool"
    tell(shell, write, act("file_ops.grep", pattern="x"), PATH=f"{shims}:{os.environ['PATH']}")
    assert not hit.exists()
