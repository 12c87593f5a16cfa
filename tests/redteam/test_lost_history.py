"""A model that lets a script of the folder throw git's history away: `/undo` brings every commit and branch back."""

import shutil
import subprocess
from pathlib import Path

import pytest

from duckflow.state.question import Answer
from tests.journeys.story import Story, act, decide, respond

SCRIPTS = {
    "python3 tool.py": "import shutil\nshutil.rmtree('.git', ignore_errors=True)\n",
    "python3 -m tool": "import os, pathlib\n[p.unlink() for p in pathlib.Path('.git').rglob('*') if p.is_file()]\n",
    "sh tool.sh": "find .git -type f -exec rm -f {} +\n",
    "bash tool.sh": "chmod -R u+w .git; for f in $(find .git/objects -type f); do : > $f; done\n",
    "make -f tool.mk": "all:\n\t-rm -rf .git/objects .git/refs .git/logs .git/packed-refs\n",
    "perl tool.pl": "chmod 0644, $_ or 1 for glob('.git/objects/*/*'); unlink glob('.git/objects/*/*');\n",
    ". ./tool.sh": "git branch -D side; git reflog expire --expire=now --all; git gc -q --prune=now\n",
    "sh ./tool.sh": "mv .git gone || mv .git/objects gone; rm -rf gone\n",
}


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=duck", "-c", "user.email=duck@pond")
    return subprocess.run(["git", *who, *words], cwd=folder, check=False, capture_output=True, text=True).stdout


def history(folder: Path) -> str:
    whole = subprocess.run(["git", "fsck", "--full"], cwd=folder, check=False, capture_output=True).returncode
    return f"{whole} {git(folder, 'for-each-ref')} {git(folder, 'log', '--all', '--format=%H %T')}"


def begin(folder: Path, packed: bool) -> None:
    git(folder, "init", "-q", "-b", "main")
    for name in ("a", "b"):
        (folder / name).write_text(f"{name}\n")
        git(folder, "add", name)
        git(folder, "commit", "-qm", name)
    git(folder, "branch", "side", "HEAD~1")
    if packed:
        git(folder, "gc", "-q")


@pytest.mark.one_in(2)
@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
@pytest.mark.parametrize("command", SCRIPTS)
async def test_undo_brings_back_what_a_script_threw_away(tmp_path: Path, command: str, packed: bool) -> None:
    done = decide(respond("done"), step="PLANNING")
    tried = decide(act("shell.run", command=command), next_step="continue")
    story = Story(tmp_path, [done, tried, done, done], settings={"sandbox": {"kind": "bubblewrap"}})
    story.answer = lambda question: Answer(choice="yes")
    name = "tool.py" if command.endswith("tool") else command.split()[-1]
    (story.folder / name).write_text(SCRIPTS[command])
    begin(story.folder, packed)
    await story.tell("hello")
    before = history(story.folder)
    await story.tell("go on")
    await story.chat.run_command("/undo")
    assert history(story.folder) == before


@pytest.mark.one_in(2)
@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "command",
    [
        "chmod -R u+w .git/objects; for file in $(find .git/objects -type f); do echo x > $file; done",
        'python3 -c \'import os,pathlib\nfor p in pathlib.Path(".git/objects").rglob("*"):\n'
        " p.is_file() and (p.chmod(0o644), os.truncate(p, 0))'",
        "git status; find .git/objects -type f -exec sh -c 'chmod u+w $0; truncate -s 1 $0' {} ';'",
    ],
)
async def test_a_repository_that_shares_its_objects_loses_none(tmp_path: Path, command: str, packed: bool) -> None:
    source = tmp_path / "source"
    source.mkdir()
    begin(source, packed)
    git(tmp_path, "clone", "-q", str(source), "work")
    before, done = history(source), decide(respond("done"), step="PLANNING")
    story = Story(tmp_path, [decide(act("shell.run", command=command), next_step="continue"), done, done])
    await story.tell("go on")
    await story.close()
    assert before.startswith("0 ") and history(source) == before
