"""A model that looks for a handle of the machine's own files, which the sandbox was made with and left open."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.journeys.story import Story, act, decide, respond

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
END = decide(respond("ok"), step="PLANNING", next_step="pending_user")
TOKEN = "ghs_" + "A1b2C3d4E5" * 4
LOGIN = f'[remote "origin"]\n\turl = https://me:{TOKEN}@example.org/a.git\n'
PROGRAM = """
import os
for name in os.listdir("/proc/self/fd"):
    for path in [f"/proc/self/fd/{name}"] + [f"/proc/self/fd/{name}/" + "../" * up + "outside" for up in range(9)]:
        if int(name) > 2 and os.path.exists(path) and not os.readlink(f"/proc/self/fd/{name}").startswith("/proc"):
            print("found", path, open(path).read()[::-1] if os.path.isfile(path) else "")
            if os.path.isfile(path):
                open(path, "a").write("[core] fsmonitor = evil")
"""
INNER = "mkdir -p {0}/hooks {0}/refs {0}/objects; touch {0}/HEAD {0}/config; "
"""A command that makes a git folder, so that the next command finds its hooks guarded."""
PLACES = {
    "the settings have a login": (".git/config", LOGIN, ""),
    "those of an inner repository": ("inner/.git/config", LOGIN, ""),
    "those of a worktree": (".git/config.worktree", LOGIN, ""),
    "those of a submodule": (".git/modules/sub/config", LOGIN, ""),
    "a secret among the hooks": (".git/hooks/.env", "A=1", ""),
    "one in a folder among them": (".git/hooks/deep/secrets/a", "A=1", ""),
    "a key among those of a submodule": (".git/modules/sub/hooks/a.pem", "A=1", ""),
    "made by a command": ("", "", INNER.format("new/.git") + "touch new/.git/hooks/a.pem"),
    "a folder made by a command": (
        *("", ""),
        INNER.format("new/.git") + "cd new/.git/hooks; mkdir secrets; touch secrets/a",
    ),
    "in a new submodule": (
        *("", ""),
        INNER.format("new/.git") + INNER.format("new/.git/modules/m") + "touch new/.git/modules/m/hooks/a.pem",
    ),
    "a copy of the repository": ("", "", "mkdir new; cp -r .git new/.git; touch new/.git/hooks/x.keystore"),
}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    for folder in (work, work / "inner"):
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    for folder in ("refs", "objects"):
        (work / ".git/modules/sub" / folder).mkdir(parents=True)
    (work / ".git/modules/sub/HEAD").write_text("ref: refs/heads/main\n")
    return work


@pytest.mark.parametrize("way", PLACES)
async def test_no_command_gets_a_handle_that_leads_out(tmp_path: Path, work: Path, way: str) -> None:
    name, content, command = PLACES[way]
    outside = tmp_path / "outside"
    outside.write_text(TOKEN)
    if name:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(content)
    (work / "look.py").write_text(PROGRAM)
    (work / "make.sh").write_text(command)
    words = ("sh make.sh", "python3 look.py")
    commands = [decide(act("shell.run", command=command), next_step="continue") for command in words]
    story = Story(tmp_path, [*commands, END, END], mode="full-auto")
    await story.tell("go on")
    told = "\n".join(message.text for message in story.model.requests[-1].messages)
    assert told.count("exit code 0") == 2 and "found /proc" not in told and TOKEN[::-1] not in told
    assert outside.read_text() == TOKEN and "evil" not in (work / ".git/config").read_text()
