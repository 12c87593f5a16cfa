"""What the user says at the Gate of a job is never lost: the verdict is the Gate's, and the rest is heard by whom it is
meant for."""

from pathlib import Path
from typing import Any

import pytest

from duckflow.events.talking import CommandFinished
from duckflow.events.types import MessageAdded, QuestionClosed, TurnUndone
from duckflow.i18n.template import note
from duckflow.i18n.typed import split_answer
from duckflow.state.question import Answer, Question
from tests.journeys.plans import SNAKE, Typing, report, until, when
from tests.journeys.story import act, decide, respond

STEP = {"en": "Now its step", "ja": "いまのステップ"}
ENDED = {"en": "A background job has ended", "ja": "バックグラウンドのジョブが終わ"}
YES = {"en": "yes", "ja": "はい"}


async def at_the_gate_of_a_job(
    tmp_path: Path, language: str, *more: Any, side_by_side: bool = False
) -> tuple[Typing, Question]:
    """The chat has written a file. Then a job asks for an edit."""
    write = decide(act("file_ops.write_file", path="notes.md", content="ducks\n"))
    snake: dict[str, Any] = {**SNAKE, "steps": [{**step, "depends_on": []} for step in SNAKE["steps"]]}
    propose = decide(act("plan_tool.propose", goal="a game"), step="PLANNING", next_step="pending_user")
    run_all = decide(act("task_loop.run"), respond("It runs."), next_step="defer")
    tasks = [
        when(STEP[language], {"tasks": [act("file_ops.write_file", path=path, content="x = 1\n")]})
        for path in ("game.py", "score.py")
    ]
    ends = [when(ENDED[language], report())]
    story = Typing(
        tmp_path, [write, propose, snake if side_by_side else SNAKE, run_all, *tasks, *ends, *more], language=language
    )
    await story.tell("write the notes")
    await story.tell("make a snake game")
    story.chat.choices.change_mode("ask")
    assert await story.tell(YES[language]) == "deferred"
    question = await story.asked()
    assert question.job
    return story, question


@pytest.mark.parametrize(("language", "said"), [("en", "hm no, undo that"), ("ja", "いや、さっきのを元に戻して")])
async def test_an_undo_said_with_a_no_is_carried_out_after_the_no(tmp_path: Path, language: str, said: str) -> None:
    story, question = await at_the_gate_of_a_job(tmp_path, language)
    assert (await story.chat.take(said, question.question_id)).meaning == "answer"
    await until(story, lambda: undo_asked(story) is not None)
    assert question not in story.chat.questions
    await story.chat.answer(undo_asked(story) or "", choice="yes")
    await until(story, lambda: bool(story.all(TurnUndone)))
    assert not (story.folder / "notes.md").exists() and not (story.folder / "game.py").exists()


def undo_asked(story: Typing) -> str | None:
    gates = [one for one in story.questions if one.gate and one.gate.operations == ("undo",)]
    return gates[0].question_id if gates else None


async def test_words_for_an_undo_alone_are_no_answer(tmp_path: Path) -> None:
    story, question = await at_the_gate_of_a_job(tmp_path, "en")
    await story.chat.take("undo that", question.question_id)
    await until(story, lambda: bool(story.all(CommandFinished)))
    assert question in story.chat.questions and "Answer it first" in story.all(CommandFinished)[0].text


@pytest.mark.parametrize("mode", ["shown", "alone"])
@pytest.mark.parametrize(
    ("language", "said", "rest"),
    [
        ("en", "no — what does step 2 do?", "what does step 2 do?"),
        ("en", "stop, and show me the diff", "show me the diff"),
        ("ja", "だめ、差分を見せて", "差分を見せて"),
    ],
)
async def test_what_is_asked_beside_a_no_is_a_message_to_the_chat(
    tmp_path: Path, language: str, said: str, rest: str, mode: str
) -> None:
    replies = [decide(respond("It keeps the score."), step="PLANNING")] * 2
    story, question = await at_the_gate_of_a_job(tmp_path, language, *replies)
    # An editor and the page answer the question itself; a terminal takes the line.
    answered = story.chat.answer(question.question_id, said) if mode == "alone" else story.chat.take(said)
    assert [line.key for line in (await answered).told] == ["gate.passed_on"]
    await until(story, lambda: "It keeps the score." in story.said())
    assert question not in story.chat.questions and not (story.folder / "game.py").exists()
    heard = [event.message for event in story.all(MessageAdded) if not event.message.job]
    told = note(language, "gate_rest", job=question.job_name, what="game.py")
    assert [one.role for one in heard if one.text in (rest, told)] == ["system", "user"]


@pytest.mark.parametrize(("second", "for_chat"), [("1", True), ("yes", True), ("2", False), ("no", False)])
async def test_words_that_may_be_for_either_are_asked_about_in_one_line(
    tmp_path: Path, second: str, for_chat: bool
) -> None:
    replies = [decide(respond("All is committed."), step="PLANNING")] * 2
    story, question = await at_the_gate_of_a_job(tmp_path, "en", *replies)
    taken = await story.chat.take("no, commit what you have")
    assert [line.key for line in taken.told] == ["gate.for_whom"] and question in story.chat.questions
    assert (await story.chat.take(second)).meaning == "answer"
    closed = await closed_with(story, question)
    assert closed == Answer(choice="no", text="" if for_chat else "commit what you have")
    if for_chat:
        await until(story, lambda: "All is committed." in story.said())
    assert not (story.folder / "game.py").exists()


async def closed_with(story: Typing, question: Question) -> Answer | None:
    await until(story, lambda: question not in story.chat.questions)
    closed = [event for event in story.all(QuestionClosed) if event.question_id == question.question_id]
    return closed[0].answer if closed else None


@pytest.mark.parametrize("second", ["yes, what is it?", "maybe", "no, but make it 2"])
async def test_the_short_question_never_allows_anything(tmp_path: Path, second: str) -> None:
    story, _ = await at_the_gate_of_a_job(tmp_path, "en", when(second, {"answer": "A game."}))
    await story.chat.take("no, commit what you have")
    await story.chat.take(second)
    assert not (story.folder / "game.py").exists()


async def test_with_two_gates_open_the_words_of_one_answer_reach_the_chat(tmp_path: Path) -> None:
    replies = [decide(respond("Here it is."), step="PLANNING")] * 2
    story, first = await at_the_gate_of_a_job(tmp_path, "en", *replies, side_by_side=True)
    second = await story.asked(2)
    assert [line.key for line in (await story.chat.take("no, undo that")).told] == ["question.which"]
    taken = await story.chat.take("stop, and show me the diff", second.question_id)
    assert [line.key for line in taken.told] == ["gate.passed_on"]
    await until(story, lambda: "Here it is." in story.said())
    assert first in story.chat.questions and second not in story.chat.questions


FOR_THE_CHAT = """
hm no, undo that
no undo that
いや、さっきのを元に戻して
no — what does step 2 do?
stop, and show me the diff
やめて、差分を見せて
nope. Explain to me what this is for
no, tell me first
no thanks, how far are you?
no, that's wrong, undo it
never mind, put it back how it was
だめ、理由を教えて
no, cancel the job
いや、ジョブを中止して
"""
IN_DOUBT = """
no, commit what you have
no, run the tests first
no, use tabs and show me the diff
no, why not use tabs?
no and push the branch
いや、コミットして
いや、ステップ2は何をするの？
"""
STAYS_OPEN = """
wait, what does step 2 do?
wait, undo that
ok undo that
やっぱりさっきのを取り消して
cancel the job
"""
FOR_THE_JOB = """
no
no, use tabs
no, call it ducks.py
no, put it in docs/
no, make it 2
no, leave the changelog alone
no, don't touch the tests
no, really?
no, stop
stop it
wait
no: the name is wrong
いいえ、タブを使って
いいえ
no idea what this is
no problem, go
yes, and show me the diff
yes, undo it later
"""


@pytest.mark.parametrize(
    ("lines", "verdict", "certain"),
    [(FOR_THE_CHAT, "no", True), (IN_DOUBT, "no", False), (STAYS_OPEN, "", True), (FOR_THE_JOB, None, None)],
)
def test_for_whom_the_words_beside_a_no_are(lines: str, verdict: str | None, certain: bool | None) -> None:
    for line in lines.strip().splitlines():
        split = split_answer(line, "en")
        assert (split and split.verdict, split and split.certain) == (verdict, certain), line
