"""Skills and custom commands: found where users have them; nothing of a folder before it is trusted."""

import os
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import MessageAdded, Noticed
from duckflow.i18n.words import Words
from duckflow.llm.scripted import ScriptedReply
from duckflow.state.question import Answer
from tests.cli.shell import HELLO, Shell
from tests.journeys.story import Story, act, decide, respond

HELLOS = [decide(respond("Hello."), step="PLANNING")] * 4
TRUST = Answer(choice="trust")
SMALL = {"prompts": {"profile": "compact"}}
SKILL = """---
name: bread
description: >
  How bread is baked here.
  Use it whenever bread is wanted.
---
# Bread
Bake at 250 degrees. See `times.md`.
"""


def write(path: Path, text: str, program: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    if program:
        path.chmod(0o755)
    return path


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("place", ["user/.agents/skills", "user/.codex/skills", "user/.duckflow/skills"])
async def test_a_skill_of_the_users_is_told_of_and_read_when_it_is_chosen(
    tmp_path: Path, place: str, language: str
) -> None:
    write(tmp_path / place / "bread/SKILL.md", SKILL)
    write(tmp_path / place / "bread/times.md", "forty minutes\n")
    replies = [
        decide(act("skill.read", name="bread"), next_step="continue", step="PLANNING"),
        decide(act("skill.read", name="bread", file="times.md"), next_step="continue", step="PLANNING"),
        decide(respond("Baked."), step="PLANNING"),
    ]
    story = Story(tmp_path, replies, language=language)
    assert await story.tell("bake bread") == "done"
    assert not story.questions, "what is the user's own needs no trust"
    assert "- bread: How bread is baked here. Use it whenever bread is wanted." in story.prompt(0)
    assert "250 degrees" not in story.prompt(0)
    assert "250 degrees" in story.prompt(1) and "forty minutes" in story.prompt(2)


async def test_models_with_tools_get_one_more_tool_and_only_then(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    plain = Story(tmp_path / "plain", [ScriptedReply("Hello.")], native=True)
    assert await plain.tell("hello") == "done"
    assert "skill_read" not in [tool.name for tool in plain.model.requests[0].tools]
    write(tmp_path / "user/.agents/skills/bread/SKILL.md", SKILL)
    story = Story(tmp_path, [ScriptedReply("Hello.")], native=True)
    assert await story.tell("hello") == "done"
    assert "skill_read" in [tool.name for tool in story.model.requests[0].tools]
    assert "`skill_read`" in story.prompt(0) and "bread" in story.prompt(0)


async def test_without_skills_the_prompt_is_the_same_to_the_letter(tmp_path: Path) -> None:
    story = Story(tmp_path, HELLOS)
    await story.tell("hello")
    assert "skill.read" not in story.prompt(0) and "skill" not in story.prompt(0).replace(str(tmp_path), "").lower()
    assert all(layer.name != "skills" for layer in await story.chat.context())


async def test_the_list_stays_within_two_percent_of_the_window(tmp_path: Path) -> None:
    for number in range(120):
        long = f"---\nname: skill-{number}\ndescription: {'what it is for, at length. ' * 30}\n---\nbody\n"
        write(tmp_path / f"user/.agents/skills/s{number}/SKILL.md", long)
    story = Story(tmp_path, HELLOS, window=40_000)
    await story.tell("hello")
    (told,) = [layer.tokens for layer in await story.chat.context() if layer.name == "skills"]
    assert 400 < told <= 800


async def test_nothing_of_a_folder_is_told_before_it_is_trusted(tmp_path: Path) -> None:
    write(tmp_path / "work/.claude/skills/bread/SKILL.md", SKILL)
    write(tmp_path / "work/.claude/commands/bake.md", "Bake $ARGUMENTS")
    story = Story(tmp_path, HELLOS)
    story.answers = [Answer(choice="no")]
    assert await story.tell("hello") == "done"
    (question,) = story.questions
    assert question.details[0].values["places"] == ".claude/skills, .claude/commands"
    assert "bread" not in story.prompt(0) and "skill.read" not in story.prompt(0)
    assert "bake" not in [command.name for command in story.chat.commands]
    assert "There is no /bake" in await story.chat.run_command("/bake buns")
    assert len(story.questions) == 1, "a no is not asked for again"

    again = story.restart(HELLOS)
    again.answers = [TRUST]
    assert await again.tell("hello") == "done"
    assert "- bread: How bread" in again.prompt(0)
    later = again.restart(HELLOS)
    assert "bake" in [command.name for command in later.chat.commands], "known before the first turn, once trusted"
    assert await later.tell("hello") == "done" and not later.questions


async def test_sloppy_heads_are_told_of_and_used(tmp_path: Path) -> None:
    top = tmp_path / "user/.agents/skills"
    write(top / "no-head/SKILL.md", "# Do it well\n")
    write(
        top / "odd/SKILL.md", '---\nname: Odd Name!\ndescription: Use when: asked, e.g. "now"\nthis is no key\n---\nx'
    )
    write(top / "open/SKILL.md", "---\nname: open\ndescription: never closed\n")
    story = Story(tmp_path, HELLOS)
    await story.tell("hello")
    assert '- odd-name: Use when: asked, e.g. "now"' in story.prompt(0) and "- no-head: Do it well" in story.prompt(0)
    assert [event.what.values["count"] for event in story.all(Noticed) if event.what.key == "skill.flawed"] == [3]
    listed = await story.chat.run_command("/skills")
    assert "⚠ a line in the header of SKILL.md is not understood: this is no key" in listed
    assert (
        "⚠ the header of SKILL.md has no name" in listed and "⚠ the skill's name “Odd Name!” cannot be typed" in listed
    )


async def test_a_skill_gives_nothing_from_beside_its_folder(tmp_path: Path) -> None:
    write(tmp_path / "user/.agents/skills/bread/SKILL.md", SKILL)
    write(tmp_path / "user/.agents/secret.txt", "hush")
    (tmp_path / "user/.agents/skills/bread/link.txt").symlink_to(tmp_path / "user/.agents/secret.txt")
    replies = [
        decide(act("skill.read", name="bread", file=name), next_step="continue", step="PLANNING")
        for name in ("../../secret.txt", str(tmp_path / "user/.agents/secret.txt"), "link.txt")
    ]
    unknown = decide(act("skill.read", name="brad"), next_step="continue", step="PLANNING")
    story = Story(tmp_path, [*replies, HELLOS[0], unknown, *HELLOS])
    await story.tell("look")
    await story.tell("and at another one")
    assert "hush" not in story.prompt() and "There is no skill 'brad'" in story.prompt()


def test_a_script_of_a_skill_passes_the_gate(tmp_path: Path) -> None:
    """Also one from a place of the home that commands do not see."""
    shell = Shell(tmp_path)
    write(tmp_path / ".claude/skills/bread/SKILL.md", SKILL)
    write(tmp_path / ".claude/skills/bread/scripts/oven.sh", "#!/bin/sh\necho hot > oven.txt\n", program=True)
    copy = shell.home / "cache/skills/bread"
    script = [
        decide(act("skill.read", name="bread"), next_step="continue", step="PLANNING"),
        decide(act("shell.run", command=f"sh {copy}/scripts/oven.sh"), next_step="continue"),
        decide(respond("Hot."), step="REVIEW"),
    ]
    asked = shell.run("-p", "heat it", "-m", shell.script(*script), "--output-format", "json")
    assert asked.returncode == 3 and f"sh {copy}/scripts/oven.sh" in asked.stdout, asked.stderr
    assert f"Its folder: {copy}" in asked.stdout and (copy / "scripts/oven.sh").is_file()


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_a_skill_is_called_for_by_its_name(tmp_path: Path, language: str) -> None:
    write(tmp_path / "user/.agents/skills/bread/SKILL.md", SKILL)
    story = Story(tmp_path, HELLOS, language=language)
    assert await story.chat.run_command("/bread with seeds") == ""
    wish = Words(language)("skill.wish_for", name="bread", wish="with seeds")
    assert wish in story.prompt(0) and "250 degrees" in story.prompt(0)


async def test_a_custom_command_is_said_with_what_was_typed(tmp_path: Path) -> None:
    head = "---\ndescription: bake something\nargument-hint: WHAT HOW\n---\n"
    write(tmp_path / "user/.claude/commands/bake.md", f"{head}Bake $1 for {{$2}}: $ARGUMENTS. @note.txt costs $10.")
    write(tmp_path / "user/.duckflow/commands/kitchen/clean.md", "Clean up.")
    write(tmp_path / "user/.duckflow/commands/status.md", "never called")
    write(tmp_path / "work/note.txt", "the note\n")
    story = Story(tmp_path, HELLOS)
    assert await story.chat.run_command('/bake "white bread" me') == ""
    said = [event.message.text for event in story.all(MessageAdded) if event.message.role == "user"]
    assert said == ['Bake white bread for {me}: "white bread" me. @note.txt costs $10.']
    assert "the note" in story.prompt(0)
    await story.chat.run_command("/kitchen:clean now")
    assert "Clean up.\n\nnow" in story.prompt(1)
    listed = await story.chat.run_command("/help")
    assert "Ctrl+" not in listed, "each front end names its own keys"
    assert "WHAT HOW · bake something" in listed and "/kitchen:clean" in listed
    assert (
        "Your own /status is not used" in listed
        and "never called" not in listed
        and "Session s" in await story.chat.run_command("/status")
    )


async def test_prompts_of_codex_are_called_as_there(tmp_path: Path) -> None:
    write(tmp_path / "user/.codex/prompts/review.md", "Review $FILE like $FOCUS. $HOME stays. $$")
    story = Story(tmp_path, HELLOS)
    assert await story.chat.run_command('/prompts:review FILE=a.py FOCUS="a stranger"') == ""
    assert "Review a.py like a stranger. $HOME stays. $$" in story.prompt(0)
    assert "FOCUS=" not in story.prompt(0)


async def test_what_a_command_names_is_not_owed_but_what_the_user_typed_is(tmp_path: Path) -> None:
    """A small model is held to what is asked for: by the user, not by a text that they brought."""
    text = "Create notes.md with the news."
    write(tmp_path / "user/.claude/commands/release.md", text)
    done = decide(respond("There is no news."), step="EXECUTION")
    story = Story(tmp_path, [done] * 6, settings=SMALL)
    assert await story.chat.run_command("/release") == ""
    assert len(story.model.requests) == 1 and "has not been written" not in story.prompt(-1)
    (tmp_path / "typed").mkdir()
    typed = Story(tmp_path / "typed", [done] * 6, settings=SMALL)
    await typed.tell(text)
    assert len(typed.model.requests) > 1


async def test_a_command_inside_a_custom_command_passes_the_gate(tmp_path: Path) -> None:
    write(tmp_path / "user/.claude/commands/look.md", "State: !`echo one-two`\nMake: !`touch made`\nSum it up.")
    story = Story(tmp_path, HELLOS, mode="ask")
    story.answers = [Answer(choice="no"), Answer(choice="yes")]
    assert "touch made" in await story.chat.run_command("/look")
    assert not story.model.requests and not (story.folder / "made").exists(), "a no: nothing is sent"
    assert await story.chat.run_command("/look") == ""
    assert (story.folder / "made").exists() and "State: exit code 0" in story.prompt(0) and "one-two" in story.prompt(0)
    assert [question.kind for question in story.questions] == ["gate", "gate"]


async def test_mode_and_model_of_a_command_hold_for_its_turn_and_a_folder_loosens_nothing(tmp_path: Path) -> None:
    write(tmp_path / "work/.claude/commands/loose.md", "---\nmode: full-auto\n---\nGo.")
    write(tmp_path / "work/.claude/commands/strict.md", "---\nmode: plan\nmodel: nobody:nothing\n---\nGo.")
    write(tmp_path / "user/.claude/commands/mine.md", "---\nmode: full-auto\n---\nGo.")
    make = decide(act("file_ops.write_file", path="a.txt", content="x"), respond("done"))
    story = Story(tmp_path, [make, make, HELLOS[0], make], mode="ask")
    story.answers = [TRUST, Answer(choice="no")]
    assert "cannot choose a mode" in await story.chat.run_command("/loose")
    assert not (story.folder / "a.txt").exists() and len(story.questions) == 2
    told = await story.chat.run_command("/strict")
    assert "nobody" in told, "and sends nothing elsewhere"
    assert not (story.folder / "a.txt").exists() and len(story.questions) == 2, "plan mode refuses without a question"
    assert await story.chat.run_command("/mine") == "" and (story.folder / "a.txt").exists()
    assert story.chat.choices.mode == "ask"


def test_headless_a_command_is_carried_out_and_a_path_is_only_a_text(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    write(shell.work / ".claude/commands/bake.md", "Bake $ARGUMENTS")
    assert shell.run("-p", "/bake buns", "-m", shell.script(HELLO)).returncode == 2, (
        "untrusted there is no such command"
    )
    done = shell.run("-p", "/bake buns", "-m", shell.script(HELLO), "--trust")
    assert done.returncode == 0 and "Hello there." in done.stdout, done.stderr
    journal = "".join(path.read_bytes().decode("utf-8", "ignore") for path in shell.home.rglob("*.db*"))
    assert "Bake buns" in journal
    assert "Hello there." in shell.run("-p", "/etc/hosts what is it", "-m", shell.script(HELLO)).stdout


def test_what_is_not_there_is_not_loaded(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    trace = shell.run("-p", "hello", "-m", shell.script(HELLO), PYTHONPROFILEIMPORTTIME="1", PATH=os.environ["PATH"])
    loaded = {line.rpartition("|")[2].strip() for line in trace.stderr.splitlines()}
    brought = sorted(name for name in loaded if name.startswith("duckflow.extensions"))
    assert brought == ["duckflow.extensions", "duckflow.extensions.places"]


LISTED = "Bash(git commit:*), Bash(git status:*), Edit(docs/**), Bash, Bash(sh:*), Read"
EMPTY = act("shell.run", command="git commit --allow-empty -m one")
DOCS = act("file_ops.write_file", path="docs/a.md", content="one\n")
CODE = act("file_ops.write_file", path="a.py", content="A = 1\n")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("agreed", ["yes", "no"])
@pytest.mark.parametrize("language", ["en", "ja"])
async def test_what_a_command_lists_as_allowed_is_asked_about_once_and_holds_for_its_turns(
    tmp_path: Path, agreed: str, language: str
) -> None:
    write(tmp_path / "user/.claude/commands/save.md", f"---\nallowed-tools: {LISTED}\n---\nSave.")
    turns: list[dict[str, Any]] = []
    for number in range(3):
        # Each turn writes something else, since a text that is there already is not asked about.
        edits = [act("file_ops.write_file", path=path, content=f"A = {number}\n") for path in ("docs/a.md", "a.py")]
        turns += [*(decide(one, next_step="continue") for one in (EMPTY, *edits)), HELLO]
    story = Story(tmp_path, turns, mode="ask", language=language)
    story.answers = [Answer(choice=agreed)] + [Answer(choice="yes")] * 20
    await story.chat.run_command("/save")
    first, *gates = story.questions
    shown = [Words(language).phrase(detail) for detail in first.details]
    assert len(shown) == 3 and "git commit …" in shown[0] and "docs/**" in shown[2], "no rule for the whole shell"
    assert [one.gate.operations for one in gates if one.gate][-1] == ("file_ops.write_file",)
    assert len(gates) == (1 if agreed == "yes" else 3), "what is not listed is asked for"
    story.questions.clear()
    await story.chat.run_command("/save")
    assert len(story.questions) == len(gates), "once in a session"
    story.questions.clear()
    await story.tell("and once more by yourself")
    assert len(story.questions) == 3 and not story.chat.state.allowed, "in its own turns only"


async def test_a_skill_that_the_model_chooses_asks_for_what_it_lists(tmp_path: Path) -> None:
    listed = SKILL.replace("name: bread", "name: bread\nallowed-tools: Write(docs/**)")
    write(tmp_path / "user/.agents/skills/bread/SKILL.md", listed)
    read = decide(act("skill.read", name="bread"), next_step="continue", step="PLANNING")
    story = Story(tmp_path, [read, decide(DOCS, next_step="continue"), HELLO, decide(DOCS), HELLO], mode="ask")
    story.answers = [Answer(choice="yes")] * 3
    await story.tell("bake bread")
    assert [question.kind for question in story.questions] == ["choice"]
    (story.folder / "docs/a.md").unlink()
    await story.tell("again")
    assert [question.kind for question in story.questions] == ["choice", "gate"], "the turn is over"


def test_without_a_person_nothing_that_a_folder_lists_is_allowed(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    write(shell.work / ".claude/commands/save.md", "---\nallowed-tools: Write\n---\nWrite.")
    done = shell.run("-p", "/save", "--trust", "-m", shell.script(decide(CODE, next_step="continue"), HELLO))
    assert not (shell.work / "a.py").exists() and done.returncode == 3, done.stderr
