"""What makes code run by itself later is not changed in passing: it is asked for, and in full-auto it is told."""

from pathlib import Path

import pytest

from duckflow.events.types import Noticed
from duckflow.state.question import Answer
from tests.journeys.story import Story, act, decide, respond

NAMES = [
    ".gitattributes",
    "sub/.gitmodules",
    ".vscode/tasks.json",
    ".idea/workspace.xml",
    ".husky/pre-commit",
    ".envrc",
    ".bashrc",
    "home/.zshenv",
    ".duckflow/config.toml",
    "AGENTS.md",
    "sub/agents.md",
    ".github/workflows/ci.yml",
    ".gitlab-ci.yml",
    ".circleci/config.yml",
    "Jenkinsfile",
    "tests/conftest.py",
    "sitecustomize.py",
    "lib/usercustomize.py",
    "lib/evil.pth",
    ".venv/bin/python",
    "node_modules/.bin/tsc",
    "web/.eslintrc.js",
    "eslint.config.mjs",
    ".nvim.lua",
    ".dir-locals.el",
    ".Rprofile",
    ".pnpmfile.cjs",
    "duck.code-workspace",
    ".mvn/extensions.xml",
    ".irbrc",
    "package.json",
    "Makefile",
    "HEAD",
    "vendor/thing/Head",
]
HARMLESS = [
    "src/hooks/useThing.ts", "src/objects/player.py", "docs/refs/list.md", "tests/test_a.py", "settings/config",
    "data/package.csv", "heading.md",
]  # fmt: skip


def write(path: str, content: str = "x\n"):
    return act("file_ops.write_file", path=path, content=content)


def notices(story: Story) -> list[str]:
    return [str(one.what.values["path"]) for one in story.all(Noticed) if one.what.key == "risk.runs_later"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("path", "mode"), [*((path, "auto-edit") for path in NAMES), (NAMES[0], "auto")])
async def test_asked_for_where_edits_pass(tmp_path: Path, path: str, mode: str) -> None:
    story = Story(tmp_path, [decide(write(path))], mode=mode)
    assert await story.tell("go") == "gate"
    gate = story.questions[0].gate
    assert gate and "risk.runs_later" in [reason.key for reason in gate.reasons]
    assert not (story.folder / path).exists()


async def test_what_only_sounds_like_it_passes(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(*map(write, HARMLESS))], mode="auto-edit")
    (story.folder / "Makefile").write_text("all:\n")
    assert await story.tell("go") == "done"
    assert story.questions == []


async def test_a_makefile_that_was_there_is_a_file_like_others(tmp_path: Path) -> None:
    edit = act("file_ops.edit_file", path="Makefile", old="all:", new="all: a.o")
    story = Story(tmp_path, [decide(edit)], mode="auto-edit")
    (story.folder / "Makefile").write_text("all:\n")
    assert await story.tell("go") == "done"
    assert story.questions == []


@pytest.mark.parametrize(
    "path", ["package.json", ".nvim.lua", "node_modules/.bin/tsc", ".eslintrc.cjs", ".pnpmfile.cjs"]
)
async def test_told_where_nothing_is_asked(tmp_path: Path, path: str) -> None:
    story = Story(tmp_path, [decide(write(path, "{}\n"), write("a.txt"))], mode="full-auto")
    assert await story.tell("go") == "done"
    assert story.questions == [] and notices(story) == [path]


@pytest.mark.parametrize("path", ["deep/x/config", "deep/x/hooks/post-checkout", "deep/x/refs/heads/main"])
async def test_a_folder_with_a_head_does_not_become_gits_in_passing(tmp_path: Path, path: str) -> None:
    story = Story(tmp_path, [decide(write(path))], mode="auto-edit")
    (story.folder / "deep/x/objects").mkdir(parents=True)
    (story.folder / "deep/x/head").write_text("ref: refs/heads/main\n")
    assert await story.tell("go") == "gate"


@pytest.mark.parametrize(("source", "target"), [("notes", "HEAD"), ("tools", ".husky"), ("flows", ".github")])
async def test_moved_into_place_is_the_same(tmp_path: Path, source: str, target: str) -> None:
    story = Story(tmp_path, [decide(act("file_ops.move_file", source=source, target=target))], mode="auto-edit")
    (story.folder / source).mkdir()
    assert await story.tell("go") == "gate"
    assert (story.folder / source).exists()


@pytest.mark.parametrize("path", [".GIT/config", "sub/.Git/hooks/post-commit", "GIT~1/config"])
async def test_git_itself_asks_in_every_mode_and_spelling(tmp_path: Path, path: str) -> None:
    story = Story(tmp_path, [decide(write(path))], mode="full-auto")
    assert await story.tell("go") == "gate"


async def test_a_rule_for_files_of_a_kind_does_not_cover_it_but_one_for_the_file_does(tmp_path: Path) -> None:
    replies = [decide(write(path), respond("ok")) for path in ("a.py", "b.py", "conftest.py")]
    edit = act("file_ops.write_file", path="conftest.py", content="y\n")
    story = Story(tmp_path, [*replies, decide(edit, respond("ok"))], mode="ask")
    story.answers = [Answer(choice="session"), Answer(choice="session")]
    for word in ("one", "two", "three", "four"):
        assert await story.tell(word) == "done"
    assert [len(question.choices) for question in story.questions] == [5, 5]
    assert (story.folder / "conftest.py").read_text() == "y\n"


@pytest.mark.parametrize("path", [".envrc", "tests/conftest.py", ".github/workflows/ci.yml", "Makefile"])
async def test_told_when_a_command_has_written_it(tmp_path: Path, path: str) -> None:
    command = f"mkdir -p $(dirname {path}) && echo x > {path} && echo y > plain.txt"
    story = Story(tmp_path, [decide(act("shell.run", command=command), respond("done"))], mode="full-auto")
    assert await story.tell("go") == "done"
    assert notices(story) == [path]
