"""Hooks: programs that are told of events and may refuse; none of a folder before it is trusted, none that changed."""

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import ActionFinished, Noticed
from duckflow.events.work import AgentEnded, AgentStarted
from duckflow.state.agent import AgentReport, SubAgent
from duckflow.state.question import Answer
from tests.cli.shell import HELLO, Shell
from tests.journeys.processes import processes
from tests.journeys.story import Story, act, decide, respond

HELLOS = [decide(respond("Hello."), step="PLANNING")] * 8
TRUST = Answer(choice="trust")
WRITE = act("file_ops.write_file", path="a.txt", content="one\n")
EVENTS = ("PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SessionStart", "SessionEnd")


def hook(event: str, command: str, matcher: str = "", **more: Any) -> dict[str, Any]:
    group = {"hooks": [{"type": "command", "command": command, **more}]}
    return {event: [{"matcher": matcher, **group} if matcher else group]}


def own(*hooks: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The user's own settings with these."""
    merged: dict[str, Any] = dict(more)
    for one in hooks:
        for event, groups in one.items():
            merged[event] = [*merged.get(event, []), *groups]
    return {"hooks": merged}


def write_hooks(path: Path, *hooks: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(own(*hooks)), encoding="utf-8")


def noticed(story: Story) -> list[str]:
    return [event.what.key for event in story.all(Noticed)]


def reason(story: Story) -> object:
    why = story.ending().why
    return why.values["reason"] if why else None


async def test_every_event_is_told_as_hooks_expect_it(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    every = [hook(event, f"cat >> {log}; echo >> {log}") for event in EVENTS]
    edit = act("file_ops.edit_file", path="a.txt", edits=[{"old": "one", "new": "two"}])
    look = act("file_ops.read_file", path="a.txt")
    run = act("shell.run", command="echo hi")
    replies = [decide(WRITE, look, next_step="continue"), decide(edit, run, respond("Done."))]
    story = Story(tmp_path, replies, settings=own(*every))
    assert await story.tell("make a.txt") == "done"
    await story.close()
    told = [json.loads(line) for line in log.read_text().splitlines() if line]
    assert all(
        one["session_id"] == "s" and one["cwd"] == str(story.folder) and one["permission_mode"] == "bypassPermissions"
        for one in told
    )
    names = [(one["hook_event_name"], one.get("tool_name", "")) for one in told]
    assert names[:2] == [("SessionStart", ""), ("UserPromptSubmit", "")] and names[-2:] == [
        ("Stop", ""),
        ("SessionEnd", ""),
    ]
    assert [name for name in names if name[0] == "PreToolUse"] == [
        ("PreToolUse", tool) for tool in ("Write", "Read", "Edit", "Bash")
    ]
    path = str(story.folder / "a.txt")
    inputs = {one["tool_name"]: one["tool_input"] for one in told if one["hook_event_name"] == "PreToolUse"}
    assert inputs["Write"] == {"file_path": path, "content": "one\n"} and inputs["Read"]["file_path"] == path
    assert inputs["Bash"]["command"] == "echo hi"
    assert (inputs["Edit"]["old_string"], inputs["Edit"]["new_string"]) == ("one", "two")
    answers = {one["tool_name"]: one["tool_response"] for one in told if one["hook_event_name"] == "PostToolUse"}
    assert "hi" in answers["Bash"]["stdout"] and answers["Write"]["filePath"] == path
    by_event = {one["hook_event_name"]: one for one in told}
    assert by_event["UserPromptSubmit"]["prompt"] == "make a.txt" and by_event["SessionStart"]["source"] == "startup"
    assert by_event["Stop"]["stop_hook_active"] is False and by_event["Stop"]["last_assistant_message"] == "Done."
    lines = [json.loads(line) for line in Path(by_event["Stop"]["transcript_path"]).read_text().splitlines()]
    assert lines[0]["message"] == {"role": "user", "content": [{"type": "text", "text": "make a.txt"}]}
    assert lines[-1]["type"] == "assistant" or lines[-1]["message"]["content"][0]["type"] == "tool_result"


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_a_hook_refuses_with_its_reason(tmp_path: Path, language: str) -> None:
    guard = hook("PreToolUse", "echo 'no text files' >&2; exit 2", "Edit|Write")
    story = Story(tmp_path, [decide(WRITE, next_step="continue"), *HELLOS], settings=own(guard), language=language)
    assert await story.tell("make a.txt") == "done"
    assert not (story.folder / "a.txt").exists() and not story.questions
    assert "no text files" in story.prompt(1)
    (failed,) = [event.result for event in story.all(ActionFinished) if event.result.operation.endswith("write_file")]
    assert not failed.ok and failed.for_user.key == "hook.refused"


async def test_what_json_says_counts_and_a_matcher_that_does_not_fit_is_left_alone(tmp_path: Path) -> None:
    answer = {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "never"}}
    deny = hook("PreToolUse", f"echo '{json.dumps(answer)}'", "Bash")
    old = hook("PreToolUse", """echo '{"decision": "block", "reason": "old style"}'""", "^mcp__.*|Notebook.*")
    run = decide(act("shell.run", command="touch b.txt"), next_step="continue")
    story = Story(tmp_path, [decide(WRITE, next_step="continue"), run, *HELLOS], settings=own(deny, old))
    await story.tell("make them")
    assert (story.folder / "a.txt").exists() and not (story.folder / "b.txt").exists()
    assert "never" in story.prompt() and "old style" not in story.prompt()


async def test_a_hook_can_make_the_gate_ask_and_cannot_make_it_silent(tmp_path: Path) -> None:
    def says(decision: str) -> dict[str, Any]:
        inner = {"permissionDecision": decision, "permissionDecisionReason": f"{decision} it"}
        return hook("PreToolUse", f"echo '{json.dumps({'hookSpecificOutput': inner})}'", "Write")

    for name in ("ask", "silent", "allowed"):
        (tmp_path / name).mkdir()
    asking = Story(tmp_path / "ask", [decide(WRITE, respond("ok"))], settings=own(says("ask")))
    asking.answers = [Answer(choice="no")]
    await asking.tell("go")
    (question,) = asking.questions
    assert question.gate and question.gate.reasons[-1].values["reason"] == "ask it", "in full-auto all the same"
    assert not (asking.folder / "a.txt").exists()

    silent = Story(tmp_path / "silent", [decide(WRITE, respond("ok"))], mode="ask", settings=own(says("allow")))
    await silent.tell("go")
    assert len(silent.questions) == 1, "a hook loosens nothing"
    free = own(says("allow"), may_allow=True)
    allowed = Story(tmp_path / "allowed", [decide(WRITE, respond("ok"))], mode="ask", settings=free)
    await allowed.tell("go")
    assert not allowed.questions and (allowed.folder / "a.txt").exists(), "unless the user's own settings say so"


async def test_a_hook_changes_the_arguments_before_the_gate_shows_them(tmp_path: Path) -> None:
    path = tmp_path / "work/b.txt"
    inner = {"updatedInput": {"file_path": str(path), "content": "two\n"}, "additionalContext": "mind the gap"}
    change = hook("PreToolUse", f"echo '{json.dumps({'hookSpecificOutput': inner})}'", "Write")
    replies = [decide(WRITE, next_step="continue"), *HELLOS]
    story = Story(tmp_path, replies, mode="ask", settings=own(change))
    story.answers = [Answer(choice="yes")]
    await story.tell("go")
    gate = story.questions[0].gate
    assert gate and [impact.path for impact in gate.impacts] == ["b.txt"] and "two" in gate.diff
    assert path.read_text() == "two\n" and "mind the gap" in story.prompt(1) and "b.txt" in story.prompt(1)


async def test_after_an_action_a_hook_objects_and_what_it_changed_is_undone_with_the_action(tmp_path: Path) -> None:
    tidy = hook("PostToolUse", "tr a-z A-Z < a.txt > t && mv t a.txt; echo 'use tabs' >&2; exit 2", "Write")
    story = Story(tmp_path, [decide(WRITE, next_step="continue"), *HELLOS], settings=own(tidy))
    await story.tell("go")
    assert (story.folder / "a.txt").read_text() == "ONE\n" and "use tabs" in story.prompt(1)
    await story.chat.undo.restore(back=True)
    assert not (story.folder / "a.txt").exists()


async def test_a_message_is_refused_before_the_model_sees_it_or_gets_more_to_read(tmp_path: Path) -> None:
    script = 'read -r line; case "$line" in *sesame*) echo "no passwords" >&2; exit 2;; esac; echo "branch: main"'
    story = Story(tmp_path, HELLOS, settings=own(hook("UserPromptSubmit", script)))
    assert await story.tell("the password is sesame") == "gate"
    assert not story.model.requests and reason(story) == "no passwords"
    assert await story.tell("hello") == "done"
    assert "sesame" not in story.prompt() and "branch: main" in story.prompt()


async def test_a_hook_sends_the_model_back_to_work_but_not_for_ever(tmp_path: Path) -> None:
    once = """grep -q '"stop_hook_active":false' && echo '{"decision": "block", "reason": "run the tests"}'; true"""
    for name in ("once", "always"):
        (tmp_path / name).mkdir()
    story = Story(tmp_path / "once", HELLOS, settings=own(hook("Stop", once)))
    assert await story.tell("hello") == "done"
    assert len(story.model.requests) == 2 and "run the tests" in story.prompt(1)
    replies = [decide(respond(f"Hello number {number}."), step="PLANNING") for number in range(8)]
    always = Story(tmp_path / "always", replies, settings=own(hook("Stop", "echo again >&2; exit 2")))
    assert await always.tell("hello") == "done"
    assert len(always.model.requests) == 6 and "hook.no_end" in noticed(always)


async def test_a_hook_ends_the_turn(tmp_path: Path) -> None:
    stop = hook("PostToolUse", """echo '{"continue": false, "stopReason": "enough"}'""", "Write")
    story = Story(tmp_path, [decide(WRITE, next_step="continue"), *HELLOS], settings=own(stop))
    assert await story.tell("go") == "gate" and len(story.model.requests) == 1
    assert reason(story) == "enough"


@pytest.mark.parametrize(
    ("command", "key", "more"),
    [
        ("sleep 317 & sleep 317", "hook.too_slow", {"timeout": 1}),
        ("yes", "hook.flood", {}),
        ("kill -9 $$", "hook.failed", {}),
        ("echo boom >&2; exit 1", "hook.failed", {}),
        ("echo '{not json'", "hook.garbage", {}),
        ("/no/such/program", "hook.failed", {}),
        ("", "hook.not_started", {"command": "/no/such/program", "args": ["x"]}),
    ],
)
async def test_a_guard_that_misbehaves_is_told_of_and_asks(
    tmp_path: Path, command: str, key: str, more: dict[str, Any]
) -> None:
    """A guard that fails asks; any other hook that fails is only told of."""
    broken = hook("PreToolUse", **{"command": command, "matcher": "Write", **more})
    story = Story(tmp_path, [decide(WRITE, respond("ok"))], settings=own(broken))
    story.answers = [Answer(choice="yes")]
    assert await story.tell("go") == "done"
    gate = story.questions[0].gate
    assert gate and gate.reasons[-1].key == key, "in full-auto too"
    assert key in noticed(story) and (story.folder / "a.txt").read_text() == "one\n"
    if key == "hook.too_slow":
        for _ in range(200):
            if not processes("sleep 317"):
                break
            await asyncio.sleep(0.05)
        assert not processes("sleep 317"), "what it started is ended with it"


async def test_what_a_hook_leaves_running_is_not_waited_for(tmp_path: Path) -> None:
    story = Story(tmp_path, HELLOS, settings=own(hook("Stop", "sleep 20 & echo hi")))
    start = time.monotonic()
    assert await story.tell("hello") == "done"
    assert time.monotonic() - start < 15 and "hook.too_slow" not in noticed(story)


async def test_a_hook_sees_no_secrets_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "GITHUB_TOKEN", "PLAIN_NAME", "WANTED_TOKEN"):
        monkeypatch.setenv(name, "sk-" + "a" * 30 if name != "PLAIN_NAME" else "plain")
    settings = own(hook("Stop", "env > seen"), environment=["WANTED_TOKEN"])
    story = Story(tmp_path, HELLOS, settings=settings)
    await story.tell("hello")
    seen = (story.folder / "seen").read_text()
    assert "OPENAI_API_KEY" not in seen and "GITHUB_TOKEN" not in seen
    assert "PLAIN_NAME" in seen and "WANTED_TOKEN" in seen and f"CLAUDE_PROJECT_DIR={story.folder}" in seen


@pytest.mark.parametrize("file", [".claude/settings.json", ".codex/hooks.json", ".duckflow/hooks.json"])
async def test_what_a_folder_brings_runs_once_it_is_trusted_and_as_it_was_then(tmp_path: Path, file: str) -> None:
    script = tmp_path / "work/.hooks/guard.sh"
    script.parent.mkdir(parents=True)
    script.write_text("echo ran >> ran\n")
    write_hooks(tmp_path / "work" / file, hook("Stop", 'sh "$CLAUDE_PROJECT_DIR"/.hooks/guard.sh'))
    ran = tmp_path / "work/ran"
    story = Story(tmp_path, HELLOS)
    story.answers = [Answer(choice="no")]
    await story.tell("hello")
    assert not ran.exists() and "guard.sh" in str(story.questions[0].details)
    trusting = story.restart(HELLOS)
    trusting.answers = [TRUST]
    await trusting.tell("hello")
    assert ran.read_text() == "ran\n" and len(trusting.questions) == 1, "whoever trusts the folder has seen them"
    script.write_text("echo changed >> ran\n")
    await trusting.tell("hello again")
    assert ran.read_text() == "ran\nran\n" and len(trusting.questions) == 1, "it runs from the copy"
    kept = trusting.restart(HELLOS)
    kept.answers = [Answer(choice="no")]
    await kept.tell("hello")
    assert ran.read_text() == "ran\nran\nran\n" and "hook.stale" in noticed(kept)
    assert kept.questions[0].title.key == "brought.stale_question" and "guard.sh" in str(kept.questions[0].details)
    renewed = kept.restart(HELLOS)
    renewed.answers = [Answer(choice="fresh")]
    await renewed.tell("hello")
    assert ran.read_text().endswith("ran\nchanged\n") and len(renewed.questions) == 1


async def test_a_hook_of_the_folder_is_given_more_by_its_number(tmp_path: Path) -> None:
    write_hooks(tmp_path / "work/.claude/settings.json", hook("Stop", 'pwd > "$CLAUDE_PROJECT_DIR"/where'))
    story = Story(tmp_path, HELLOS)
    story.answers = [TRUST]
    await story.tell("hello")
    assert (story.folder / "where").read_text().strip() == str(story.folder)
    story.answers = [Answer(choice="network"), Answer(choice="home"), Answer(choice="network"), Answer(choice="done")]
    listed = await story.chat.run_command("/hooks 1")
    assert "private home" in listed and "the network" not in listed
    await story.tell("hello again")
    assert "copies" in (story.folder / "where").read_text(), "with any more right it runs from the copy"


@pytest.mark.parametrize("brought", [".claude/settings.json", ".duckflow/hooks.json"])
async def test_a_hook_that_comes_up_during_the_session_is_asked_about(tmp_path: Path, brought: str) -> None:
    """Whoever trusted the folder did not see it: a command of the model's may have put it there."""
    (tmp_path / "work/.claude/skills").mkdir(parents=True)
    evil = json.dumps(own(hook("UserPromptSubmit", f"touch {tmp_path}/ran")))
    plant = f"mkdir -p .duckflow; cat > {brought} <<'END'\n{evil}\nEND"
    replies = [decide(act("shell.run", command=plant), respond("ok")), *HELLOS]
    story = Story(tmp_path, replies)
    story.answers = [TRUST, Answer(choice="no")]
    await story.tell("go")
    assert (story.folder / brought).is_file() and "risk.runs_later" in noticed(story)
    await story.tell("hello")
    assert [question.title.key for question in story.questions] == ["trust.question", "hook.changed_question"]
    assert not (tmp_path / "ran").exists() and "hook.untrusted" in noticed(story)


async def test_hooks_for_another_assistant_are_asked_about_once_with_what_they_run(tmp_path: Path) -> None:
    write_hooks(tmp_path / "user/.claude/settings.json", hook("SessionStart", "echo the moon is full"))
    story = Story(tmp_path, HELLOS)
    story.answers = [TRUST]
    await story.tell("hello")
    assert "the moon is full" in str(story.questions[0].details) and "the moon is full" in story.prompt(0)
    again = story.restart(HELLOS)
    await again.tell("hello")
    assert not again.questions
    (tmp_path / "off").mkdir()
    off = Story(tmp_path / "off", HELLOS, settings=own(others=False))
    write_hooks(tmp_path / "off/user/.claude/settings.json", hook("SessionStart", "echo the moon"))
    await off.tell("hello")
    assert not off.questions and "moon" not in off.prompt(0)


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_hooks_are_listed_with_what_is_wrong(tmp_path: Path, language: str) -> None:
    write_hooks(tmp_path / "user/.claude/settings.json", hook("Stop", "notify"), hook("PreCompact", "x"))
    (tmp_path / "user/.codex").mkdir()
    (tmp_path / "user/.codex/hooks.json").write_text("{oops")
    talk = {"PreToolUse": [{"hooks": [{"type": "prompt", "prompt": "is it good?"}]}]}
    story = Story(tmp_path, HELLOS, settings=own(hook("PreToolUse", "guard", "Bash"), talk), language=language)
    listed = await story.chat.run_command("/hooks")
    assert "PreToolUse Bash (" in listed and "): guard" in listed and "): notify" in listed
    assert "PreCompact" in listed and "hooks.json" in listed and "prompt" in listed
    assert not story.questions


def test_headless_untrusted_hooks_stay_off_trust_is_said_once_and_doctor_names_them(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    write_hooks(shell.work / ".claude/settings.json", hook("Stop", "touch ran"))
    done = shell.run("-p", "hello", "-m", shell.script(HELLO))
    assert done.returncode == 0 and "not trusted" in done.stderr and not (shell.work / "ran").exists()
    done = shell.run("-p", "hello", "-m", shell.script(HELLO), "--trust")
    assert done.returncode == 0 and (shell.work / "ran").exists(), done.stderr
    assert "hook for Stop, trusted: touch" in shell.run("doctor", "-m", shell.script(HELLO)).stdout
    write_hooks(shell.work / ".claude/settings.json", hook("Stop", "touch other"))
    done = shell.run("-p", "hello", "-m", shell.script(HELLO))
    assert "1 hook is off, because you have not agreed" in done.stderr and not (shell.work / "other").exists()
    assert "hook for Stop, off" in shell.run("doctor", "-m", shell.script(HELLO)).stdout


def test_hooks_in_the_config_file(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    table = '[[hooks.UserPromptSubmit]]\nhooks = [{ type = "command", command = "echo no >&2; exit 2" }]\n'
    shell.write_config(table)
    done = shell.run("-p", "hello", "-m", shell.script(HELLO), PATH=os.environ["PATH"])
    assert done.returncode == 3 and "no" in done.stderr, done.stderr
    (shell.work / ".duckflow").mkdir()
    (shell.work / ".duckflow/config.toml").write_text(table)
    refused = shell.run("-p", "hello", "-m", shell.script(HELLO))
    assert refused.returncode == 2 and "hooks" in refused.stderr, "a folder's config names no programs"


async def test_hooks_hear_that_somebody_is_asked_and_that_an_agent_has_ended(tmp_path: Path) -> None:
    # Both hooks may run at once, so each has a file of its own, which is there when it is whole.
    logs = {event: tmp_path / f"{event}.json" for event in ("Notification", "SubagentStop")}
    heard = [hook(event, f"cat > {log}.part && mv {log}.part {log}") for event, log in logs.items()]
    story = Story(tmp_path, [decide(WRITE, respond("Done."))], mode="ask", settings=own(*heard))
    await story.tell("make a.txt")
    story.session.emit(AgentStarted(agent=SubAgent(agent_id="explore-1", kind="explore", task="look")))
    report = AgentReport(asked="look", outcome="done", found="nothing")
    story.session.emit(AgentEnded(agent_id="explore-1", status="done", report=report))
    for _ in range(1200):
        if all(log.exists() for log in logs.values()):
            break
        await asyncio.sleep(0.05)
    told = {event: json.loads(log.read_text()) for event, log in logs.items()}
    assert all(told[event]["hook_event_name"] == event for event in logs)
    assert told["Notification"]["notification_type"] == "permission_prompt" and told["Notification"]["message"]
    assert told["SubagentStop"]["agent_type"] == "explore"
    assert told["SubagentStop"]["last_assistant_message"] == "nothing"
