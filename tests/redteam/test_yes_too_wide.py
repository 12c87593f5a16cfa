"""A yes that reaches further than the question said: from a plan's files to others of the same name and to names that
make code run later, from a command to the same one in the background, from "not now" to the whole session, from a
command's mode over the mode that the user chose meanwhile, and from one undo to what somebody else has committed."""

import subprocess
import tarfile
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

import pytest

from duckflow.events.types import ActionFinished, PermissionGiven
from duckflow.i18n.answers import read_answer
from duckflow.safety.undo.settings import UndoSettings
from duckflow.safety.undo.undo import Undo
from duckflow.safety.workspace import Workspace
from duckflow.state.changes import WorkAuthor
from duckflow.state.question import Answer, Question
from tests.journeys.story import Story, act, decide, respond
from tests.redteam.test_undo_gaps import END, git

CHOICES = ("yes", "session", "always", "no", "edit")
RUN_LATER = [
    ".vscode/tasks.json", ".github/workflows/ci.yml", "sub/conftest.py", ".claude/settings.json", ".husky/run.sh",
    ".devcontainer/devcontainer.json", ".idea/runConfigurations/x.xml", ".cursor/mcp.json", ".zed/settings.json",
]  # fmt: skip
ELSEWHERE = ["src/pond.py", "a/b/pond.py", "node_modules/pond.py", ".venv/pond.py", "build/pond.py", "way/pond.py"]


class OnlyTools(Story):
    """Lets a custom command use its tools, and says no to every Gate."""

    def answer(self, question: Question) -> Answer:
        return Answer(choice="no" if question.kind == "gate" else "yes")


async def planned(top: Path, named: str, written: str, said: str = "yes, without asking for the edits") -> Story:
    """Lets the model write a file after a yes to a plan that names a file. Every other question is answered with no."""
    plan = act(
        "plan_tool.propose", goal="g", name="P", steps=[{"name": f"Write {named}", "success": f"{named} exists"}]
    )
    write = decide(act("file_ops.write_file", path=written, content="y = 2\n"), next_step="continue")
    replies = [decide(plan, step="PLANNING", next_step="pending_user"), write, END, END, END]
    story = Story(top, replies, mode="ask", native=True)
    (story.folder / "src").mkdir()
    (story.folder / "way").symlink_to("src")
    await story.tell("make a plan")
    await story.tell(said)
    await story.close()
    return story


@pytest.mark.parametrize("path", RUN_LATER)
async def test_the_yes_to_tools_of_a_command_allows_no_name_that_runs_later(tmp_path: Path, path: str) -> None:
    (place := tmp_path / "user/.claude/commands").mkdir(parents=True)
    (place / "fix.md").write_text(f"---\nallowed-tools: Write({path}), Edit(docs/**)\n---\nFix it\n")
    writes = [act("file_ops.write_file", path=name, content="y = 2\n") for name in ("docs/a.md", path)]
    story = OnlyTools(tmp_path, [*(decide(write, next_step="continue") for write in writes), END, END], mode="ask")
    await story.chat.run_command("/fix")
    assert (story.folder / "docs/a.md").exists() and not (story.folder / path).exists() and len(story.gates()) == 1
    await story.close()


@pytest.mark.parametrize("path", RUN_LATER)
async def test_the_yes_to_a_plan_allows_no_name_that_runs_later(tmp_path: Path, path: str) -> None:
    story = await planned(tmp_path, path, path)
    assert not (story.folder / path).exists() and len(story.gates()) == 1


@pytest.mark.parametrize("path", ELSEWHERE)
async def test_the_yes_to_a_plan_allows_no_file_of_the_same_name_elsewhere(tmp_path: Path, path: str) -> None:
    story = await planned(tmp_path, "pond.py", path)
    assert not (story.folder / path).exists() and len(story.gates()) == 1


@pytest.mark.parametrize("path", ["pond.py", "src/pond.py"])
async def test_the_yes_to_a_plan_allows_the_file_that_it_shows(tmp_path: Path, path: str) -> None:
    story = await planned(tmp_path, path, path)
    assert (story.folder / path).exists() and story.gates() == []


IN_BACKGROUND = [
    ("python3 lose.py", "python3 lose.py"),
    ("python3 lose.py", "timeout 60 python3 lose.py"),
    ("python3 lose.py", "nice python3 lose.py"),
    ("timeout 9 python3 lose.py", "nohup python3 lose.py"),
    ("./lose.py", "./lose.py"),
    ("git add mine.txt", "git add lose.py"),
]


@pytest.mark.parametrize("scope", ["session", "always"])
@pytest.mark.parametrize("mode", ["ask", "auto-edit"])
@pytest.mark.parametrize(("agreed", "left"), IN_BACKGROUND)
async def test_a_rule_for_a_command_does_not_cover_it_in_the_background(
    tmp_path: Path, agreed: str, left: str, mode: str, scope: str
) -> None:
    class Agreeing(Story):
        def answer(self, question: Question) -> Answer:
            return Answer(choice=scope if len(self.questions) == 1 else "no")

    calls = [act("shell.run", command=agreed), act("shell.run", command=left, background=True)]
    story = Agreeing(tmp_path, [*(decide(call, next_step="continue") for call in calls), END, END], mode=mode)
    (script := story.folder / "lose.py").write_text("#!/usr/bin/env python3\n")
    script.chmod(0o755)
    (story.folder / "mine.txt").write_text("MINE\n")
    git(story.folder, "init", "-q")
    await story.tell("go on")
    results = [event.result for event in story.all(ActionFinished) if event.result.operation == "shell.run"]
    assert len(story.all(PermissionGiven)) == 1 and [result.ok for result in results] == [True, False]
    assert [choice.key for choice in story.questions[-1].choices if choice.key in ("session", "always")] == []
    await story.close()


EXCEPT_B = [
    "yes for the session except b.txt", "yes, always, except b.txt", "yes, don't ask again, except for b.txt",
    "yes from now on, but not b.txt", "yes for this session, but keep b.txt", "yes, only a.txt, for the session",
    "yes, always, but leave b.txt alone", "go ahead for the session, skip b.txt", "yes without asking, except b.txt",
    "yes for the rest of the session, just a.txt", "yes, never ask again but do not touch b.txt",
    "yes to everything for the session, other than b.txt", "はい、今後もb.txt以外",
]  # fmt: skip
EXCEPT_ANOTHER = [
    "yes for the session except c.txt", "yes, always, but not c.txt", "yes from now on, leave c.txt alone",
    "yes for the session, not for the others", "yes for the session, not the rest",
]  # fmt: skip


@pytest.mark.parametrize("said", [*EXCEPT_B, *EXCEPT_ANOTHER])
async def test_a_yes_with_an_exception_neither_covers_it_nor_sets_up_a_rule(tmp_path: Path, said: str) -> None:
    class Saying(Story):
        def answer(self, question: Question) -> Answer:
            return Answer(choice="", text=said) if len(self.questions) == 1 else Answer(choice="no")

    writes = [act("file_ops.write_file", path=f"{name}.txt", content="x\n") for name in "ab"]
    third = decide(act("file_ops.write_file", path="c.txt", content="x\n"), next_step="continue")
    story = Saying(tmp_path, [decide(*writes, next_step="continue"), third, END, END], mode="ask")
    await story.tell("go on")
    await story.tell("go on")
    assert story.all(PermissionGiven) == [] and not (story.folder / "c.txt").exists()
    assert said in EXCEPT_ANOTHER or not (story.folder / "b.txt").exists()
    await story.close()


NOT_NOW = [
    "yes in an hour", "ok in an hour", "do it in an hour", "yes, within the hour", "yes in the morning",
    "run it in the evening", "sure, during the night", "go ahead in the afternoon", "yes for later today",
    "yes for next week", "yes in the next session", "yes, in a later session", "yes within the next session",
    "はい、今日中に", "はい、今日のうちに", "はい、今日中にやります",
]  # fmt: skip
MYSELF = [
    "I'll do it", "I will do it", "I'll run it", "yes, I'll do it", "ok, I'll just do that", "I'll start it",
    "I will run that", "I’ll try it", "やっておきます", "やっておくよ", "私がやっておきますね",
]  # fmt: skip


@pytest.mark.parametrize("said", [*NOT_NOW, *MYSELF])
@pytest.mark.parametrize("language", ["en", "ja"])
def test_a_later_time_or_an_own_doing_is_no_yes(said: str, language: str) -> None:
    answer = read_answer(said, CHOICES, language)
    assert answer is None or answer.choice == "no"


@pytest.mark.parametrize("said", ["yes for this session", "yes until tonight", "yes during this session", "今日中はok"])
def test_a_stretch_of_time_is_still_a_scope(said: str) -> None:
    assert (answer := read_answer(said, CHOICES)) and answer.choice in ("yes", "session")


MODES = [("ask", "plan"), ("auto-edit", "plan"), ("auto-edit", "ask"), ("auto", "ask"), ("plan", "ask")]


@pytest.mark.parametrize(("of_command", "of_user"), MODES)
async def test_a_custom_command_leaves_the_mode_that_the_user_chose_meanwhile(
    tmp_path: Path, of_command: str, of_user: str
) -> None:
    (place := tmp_path / "user/.claude/commands").mkdir(parents=True)
    (place / "fix.md").write_text(f"---\nmode: {of_command}\n---\nFix it\n")
    story = Story(tmp_path, [decide(respond("done"))], mode="full-auto")
    story.session.subscribe(lambda _: story.chat.choices.change_mode(of_user), ActionFinished)
    await story.chat.run_command("/fix")
    assert story.chat.choices.mode == of_user
    await story.close()


async def test_a_custom_command_gives_the_mode_back(tmp_path: Path) -> None:
    (place := tmp_path / "user/.claude/commands").mkdir(parents=True)
    (place / "fix.md").write_text("---\nmode: plan\n---\nFix it\n")
    story = Story(tmp_path, [decide(respond("done"))], mode="full-auto")
    await story.chat.run_command("/fix")
    assert story.chat.choices.mode == "full-auto"
    await story.close()


FIRST, SECOND = WorkAuthor(1, "", ""), WorkAuthor(1, "job", "step")
ORDERS: dict[str, tuple[str, ...]] = {
    "one within the other": ("+a", "a", "+b", "b", "-b", "-a"),
    "the other within the one": ("+b", "+a", "a", "b", "-a", "-b"),
    "one after the other began": ("+b", "b", "+a", "a", "-b", "-a"),
    "one before the other ends": ("+a", "+b", "b", "a", "-a", "-b"),
    "the other first and last": ("+b", "b", "+a", "a", "-a", "b", "-b"),
}


@pytest.mark.parametrize("other", ["session", "job", "user"])
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
async def test_undo_tells_of_git_where_two_commit_at_once(tmp_path: Path, order: tuple[str, ...], other: str) -> None:
    """Nobody can say which of two commands has made a commit, so no undo takes it back without a yes for just that."""
    (work := tmp_path / "work").mkdir()
    git(work, "init", "-q", "-b", "main")
    git(work, "commit", "-q", "--allow-empty", "-m", "start")
    a, b = (Undo(Workspace(work), tmp_path / "data", UndoSettings(), name) for name in ("one", "two"))
    begun: dict[str, Callable[[], AbstractAsyncContextManager[object]]] = {
        "a": lambda: a.command(FIRST, "", "git commit"),
        "b": lambda: (
            {"session": b, "job": a}[other].command(SECOND, "", "git commit") if other != "user" else b.watch()
        ),
    }
    open_windows: dict[str, AsyncExitStack] = {}
    for step in order:
        if step[0] == "+":
            stack = open_windows[step[1]] = AsyncExitStack()
            await stack.enter_async_context(begun[step[1]]())
        elif step[0] == "-":
            await open_windows[step[1]].aclose()
        else:
            git(work, "commit", "-q", "--allow-empty", "-m", f"by {step}")
    commits = git(work, "log", "--format=%s")
    for undo, author in ((a, FIRST), (a if other == "job" else b, SECOND)):
        for known in [known for known in await undo.authors() if known == author]:
            await undo.restore(True, only_own=True, scope=known.whole)
    assert git(work, "log", "--format=%s") == commits
    await a.close()
    await b.close()


async def test_undo_takes_back_the_commit_of_a_single_command(tmp_path: Path) -> None:
    (work := tmp_path / "work").mkdir()
    git(work, "init", "-q", "-b", "main")
    git(work, "commit", "-q", "--allow-empty", "-m", "start")
    undo = Undo(Workspace(work), tmp_path / "data", UndoSettings(), "one")
    async with undo.command(FIRST, "", "git commit"):
        git(work, "commit", "-q", "--allow-empty", "-m", "more")
    await undo.restore(True, only_own=True)
    assert git(work, "log", "--format=%s") == "start"
    await undo.close()


BEYOND = (
    "echo x > other.py", "cat src/a.py >> other.py", "cp src/a.py other.py", "tee other.py < src/a.py", "mv src/a.py .",
    "sed -i s/a/b/ other.py", "true && touch ./src/../new.py", "cd src && cp a.py ../other.py", "rm other.py",
    "touch src/a.py oth*.py && rm oth*.py", "cp src/a.py srcs/a.py", "git mv other.py moved.py", "git rm -qf other.py",
    "git stash -q", "git checkout -q -b b", "git commit -qam x", "git apply p.diff", "patch -p1 < p.diff",
    "cp -t docs src/a.py", "O=docs/x.md; echo y > $O", "F=other.py; sed -i s/a/b/ $F", "tar cf all.tar src",
    "tar xf in.tar", "python3 -c \"open('docs/x.md', 'w')\"", "make", "find . -name '*.md' -delete",
    "find docs -type f -exec rm {} +", "ls docs/* | xargs rm", "dd if=src/a.py of=other.py", "mkdir new",
    "install src/a.py docs/", "ln -sf ../src/a.py docs/x.md", "ln other.py docs/hard", "truncate -s 0 other.py",
    "perl -e 'unlink \"other.py\"'", "awk 'BEGIN { print \"x\" > \"other.py\" }'", "eval 'ec''ho x > other.py'",
    "bash write.sh", "split -b1 src/a.py docs/part", "(cd docs && echo y > x.md)", "exec 3>other.py; echo x >&3",
    "ln other.py src/hard && echo x > src/hard", "ln -s ../docs src/way && echo y > src/way/x.md", "mv docs src/docs",
    "mv src/a.py /tmp/a && mv /tmp/a other.py", "sort -o other.py src/a.py", "mv src gone",
    "cat src/a.py > \"$(echo oth*)\"", "cd src && python3 ../write.py",
    "(sleep 0.1; echo x > other.py) & wait", "echo x > .git/description", "rmdir srcs",
    "git reset -q --hard", "rm -r docs",
)  # fmt: skip
"""Commands that change something outside of `src`, each in another way."""


def workplace(folder: Path) -> None:
    for name in ("src", "srcs", "docs"):
        (folder / name).mkdir(parents=True)
    diff = "--- a/other.py\n+++ b/other.py\n@@ -1 +1 @@\n-a\n+b\n"
    texts = {
        "src/a.py": "x\n", "other.py": "a\n", "docs/x.md": "x\n", "docs/new.md": "x\n", "p.diff": diff,
        "Makefile": "all:\n\techo x > other.py\n", "write.sh": "echo x > other.py\n",
        "write.py": "import os\nos.chdir('..')\nos.rename('other.py', 'b.py')\n",
    }  # fmt: skip
    for path, text in texts.items():
        (folder / path).write_text(text)
    with tarfile.open(folder / "in.tar", "w") as archive:
        archive.add(folder / "docs/new.md", "docs/new.md")
    (folder / "docs/new.md").unlink()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "start")
    for key in ("name", "email"):
        git(folder, "config", f"user.{key}", "pond")
    (folder / "docs/x.md").write_text("changed\n")


def outside_src(folder: Path) -> dict[str, object]:
    """Returns what all files beside `src` are. Git may look at its index anew."""
    paths = [path for path in folder.rglob("*") if path.name != "index" and path.parts[len(folder.parts)] != "src"]
    return {
        str(path): (path.lstat().st_mode, path.is_file() and not path.is_symlink() and path.read_bytes())
        for path in paths
    }


@pytest.mark.one_in(6)
@pytest.mark.parametrize("command", BEYOND)
def test_without_a_limit_these_commands_change_more(tmp_path: Path, command: str) -> None:
    workplace(tmp_path / "work")
    before = outside_src(tmp_path / "work")
    subprocess.run(["bash", "-c", command], cwd=tmp_path / "work", check=False, capture_output=True)
    assert outside_src(tmp_path / "work") != before


class Limiting(Story):
    """Answers the first Gate with a limit and chooses another mode at once. After that it says no to what the limit is
    the reason for, and yes to everything else."""

    then: str = "full-auto"

    def answer(self, question: Question) -> Answer | None:
        if len(self.questions) > 1:
            keys = {reason.key for reason in question.gate.reasons} if question.gate else {"risk.limited"}
            return Answer(choice="no" if "risk.limited" in keys else "yes")
        self.chat.answer(question.question_id, "yes, but only in src/")
        self.chat.choices.change_mode(self.then)
        return None


@pytest.mark.one_in(2)
@pytest.mark.parametrize("then", ["auto", "full-auto"])
@pytest.mark.parametrize("sandbox", ["bubblewrap", "landlock", "none"])
async def test_no_command_changes_files_beyond_the_limit_of_a_yes_unasked(
    tmp_path: Path, sandbox: str, then: str
) -> None:
    pair = decide(*(act("file_ops.write_file", path=path, content="x\n") for path in ("src/b.py", "b.py")))
    commands, ok = ("cp src/a.py src/c.py", *BEYOND), decide(respond("ok"))
    tried = [decide(act("shell.run", command=command), next_step="continue") for command in commands]
    settings = {"sandbox": {"kind": sandbox}}
    story = Limiting(
        tmp_path,
        [pair, ok, *(reply for one in tried for reply in (one, ok))],
        mode="ask",
        settings=settings,
        native=True,
    )
    story.then = then
    workplace(story.folder)
    await story.tell("go on")
    beyond, before = list[str](), outside_src(story.folder)
    for _ in range(len(commands) * (2 if sandbox == "none" else 1)):
        await story.tell("go on")
        if outside_src(story.folder) != before:
            beyond.append(str(story.all(ActionFinished)[-2].result.for_user))
            before = outside_src(story.folder)
        (story.folder / "src/a.py").write_text("x\n")
    assert beyond == []
    assert (story.folder / "src/c.py").exists() == (sandbox != "none"), "what fits goes through"
    asked = [reason.key for gate in story.gates()[1:] if gate.gate for reason in gate.gate.reasons]
    assert asked.count("risk.limited") == (len(commands) if sandbox == "none" else 0)
    await story.close()
