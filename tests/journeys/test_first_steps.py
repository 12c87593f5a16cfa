"""From what the user says to a changed file and back."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from duckflow.errors import ProviderUnreachable
from duckflow.events.types import ActionFinished, PhaseMoved, PhaseRefused, ReplyRejected, TextStreamed
from duckflow.llm.scripted import ScriptedReply
from duckflow.state.phase import Phase, Status
from duckflow.state.question import Answer
from tests.journeys.story import Story, act, decide, respond

WRITE = act("file_ops.write_file", path="hello.py")
YES = Answer(choice="yes")
HANDLES = Path("/proc/self/fd")


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_creating_a_file_takes_two_calls(tmp_path: Path, language: str) -> None:
    story = Story(tmp_path, [decide(WRITE, respond("done")), "```python\nprint('hello')\n```"], language=language)
    assert await story.tell("Create hello.py that prints hello") == "done"
    assert (story.folder / "hello.py").read_text() == "print('hello')\n"
    assert len(story.model.requests) == 2
    assert story.said() == ["done"]
    assert story.session.state.phase is Phase.DONE
    assert story.session.state.status is Status.SUCCESS
    assert [(move.source, move.target, move.by) for move in story.all(PhaseMoved)] == [
        (Phase.PLANNING, Phase.EXECUTION, "model"),
        (Phase.EXECUTION, Phase.REVIEW, "system"),
        (Phase.REVIEW, Phase.DONE, "system"),
    ]


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_the_status_is_told_in_words_and_no_names_of_the_state(tmp_path: Path, language: str) -> None:
    story = Story(tmp_path, [decide(WRITE, respond("done")), "print(1)\n"], mode="ask", language=language)
    story.answers = [YES]
    before = await story.chat.run_command("/status")
    await story.tell("create hello.py")
    for told in before, await story.chat.run_command("/status"):
        assert not any(name in told for name in (*Phase, *Status))


async def test_a_conversation_that_ended_has_nothing_open(tmp_path: Path) -> None:
    """Also where many are held in one process: what they had open is closed, and does not wait to be collected."""
    if not HANDLES.is_dir():
        pytest.skip("only Linux tells what a process has open")
    story = Story(tmp_path, [decide(act("shell.run", command="echo hello > a.txt"), respond("done"))])
    assert await story.tell("Say hello to a.txt") == "done"
    assert (story.folder / "a.txt").read_text() == "hello\n"
    assert _open_below(tmp_path)
    await story.close()
    assert not _open_below(tmp_path)


def _open_below(folder: Path) -> list[str]:
    found: list[str] = []
    for handle in HANDLES.iterdir():
        with contextlib.suppress(OSError):
            found.append(str(handle.readlink()))
    return [path for path in found if path.startswith(str(folder))]


async def test_a_body_may_come_inside_the_json_or_as_a_block_behind_it(tmp_path: Path) -> None:
    inline = decide(act("file_ops.write_file", path="a.txt", content="in the JSON\n"), next_step="continue")
    behind = ScriptedReply(
        f"{__import__('json').dumps(decide(act('file_ops.write_file', path='b.txt')))}\n```\nbehind\n```\n"
    )
    story = Story(tmp_path, [inline, behind])
    assert await story.tell("write two files") == "done"
    assert (story.folder / "a.txt").read_text() == "in the JSON\n"
    assert (story.folder / "b.txt").read_text() == "behind\n"
    assert len(story.model.requests) == 2


async def test_a_turn_that_only_talks_takes_one_call_and_leaves_the_step(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(respond("Hello!"), step="PLANNING", next_step="done")])
    assert await story.tell("hi") == "done"
    assert story.session.state.phase is Phase.PLANNING
    assert len(story.model.requests) == 1


async def test_what_is_said_streams_in_before_the_reply_is_whole(tmp_path: Path) -> None:
    import json

    reply = ScriptedReply(json.dumps(decide(respond("one two three"), step="PLANNING")), chunk=7)
    story = Story(tmp_path, [reply])
    await story.tell("count")
    streamed = [event.text for event in story.all(TextStreamed)]
    assert len(streamed) > 1 and "".join(streamed) == "one two three"


async def test_a_change_is_shown_and_asked_for(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(WRITE), "print(1)\n"], mode="ask")
    story.answers = [YES]
    assert await story.tell("create it") == "done"
    gate = story.questions[0].gate
    assert gate is not None
    assert "+print(1)" in gate.diff and gate.reversible
    assert [(impact.path, impact.change, impact.added) for impact in gate.impacts] == [("hello.py", "create", 1)]


async def test_a_plain_no_ends_the_turn_and_nothing_is_changed(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(WRITE, respond("made it")), "print(1)\n"], mode="ask")
    assert await story.tell("create it") == "gate"
    assert list(story.folder.iterdir()) == []
    assert story.said() == []
    assert story.session.state.phase is Phase.PLANNING


async def test_a_no_with_a_reason_reaches_the_model_which_goes_on(tmp_path: Path) -> None:
    replies = [decide(WRITE), "print(1)\n", decide(respond("As you like."), step="PLANNING", next_step="pending_user")]
    story = Story(tmp_path, replies, mode="ask")
    story.answers = [Answer(choice="no", text="call it hi.py")]
    assert await story.tell("create it") == "pending_user"
    assert "call it hi.py" in story.prompt()


async def test_two_changes_share_one_question_and_the_second_may_build_on_the_first(tmp_path: Path) -> None:
    both = decide(
        act("file_ops.write_file", path="a.py", content="x = 1\n"),
        act("file_ops.write_file", path="b.py", content="y = 1\n"),
        act("file_ops.edit_file", path="a.py", old="x = 1", new="x = 2"),
    )
    story = Story(tmp_path, [both], mode="ask")
    story.answers = [YES, YES]
    assert await story.tell("go") == "done"
    assert (story.folder / "a.py").read_text() == "x = 2\n"
    assert [question.gate.operations for question in story.questions if question.gate] == [
        ("file_ops.write_file", "file_ops.write_file"),
        ("file_ops.edit_file",),
    ]


async def test_plan_mode_changes_nothing(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(WRITE), "x", decide(respond("I may not."), step="PLANNING")], mode="plan")
    await story.tell("create it")
    assert list(story.folder.iterdir()) == []
    assert "read-only" in story.prompt()


async def test_changing_needs_the_step_execution(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(WRITE, step="PLANNING"), decide(WRITE), "ok\n", decide(respond("done"))])
    assert await story.tell("create it") == "done"
    assert "needs step EXECUTION" in story.prompt(1)
    assert (story.folder / "hello.py").exists()


async def test_a_move_the_table_does_not_allow_is_refused_and_told(tmp_path: Path) -> None:
    replies = [
        decide(act("file_ops.list_files"), step="AWAITING_APPROVAL", next_step="continue"),
        decide(act("file_ops.list_files"), step="REVIEW", next_step="continue"),
        decide(respond("done"), step="PLANNING"),
    ]
    story = Story(tmp_path, replies)
    await story.tell("look")
    assert [(move.source, move.target) for move in story.all(PhaseRefused)] == [(Phase.AWAITING_APPROVAL, Phase.REVIEW)]
    assert "cannot become REVIEW" in story.prompt()


async def test_a_check_that_says_no_lets_nothing_change(tmp_path: Path) -> None:
    replies = [
        decide(WRITE, constraint_check="no: the user forbade new files", next_step="continue"),
        decide(respond("I stop."), step="PLANNING", next_step="pending_user"),
    ]
    story = Story(tmp_path, replies)
    assert await story.tell("create it") == "pending_user"
    assert list(story.folder.iterdir()) == []
    assert "the user forbade new files" in story.prompt()


async def test_nothing_runs_after_a_question(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(respond("Which name?"), WRITE, next_step="continue")])
    assert await story.tell("create a file") == "pending_user"
    assert list(story.folder.iterdir()) == []
    assert story.session.state.status is Status.REQUIRES_USER_INPUT


async def test_a_progress_note_does_not_end_the_turn(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(respond("Looking."), next_step="continue"), decide(respond("Done."))])
    assert await story.tell("look") == "done"
    assert story.said() == ["Looking.", "Done."]


async def test_an_unknown_operation_and_wrong_args_are_results_that_name_the_valid_ones(tmp_path: Path) -> None:
    replies = [
        decide(act("file_ops.explode"), step="PLANNING"),
        decide(act("file_ops.read_file", file="x"), step="PLANNING"),
        decide(respond("I see."), step="PLANNING"),
    ]
    story = Story(tmp_path, replies)
    assert await story.tell("go") == "done"
    assert "unknown operation 'file_ops.explode'" in story.prompt(1) and "file_ops.grep" in story.prompt(1)
    assert "bad args for file_ops.read_file" in story.prompt(2)


async def test_done_is_not_believed_when_an_action_failed(tmp_path: Path) -> None:
    replies = [
        decide(act("file_ops.read_file", path="missing.py"), respond("All is well."), next_step="done"),
        decide(respond("There is no such file."), step="PLANNING"),
    ]
    story = Story(tmp_path, replies)
    assert await story.tell("read it") == "done"
    assert story.said() == ["There is no such file."]


async def test_errors_while_executing_lead_back_to_planning_at_most_three_times(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(act("file_ops.delete_file", path=f"missing{n}")) for n in range(9)])
    assert await story.tell("delete them") == "pacemaker"
    assert len(story.model.requests) == 4
    recoveries = [move for move in story.all(PhaseMoved) if move.target is Phase.PLANNING]
    assert len(recoveries) == 4 and all(move.by == "system" for move in recoveries)


async def test_an_unreadable_reply_goes_back_with_the_reason_at_most_twice(tmp_path: Path) -> None:
    broken = '{"rationale": "half'
    story = Story(tmp_path, [broken, '{"actions": []}', decide(respond("Better."), step="PLANNING")])
    assert await story.tell("hi") == "done"
    assert [event.attempt for event in story.all(ReplyRejected)] == [1, 2]
    assert "goal_consistency" in story.prompt()
    story = Story(tmp_path / "again" if (tmp_path / "again").mkdir() is None else tmp_path, [broken] * 5)
    assert await story.tell("hi") == "failed"
    assert len(story.model.requests) == 3


async def test_a_repaired_reply_changes_nothing_without_a_yes_even_in_full_auto(tmp_path: Path) -> None:
    import json

    reply = json.dumps(decide(act("file_ops.write_file", path="a.txt", content="x\n"))).replace('"actions"', "actions")
    story = Story(tmp_path, [reply, reply])
    assert await story.tell("go") == "gate"
    assert story.questions[0].gate and story.questions[0].gate.doubtful
    assert list(story.folder.iterdir()) == []


async def test_a_body_that_is_cut_off_is_continued_or_not_written_at_all(tmp_path: Path) -> None:
    cut = ScriptedReply("```python\na = 1\n", finish="length")
    story = Story(tmp_path, [decide(WRITE), cut, "b = 2\n```"])
    assert await story.tell("create it") == "done"
    assert (story.folder / "hello.py").read_text() == "a = 1\nb = 2\n"
    (tmp_path / "b").mkdir()
    too_long = decide(respond("Too long."), step="PLANNING")
    story = Story(tmp_path / "b", [decide(WRITE), cut, cut, cut, too_long, too_long])
    assert await story.tell("create it") == "done"
    assert list(story.folder.iterdir()) == []


async def test_a_model_that_cannot_be_reached_ends_the_turn_and_the_conversation_goes_on(tmp_path: Path) -> None:
    down = ScriptedReply(error=ProviderUnreachable("model.none_found"))
    story = Story(tmp_path, [down, decide(respond("Back again."), step="PLANNING")])
    assert await story.tell("hi") == "provider"
    assert story.ending().why is not None
    assert await story.tell("and now?") == "done"
    assert "hi" in story.prompt()


@pytest.mark.parametrize(
    ("language", "marked"), [("en", "The user stopped the turn above"), ("ja", "ユーザーが止めました")]
)
async def test_interrupting_ends_the_turn_at_once_and_the_conversation_goes_on(
    tmp_path: Path, language: str, marked: str
) -> None:
    slow = ScriptedReply("x" * 1000, chunk=1, delay=0.05)
    again = decide(respond("Yes?"), step="PLANNING", next_step="pending_user")
    story = Story(tmp_path, [slow, again], language=language)
    turn = asyncio.create_task(story.tell("think hard"))
    await asyncio.sleep(0.2)
    assert story.chat.interrupt() == ""
    assert await turn == "interrupted"
    assert not story.session.state.turn_open
    assert await story.tell("stop it") == "pending_user"
    prompt = story.prompt()
    assert prompt.index("think hard") < prompt.index(marked) < prompt.index("stop it"), "what was cut off is marked"


async def test_the_five_items_and_the_decision_log_follow_the_model_and_survive_a_restart(tmp_path: Path) -> None:
    delta = {"goal": "a greeting", "constraints": ["no network"], "decision": "plain Python"}
    story = Story(tmp_path, [decide(respond("ok"), step="PLANNING", state_delta=delta)])
    await story.tell("remember")
    before = story.session.state.model_copy(deep=True)
    story = story.restart([decide(respond("ok"), step="PLANNING")])
    assert story.session.state == before
    await story.tell("go on")
    assert "a greeting" in story.prompt() and "no network" in story.prompt() and "plain Python" in story.prompt()


async def test_a_conversation_longer_than_the_window_still_goes_on(tmp_path: Path) -> None:
    from duckflow.errors import ContextTooLong

    too_long = ScriptedReply(error=ContextTooLong("model.context_too_long"))
    replies = [decide(respond("word " * 400), step="PLANNING")] * 30
    story = Story(tmp_path, [*replies, too_long, decide(respond("still here"), step="PLANNING")])
    for number in range(30):
        assert await story.tell(f"question {number} " + "word " * 400) == "done"
    assert await story.tell("are you there?") == "done"
    last, before = story.prompt(-1), story.prompt(-2)
    assert len(last) < len(before)
    assert "question 0" in last and "are you there?" in last


async def test_what_stays_the_same_stands_first(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(respond("one"), step="PLANNING"), decide(respond("two"), step="PLANNING")])
    await story.tell("first")
    await story.tell("second")
    first, second = (request.messages[0].text for request in story.model.requests)
    assert first == second
    assert story.model.requests[1].messages[1].text.startswith("first")


async def test_rules_of_the_project_are_in_the_prompt(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/AGENTS.md").write_text("Always use tabs.\n")
    story = Story(tmp_path, [decide(respond("ok"), step="PLANNING")])
    await story.tell("hi")
    assert "Always use tabs." in story.prompt()


async def test_a_work_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    told = decide(respond("The folder was removed."), step="PLANNING")
    story = Story(tmp_path, [decide(act("file_ops.write_file", path="a.py")), "x = 1\n", told])
    story.folder.rmdir()
    await story.tell("write a.py")
    refused = story.all(ActionFinished)[0].result
    assert refused.operation == "file_ops.write_file" and not refused.ok
    assert refused.for_user.key == "path.no_folder"
    assert not story.folder.exists() and "was removed" in story.prompt(-1)
