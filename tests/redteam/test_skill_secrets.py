"""Skills and kinds of agents are read unasked in a trusted folder, but a secret among them is not."""

import os
from pathlib import Path

import pytest

from duckflow.extensions.skill_tool import ReadSkill, SkillArgs
from duckflow.extensions.skills import find_skills
from duckflow.state.question import Answer
from tests.journeys.story import Story, act, decide, respond

HEAD = "---\nname: bread\ndescription: How bread is baked.\n---\nBake.\n"
SECRET = "the-plain-password-of-the-pond"
NAMES = ["{}", "./{}", "data/../{}", "{} ", "notes.md", "deep/notes.md", "../bread/{}"]
FILES = [".env", ".env.local", "server.key", "id_rsa", "secrets/db.txt", "credentials.json"]


def skill_with(folder: Path, secret: str) -> Path:
    top = folder / ".claude/skills/bread"
    (top / "data").mkdir(parents=True)
    (top / "deep").mkdir()
    (top / "SKILL.md").write_text(HEAD)
    (top / secret).parent.mkdir(exist_ok=True)
    (top / secret).write_text(f"{SECRET}\n")
    (top / "notes.md").symlink_to(secret)
    (top / "deep/notes.md").symlink_to(f"../{secret}")
    return top


@pytest.mark.parametrize("secret", FILES)
async def test_a_secret_file_of_a_skill_is_given_by_no_spelling(tmp_path: Path, secret: str) -> None:
    folder = tmp_path / "work"
    skill_with(folder, secret)
    reads = [act("skill.read", name="bread", file=name.format(secret)) for name in NAMES]
    replies = [
        decide(read, next_step="continue", step="PLANNING") for read in (act("skill.read", name="bread"), *reads)
    ]
    story = Story(tmp_path, [*replies, decide(respond("ok"), step="PLANNING")])
    story.answers = [Answer(choice="trust")]
    await story.tell("bake")
    assert "Bake." in story.prompt(1), "the skill itself is read"
    sent = "".join(message.whole for request in story.model.requests for message in request.messages)
    assert SECRET not in sent
    await story.close()


@pytest.mark.parametrize(
    "place",
    [
        ".claude/skills/bread/SKILL.md",
        ".agents/skills/a/SKILL.md",
        ".duckflow/skills/b/SKILL.md",
        ".codex/skills/c/skill.md",
        ".claude/agents/bread.md",
        ".duckflow/agents/bread.md",
    ],
)
async def test_a_link_to_a_secret_in_the_place_of_an_extension_is_none(tmp_path: Path, place: str) -> None:
    folder = tmp_path / "work"
    (folder / place).parent.mkdir(parents=True)
    (folder / ".env").write_text(f"{SECRET}\n")
    (folder / place).symlink_to(os.path.relpath(folder / ".env", (folder / place).parent))
    story = Story(tmp_path, [decide(respond("ok"), step="PLANNING")])
    story.answers = [Answer(choice="trust")]
    await story.tell("go")
    sent = "".join(message.whole for request in story.model.requests for message in request.messages)
    assert SECRET not in sent
    await story.close()


async def no_grant(name: str, allowed: str) -> None:
    """Allows nothing."""


@pytest.mark.parametrize("secret", FILES)
async def test_the_copy_that_commands_see_has_no_secret_file(tmp_path: Path, secret: str) -> None:
    home = tmp_path / "home"
    skill_with(home, secret)
    (home / ".claude/skills/bread/times.md").write_text("forty minutes\n")
    tool = ReadSkill(lambda: find_skills(home, None), [home], tmp_path / "copies", no_grant)
    await tool.run(SkillArgs(name="bread"))
    assert (tmp_path / "copies/bread/times.md").exists()
    assert not (tmp_path / "copies/bread" / secret).exists()


@pytest.mark.parametrize("name", ["..", ".", "...", "-..", ". .", "..-", "../x", "a/../.."])
async def test_the_copy_of_a_skill_replaces_nothing_but_a_copy(tmp_path: Path, name: str) -> None:
    user, cache = tmp_path / "user", tmp_path / "cache"
    top = user / ".claude/skills/bread"
    top.mkdir(parents=True)
    (top / "SKILL.md").write_text(HEAD.replace("name: bread", f'name: "{name}"'))
    (top / "recipe.txt").write_text("flour\n")
    (cache / "skills/other").mkdir(parents=True)
    (cache / "weights").write_text("large\n")

    skills = find_skills(user, None)
    tool = ReadSkill(lambda: skills, [user], cache / "skills", no_grant)
    await tool.run(SkillArgs(name=skills[0].name))
    assert (cache / "weights").exists() and (cache / "skills/other").exists()
    assert len(list((cache / "skills").iterdir())) == 2
