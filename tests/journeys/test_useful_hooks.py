"""Hooks as people have them in their folders work as before, though they run from a copy and in the sandbox."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from duckflow.state.question import Answer
from tests.journeys.story import Story, act, decide, respond

WRITE = act("file_ops.write_file", path="app.py", content="x   =  1\n")
END = decide(respond("ok"), step="PLANNING")
PATH_OF = "import json, sys; print(json.load(sys.stdin)['tool_input']['file_path'])"
GUARD = """import json, sys
command = json.load(sys.stdin)["tool_input"]["command"]
if "rm" in command.split():
    print("no rm here", file=sys.stderr)
    sys.exit(2)
"""
SCANNER = """import json, re, sys
about = json.load(sys.stdin)["tool_input"]
if re.search(r"AKIA[0-9A-Z]{16}", about.get("content", "")):
    print("that is a key", file=sys.stderr)
    sys.exit(2)
"""
NODE = """let text = ''
process.stdin.on('data', part => text += part)
process.stdin.on('end', () => {
  const path = JSON.parse(text).tool_input.file_path
  require('fs').writeFileSync('node-saw', require('./lib').last(path))
})
"""


def hook(event: str, command: str, matcher: str = "") -> dict[str, Any]:
    return {event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    folder = tmp_path / "work"
    (folder / ".claude/hooks").mkdir(parents=True)
    git = ["git", "-c", "user.name=d", "-c", "user.email=d@p"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "start"]):
        subprocess.run([*git, *words], cwd=folder, check=True, capture_output=True)
    return folder


async def told(work: Path, hooks: dict[str, Any], *actions: dict[str, Any]) -> Story:
    (work / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}))
    story = Story(work.parent, [decide(*actions, next_step="continue"), END, END])
    story.answers = [Answer(choice="trust")]
    await story.tell("go")
    await story.close()
    return story


async def test_a_formatter_by_file_path(work: Path) -> None:
    await told(work, hook("PostToolUse", f'ruff format -q "$(python3 -c "{PATH_OF}")"', "Write"), WRITE)
    assert (work / "app.py").read_text() == "x = 1\n"


async def test_a_formatter_on_the_folder(work: Path) -> None:
    await told(work, hook("PostToolUse", "ruff format -q .", "Edit|Write"), WRITE)
    assert (work / "app.py").read_text() == "x = 1\n"


async def test_a_check_of_what_git_shows(work: Path) -> None:
    check = "git add -N . && git diff --stat | grep app.py > shown; git status --short >> shown"
    await told(work, hook("PostToolUse", check, "Write"), WRITE)
    assert "app.py" in (work / "shown").read_text()


async def test_a_notifier(work: Path) -> None:
    script = 'printf "\a"; echo "done in $(basename "$CLAUDE_PROJECT_DIR")" >> log\n'
    (work / ".claude/hooks/notify.sh").write_text(script)
    await told(work, hook("Stop", 'sh "$CLAUDE_PROJECT_DIR"/.claude/hooks/notify.sh'), WRITE)
    assert (work / "log").read_text() == "done in work\n"


async def test_a_scanner_for_secrets_refuses(work: Path) -> None:
    (work / ".claude/hooks/scan.py").write_text(SCANNER)
    key = act("file_ops.write_file", path="key.txt", content="AKIA" + "A" * 16)
    await told(work, hook("PreToolUse", "python3 .claude/hooks/scan.py", "Write"), key, WRITE)
    assert not (work / "key.txt").exists() and (work / "app.py").exists()


async def test_a_guard_refuses_rm(work: Path) -> None:
    (work / ".claude/hooks/guard.py").write_text(GUARD)
    (work / "kept").touch()
    remove = act("shell.run", command="rm kept")
    story = await told(work, hook("PreToolUse", "python3 .claude/hooks/guard.py", "Bash"), remove)
    assert (work / "kept").exists() and "no rm here" in story.prompt(1)


@pytest.mark.parametrize("command", ["make lint", "npm run -s lint"])
async def test_a_linter_by_make_or_npm(work: Path, command: str) -> None:
    if shutil.which(command.split()[0]) is None:
        pytest.skip(f"{command.split()[0]} is not installed")
    (work / "Makefile").write_text("lint:\n\truff check -q . && echo linted > linted\n")
    scripts = {"name": "pond", "scripts": {"lint": "ruff check -q . && echo linted > linted"}}
    (work / "package.json").write_text(json.dumps(scripts))
    await told(work, hook("PostToolUse", command, "Write"), WRITE)
    assert (work / "linted").exists()


async def test_one_in_node(work: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    (work / ".claude/hooks/look.js").write_text(NODE)
    (work / ".claude/hooks/lib.js").write_text("exports.last = path => path.split('/').pop()\n")
    await told(work, hook("PostToolUse", 'node "$CLAUDE_PROJECT_DIR/.claude/hooks/look.js"', "Write"), WRITE)
    assert (work / "node-saw").read_text() == "app.py"
