"""Programs that a work folder brings: files that a model writes after the user's yes never run with more rights than
the model has, and a guard that is broken asks."""

import asyncio
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from duckflow.events.types import Noticed
from duckflow.state.question import Answer, Question
from tests.journeys.story import Story, act, decide, respond
from tests.redteam.brought import (
    DONE,
    END,
    MAKE,
    MAKE_HIT,
    MORE,
    NO,
    NODE,
    NODE_HIT,
    PYTHON,
    PYTHON_HIT,
    SHELL,
    SHELL_HIT,
    TRUST,
    bring,
    put,
    trusted,
)  # fmt: skip

WRITE = act("file_ops.write_file", path="a.txt", content="one\n")
UNITTEST = PYTHON + "import unittest\nclass A(unittest.TestCase):\n    def test(self): pass\n"
HOOKS = ".claude/hooks"


class Way(NamedTuple):
    """The command of a hook, the files at the yes, and the files that the model writes after it."""

    command: str
    before: dict[str, str]
    after: dict[str, str]


WAYS = {
    "the script itself": Way("python3 guard.py", {"guard.py": PYTHON}, {"guard.py": PYTHON_HIT}),
    "a module in the folder": Way("python3 guard.py", {"guard.py": PYTHON}, {"json.py": PYTHON_HIT}),
    "a module beside it": Way(f"python3 {HOOKS}/g.py", {f"{HOOKS}/g.py": PYTHON}, {f"{HOOKS}/json.py": PYTHON_HIT}),
    "a package beside it": Way(
        f"python3 {HOOKS}/g.py",
        {f"{HOOKS}/g.py": PYTHON + "import lib\n", f"{HOOKS}/lib/__init__.py": ""},
        {f"{HOOKS}/lib/__init__.py": PYTHON_HIT},
    ),
    "by the variable": Way('"$CLAUDE_PROJECT_DIR"/g.sh', {"g.sh": SHELL}, {"g.sh": SHELL_HIT}),
    "by the variable in quotes": Way('sh "${CLAUDE_PROJECT_DIR}/g.sh"', {"g.sh": SHELL}, {"g.sh": SHELL_HIT}),
    "by a shell in a shell": Way("sh -c 'sh tools/g.sh'", {"tools/g.sh": SHELL}, {"tools/g.sh": SHELL_HIT}),
    "after cd": Way("cd tools && ./g.sh", {"tools/g.sh": SHELL}, {"tools/g.sh": SHELL_HIT}),
    "a sourced file": Way(
        "sh tools/g.sh",
        {"tools/g.sh": '. "$(dirname "$0")/lib.sh"\n', "tools/lib.sh": SHELL},
        {"tools/lib.sh": SHELL_HIT},
    ),
    "by its whole path": Way("sh {work}/g.sh", {"g.sh": SHELL}, {"g.sh": SHELL_HIT}),
    "a link to a script": Way("sh g.sh", {"real.sh": SHELL, "g.sh": "->real.sh"}, {"real.sh": SHELL_HIT}),
    "a link in its place": Way(
        "sh g.sh", {"g.sh": SHELL, "other.sh": ""}, {"other.sh": SHELL_HIT, "g.sh": "->other.sh"}
    ),
    "make": Way("make check", {"Makefile": MAKE}, {"Makefile": MAKE_HIT, "GNUmakefile": MAKE_HIT}),
    "make that calls a file": Way(
        "make check", {"Makefile": "check:\n\tsh lint.sh\n", "lint.sh": SHELL}, {"lint.sh": SHELL_HIT}
    ),
    "unittest": Way("python3 -m unittest", {"test_a.py": UNITTEST}, {"test_b.py": PYTHON_HIT}),
    "a module by name": Way(
        "python3 -m tools.guard",
        {"tools/guard.py": PYTHON, "tools/__init__.py": ""},
        {"tools/__init__.py": PYTHON_HIT, "runpy.py": PYTHON_HIT},
    ),
    "sitecustomize": Way(
        "python3 guard.py",
        {"guard.py": PYTHON},
        {"sitecustomize.py": PYTHON_HIT, "usercustomize.py": PYTHON_HIT, "a.pth": "import sitecustomize\n"},
    ),
    "node's require": Way(
        "node tools/g.js",
        {"tools/g.js": "require('./lib')\n", "tools/lib.js": NODE},
        {"tools/lib.js": NODE_HIT, "tools/node_modules/fs/index.js": NODE_HIT},
    ),
    "a git alias": Way("git rev-parse; sh g.sh", {"g.sh": SHELL}, {"git": SHELL_HIT, "sh": SHELL_HIT}),
    "bash's own files": Way(
        "bash g.sh", {"g.sh": SHELL}, {".bashrc": SHELL_HIT, ".env.sh": SHELL_HIT, ".npmrc": "x=y\n"}
    ),
}


TO_THE_FOLDER = {
    "the top that git tells": Way(
        'sh "$(git rev-parse --show-toplevel)/g.sh" || sh g.sh', {"g.sh": SHELL}, {"g.sh": SHELL_HIT}
    ),
    "the top in a pipe": Way(
        "git rev-parse --show-toplevel | xargs -I@ sh @/g.sh; sh g.sh", {"g.sh": SHELL}, {"g.sh": SHELL_HIT}
    ),
    "the variable by its name": Way('sh "$(printenv CLAUDE_PROJECT_DIR)/g.sh"', {"g.sh": SHELL}, {"g.sh": SHELL_HIT}),
    "the variable with a check": Way('sh "${CLAUDE_PROJECT_DIR:?}/g.sh"', {"g.sh": SHELL}, {"g.sh": SHELL_HIT}),
    "the variable shortened": Way("sh ${CLAUDE_PROJECT_DIR%/}/g.sh", {"g.sh": SHELL}, {"g.sh": SHELL_HIT}),
    "the folder that it is told": Way(
        'python3 -c \'import sys,json,os; os.chdir(json.load(sys.stdin)["cwd"]); os.system("sh ./g.sh")\'',
        {"g.sh": SHELL},
        {"g.sh": SHELL_HIT},
    ),
    "a script that goes there": Way(
        "sh tools/h.sh",
        {"tools/h.sh": 'cd "$CLAUDE_PROJECT_DIR" && sh g.sh\n', "g.sh": SHELL},
        {"g.sh": SHELL_HIT},
    ),
    "a script that makes there": Way(
        "sh tools/h.sh",
        {"tools/h.sh": 'cd "$CLAUDE_PROJECT_DIR" && make -s check\n', "Makefile": MAKE},
        {"Makefile": MAKE_HIT},
    ),
    "a script that imports from there": Way(
        "python3 tools/h.py",
        {
            "tools/h.py": "import os, sys\nsys.path.insert(0, os.environ['CLAUDE_PROJECT_DIR'])\nimport g\n",
            "g.py": PYTHON,
        },
        {"g.py": PYTHON_HIT},
    ),
    "our own variable": Way('sh "$DUCKFLOW_PROJECT_DIR/g.sh"', {"g.sh": SHELL}, {"g.sh": SHELL_HIT}),
}


@pytest.fixture(autouse=True)
def _outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "outside").mkdir()
    monkeypatch.setenv("OUTSIDE", str(tmp_path / "outside/hit"))


async def carried_out(tmp_path: Path, way: Way, *answers: Answer) -> str:
    """Says yes as the user, runs the hook, writes as the model and runs the hook again; returns what it left in the
    real folder."""
    work, command = tmp_path / "work", way.command.replace("{work}", str(tmp_path / "work"))
    if shutil.which(command.split()[0]) is None and command.startswith(("node", "make")):
        pytest.skip(f"{command.split()[0]} is not installed")
    await trusted(tmp_path)
    put(work, way.before)
    bring(work, "UserPromptSubmit", command)
    story = Story(tmp_path, [END, END])
    story.answers = list(answers)
    await story.tell("hello")
    assert len(story.questions) == len(answers)
    put(work, way.after)
    await story.tell("again")
    await story.close()
    return (work / "ran").read_text() if (work / "ran").exists() else ""


@pytest.mark.one_in(3)
@pytest.mark.parametrize("way", WAYS)
async def test_what_the_model_writes_after_the_yes_stays_in_the_sandbox(tmp_path: Path, way: str) -> None:
    assert (await carried_out(tmp_path, WAYS[way], TRUST)).startswith("ran\n"), "it works on the real folder"
    assert not (tmp_path / "outside/hit").exists()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("way", TO_THE_FOLDER)
async def test_with_more_rights_a_way_to_the_folder_leads_to_the_copy(tmp_path: Path, way: str) -> None:
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(tmp_path / "work")], check=True)
    ran = await carried_out(tmp_path, TO_THE_FOLDER[way], MORE, Answer(choice="outside"), DONE)
    assert ran == "ran\nran\n", "it does its work, and goes on doing what it did"
    assert not (tmp_path / "outside/hit").exists()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("right", ["outside", "network", "home"])
@pytest.mark.parametrize("way", WAYS)
async def test_with_any_more_right_only_the_copy_runs(tmp_path: Path, way: str, right: str) -> None:
    """Outside of the sandbox nothing else would hold the program."""
    ran = await carried_out(tmp_path, WAYS[way], MORE, Answer(choice=right), DONE)
    assert ran == "ran\nran\n", "and it goes on doing what it did"
    assert not (tmp_path / "outside/hit").exists()


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("bubblewrap", marks=pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")),
        "landlock",
    ],
)
async def test_a_hook_of_the_folder_has_the_rights_of_the_models_commands(tmp_path: Path, kind: str) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0)
    secret = tmp_path / "home/secret"
    probe = (
        f"echo x > {tmp_path}/outside/hit; cat {secret} > told; "
        f"python3 -c \"import socket; socket.create_connection(('127.0.0.1', {listener.getsockname()[1]}), 2)\"; "
        'echo ran >> ran; read -r line; echo "$line" | grep -o \'[^"]*transcript.jsonl\' | xargs cat > seen'
    )
    await trusted(tmp_path)
    secret.write_text("the record\n")
    bring(tmp_path / "work", "Stop", probe)
    story = Story(tmp_path, [END], settings={"sandbox": {"kind": kind}})
    story.answers = [TRUST]
    await story.tell("hello there")
    await story.close()
    assert (story.folder / "ran").exists() and not (tmp_path / "outside/hit").exists()
    assert "record" not in (story.folder / "told").read_text()
    assert "hello there" in (story.folder / "seen").read_text(), "the transcript that it is promised"
    with pytest.raises(OSError):
        listener.accept()
    listener.close()


async def test_in_plan_mode_a_hook_of_the_folder_changes_nothing(tmp_path: Path) -> None:
    await trusted(tmp_path)
    bring(tmp_path / "work", "Stop", "echo ran >> ran; echo said >&2; exit 2")
    story = Story(tmp_path, [END] * 9, mode="plan")
    story.answers = [TRUST]
    await story.tell("hello")
    assert not (story.folder / "ran").exists() and "said" in story.prompt(1)


BROKEN: dict[str, tuple[str, dict[str, Any]]] = {
    "missing": ("no-such-guard", {}),
    "missing script": ("./guard", {}),
    "crashes": ("echo boom >&2; exit 1", {}),
    "killed": ("kill -9 $$", {}),
    "too slow": ("sleep 30", {"timeout": 1}),
    "too loud": ("yes", {}),
    "garbage": ("echo '{not json'", {}),
    "refused by the sandbox": ('echo log >> "$OUTSIDE"', {}),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("why", BROKEN)
async def test_a_guard_that_cannot_run_asks(tmp_path: Path, why: str) -> None:
    command, more = BROKEN[why]
    await trusted(tmp_path)
    bring(tmp_path / "work", "PreToolUse", command, "Write", **more)
    story = Story(tmp_path, [decide(WRITE, respond("ok"))])
    story.answers = [TRUST]
    assert await story.tell("go") == "gate"
    gate = story.gates()[-1].gate
    assert gate and gate.reasons[-1].key.startswith("hook.") and not (story.folder / "a.txt").exists()
    if why == "crashes":
        assert gate.reasons[-1].values["reason"] == "boom", "what it said is in the question"


@pytest.mark.parametrize("gone", ["copy", "sandbox", "settings"])
async def test_a_guard_is_not_disarmed_by_taking_away_what_it_needs(tmp_path: Path, gone: str) -> None:
    await trusted(tmp_path)
    put(tmp_path / "work", {"guard.sh": "exit 0\n"})
    bring(tmp_path / "work", "PreToolUse", "sh guard.sh", "Write")
    story = Story(tmp_path, [END])
    story.answers = [TRUST]
    await story.tell("hello")
    await story.close()
    if gone == "copy":
        shutil.rmtree(tmp_path / "home/copies")
    if gone == "settings":
        (tmp_path / "work/.claude/settings.json").unlink()
    settings = {"sandbox": {"kind": "none"}} if gone == "sandbox" else {}
    later = Story(tmp_path, [decide(WRITE, respond("ok"))], settings=settings)
    outcome = await later.tell("go")
    if gone == "settings":
        assert "hook.vanished" in [event.what.key for event in later.all(Noticed)]
    else:
        gate = later.gates()[-1].gate
        assert outcome == "gate" and gate and gate.reasons[-1].key in ("brought.no_copy", "brought.no_sandbox")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("command", "more"),
    [("echo two", {}), ("echo one", {"async": True}), ("echo one", {"timeout": 1}), ("echo one", {"args": []}),
     ("echo one", {"if": "Write(*.py)"})],
)  # fmt: skip
async def test_another_command_is_asked_about_with_the_difference(
    tmp_path: Path, command: str, more: dict[str, Any]
) -> None:
    await trusted(tmp_path)
    bring(tmp_path / "work", "PreToolUse", "echo one", "Write")
    story = Story(tmp_path, [END])
    story.answers = [TRUST]
    await story.tell("hello")
    await story.close()
    bring(tmp_path / "work", "PreToolUse", command, "Write", **more)
    later = Story(tmp_path, [END])
    later.answers = [NO]
    await later.tell("hello")
    (question,) = later.questions
    assert "echo one (timeout 60)" in [detail.values.get("text") for detail in question.details]


def growing(folder: Path) -> Iterator[None]:
    """Makes a file that grows while it is copied."""
    over = threading.Event()

    def grow() -> None:
        with (folder / "log").open("a") as file:
            while not over.is_set():
                file.write("more\n")
                file.flush()
                over.wait(0.001)

    thread = threading.Thread(target=grow)
    thread.start()
    yield
    over.set()
    thread.join()


def test_a_copy_holds_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    from duckflow.safety.brought.copies import LARGEST_FILE, FolderCopies

    folder, outside = tmp_path / "folder", tmp_path / "elsewhere"
    outside.mkdir()
    (outside / "file").write_text("outside\n")
    put(folder, {"a.sh": SHELL, ".env": "KEY=x\n", "sub/b": "b\n", "in": "->sub", "whole": f"->{folder}/sub/b"})
    put(folder, {"out": f"->{outside}/file", ".gitignore": "big/\n", "round": "->.", "deep/.git/config": "x"})
    os.mkfifo(folder / "pipe")
    (folder / "large").touch()
    os.truncate(folder / "large", LARGEST_FILE + 1)
    put(folder, {"log": "begun\n"})
    grows = growing(folder)
    next(grows)
    copies = FolderCopies(tmp_path / "copies")
    copy = copies.take(folder)
    next(grows, None)
    assert (copy.folder / "a.sh").read_text() == SHELL and os.access(copy.folder / "a.sh", os.X_OK)
    assert set(copy.left_out) >= {".env", "large"} and not (copy.folder / "pipe").exists()
    assert not (copy.folder / "deep/.git").exists()
    inner = {(copy.folder / name).resolve() for name in ("in/b", "whole", "round/sub/b")}
    assert inner == {copy.folder / "sub/b"}, "links inside lead into the copy"
    (folder / "log").unlink()
    first, second = copies.take(folder), copies.take(folder)
    assert first == second and first.folder != copy.folder, "named by what is in it"
    (folder / "sub/b").write_text("changed\n")
    assert (first.folder / "sub/b").read_text() == "b\n"
    copies.remove_unused({first.name}, {copy.name})
    assert first.folder.exists() and not copy.folder.exists()


async def test_a_yes_that_is_taken_back_takes_the_copy_with_it(tmp_path: Path) -> None:
    await trusted(tmp_path)
    bring(tmp_path / "work", "Stop", "echo ran >> ran")
    story = Story(tmp_path, [END, END])
    story.answers = [TRUST]
    await story.tell("hello")
    copies = tmp_path / "home/copies"
    assert len([path for path in copies.iterdir() if path.name != "contents"]) == 1
    assert "1" in await story.chat.run_command("/hooks forget")
    assert [path.name for path in copies.iterdir()] == ["contents"] and not list((copies / "contents").iterdir())
    story.answers = [NO]
    await story.tell("hello")
    assert (story.folder / "ran").read_text() == "ran\n" and story.questions[-1].choices[1].key == "more"


@pytest.mark.parametrize("planted", ["json.py", "bin/date", "sitecustomize.py", "node_modules/fs/index.js", "lib.py"])
async def test_the_users_own_hooks_take_nothing_from_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: str
) -> None:
    """The user's own hooks keep their folder and their rights."""
    work, own = tmp_path / "work", tmp_path / "own"
    put(own, {"guard.py": PYTHON + "import lib\n", "lib.py": ""})
    monkeypatch.setenv("PATH", f"{work}/bin:{os.environ['PATH']}:.")
    monkeypatch.setenv("PYTHONPATH", f"{work}:")
    put(work, {planted: SHELL_HIT if planted.startswith("bin") else PYTHON_HIT})
    hook = {"type": "command", "command": f"python3 {own}/guard.py && date && echo x > {tmp_path}/written"}
    story = Story(tmp_path, [END], settings={"hooks": {"Stop": [{"hooks": [hook]}]}})
    await story.tell("hello")
    assert (work / "ran").exists() and (tmp_path / "written").exists() and not (tmp_path / "outside/hit").exists()


BESIDE = "import os, sys\nsys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))\n"
RENEWED = {
    "a module": Way(
        "python3 tools/g.py",
        {"tools/g.py": BESIDE + "import beside\n", "tools/beside.py": PYTHON},
        {"tools/g.py": BESIDE + "import beside  # new\n", "tools/beside.py": PYTHON_HIT},
    ),
    "a new module": Way(
        "python3 tools/g.py",
        {"tools/g.py": PYTHON + BESIDE + "try:\n    import extra\nexcept ImportError:\n    pass\n"},
        {"tools/g.py": PYTHON + BESIDE + "import extra\n", "tools/extra.py": PYTHON_HIT},
    ),
    "a sourced file": Way(
        "sh tools/g.sh",
        {"tools/g.sh": '. "$(dirname "$0")/lib.sh"\n', "tools/lib.sh": SHELL},
        {"tools/g.sh": '# new\n. "$(dirname "$0")/lib.sh"\n', "tools/lib.sh": SHELL_HIT},
    ),
    "a makefile": Way(
        "sh tools/g.sh",
        {"tools/g.sh": "make -s check\n", "Makefile": MAKE},
        {"tools/g.sh": "make -s check # new\n", "Makefile": MAKE_HIT},
    ),
    "a link": Way(
        "sh tools/g.sh",
        {"tools/g.sh": ". tools/lib.sh\n", "tools/lib.sh": "->a.sh", "tools/a.sh": SHELL, "tools/b.sh": SHELL_HIT},
        {"tools/g.sh": ". tools/lib.sh # new\n", "tools/lib.sh": "->b.sh"},
    ),
    "a file made to run": Way(
        "sh tools/g.sh",
        {"tools/g.sh": "test -x tools/lib.sh && . tools/lib.sh\n", "tools/lib.sh": "->a.sh", "tools/a.sh": SHELL},
        {"tools/g.sh": ". tools/a.sh # new\n", "tools/lib.sh": SHELL_HIT},
    ),
}


async def renewed(tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch, meanwhile: dict[str, str]) -> Question:
    """Says yes to a hook without a sandbox, writes as the model, and says yes to a fresh copy; returns the question.
    What comes `meanwhile` is written while it is open."""
    if way == "a makefile" and shutil.which("make") is None:
        pytest.skip("make is not installed")
    work, (command, before, after) = tmp_path / "work", RENEWED[way]
    await trusted(tmp_path)
    put(work, before)
    bring(work, "UserPromptSubmit", command)
    story = Story(tmp_path, [END])
    story.answers = [MORE, Answer(choice="outside"), DONE]
    await story.tell("hello")
    await story.close()
    put(work, after)
    story = Story(tmp_path, [END])

    def answer(question: Question) -> Answer:
        put(work, meanwhile)
        return Answer(choice="fresh" if question.title.key == "brought.stale_question" else "trust")

    monkeypatch.setattr(story, "answer", answer)
    await story.tell("again")
    await story.close()
    assert len(story.questions) == 1
    return story.questions[0]


@pytest.mark.parametrize("way", RENEWED)
async def test_the_question_for_a_fresh_copy_names_all_that_it_brings_and_the_rights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    question = await renewed(tmp_path, way, monkeypatch, {})
    names = {
        name
        for detail in question.details
        if detail.key.startswith("brought.stale")
        for name in str(detail.values["files"]).split(", ")
    }
    assert {*RENEWED[way].after} == names - {"ran"}
    assert "brought.has.outside" in {detail.key for detail in question.details}


@pytest.mark.parametrize("way", RENEWED)
async def test_a_file_that_comes_after_the_question_is_not_in_the_fresh_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    command, *states = RENEWED[way]
    before, after = ({name: text.replace("hit", "fine") for name, text in state.items()} for state in states)
    monkeypatch.setitem(RENEWED, way, Way(command, before, after))
    late = {"tools/json.py": PYTHON_HIT, "Makefile": MAKE_HIT, "tools/lib.sh": SHELL_HIT, "tools/b.sh": SHELL_HIT}
    hit = tmp_path / "outside/hit"
    await renewed(tmp_path, way, monkeypatch, late | {"tools/beside.py": PYTHON_HIT})
    assert not hit.exists() or hit.read_text().strip() == "fine"


async def test_programs_of_which_very_many_files_have_changed_are_asked_about_as_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = {f"many/{number}.py": "" for number in range(60)}
    way = RENEWED["a sourced file"]
    monkeypatch.setitem(RENEWED, "a sourced file", way._replace(after=way.after | many))
    question = await renewed(tmp_path, "a sourced file", monkeypatch, {})
    assert question.title.key == "brought.renewed_question"
    assert not (tmp_path / "outside/hit").exists(), "it has only the rights of the model's commands again"


async def test_all_names_are_shown_before_a_yes_where_they_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, way = tmp_path / "work", RENEWED["a sourced file"]
    await trusted(tmp_path)
    put(work, way.before)
    bring(work, "UserPromptSubmit", way.command)
    story = Story(tmp_path, [END])
    story.answers = [MORE, Answer(choice="outside"), DONE]
    await story.tell("hello")
    await story.close()
    put(work, way.after | {f"many/{number:02}.py": "" for number in range(20)})
    story = Story(tmp_path, [END])
    story.answers = [Answer(choice="all"), NO]
    await story.tell("again")
    await story.close()
    few, everything = (str(question.details) for question in story.questions)
    assert "many/19.py" not in few and "many/19.py" in everything
    assert not (tmp_path / "outside/hit").exists()
