"""`/commit` asks before it commits and runs the repository's hooks; `duckflow pr`; the recipe for CI."""

import re
from pathlib import Path

import pytest

from duckflow.state.question import Answer
from tests.cli.shell import Shell
from tests.cli.test_review import git
from tests.journeys.plans import job_ended, report, when
from tests.journeys.story import Story, act, decide, respond
from tests.journeys.test_step_agents import of_step

WRITE = decide(act("file_ops.write_file", path="a b.txt", content="one\n"), respond("Written."))
RECIPE = Path(__file__).parents[2] / "docs/ci.md"


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Story:
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "a")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@b")
    story = Story(tmp_path, [WRITE, decide(respond("Because you asked."))])
    git(story.folder, "init", "-q")
    return story


async def test_a_commit_waits_for_its_yes_and_runs_the_hooks(story: Story) -> None:
    hook = story.folder / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\ntouch hook-ran\n")
    hook.chmod(0o755)
    await story.tell("write the file with a space in its name")
    (story.folder / "mine.txt").write_text("not the session's\n")
    story.answers = [Answer(choice="no")]
    assert await story.chat.run_command("/commit") == "Nothing was committed."
    assert not (story.folder / "hook-ran").exists()
    story.answers = [Answer(choice="yes")]
    assert "1 file" in await story.chat.run_command("/commit add the file")
    assert (story.folder / "hook-ran").exists()
    assert git(story.folder, "log", "--format=%B", "--name-only").split("\n") == ["add the file", "", "", "a b.txt", ""]
    assert story.questions[-1].details[-1].values["files"] == "a b.txt"
    assert "mine.txt" in git(story.folder, "status", "--porcelain")


@pytest.mark.parametrize("said", ["yes, but call it: notes: add the file", "はい、件名は「notes: add the file」で"])
async def test_a_yes_with_another_subject_is_one_answer(story: Story, said: str) -> None:
    await story.tell("write the file with a space in its name")
    story.answers = [Answer(choice="edit", text=said)]
    assert "1 file" in await story.chat.run_command("/commit")
    assert git(story.folder, "log", "--format=%s") == "notes: add the file\n"


@pytest.mark.parametrize("said", ["good message, commit it", "いいメッセージだね、コミットして"])
async def test_praise_of_the_message_with_the_order_to_commit_is_a_yes(story: Story, said: str) -> None:
    await story.tell("write the file with a space in its name")
    story.answers = [Answer(choice="edit", text=said)]
    assert "1 file" in await story.chat.run_command("/commit")
    assert git(story.folder, "log", "--format=%s") == "write the file with a space in its name\n"


async def test_the_subject_is_the_users_request_and_an_unclear_correction_is_asked_about(story: Story) -> None:
    await story.tell("write the file with a space in its name")
    await story.tell("Really? And why did you touch it?")
    story.answers = [Answer(choice="edit", text="yes, but much shorter"), Answer(choice="no")]
    assert await story.chat.run_command("/commit") == "Nothing was committed."
    first, second = story.questions[-2:]
    assert first.details[0].values["text"] == "write the file with a space in its name"
    assert second.details[0].key == "commit.how"


SUBJECTS = {
    "Can you put the file there? Use one line, and nothing else in it.": "Can you put the file there?",
    "Write the memo into the file. Keep it short.": "Write the memo into the file",
    "ファイルにメモを書いてください。短くお願いします。": "ファイルにメモを書いてください",
}


@pytest.mark.parametrize("asked", SUBJECTS)
async def test_the_subject_is_the_first_sentence_of_the_request_that_changed_something(
    story: Story, asked: str
) -> None:
    await story.tell(asked)
    story.answers = [Answer(choice="no")]
    await story.chat.run_command("/commit")
    assert story.questions[-1].details[0].values["text"] == SUBJECTS[asked]


@pytest.mark.parametrize("in_background", [False, True])
async def test_a_remark_on_one_file_of_a_plan_is_not_the_subject_of_them_all(
    tmp_path: Path, in_background: bool
) -> None:
    names = ("bill", "mail", "post")
    steps = [{"name": f"the {name}", "success": f"{name}.py exists"} for name in names]
    propose = act("plan_tool.propose", goal="Bills go out by mail and post. All tests stay.", name="Bills", steps=steps)
    work = [act("file_ops.write_file", path=f"{name}.py", content="A = 1\n") for name in names]
    by_agents = [of_step(f"the {name}", action) for name, action in zip(names, work, strict=True)]
    carried_out = [*by_agents, when("A background job has ended", report())] if in_background else []
    in_turn = [] if in_background else [decide(*work, respond("Done."))]
    remark = decide(act("file_ops.write_file", path="mail.py", content="A = 2\n"), respond("Two."))
    draft = decide(propose, step="PLANNING", next_step="pending_user")
    story = Story(tmp_path, [draft, *carried_out, *in_turn, remark], native=True)
    git(story.folder, "init", "-q")
    await story.tell("make a plan for the bills")
    await story.tell("yes, in the background" if in_background else "yes")
    if in_background:
        await job_ended(story)
    await story.tell("let the mails be two, please")
    story.answers = [Answer(choice="no")]
    await story.chat.run_command("/commit")
    assert story.questions[-1].details[0].values["text"] == "Bills go out by mail and post"


async def test_only_the_check_of_a_line_of_commands_is_told(tmp_path: Path) -> None:
    """The same line may write files first; that is no check."""
    line = "cat >> test_a.py <<'EOF'\ndef test_a() -> None:\n    assert True\nEOF\npython3 -m pytest -q test_a.py"
    replies = [decide(act("shell.run", command=line), next_step="continue"), decide(respond("It passes."))]
    story = Story(tmp_path, replies)
    git(story.folder, "init", "-q")
    await story.tell("write a test and run it")
    story.answers = [Answer(choice="no")]
    await story.chat.run_command("/commit")
    shown = [str(line.values.get("text", "")) for line in story.questions[-1].details]
    assert any("pytest" in line for line in shown) and not any("cat >>" in line for line in shown)


async def test_a_file_that_is_called_like_a_pattern_brings_no_other_file_in(tmp_path: Path, story: Story) -> None:
    await story.close()
    named = decide(act("file_ops.write_file", path=":(glob)**", content="one\n"), respond("Written."))
    (tmp_path / "hostile").mkdir()
    hostile = Story(tmp_path / "hostile", [named])
    git(hostile.folder, "init", "-q")
    await hostile.tell("write it")
    (hostile.folder / "mine.txt").write_text("not the session's\n")
    hostile.answers = [Answer(choice="yes")]
    assert "1 file" in await hostile.chat.run_command("/commit")
    assert "mine.txt" in git(hostile.folder, "status", "--porcelain")


async def test_a_commit_that_git_refuses_leaves_the_index_as_it_was(story: Story) -> None:
    (story.folder / "old.txt").write_text("one\n")
    (story.folder / "staged.txt").write_text("one\n")
    git(story.folder, "add", ".")
    git(story.folder, "commit", "-q", "-m", "first")
    hook = story.folder / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    await story.tell("write the file with a space in its name")
    (story.folder / "staged.txt").write_text("two\n")
    git(story.folder, "add", "staged.txt")
    before = git(story.folder, "status", "--porcelain")
    story.answers = [Answer(choice="yes")]
    assert "1 file" not in await story.chat.run_command("/commit")
    assert git(story.folder, "status", "--porcelain") == before
    hook.unlink()
    story.answers = [Answer(choice="yes")]
    assert "1 file" in await story.chat.run_command("/commit")
    assert git(story.folder, "status", "--porcelain") == "M  staged.txt\n", "what the user has staged is theirs"


async def test_the_refusal_of_a_hook_is_shown(story: Story) -> None:
    hook = story.folder / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    await story.tell("write it")
    story.answers = [Answer(choice="yes")]
    assert "nothing was committed" in await story.chat.run_command("/commit")


def test_a_pull_request_is_described_from_its_commits(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    git(shell.work, "init", "-q", "-b", "main")
    git(shell.work, "commit", "-q", "--allow-empty", "-m", "start")
    assert shell.run("pr").returncode == 2
    git(shell.work, "checkout", "-q", "-b", "faster-start")
    git(shell.work, "commit", "-q", "--allow-empty", "-m", "start: quicker", "-m", "Run: pytest: passed")
    assert shell.run("pr").stdout == "start: quicker\n\nRun: pytest: passed\n"
    git(shell.work, "commit", "-q", "--allow-empty", "-m", "docs: say so")
    assert shell.run("pr", "main").stdout.startswith("faster start\n\n- start: quicker\n  Run: pytest: passed\n- docs")


@pytest.mark.slow
def test_the_recipe_makes_a_patch_only_where_there_is_proof(tmp_path: Path) -> None:
    shell = Shell(tmp_path, seconds=300)
    shell.write_config("[proof]\nseconds = 200\n")
    git(shell.work, "init", "-q")
    (shell.work / "calc.py").write_text("def half(x):\n    return x // 2\n")
    git(shell.work, "add", ".")
    git(shell.work, "commit", "-qm", "start")
    (tmp_path / "log").write_text("AssertionError: half(1) == 0\n")
    (recipe,) = re.findall(r"```bash\n(set -eu.*?)```", RECIPE.read_text("utf-8"), re.DOTALL)
    recipe = recipe.replace("duckflow -p", 'duckflow -m "$MODEL" -p').replace("log=$1", f"log={tmp_path / 'log'}")
    test = "from calc import half\n\n\ndef test_half():\n    assert half(1) == 0.5\n"
    mend = act("file_ops.write_file", path="calc.py", content="def half(x):\n    return x / 2\n")
    read = act("file_ops.read_file", path="calc.py")
    write = act("file_ops.write_file", path="test_calc.py", content=test)
    check = act("shell.run", command="python3 -m pytest -q test_calc.py")
    whole = [
        decide(read, next_step="continue"),
        decide(mend, write, check, next_step="continue"),
        decide(respond("Mended.")),
    ]
    bare = [decide(read, next_step="continue"), decide(mend, next_step="continue"), decide(respond("Mended."))]
    assert shell.sh(recipe, MODEL=shell.script(*bare)).returncode == 8
    assert not (shell.work / "fix.patch").exists()
    git(shell.work, "checkout", "-q", ".")
    done = shell.sh(recipe, MODEL=shell.script(*whole))
    assert done.returncode == 0, done.stderr
    patch = (shell.work / "fix.patch").read_text()
    assert "return x / 2" in patch and "test_half" in patch and "answer.txt" not in patch and ".pyc" not in patch
