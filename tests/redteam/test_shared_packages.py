"""A model that changes the code of other projects: installers make hard links between a project and their store."""

import os
import shutil
from pathlib import Path

import pytest

from tests.journeys.story import Story, act, decide, respond

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
END = decide(respond("ok"), step="PLANNING", next_step="pending_user")
PLACES = {
    "uv": ".venv/lib/python3.12/site-packages/duck/code",
    "uv, another name": "env/lib/python3.12/site-packages/duck/code",
    "uv, further in": "app/.venv/lib/python3.12/site-packages/duck/code",
    "uv, three folders in": "packages/group/app/.venv/lib/python3.12/site-packages/duck/code",
    "conda": "env/lib/python3.12/site-packages/duck/code",
    "pixi": ".pixi/envs/default/lib/python3.12/site-packages/duck/code",
    "pnpm, three folders in": "packages/group/app/node_modules/.pnpm/duck@1.0.0/node_modules/duck/code",
    "bun": "web/client/node_modules/.bun/duck@1.0.0/node_modules/duck/code",
    "pnpm": "node_modules/.pnpm/duck@1.0.0/node_modules/duck/code",
    "pnpm, further in": "app/node_modules/.pnpm/duck@1.0.0/node_modules/duck/code",
    "yarn": "node_modules/.store/duck-npm-1.0.0/package/code",
}
COMMANDS = [
    "echo evil >> {path}",
    "chmod u+w {path}; truncate -s 0 {path}",
    'python3 -c \'open("{path}", "r+").write("evil")\'',
    "ln {path} x && echo evil >> x",
    "mv {top} x && find x -name code -exec sh -c 'echo evil >> $0' {{}} ';'",
    "cp /etc/hostname {path}",
]


def install(work: Path, store: Path, place: str) -> Path:
    path, own = work / PLACES[place], store / "code"
    path.parent.mkdir(parents=True)
    store.mkdir()
    own.write_text("honest\n")
    os.link(own, path)
    if place.startswith("uv"):
        (work / PLACES[place].partition("/lib/")[0] / "pyvenv.cfg").touch()
    return own


@pytest.mark.one_in(4)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("place", PLACES)
async def test_no_command_changes_the_store_of_an_installer(tmp_path: Path, place: str, command: str) -> None:
    work, path = tmp_path / "work", PLACES[place]
    own = install(work, tmp_path / "store", place)
    text = command.format(path=path, top=path.partition("/")[0])
    story = Story(tmp_path, [decide(act("shell.run", command=text), next_step="continue"), END, END])
    await story.tell("go on")
    await story.close()
    assert own.read_text() == "honest\n"


async def test_caches_beside_the_packages_stay_writable(tmp_path: Path) -> None:
    work = tmp_path / "work"
    install(work, tmp_path / "store", "pnpm")
    story = Story(
        tmp_path, [decide(act("shell.run", command="mkdir -p node_modules/.cache/x"), next_step="continue"), END, END]
    )
    await story.tell("go on")
    await story.close()
    assert (work / "node_modules/.cache/x").is_dir()
