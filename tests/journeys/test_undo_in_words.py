"""The model knows where it is, and both it and the user can have the last changes undone in words."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import TurnUndone
from duckflow.i18n.template import note
from duckflow.i18n.typed import REDO, UNDO, restoring
from duckflow.state.agent import AgentState
from duckflow.state.question import Answer
from tests.journeys.plans import PROPOSE, Typing, job_ended, report, until, when
from tests.journeys.story import Story, act, decide, respond

WRITE = decide(act("file_ops.write_file", path="a.txt", content="new\n"), respond("ok"))
CALL = decide(act("undo.turn"), next_step="continue", step="PLANNING")
SAID = decide(respond("It is as it was."), step="PLANNING")
BOTH = pytest.mark.parametrize("native", [False, True], ids=["json", "native"])


def offered(story: Story, number: int) -> bool:
    tools = json.dumps([tool.name for tool in story.model.requests[number].tools])
    assert "undo_turn" not in tools, "the list of tools never changes"
    return "undo_turn" in story.prompt(number) or "undo.turn" in story.prompt(number)


@BOTH
async def test_the_model_takes_its_last_turn_back_when_the_user_has_seen_it(tmp_path: Path, native: bool) -> None:
    story = Story(tmp_path, [WRITE, CALL, SAID], native=native)
    (story.folder / "a.txt").write_text("old\n")
    await story.tell("@a.txt write it")
    story.answers = [Answer(choice="yes")]
    await story.tell("that was wrong, get rid of what you did")
    [question] = story.questions
    assert question.kind == "gate" and question.gate and "-new" in question.gate.diff, "asked in full-auto, too"
    assert (story.folder / "a.txt").read_text() == "old\n" and len(story.all(TurnUndone)) == 1
    count = len(story.model.requests)
    assert [offered(story, number) for number in range(count)] == [False] * (count - 2) + [True] * 2
    assert note("en", "turn_undone", turn="1", files="a.txt") in story.prompt()


@pytest.mark.parametrize("of", ["the first file", "THE  first FILE please"])
async def test_an_earlier_turn_is_named_by_words_of_its_message_and_later_ones_stay(tmp_path: Path, of: str) -> None:
    second = decide(act("file_ops.write_file", path="b.txt", content="b\n"), respond("ok"))
    back = decide(act("undo.turn", of=of), next_step="continue", step="PLANNING")
    story = Story(tmp_path, [WRITE, second, back, SAID])
    await story.tell("write the first file please")
    await story.tell("now the second file")
    story.answers = [Answer(choice="yes")]
    await story.tell("take the first one back, the second stays")
    assert not (story.folder / "a.txt").exists() and (story.folder / "b.txt").exists()
    told = note("en", "turn_undone", turn="1", files="a.txt")
    assert story.prompt().count(told) == 1, "it is told once"


@pytest.mark.parametrize("of", ["file", "the third"])
async def test_words_that_fit_several_works_or_none_bring_the_list(tmp_path: Path, of: str) -> None:
    second = decide(act("file_ops.write_file", path="b.txt", content="b\n"), respond("ok"))
    back = decide(act("undo.turn", of=of), next_step="continue", step="PLANNING")
    story = Story(tmp_path, [WRITE, second, back, SAID])
    await story.tell("write the first file please")
    await story.tell("now the second file")
    await story.tell("something there was wrong")
    works = '"now the second file"; "write the first file please"'
    assert note("en", "undo_which", works=works) in story.prompt() and not story.questions


async def test_a_no_leaves_everything_as_it_is(tmp_path: Path) -> None:
    story = Story(tmp_path, [WRITE, CALL, SAID])
    await story.tell("write it")
    story.answers = [Answer(choice="no", text="keep it")]
    await story.tell("hm")
    assert (story.folder / "a.txt").exists() and not story.all(TurnUndone)
    assert note("en", "refused_why", reason="keep it") in story.prompt()


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize(
    ("language", "answer"),
    [("en", "no"), ("en", "no, not like this"), ("ja", "いいえ"), ("ja", "いいえ、そうではなくて")],
)
async def test_after_a_no_to_one_undo_nothing_that_stands_behind_it_is_asked_or_run(
    tmp_path: Path, language: str, answer: str, native: bool
) -> None:
    undo = [act("undo.turn", of=wish) for wish in ("second", "first")]
    check = act("shell.run", command="touch checked")
    files = [act("file_ops.write_file", path=name, content="x\n") for name in ("a.txt", "b.txt")]
    replies = [decide(file, respond("ok")) for file in files]
    back = decide(*undo, check, next_step="continue")
    story = Typing(tmp_path, [*replies, back, decide(respond("ok"))], language=language, native=native)
    for wish in ("first", "second"):
        await story.tell(wish)
    turn = asyncio.create_task(story.tell("take back both"))
    await story.asked()
    await story.chat.take(answer)
    await turn
    assert len(story.questions) == 1
    assert {path.name for path in story.folder.iterdir()} == {"a.txt", "b.txt"}
    why = note(language, "not_run_refused")
    assert sum(why in message.text for message in story.session.state.messages) == 2
    assert story.said()[-1] == "ok"


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "undo that"),
        ("en", "Please revert it."),
        ("ja", "元に戻して"),
        ("ja", "さっきの変更を取り消してください"),
    ],
)
async def test_the_user_says_it_and_no_model_is_asked(tmp_path: Path, language: str, said: str) -> None:
    story = Typing(tmp_path, [WRITE], language=language)
    await story.tell("write it")
    story.chat.take(said)
    question = await story.asked()
    assert question.gate and [impact.path for impact in question.gate.impacts] == ["a.txt"]
    await story.chat.take({"en": "yes", "ja": "はい"}[language])
    await until(story, lambda: bool(story.all(TurnUndone)))
    assert not (story.folder / "a.txt").exists() and len(story.model.requests) == 1


@pytest.mark.parametrize(("language", "said"), [("en", "Undo that, please"), ("ja", "あ、今のを戻して")])
async def test_right_after_a_job_one_question_takes_the_job_back(tmp_path: Path, language: str, said: str) -> None:
    """The chat has changed something, too; what was done last is meant, so that nobody asks which."""
    plan = {"name": "Work", "steps": [{"name": "b", "success": "b.txt exists"}], "risks": []}
    run_all = decide(act("task_loop.run"), respond("It runs."), next_step="defer")
    asked = {"en": "Now its step", "ja": "いまのステップ"}[language]
    ended = {"en": "A background job has ended", "ja": "バックグラウンドのジョブが終わ"}[language]
    tasks = when(asked, {"tasks": [act("shell.run", command="echo new > b.txt")]})
    story = Typing(tmp_path, [WRITE, PROPOSE, plan, run_all, tasks, when(ended, report())], language=language)
    await story.tell("write it")
    await story.tell("do the work")
    await story.tell("yes" if language == "en" else "はい")
    assert (await job_ended(story)).status == "completed"
    count = len(story.model.requests)
    story.chat.take(said)
    question = await story.asked()
    assert question.gate and [impact.path for impact in question.gate.impacts] == ["b.txt"]
    await story.chat.take("yes" if language == "en" else "はい")
    await until(story, lambda: bool(story.all(TurnUndone)))
    assert not (story.folder / "b.txt").exists() and (story.folder / "a.txt").exists()
    assert len(story.model.requests) == count


JOB = {"name": "Work", "steps": [{"name": "b", "success": "b.txt exists"}], "risks": []}
JOB_TASKS = {"tasks": [act("shell.run", command="echo new > b.txt; echo new > c.txt")]}
AFTER_JOB = decide(act("file_ops.write_file", path="a.txt", content="later\n"), respond("ok"))


async def after_a_job(tmp_path: Path, *replies: dict[str, Any]) -> Typing:
    """A job has written two files, and after it a turn of the chat another one."""
    run_all = decide(act("task_loop.run"), respond("It runs."), next_step="defer")
    work = [PROPOSE, JOB, run_all, when("Now its step", JOB_TASKS), when("A background job has ended", report())]
    story = Typing(tmp_path, [*work, AFTER_JOB, *replies])
    await story.tell("do the work")
    await story.tell("yes")
    assert (await job_ended(story)).status == "completed"
    await story.tell("and write a.txt")
    return story


async def test_the_model_takes_back_a_part_of_what_a_job_did(tmp_path: Path) -> None:
    call = decide(act("undo.turn", of="job", paths=["b.txt"]), next_step="continue", step="PLANNING")
    story = await after_a_job(tmp_path, call, SAID)
    turn = asyncio.create_task(story.tell("take back what the plan did, but keep c.txt"))
    question = await story.asked()
    assert question.title.values["name"] == "b"
    await story.chat.take("yes")
    await turn
    assert not (story.folder / "b.txt").exists()
    assert (story.folder / "c.txt").exists() and (story.folder / "a.txt").exists()


async def test_files_of_several_works_are_not_called_one_turn(tmp_path: Path) -> None:
    call = decide(act("undo.turn", paths=["a.txt", "b.txt"]), next_step="continue", step="PLANNING")
    story = await after_a_job(tmp_path, call, SAID)
    turn = asyncio.create_task(story.tell("take back a.txt and b.txt"))
    question = await story.asked()
    assert question.title.key == "undo.title_named"
    assert question.title.values["name"] == "and write a.txt · b"
    await story.chat.take("no")
    await turn


async def test_a_turn_is_named_by_what_was_said(tmp_path: Path) -> None:
    story = Typing(tmp_path, [WRITE])
    await story.tell("write it, please")
    story.chat.take("undo that")
    assert (await story.asked()).title.values["wish"] == "write it, please"
    await story.chat.take("no")


@pytest.mark.parametrize(
    ("said", "files"),
    [
        ("the job", ["b.txt", "c.txt"]),
        ("ジョブをお願いします", ["b.txt", "c.txt"]),
        ("the last turn please", ["a.txt"]),
    ],
)
async def test_a_choice_is_taken_by_its_own_words(tmp_path: Path, said: str, files: list[str]) -> None:
    story = await after_a_job(tmp_path)
    count = len(story.model.requests)
    story.chat.take("/undo")
    await story.asked()
    assert (await story.chat.take(said)).meaning == "answer"
    question = await story.asked(2)
    assert question.gate and [impact.path for impact in question.gate.impacts] == files and not question.gate.diff
    assert (await story.chat.take("show me the diff")).meaning == "answer"
    question = await story.asked(3)
    assert question.gate and question.gate.diff and len(story.model.requests) == count
    await story.chat.take("no")


async def test_words_of_a_choice_never_allow_anything_nor_turn_a_no_around(tmp_path: Path) -> None:
    story = await after_a_job(tmp_path, SAID)
    story.chat.take("/undo")
    await story.asked()
    await story.chat.take("not the job")
    await until(story, lambda: not story.chat.questions)
    assert (story.folder / "b.txt").exists() and not story.all(TurnUndone)


async def test_over_a_port_that_waits_for_the_answer_too(tmp_path: Path) -> None:
    story = Typing(tmp_path, [WRITE])
    await story.tell("write it")
    saying = asyncio.create_task(story.chat.say("undo that"))
    await story.asked()
    await story.chat.take("yes")
    assert await saying == "done" and not (story.folder / "a.txt").exists()


@pytest.mark.parametrize(
    "said",
    [
        "undo",
        "take it back",
        "revert your changes",
        "それを元に戻して",
        "直前の変更は戻してください",
        "アンドゥして",
        "mach das rückgängig",
    ],
)
def test_only_a_whole_wish_is_one_and_only_after_a_change(said: str) -> None:
    language = "de" if "rückg" in said else "en"
    changed = AgentState(language=language, files_changed=["a.txt"])
    assert restoring(said, changed) == UNDO and not restoring(said, AgentState(language=language))
    assert not restoring(f"{said} and then add an undo button", changed)
    assert not restoring("add undo to the editor", changed) and not restoring("元に戻す機能を追加して", changed)


WISHES = """
Undo that, please
undo that please
Please undo it.
Can you undo that?
could you please revert your last changes
oh no, undo that
Sorry, undo the last change
no, take that back
revert what you just did
Roll it back please
roll back the last edit
put it back the way it was
change it back
I'd like to undo that
undo this job
undo what the job did
please undo the last job
undo those changes
take back what you did
Actually, revert that
go back to how it was
restore the previous version
I changed my mind, undo it
undo it again please
Never mind, put that back
let's undo that
that was wrong, undo it
undo the change you just made
undo all of that
revert all your changes
今のを戻して
今の、戻して
今のを戻してください
さっきのを取り消して
さっきの変更を元に戻して
やっぱり元に戻して
あ、今のなしにして
ごめん、今のを戻して
すみません、さっきの変更を取り消してもらえますか
それを元に戻してくれますか？
最後の変更をロールバックして
元の状態に戻してください
今のジョブの変更を戻して
ジョブの変更を取り消してください
さっきやったことをなかったことにして
元通りに戻してほしい
直前の編集をアンドゥして
今の変更、やっぱり戻して
戻しておいて
いや、元に戻して
さっき書いたやつを戻して
今回の分を取り消してください
今の変更はなかったことにしてください
元に戻そう
"""
OTHERS = """
undo that function in app.py
add an undo button
how do I undo that in git
undo the rename of foo but keep the rest
revert commit abc123
undo everything you did today
don't undo that
did you undo that
put the file back into src
take it back to the team
change it back to tabs
go back to the plan
get it done
roll back the database migration
restore the backup
元に戻す機能を追加して
値を戻り値で返して
戻るボタンを付けて
全部戻して
これを前の関数に戻す処理を書いて
取り消し線を付けて
元に戻さないで
戻していい？
git で戻す方法を教えて
前のファイルを読んで
最後の行を消して
"""


def test_many_ways_to_wish_for_it_and_none_that_means_something_else() -> None:
    for wishes, expected in ((WISHES, True), (OTHERS, False)):
        for said in wishes.strip().splitlines():
            state = AgentState(language="en" if said.isascii() else "ja", files_changed=["a.txt"])
            assert bool(restoring(said, state)) is expected, said


REDO_WISHES = """
redo that
ok, redo it then
Redo it please
no wait, do that again
put it back in after all
undo the undo
やり直して
やっぱりやり直してください
じゃあ、さっきの変更をもう一度適用して
"""
NO_REDO = """
redo the layout of the page
redo it with tabs
do it again but faster
設計をやり直して
"""


def test_what_was_undone_is_wanted_again_only_where_something_was() -> None:
    for wishes, expected in ((REDO_WISHES, REDO), (NO_REDO, "")):
        for said in wishes.strip().splitlines():
            language = "en" if said.isascii() else "ja"
            undone = AgentState(language=language, undone_last=True)
            assert restoring(said, undone) == expected, said
            assert restoring(said, AgentState(language=language, files_changed=["a.txt"])) in ("", UNDO), said


@pytest.mark.parametrize(("language", "said"), [("en", "ok, redo it then"), ("ja", "やり直して")])
async def test_a_redo_in_words_brings_back_what_was_undone(tmp_path: Path, language: str, said: str) -> None:
    yes = {"en": "yes", "ja": "はい"}[language]
    story = Typing(tmp_path, [WRITE], language=language)
    await story.tell("write it")
    for number, words in enumerate(({"en": "undo that", "ja": "元に戻して"}[language], said), 1):
        story.chat.take(words)
        await story.asked(number)
        await story.chat.take(yes)
        await until(story, lambda number=number: len(story.all(TurnUndone)) == number)
    assert (story.folder / "a.txt").read_text() == "new\n" and len(story.model.requests) == 1
    assert not story.session.state.undone_last


@BOTH
async def test_the_model_is_told_of_sandbox_mode_and_undo(tmp_path: Path, native: bool) -> None:
    story = Story(tmp_path, [decide(respond("ok"), step="PLANNING")] * 2, mode="ask", native=native)
    await story.tell("hello")
    story.chat.choices.change_mode("plan")
    await story.tell("hello again")
    assert note("en", "mode_ask") in story.prompt(0) and note("en", "mode_plan") in story.prompt(1)
    assert note("en", "undo_there") in story.prompt(0) and "sandbox" in story.prompt(0)


async def test_without_a_sandbox_it_is_told_so(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(respond("ok"), step="PLANNING")], settings={"sandbox": {"kind": "none"}})
    await story.tell("hello")
    assert note("en", "no_sandbox") in story.prompt(0) and "/tmp (private)" not in story.prompt(0)
