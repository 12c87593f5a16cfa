"""Skills, hooks and commands of others, unchanged. DUCKFLOW_PUBLIC names a folder with checkouts of their repositories,
each called `owner+name`; without it there is nothing to try. See docs/skills-and-hooks.md."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import ActionFinished
from duckflow.state.question import Answer
from tests.cli.shell import HELLO, Shell
from tests.journeys.story import Story, act, decide, respond

PUBLIC = Path(os.environ.get("DUCKFLOW_PUBLIC", "/nowhere"))
MADE_BY = {
    "algorithmic-art": "anthropics+skills", "brand-guidelines": "anthropics+skills", "claude-api": "anthropics+skills",
    "docx": "anthropics+skills", "mcp-builder": "anthropics+skills", "skill-creator": "anthropics+skills",
    "webapp-testing": "anthropics+skills", "systematic-debugging": "obra+superpowers",
    "test-driven-development": "obra+superpowers", "writing-plans": "obra+superpowers",
}  # fmt: skip
VALIDATOR = PUBLIC / "anthropics+claude-code/examples/hooks/bash_command_validator_example.py"
GUARD = PUBLIC / "disler+claude-code-hooks-mastery/.claude/hooks/pre_tool_use.py"
AT_GATE = PUBLIC / "disler+claude-code-hooks-mastery/.claude/hooks/permission_request.py"
BACKUP = PUBLIC / "disler+claude-code-hooks-mastery/.claude/hooks/pre_compact.py"
PROTECTED = PUBLIC / "karanb192+claude-code-hooks/plugins/protect-secrets/protect-secrets.js"
DANGERS = PUBLIC / "karanb192+claude-code-hooks/plugins/block-dangerous-commands/block-dangerous-commands.js"
RALPH = PUBLIC / "anthropics+claude-code/plugins/ralph-wiggum/hooks/stop-hook.sh"
STYLE = PUBLIC / "anthropics+claude-code/plugins/explanatory-output-style/hooks-handlers/session-start.sh"
COMMIT = PUBLIC / "anthropics+claude-code/plugins/commit-commands/commands/commit.md"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PUBLIC.is_dir(), reason="DUCKFLOW_PUBLIC names no folder with public repositories"),
]


def run(command: str) -> dict[str, object]:
    return decide(act("shell.run", command=command), next_step="continue")


def settings(event: str, command: str, matcher: str = "Bash") -> dict[str, Any]:
    return {"hooks": {event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]}}


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_ten_skills_are_told_of_read_and_their_files_too(tmp_path: Path, language: str) -> None:
    top = tmp_path / "user/.agents/skills"
    top.mkdir(parents=True)
    for name, repository in MADE_BY.items():
        (top / name).symlink_to(PUBLIC / repository / "skills" / name)
    reads = [decide(act("skill.read", name=name), next_step="continue", step="PLANNING") for name in MADE_BY]
    one_file = decide(act("skill.read", name="mcp-builder", file="reference/evaluation.md"), next_step="continue")
    story = Story(tmp_path, [*reads, one_file, decide(respond("Read."))], language=language)
    assert await story.tell("read them all") == "done"
    assert all(f"- {name}: " in story.prompt(0) for name in MADE_BY)
    results = [request.messages for request in story.model.requests]
    assert len(results) == len(MADE_BY) + 2 and "Its folder: " in story.prompt(1)
    failed = [event.result.for_model for event in story.all(ActionFinished) if not event.result.ok]
    assert failed == []


def test_a_script_of_a_skill_runs_in_the_sandbox(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    skill = shell.work / ".agents/skills/webapp-testing"
    skill.parent.mkdir(parents=True)
    shutil.copytree(PUBLIC / "anthropics+skills/skills/webapp-testing", skill)
    script = [
        run("python3 .agents/skills/webapp-testing/scripts/with_server.py --help"),
        decide(respond("Seen."), step="REVIEW"),
    ]
    flags = ("--trust", "--mode", "full-auto", "--output-format", "json")
    done = shell.run("-p", "look", "-m", shell.script(*script), *flags)
    assert "exit code 0" in done.stdout and "usage: with_server.py" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("program", "command", "reason"),
    [
        (f"python3 {VALIDATOR}", "grep -rn duck .", "rg"),
        (f"python3 {GUARD}", "rm -rf /", "Dangerous rm command"),
        (f"python3 {GUARD}", "cat .env", ".env"),
        (f"node {DANGERS}", "rm -rf ~/", "rm"),
        (f"node {PROTECTED}", "cat .env", ".env"),
    ],
)
async def test_guards_of_others_refuse(tmp_path: Path, program: str, command: str, reason: str) -> None:
    if not shutil.which(program.split()[0]):
        pytest.skip(f"{program.split()[0]} is not here")
    replies = [run(command), run("echo fine"), decide(respond("ok"))]
    story = Story(tmp_path, replies, settings=settings("PreToolUse", program))
    story.answers = [Answer(choice="yes")] * 3
    await story.tell("go")
    results = [event.result for event in story.all(ActionFinished) if event.result.operation == "shell.run"]
    assert [result.ok for result in results] == [False, True]
    assert reason in results[0].for_model and "fine" in results[1].for_model


async def test_a_loop_that_reads_the_transcript_sends_it_back_to_work(tmp_path: Path) -> None:
    if not (shutil.which("jq") and shutil.which("perl")):
        pytest.skip("jq or perl is not here")
    state = tmp_path / "work/.claude/ralph-loop.local.md"
    state.parent.mkdir(parents=True)
    state.write_text('---\niteration: 1\nmax_iterations: 3\ncompletion_promise: "DONE"\n---\nBuild the pond.\n')
    replies = [decide(respond(text)) for text in ("Half of it.", "Nearly <promise>DONE</promise>.", "never")]
    story = Story(tmp_path, replies, settings=settings("Stop", f"bash {RALPH}", ""))
    assert await story.tell("build it") == "done"
    assert len(story.model.requests) == 2 and "Build the pond." in story.prompt(1) and not state.exists()


@pytest.mark.parametrize("may_allow", [False, True])
async def test_a_hook_of_others_answers_a_gate_where_it_may(tmp_path: Path, may_allow: bool) -> None:
    allowing: dict[str, Any] = settings("PermissionRequest", f"python3 {AT_GATE} --auto-allow")
    allowing["hooks"]["may_allow"] = may_allow
    story = Story(tmp_path, [run("echo one > a.txt"), decide(respond("ok"))], mode="ask", settings=allowing)
    story.answers = [Answer(choice="no")]
    await story.tell("go")
    assert len(story.questions) == (not may_allow) and (story.folder / "a.txt").exists() is may_allow


async def test_a_hook_of_others_saves_the_transcript_before_the_context_is_compacted(tmp_path: Path) -> None:
    story = Story(tmp_path, [HELLO], settings=settings("PreCompact", f"python3 {BACKUP} --backup --verbose", ""))
    await story.tell("hello")
    await story.chat.run_command("/compact the ducks")
    (saved,) = (story.folder / "logs/transcript_backups").iterdir()
    assert "hello" in saved.read_text()
    (logged,) = json.loads((story.folder / "logs/pre_compact.json").read_text())
    assert logged["custom_instructions"] == "the ducks" and logged["trigger"] == "manual"


async def test_a_session_start_hook_brings_its_text(tmp_path: Path) -> None:
    story = Story(tmp_path, [HELLO], settings=settings("SessionStart", f"bash {STYLE}", ""))
    await story.tell("hello")
    assert "Insight" in story.prompt(0)


def test_a_command_of_others_with_git_inside(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (tmp_path / ".claude/commands").mkdir(parents=True)
    # `/commit` is a command of ours, which goes before theirs.
    shutil.copy(COMMIT, tmp_path / ".claude/commands/save.md")
    git = "git -c user.name=duck -c user.email=duck@pond"
    shell.sh(f"git init -q . && {git} commit -q --allow-empty -m start && echo hi > a.txt")
    done = shell.run("-p", "/save", "-m", shell.script(HELLO), "--output-format", "json")
    told = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert [one["ok"] for one in told["actions"] if one["operation"] == "shell.run"] == [True] * 4
    assert "a.txt" in told["actions"][0]["for_model"]
