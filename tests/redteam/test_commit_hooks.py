"""A model that writes a hook where the user's own settings of git look for hooks, or puts a program in git's way while
the user is asked about a commit: what `/commit` starts has been shown."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


LFS = '[filter "lfs"]\n\tclean = git-lfs clean -- %f\n'
MONITOR = "[core]\n\tfsmonitor = {evil}\n"
INCLUDES = {
    "beside": ("[include]\n\tpath = ../more.cfg\n", "more.cfg"),
    "quoted, in pieces": ('[include]\n\tpath = "../mo"re.cfg\n', "more.cfg"),
    "by its whole path": ("[include]\n\tpath = {work}/more.cfg\n", "more.cfg"),
    "by the home": ("[include]\n\tpath = ~/way/more.cfg\n", "more.cfg"),
    "in git's folder": ("[include]\n\tpath = extra.cfg\n", ".git/extra.cfg"),
    "by a folder": ('[includeIf "gitdir:{work}/"]\n\tpath = ../more.cfg\n', "more.cfg"),
    "by a branch": ('[includeIf "onbranch:**"]\n\tpath = ../more.cfg\n', "more.cfg"),
    "far down": ("[include]\n\tpath = ../conf/deep/more.cfg\n", "conf/deep/more.cfg"),
    "not there yet": ("[include]\n\tpath = ../new.cfg\n", "new.cfg"),
}
"""Settings that include a file of the folder, and that file."""


def include(work: Path, way: str, where: str = "the repository") -> Path:
    """Lets git's settings include the file, which names no harmful program yet."""
    text, name = INCLUDES[way]
    settings = work / ".git/config" if where == "the repository" else work.parent / "user/.gitconfig"
    with settings.open("a") as config:
        config.write(text.format(work=work))
    included = work / name
    if way != "not there yet":
        included.parent.mkdir(parents=True, exist_ok=True)
        included.write_text(LFS)
    return included


def evil_in(work: Path) -> str:
    put_hook(work / "evil.sh", work.parent / "hit")
    return MONITOR.format(evil=work / "evil.sh")


async def commit_while(story: Story, change: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> str:
    """Gives `/commit` and says yes, once this has changed."""

    def answer(_: Question) -> Answer:
        change()
        return Answer(choice="yes")

    monkeypatch.setattr(story, "answer", answer)
    text = await story.chat.run_command("/commit")
    await story.close()
    return text


@pytest.mark.parametrize("where", ["the repository", "the user"])
@pytest.mark.parametrize("way", INCLUDES)
async def test_an_included_file_that_changes_while_the_user_is_asked_starts_nothing(
    work: Path, monkeypatch: pytest.MonkeyPatch, way: str, where: str
) -> None:
    if where == "the user" and "../" in INCLUDES[way][0] + INCLUDES[way][1].replace(".git/", "../"):
        pytest.skip("the user's settings lie elsewhere")
    story = await story_of(work)
    included, evil = include(work, way, where), evil_in(work)
    text = await commit_while(story, lambda: included.write_text(evil), monkeypatch)
    assert "changed while you were asked" in text and not (work.parent / "hit").exists()


def submodule(work: Path, name: str, absorbed: bool = False) -> Path:
    """Makes a repository in the folder that the index names, and returns the folder with its settings."""
    inner = work / name
    inner.mkdir(parents=True)
    git(inner, "init", "-q")
    (inner / "x").write_text("x\n")
    git(inner, "add", "x")
    git(inner, "commit", "-q", "-m", "s")
    if absorbed:
        (work / ".git/modules").mkdir()
        (inner / ".git").rename(work / ".git/modules/m")
        (inner / ".git").write_text(f"gitdir: {work}/.git/modules/m\n")
    git(work, "add", name)
    git(work, "commit", "-q", "-m", "sub")
    (inner / "x").write_text("changed\n")
    return work / ".git/modules/m" if absorbed else inner / ".git"


@pytest.mark.parametrize("changed", ["settings", "included", "hook", "pointer"])
@pytest.mark.parametrize("name", ["sub", "a/b/sub", "absorbed"])
async def test_a_repository_within_that_changes_while_the_user_is_asked_starts_nothing(
    work: Path, monkeypatch: pytest.MonkeyPatch, name: str, changed: str
) -> None:
    folder = submodule(work, name, name == "absorbed")
    (work / "more.cfg").write_text("")
    with (folder / "config").open("a") as config:
        config.write(f"{LFS}[include]\n\tpath = {work}/more.cfg\n")
    story, evil = await story_of(work), evil_in(work)

    def change() -> None:
        if changed == "hook":
            put_hook(folder / "hooks/post-index-change", work.parent / "hit")
        elif changed == "pointer":
            shutil.copytree(folder, work / "other")
            (work / "other/config").write_text(evil)
            (work / name / ".git").rename(work / "gone") if name != "absorbed" else None
            (work / name / ".git").write_text(f"gitdir: {work}/other\n")
        else:
            with (folder / "config" if changed == "settings" else work / "more.cfg").open("a") as config:
                config.write(evil)

    text = await commit_while(story, change, monkeypatch)
    assert "changed while you were asked" in text and not (work.parent / "hit").exists()


SOURCED = {
    "by a dot": ("#!/bin/sh\n. ./hook.sh\n", "hook.sh"),
    "without its folder": ("#!/bin/bash\nsource hook.sh\n", "hook.sh"),
    "by another shell": ("#!/bin/sh\nsh hook.sh\n", "hook.sh"),
    "in quotes": ('#!/bin/sh\nsh "tools/hook.sh"\n', "tools/hook.sh"),
    "by a sourced one": ("#!/bin/sh\n. ./first.sh\n", "hook.sh"),
}


@pytest.mark.parametrize("way", SOURCED)
async def test_what_a_hook_names_and_changes_while_the_user_is_asked_does_not_run(
    work: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    text, name = SOURCED[way]
    hook, sourced = work / ".git/hooks/pre-commit", work / name
    put_hook(hook, work / "harmless")
    hook.write_text(text)
    sourced.parent.mkdir(exist_ok=True)
    sourced.write_text("true\n")
    (work / "first.sh").write_text(". ./hook.sh\n")
    story = await story_of(work)
    hit = work.parent / "hit"
    await commit_while(story, lambda: sourced.write_text(f"touch {hit}\n"), monkeypatch)
    assert not hit.exists()


@pytest.mark.parametrize(
    ("place", "named"),
    [
        (".git/config", ".git/config"),
        ("more.cfg", "more.cfg"),
        ("sub/.git/config", "sub/.git/config"),
        ("a/b/sub/.git/config", "a/b/sub/.git/config"),
        ("sub/.git/hooks/post-index-change", "sub/.git/hooks/post-index-change"),
    ],
)
async def test_the_question_names_the_file_in_which_a_program_stands(work: Path, place: str, named: str) -> None:
    if "sub" in place:
        submodule(work, place.partition("/.git")[0])
    if place == "more.cfg":
        include(work, "beside")
    elif place.endswith("change"):
        put_hook(work / place, work.parent / "harmless")
    else:
        with (work / place).open("a") as config:
            config.write(LFS)
    story = await story_of(work)
    story.answers = [Answer(choice="no")]
    await story.chat.run_command("/commit")
    await story.close()
    assert told(story) == named


BACKGROUND = (
    "sleep 30",
    "sleep 30; printf '{evil}' >> more.cfg",
    "while :; do sleep 1; cp evil.sh .git/hooks/pre-commit; done",
    "(sleep 30; echo x) & wait",
    "nohup sh -c 'sleep 30; cp evil.cfg .git/config'",
)


@pytest.mark.parametrize("command", BACKGROUND)
async def test_nothing_is_committed_while_a_command_goes_on(work: Path, command: str) -> None:
    start = act("shell.run", command=command.format(evil="x"), background=True)
    write = act("file_ops.write_file", path="a.txt", content="one\n")
    story = Story(work.parent, [decide(start, next_step="continue"), decide(write, respond("Written."))])
    story.answers = [Answer(choice="yes")]
    await story.tell("start it and write")
    text = await story.chat.run_command("/commit")
    asked = [question.title.key for question in story.questions]
    await story.close()
    assert "in the background" in text and "commit.title" not in asked


WRITES = (
    "cat evil.cfg >> {path}",
    "cp evil.cfg new && mv -f new {path}",
    "rm -f {path}; cp evil.cfg {path}",
    "ln -sf $PWD/evil.cfg {path}",
    "python3 -c \"import os; os.path.exists('{path}') and os.remove('{path}'); open('{path}', 'w').write('x')\"",
    "mv {parent} away && mkdir -p {parent} && cp evil.cfg {path}",
)


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
@pytest.mark.parametrize("command", WRITES)
async def test_a_command_writes_no_file_that_git_takes_settings_from(work: Path, command: str) -> None:
    (work / "evil.cfg").write_text(evil_in(work))
    paths = [include(work, way) for way in ("beside", "in git's folder", "far down", "not there yet")]
    paths += [submodule(work, "a/b/sub") / "config"]
    before = [path.read_text() if path.exists() else None for path in paths]
    chosen = [path for path in paths if path.parent != work or "away" not in command]
    lines = [command.format(path=path, parent=path.parent) for path in chosen]
    runs = [decide(act("shell.run", command=line), next_step="continue") for line in lines]
    story = Story(work.parent, [*runs, decide(respond("Done."))], settings={"sandbox": {"kind": "bubblewrap"}})
    story.answers = [Answer(choice="trust")]
    await story.tell("write them")
    await story.close()
    assert [path.read_text() if path.exists() else None for path in paths] == before


TOOLS = (
    ("write_file", {"path": "more.cfg", "content": "x"}),
    ("write_file", {"path": "conf/../more.cfg", "content": "x"}),
    ("edit_file", {"path": "more.cfg", "edits": [{"old": "clean = ", "new": "clean = x"}]}),
    ("delete_file", {"path": "more.cfg"}),
    ("move_file", {"source": "evil.cfg", "target": "new.cfg"}),
    ("write_file", {"path": "new.cfg", "content": "x"}),
    ("move_file", {"source": "ready", "target": "conf/deep"}),
    ("write_file", {"path": "lib/way.cfg", "content": "x"}),
)


@pytest.mark.parametrize("mode", ["auto-edit", "full-auto"])
@pytest.mark.parametrize(("tool", "args"), TOOLS)
async def test_a_file_tool_that_writes_such_a_file_asks_in_every_mode(
    work: Path, tool: str, args: dict[str, Any], mode: str
) -> None:
    for way in ("beside", "far down", "not there yet"):
        include(work, way)
    for folder in ("ready", "lib"):
        (work / folder).mkdir()
    (work / "evil.cfg").write_text("x")
    (work / "ready/more.cfg").write_text("x")
    (work / "real.cfg").write_text(LFS)
    if args["path" if "path" in args else "target"] == "conf/deep":
        shutil.rmtree(work / "conf/deep")
    if args.get("path") == "lib/way.cfg":
        git(work, "config", "--add", "include.path", "../lib/way.cfg")
    look, write = act("file_ops.read_file", path="more.cfg"), act(f"file_ops.{tool}", **args)
    replies = [*(decide(call, next_step="continue") for call in (look, write)), decide(respond("Done."))]
    story = Story(work.parent, replies, mode=mode)
    story.answers = [Answer(choice="trust")]
    await story.tell("write it")
    await story.close()
    reasons = {reason.key for question in story.questions if question.gate for reason in question.gate.reasons}
    assert "risk.git_settings" in reasons


READ_BY_PROGRAMS = {
    "a shell": ('[filter "nb"]\n\tclean = sh tools/nb.sh\n', "tools/nb.sh"),
    "an interpreter": ('[filter "nb"]\n\tclean = python3 tools/nb.py\n', "tools/nb.py"),
    "a filter that stays": ('[filter "nb"]\n\tprocess = python3 tools/nb.py\n', "tools/nb.py"),
    "make": ('[filter "nb"]\n\tclean = make -s -f tools/mk clean\n', "tools/mk"),
    "a monitor": ("[core]\n\tfsmonitor = sh tools/mon.sh\n", "tools/mon.sh"),
    "a module": ('[filter "nb"]\n\tclean = python3 -m tools.nb\n', ".gitconfig"),
    "another folder": ('[filter "nb"]\n\tclean = cd tools && python3 nb.py\n', ".gitconfig"),
}


@pytest.mark.parametrize("way", READ_BY_PROGRAMS)
async def test_a_file_that_a_program_of_the_users_settings_reads_is_shown(work: Path, way: str) -> None:
    settings, name = READ_BY_PROGRAMS[way]
    with (work.parent / "user/.gitconfig").open("a") as users_settings:
        users_settings.write(settings)
    for file in ("tools/nb.sh", "tools/nb.py", "tools/mk", "tools/mon.sh"):
        (work / file).write_text("cat\n")
    story = await story_of(work)
    story.answers = [Answer(choice="no")]
    await story.chat.run_command("/commit")
    assert name in told(story)


async def test_what_settings_usually_name_is_not_shown(work: Path) -> None:
    with (work.parent / "user/.gitconfig").open("a") as users_settings:
        users_settings.write('[core]\n\teditor = vim\n[filter "lfs"]\n\tclean = git-lfs clean -- %f\n')
    story = await story_of(work)
    story.answers = [Answer(choice="no")]
    await story.chat.run_command("/commit")
    assert ".gitconfig" not in told(story)
