"""A model that writes a hook where the user's own settings of git look for hooks, or puts a program in git's way while
the user is asked about a commit: what `/commit` starts has been shown."""

import subprocess
from pathlib import Path

import pytest

from duckflow.state.question import Answer, Question
from tests.journeys.story import Story, act, decide, respond

HOOK = "#!/bin/sh\ntouch {hit}\n"
PLACES = (".githooks", "./.githooks", "tools/../.githooks", "{work}/.githooks", "~/way/.githooks", '".githooks"')
SETTINGS = (".gitconfig", ".config/git/config", "elsewhere")


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=d", "-c", "user.email=d@p", "-C", str(folder), *words], check=True, capture_output=True
    )


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work, home = tmp_path / "work", tmp_path / "user"
    (work / "tools").mkdir(parents=True)
    home.mkdir()
    (home / "way").symlink_to(work)
    (home / ".gitconfig").write_text("[user]\n\tname = d\n\temail = d@p\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    git(work, "init", "-q")
    git(work, "commit", "-q", "--allow-empty", "-m", "start")
    return work


def put_hook(path: Path, hit: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(HOOK.format(hit=hit))
    path.chmod(0o755)


async def story_of(work: Path) -> Story:
    story = Story(work.parent, [decide(act("file_ops.write_file", path="a.txt", content="one\n"), respond("Written."))])
    await story.tell("write it")
    return story


def told(story: Story) -> str:
    return "; ".join(
        str(detail.values["programs"])
        for question in story.questions
        for detail in question.details
        if detail.key == "commit.runs"
    )


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("settings", SETTINGS)
async def test_a_hook_that_the_users_own_settings_look_for_is_named(
    work: Path, monkeypatch: pytest.MonkeyPatch, place: str, settings: str
) -> None:
    file = work.parent / "user" / settings
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as config:
        config.write(f"[core]\n\thooksPath = {place.format(work=work)}\n[user]\n\tname = d\n\temail = d@p\n")
    if settings == "elsewhere":
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(file))
    put_hook(work / ".githooks/pre-commit", work.parent / "hit")
    story = await story_of(work)
    story.answers = [Answer(choice="yes")]
    await story.chat.run_command("/commit")
    await story.close()
    assert (work.parent / "hit").exists(), "git starts it"
    assert ".githooks/pre-commit" in told(story)


@pytest.mark.parametrize(
    "way", ["new", "changed", "made to run", "another place", "another program", "the place of the user's settings"]
)
async def test_a_program_that_comes_while_the_user_is_asked_does_not_run(
    work: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    hook, hit = work / ".git/hooks/pre-commit", work.parent / "hit"
    if way in ("changed", "made to run"):
        put_hook(hook, work / "harmless")
        hook.chmod(0o755 if way == "changed" else 0o644)
    if way == "another program":
        git(work, "config", "core.hooksPath", "nowhere")
    if way == "the place of the user's settings":
        (work.parent / "user/.gitconfig").write_text(
            "[core]\n\thooksPath = .githooks\n[user]\n\tname = d\n\temail = d@p\n"
        )
        hook = work / ".githooks/pre-commit"
    story = await story_of(work)

    def swap(_: Question) -> Answer:
        if way in ("another place", "another program"):
            git(work, "config", "core.hooksPath", "tools")
            put_hook(work / "tools/pre-commit", hit)
        else:
            put_hook(hook, hit)
        return Answer(choice="yes")

    monkeypatch.setattr(story, "answer", swap)
    await story.chat.run_command("/commit")
    await story.close()
    assert not hit.exists()
