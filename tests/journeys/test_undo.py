"""What was done can be taken back, byte for byte, and that can be taken back too."""

import asyncio
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from duckflow.commands.status import recap
from duckflow.commands.table import Commands
from duckflow.i18n.template import note
from duckflow.i18n.typed import restoring
from duckflow.i18n.words import Words
from duckflow.state.agent import AgentState
from duckflow.state.changes import UndoScope
from duckflow.state.plan import Plan
from duckflow.state.question import Answer, Question
from duckflow.ui.console.status_bar import status_bar
from tests.journeys.plans import PROPOSE, Typing, job_ended, report, until, when
from tests.journeys.story import Story, act, decide, respond


def run(command: str) -> dict[str, Any]:
    return act("shell.run", command=command)


DEEDS = {
    "edit": act("file_ops.edit_file", path="a.txt", old="one", new="two"),
    "create": act("file_ops.write_file", path="deep/down/new.txt", content="new\n"),
    "delete": act("file_ops.delete_file", path="a.txt"),
    "delete a folder": act("file_ops.delete_file", path="folder", recursive=True),
    "rename": act("file_ops.move_file", source="a.txt", target="folder/b.txt"),
    "edit cp932": act("file_ops.edit_file", path="sjis.txt", old="日本", new="東京"),
    "sed": run("sed -i s/one/two/ a.txt"),
    "rm -r": run("rm -r folder a.txt binary.bin"),
    "git checkout": run("git checkout ."),
    "overwrite binary": run("printf '\\001\\002' > binary.bin; chmod +x a.txt"),
    "many": run("for n in 1 2 3; do echo $n > made$n.txt; done; mv folder other; ln -s a.txt link"),
}


def furnish(folder: Path) -> None:
    (folder / "folder").mkdir()
    (folder / "a.txt").write_text("one\r\nline\n")
    (folder / "folder/c.txt").write_text("c\n")
    (folder / "binary.bin").write_bytes(bytes(range(256)))
    (folder / "sjis.txt").write_bytes("日本語のファイル\r\n".encode("cp932"))
    quiet: dict[str, Any] = {"cwd": folder, "capture_output": True}
    subprocess.run(["git", "init", "-q"], check=True, **quiet)
    subprocess.run(["git", "add", "a.txt", "folder"], check=True, **quiet)
    subprocess.run(["git", "-c", "user.email=a@b", "-c", "user.name=a", "commit", "-qm", "start"], check=True, **quiet)
    (folder / "a.txt").write_text("one\r\nmine, not committed\n")


def everything(folder: Path) -> dict[str, tuple[str, int, bytes]]:
    """Every path with its kind, mode and bytes; git's own files left out."""
    found: dict[str, tuple[str, int, bytes]] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name.split("/")[0] == ".git":
            continue
        if path.is_symlink():
            found[name] = ("link", 0, os.fsencode(path.readlink()))
        elif path.is_dir():
            found[name] = ("folder", 0, b"")
        else:
            found[name] = ("file", path.stat().st_mode, path.read_bytes())
    return found


@pytest.mark.one_in(3)
@pytest.mark.parametrize("deed", DEEDS)
async def test_undo_and_redo_bring_back_every_byte(tmp_path: Path, deed: str) -> None:
    story = Story(tmp_path, [decide(DEEDS[deed], respond("done"))])
    furnish(story.folder)
    before = everything(story.folder)
    story.answers = [Answer(choice="yes")]
    assert await story.tell("do it") == "done"
    after = everything(story.folder)
    assert after != before
    kept = story.chat.undo
    await kept.restore(back=True)
    assert everything(story.folder) == before
    await kept.restore(back=False)
    assert everything(story.folder) == after
    await kept.restore(back=True)
    assert everything(story.folder) == before
    await kept.close()


async def test_the_commands_show_ask_and_tell_the_model(tmp_path: Path) -> None:
    write = act("file_ops.write_file", path="a.txt", content="x\n")
    story = Story(tmp_path, [decide(write, respond("done")), decide(respond("I see."), step="PLANNING")])
    await story.tell("write it")
    asked: list[Question] = []

    async def answer(question: Question) -> Answer:
        asked.append(question)
        return Answer(choice="yes" if len(asked) > 1 else "no")

    async def give(line: str) -> str:
        return await Commands(Words("en")).run(story.chat, answer, line)

    assert "+x" in await give("/diff")
    assert await give("/undo") == "Nothing was changed."
    assert (story.folder / "a.txt").exists()
    assert "Turn 1 was undone: a.txt" in await give("/undo")
    assert not (story.folder / "a.txt").exists()
    gate = asked[0].gate
    assert gate and not gate.diff, "the diff comes when it is wanted"
    assert [(one.path, one.change, one.removed) for one in gate.impacts] == [("a.txt", "delete", 1)]
    await story.tell("what now?")
    assert "The user undid turn 1" in story.prompt()
    assert "nothing" in await give("/undo")
    assert "are back" in await give("/redo")
    assert (story.folder / "a.txt").read_text() == "x\n"


async def test_a_file_that_was_taken_back_no_longer_counts_as_changed(tmp_path: Path) -> None:
    files = enumerate(("a.py", "a.py", "b.py"))
    writes = [act("file_ops.write_file", path=path, content=f"{n}\n") for n, path in files]
    story = Story(tmp_path, [decide(writes[0]), decide(*writes[1:]), decide(respond("ok"), step="PLANNING")])
    await story.tell("one")
    await story.tell("two")
    await story.chat.undo.restore(back=True)
    assert story.session.state.files_changed == ["a.py"], "the first turn has changed it too"
    assert (await story.chat.undo.diff()).turn == 1, "and what is shown is what stands"
    await story.tell("and now?")
    assert "Files changed: a.py\n" in story.prompt()
    await story.chat.undo.restore(back=True)
    assert story.session.state.files_changed == []
    await story.chat.undo.restore(back=False)
    assert story.session.state.files_changed == ["a.py"], "redone it counts again"


async def test_work_of_somebody_else_is_never_taken_back(tmp_path: Path) -> None:
    write = act("file_ops.write_file", path="a.txt", content="x\n")
    story = Story(tmp_path, [decide(write, respond("done"))])
    await story.tell("write it")
    (story.folder / "a.txt").write_text("my own later work\n")
    outcome = await story.chat.undo.restore(back=True)
    assert outcome.conflicts
    assert (story.folder / "a.txt").read_text() == "my own later work\n"


@pytest.mark.parametrize(("choice", "notes"), [("yes", "mine\n"), ("all", "old\n")])
async def test_what_a_person_did_while_a_command_ran_needs_a_yes_of_its_own(
    tmp_path: Path, choice: str, notes: str
) -> None:
    write = act("file_ops.write_file", path="a.txt", content="x\n")
    story = Story(tmp_path, [decide(write, run("touch started; sleep 1"), respond("done"))])
    (story.folder / "notes.txt").write_text("old\n")
    story.answers = [Answer(choice="yes")]

    def person() -> None:
        while not (story.folder / "started").exists():
            time.sleep(0.01)
        (story.folder / "notes.txt").write_text("mine\n")

    await asyncio.gather(story.tell("do it"), asyncio.to_thread(person))
    asked: list[Question] = []

    async def answer(question: Question) -> Answer:
        asked.append(question)
        return Answer(choice=choice)

    said = await Commands(Words("en")).run(story.chat, answer, "/undo")
    assert asked[0].gate
    told = [Words("en").phrase(reason) for reason in asked[0].gate.reasons]
    assert "1 file changed while the command ran and may be yours: notes.txt" in told
    assert [one.key for one in asked[0].choices] == ["yes", "all", "diff", "files", "no"]
    assert (story.folder / "notes.txt").read_text() == notes
    assert not (story.folder / "a.txt").exists()
    assert ("1 file that may be yours stays as it is" in said) == (choice == "yes")


async def test_undo_works_after_a_restart(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(run("echo new > made.txt"), respond("done"))])
    await story.tell("go")
    assert (story.folder / "made.txt").exists()
    story = story.restart([])
    await story.chat.undo.restore(back=True)
    assert not (story.folder / "made.txt").exists()


async def worked_beside_a_job(tmp_path: Path, kind: type[Story] = Story) -> Story:
    """A job of two steps adds a line to the list in each; then the conversation adds one of its own."""
    names = ("first", "second")
    steps: list[dict[str, Any]] = [{"name": name, "success": "it is there"} for name in names]
    steps[1]["depends_on"] = [1]
    edits = [run(f"sed -i 's/{name}:/{name}: done/' list.txt") for name in names]
    tasks = [when(f"Now its step: {name}", {"tasks": [edit]}) for name, edit in zip(names, edits, strict=True)]
    run_all = decide(act("task_loop.run"), respond("It runs."), next_step="defer")
    chat = decide(act("file_ops.edit_file", path="list.txt", old="third:", new="third: done"), respond("Done."))
    replies: list[Any] = [PROPOSE, {"name": "Work", "steps": steps, "risks": []}, run_all]
    story = kind(tmp_path, [*replies, *tasks, when("A background job has ended", report()), chat])
    (story.folder / "list.txt").write_text("first:\nsecond:\nthird:\n")
    await story.tell("do the work")
    await story.tell("yes")
    assert (await job_ended(story)).status == "completed"
    await story.tell("and the third")
    assert (story.folder / "list.txt").read_text() == "first: done\nsecond: done\nthird: done\n"
    return story


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("wanted", "left", "told"),
    [
        ("turn", "first: done\nsecond: done\nthird:\n", "Turn 3 was undone"),
        ("job", "first:\nsecond:\nthird: done\n", "The changes of “Work”"),
        ("step", "first: done\nsecond:\nthird: done\n", "The changes of “second”"),
        ("list.txt", "first: done\nsecond: done\nthird:\n", "Turn 3 was undone"),
    ],
)
async def test_a_job_a_step_or_a_turn_is_taken_back_each_for_itself(
    tmp_path: Path, wanted: str, left: str, told: str
) -> None:
    story = await worked_beside_a_job(tmp_path)
    file = story.folder / "list.txt"
    before = file.read_text()

    async def agree(question: Question) -> Answer:
        return Answer(choice=question.choices[0].key)

    async def give(line: str) -> str:
        return await Commands(Words("en")).run(story.chat, agree, line)

    assert told in await give(f"/undo {wanted}")
    assert file.read_text() == left
    assert story.session.state.files_changed == ["list.txt"], "others have changed it too"
    await give("/redo")
    assert file.read_text() == before
    for kind in ("turn", "step", "job"):
        await give(f"/undo {kind}")
    assert file.read_text() == "first:\nsecond:\nthird:\n"
    assert story.session.state.files_changed == []


async def test_undo_offers_what_could_be_meant_with_its_size_and_the_diff_on_demand(tmp_path: Path) -> None:
    story = await worked_beside_a_job(tmp_path)
    asked: list[Question] = []
    keys = iter(("1", "diff", "no"))

    async def answer(question: Question) -> Answer:
        asked.append(question)
        return Answer(choice=next(keys))

    words = Words("en")
    assert await Commands(words).run(story.chat, answer, "/undo") == "Nothing was changed."
    assert [words.phrase(choice.label) for choice in asked[0].choices] == [
        "the last turn (3), “and the third”: list.txt +1 −1",
        "the plan's job “Work”: list.txt +2 −2",
        "only the last step of that job, “second”: list.txt +1 −1",
        "undo nothing",
    ]
    summary, whole = (question.gate for question in asked[1:])
    assert summary and whole and not summary.diff and "-first: done" in whole.diff
    assert not summary.impacts[0].tracked, "there is no repository"


@pytest.mark.parametrize("wanted", ["docs/a b.txt", "./docs/a b.txt", "docs", "{folder}/docs/a b.txt"])
async def test_a_file_named_gets_its_newest_change_taken_back_whoever_made_it(tmp_path: Path, wanted: str) -> None:
    files = {"docs/a b.txt": "1\n2\n", "b.txt": "b\n"}
    edits = [("docs/a b.txt", "1\n", "one\n"), ("docs/a b.txt", "2\n", "two\n"), ("b.txt", "b", "B")]
    turns = [act("file_ops.edit_file", path=path, old=old, new=new) for path, old, new in edits]
    story = Story(tmp_path, [decide(turn, respond("done")) for turn in turns])
    for path, text in files.items():
        (story.folder / path).parent.mkdir(exist_ok=True)
        (story.folder / path).write_text(text)
    for _ in turns:
        await story.tell("go on")

    async def agree(question: Question) -> Answer:
        return Answer(choice="yes")

    async def undo(path: str) -> str:
        return await Commands(Words("en")).run(story.chat, agree, f"/undo {path}")

    name = f"'{wanted.format(folder=story.folder)}'"
    assert await undo(name) == "Turn 2 was undone: docs/a b.txt. /redo brings its changes back."
    assert (story.folder / "docs/a b.txt").read_text() == "one\n2\n"
    assert "Turn 1 was undone" in await undo(name)
    assert (story.folder / "docs/a b.txt").read_text() == files["docs/a b.txt"]
    assert "undo in docs" in await undo(name) and "undo in c.txt" in await undo("c.txt")
    assert (story.folder / "b.txt").read_text() == "B\n"


async def test_files_of_several_turns_are_taken_back_together(tmp_path: Path) -> None:
    writes = [("a", "1"), ("b", "1"), ("b", "2")]
    turns = [act("file_ops.write_file", path=f"{name}.txt", content=text) for name, text in writes]
    story = Story(tmp_path, [decide(turn, respond("done")) for turn in turns])
    for _ in turns:
        await story.tell("go on")
    await story.chat.undo.restore(back=True, scope=UndoScope(paths=("a.txt", "b.txt")))
    assert not (story.folder / "a.txt").exists() and (story.folder / "b.txt").read_text() == "1"
    await story.chat.undo.restore(back=False)
    assert (story.folder / "a.txt").read_text() == "1" and (story.folder / "b.txt").read_text() == "2"


async def test_said_in_words_after_a_job_it_means_the_job(tmp_path: Path) -> None:
    story, words = await worked_beside_a_job(tmp_path, Typing), Words("en")
    await story.chat.undo.restore(back=True)
    count = len(story.questions)
    story.chat.take("undo that")
    await until(story, lambda: len(story.questions) > count)
    assert words.phrase(story.questions[-1].title) == "Undo the changes of “Work”?"
    await story.chat.take("yes")
    await until(story, lambda: (story.folder / "list.txt").read_text() == "first:\nsecond:\nthird:\n")


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_a_plan_of_whose_work_nothing_is_left_is_withdrawn_until_the_redo(tmp_path: Path, language: str) -> None:
    check = "python3 -c 'import pond'"
    now, ended = {
        "en": ("Now its step: ", "A background job has ended"),
        "ja": ("いまのステップ: ", "終わりました"),
    }[language]
    steps: list[dict[str, Any]] = [{"name": name, "success": f"`{check}` exits with 0"} for name in ("write", "test")]
    steps[1]["depends_on"] = [1]
    write = act("file_ops.write_file", path="pond.py", content="ducks = 1\n")
    tasks = [
        when(f"{now}write", {"tasks": [write, run(check)]}),
        when(f"{now}test", {"tasks": [run(check)]}),
    ]
    run_all = decide(act("task_loop.run"), respond("It runs."), next_step="defer")
    replies: list[Any] = [PROPOSE, {"name": "Work", "steps": steps, "risks": []}, run_all, *tasks]
    replies += [when(ended, report()), decide(respond("Hello."))]
    story, words = Story(tmp_path, replies, language=language), Words(language)
    await story.tell("do the work")
    await story.tell({"en": "yes", "ja": "はい"}[language])
    assert (await job_ended(story)).status == "completed"

    def plan() -> Plan:
        assert story.session.state.plan
        return story.session.state.plan

    assert (plan().status, plan().all_done) == ("completed", True)
    await story.chat.undo.restore(back=True)
    state = story.session.state
    assert plan().status == "withdrawn" and state.five.goal == "" and state.heading == "do the work"
    assert words("plan.status.withdrawn") in await story.chat.run_command("/plan")
    assert "Work" not in status_bar(story.chat, words, 200)
    await story.tell("hello")
    asked = story.model.requests[-1].messages
    assert note(language, "plan_withdrawn", plan="Work") in asked[-2].text + asked[-1].text
    assert not any(line in asked[-1].text for line in ("Plan 'Work':", "計画「Work」:"))
    again = story.restart([])
    assert "1. write" not in str(recap(again.session.state, "", 0.0, words))
    await again.chat.undo.restore(back=False)
    restored = again.session.state.plan
    assert restored and restored.status == "completed" and all(step.evidence for step in restored.steps)


@pytest.mark.parametrize("worked_on", [False, True])
async def test_a_plan_done_in_the_chat_is_withdrawn_too(tmp_path: Path, worked_on: bool) -> None:
    """A later turn's work of its own is no part of the plan."""
    write = act("file_ops.write_file", path="pond.py", content="ducks = 1\n")
    done = act("plan_tool.update_step", id="1", status="completed")
    steps = {"name": "Work", "steps": [{"name": "write pond.py", "success": "pond.py exists"}], "risks": []}
    other = decide(act("file_ops.write_file", path="other.txt", content="x\n"), respond("ok"))
    story = Story(tmp_path, [PROPOSE, steps, decide(write, done, respond("ok")), other])
    await story.tell("do the work")
    await story.tell("yes")
    assert story.session.state.plan and story.session.state.plan.status == "completed"
    if worked_on:
        await story.tell("now the other one")
        await story.chat.undo.restore(back=True)
        assert story.session.state.plan.status == "completed"
    await story.chat.undo.restore(back=True)
    assert story.session.state.plan.status == "withdrawn"
    await story.chat.undo.restore(back=False)
    assert story.session.state.plan.status == "completed"


async def test_the_goal_of_a_turn_goes_with_all_its_work(tmp_path: Path) -> None:
    files = [act("file_ops.write_file", path=name, content="new\n") for name in ("a.txt", "b.txt")]
    story = Story(tmp_path, [decide(*files, respond("ok"))])
    await story.tell("write two files")
    await story.chat.undo.restore(back=True, scope=UndoScope(paths=("a.txt",)))
    assert story.session.state.five.goal == "write two files"
    await story.chat.undo.restore(back=True, scope=UndoScope(turn=1))
    assert story.session.state.five.goal == ""


@pytest.mark.parametrize("wanted", [UndoScope(paths=("b.txt",)), UndoScope(step="b"), UndoScope()])
async def test_a_step_is_open_again_if_a_file_of_it_is_undone(tmp_path: Path, wanted: UndoScope) -> None:
    """The chat has changed the file, too: so undo does not bring it back as it was before the session."""
    draft = decide(act("file_ops.write_file", path="b.txt", content="draft\n"), respond("ok"))
    steps = [{"name": name, "success": f"{name}.txt exists"} for name in "abc"]
    tasks = [
        when(f"Now its step: {name}", {"tasks": [run(f"echo {name} >> {name}.txt && ls")]}) for name in ("a", "b", "c")
    ]
    run_all = decide(act("task_loop.run"), respond("It runs."), next_step="defer")
    replies: list[Any] = [draft, PROPOSE, {"name": "Work", "steps": steps, "risks": []}, run_all, *tasks]
    story = Story(tmp_path, [*replies, when("A background job has ended", report())])
    for words in ("write a draft", "do the work", "yes"):
        await story.tell(words)
    assert (await job_ended(story)).status == "completed"
    plan = story.session.state.plan
    assert plan and [step.status for step in plan.steps] == ["completed"] * 3
    if wanted.step:
        wanted = wanted._replace(step=plan.steps[1].step_id)
    await story.chat.undo.restore(back=True, scope=wanted)
    plan = story.session.state.plan
    assert plan
    done = [step.status == "completed" for step in plan.steps]
    assert plan.status == "withdrawn" if wanted == UndoScope() else done == [True, False, True]
    await story.chat.undo.restore(back=False)
    plan = story.session.state.plan
    assert plan and plan.status == "completed" and all(step.status == "completed" for step in plan.steps)


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "forget the plan"),
        ("en", "ok, never mind, drop that plan please"),
        ("en", "we don't need the plan anymore"),
        ("en", "please scrap the whole plan, thanks"),
        ("ja", "計画は忘れて"),
        ("ja", "やっぱりその計画はやめよう"),
        ("ja", "その計画はもういらないです"),
    ],
)
@pytest.mark.parametrize("is_draft", [False, True])
async def test_a_plan_is_dropped_in_words_and_no_model_is_asked(
    tmp_path: Path, language: str, words: str, is_draft: bool
) -> None:
    steps = {"name": "Work", "steps": [{"name": "write pond.py", "success": "pond.py exists"}], "risks": []}
    story = Story(tmp_path, [PROPOSE, steps, decide(respond("Later."))], language=language)
    await story.tell("do the work")
    if not is_draft:
        await story.tell("yes")
    count = len(story.model.requests)
    await story.tell(words)
    state = story.session.state
    assert len(story.model.requests) == count
    assert state.plan is None and [plan.status for plan in state.plans.values()] == ["failed"]
    assert state.heading == "do the work"


@pytest.mark.parametrize(
    "words",
    ["forget the plan file in docs/", "drop the plan table", "what is the plan?", "close the plan view in the editor",
     "計画は忘れていない？", "計画を見せて", "計画のテストをやめて別のにして"],
)  # fmt: skip
def test_words_about_something_else_drop_no_plan(words: str) -> None:
    plan = Plan(plan_id="p", name="P", goal="g", status="in_progress")
    assert restoring(words, AgentState(plans={"p": plan}, active_plan="p")) == ""
