"""A yes with something beside it: a remark costs nothing, a scope is kept, some files are a choice, the rest is asked
about in one line."""

import asyncio
from pathlib import Path

import pytest

from duckflow.events.talking import AskedBack
from duckflow.events.types import PermissionGiven, TurnUndone
from duckflow.i18n.answers import read_whole
from duckflow.i18n.template import note
from duckflow.tools.undo_turn import files_meant
from tests.journeys.plans import Typing, until
from tests.journeys.story import act, decide, respond

ONE = act("file_ops.write_file", path="one.py", content="one = 1\n")
NOTES = act("file_ops.write_file", path="NOTES.md", content="ducks\n")
TESTS = act("shell.run", command="pytest -q --doctest-modules -p no:cacheprovider")
OK = decide(respond("ok"))


def goes_on(*calls: dict[str, object]) -> dict[str, object]:
    return decide(*calls, next_step="continue")


@pytest.mark.parametrize(
    "said",
    [
        "sure, that's fine, commands that only print help are always fine",
        "go ahead, that is exactly the bug I meant",
        "ok, good catch",
        "yes, because the old one confused everybody",
        "はい、読みやすいですね",
        "どうぞ、表示するだけですし",
    ],
)
async def test_a_remark_that_asks_for_nothing_costs_no_second_yes(tmp_path: Path, said: str) -> None:
    story = Typing(tmp_path, [goes_on(ONE), OK], mode="ask", language="en" if said.isascii() else "ja")
    turn = asyncio.create_task(story.tell("write it"))
    await story.asked()
    assert (await story.chat.take(said)).meaning == "answer"
    await turn
    assert (story.folder / "one.py").exists() and len(story.gates()) == 1 and not story.chat.choices.permissions()


@pytest.mark.parametrize(
    "said",
    [
        "yes, the old name was nicer",
        "yes, we had a helper for this",
        "ok, this was a joke",
        "yes, the port is 8080",
        "yes, it's nice to have a flag for it",
        "大丈夫です、もうやってあります",
        "はい、冗談でした",
    ],
)
def test_a_statement_that_may_ask_for_something_is_no_yes(said: str) -> None:
    read = read_whole(said, "en" if said.isascii() else "ja")
    assert read.verdict == "other" and read.agreed and read.rest


KEEP = "ok, yes, but keep the name of the test, it's good. And don't ask again for pytest"
KEEP_JA = "はい、でもテストの名前は残して。pytestはもう聞かなくていいです"


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("language", "said"), [("en", KEEP), ("ja", KEEP_JA)])
@pytest.mark.parametrize("second", ["yes", "1", "2"])
async def test_what_is_not_known_is_asked_in_one_line_and_the_scope_is_kept(
    tmp_path: Path, language: str, said: str, second: str
) -> None:
    story = Typing(tmp_path, [goes_on(NOTES, TESTS), goes_on(TESTS), OK], mode="ask", language=language)
    turn = asyncio.create_task(story.tell("write it and test"))
    await story.asked()
    taken = await story.chat.take(said)
    assert [line.key for line in taken.told] == ["gate.rest_about"] and not (story.folder / "NOTES.md").exists()
    assert (await story.chat.take(second)).meaning == "answer"
    await turn
    assert [given.rule.values["pattern"] for given in story.all(PermissionGiven)] == ["pytest"]
    assert len(story.gates()) == 1, "pytest is not asked about again, whatever was chosen"
    assert (story.folder / "NOTES.md").exists() == (second != "2")
    assert said in story.prompt(), "and the words are kept, whatever was chosen"


async def test_a_condition_keeps_the_scope_that_was_named(tmp_path: Path) -> None:
    story = Typing(tmp_path, [goes_on(NOTES, TESTS), goes_on(TESTS), OK], mode="ask")
    turn = asyncio.create_task(story.tell("write it and test"))
    await story.asked()
    said = "yes, but use tabs, and don't ask again for pytest"
    assert (await story.chat.take(said)).meaning == "answer"
    await turn
    assert len(story.gates()) == 1 and not (story.folder / "NOTES.md").exists()
    assert note("en", "wished", reason=said) in story.prompt()


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("yes, only one.py", ["one.py"]),
        ("yes, but leave NOTES.md alone", ["one.py"]),
        ("yes, but leave setup.py alone", ["NOTES.md", "one.py"]),
        ("yes, but don't touch anything else", ["NOTES.md", "one.py"]),
        ("はい、NOTESだけにしてください", ["NOTES.md"]),
        ("はい、でもNOTES.mdはそのままで", ["one.py"]),
    ],
)
async def test_a_yes_to_some_of_the_files_is_carried_out(tmp_path: Path, said: str, written: list[str]) -> None:
    story = Typing(tmp_path, [goes_on(ONE, NOTES), OK], mode="ask", language="en" if said.isascii() else "ja")
    turn = asyncio.create_task(story.tell("write both"))
    await story.asked()
    assert (await story.chat.take(said)).meaning == "answer"
    await turn
    assert sorted(path.name for path in story.folder.iterdir()) == written and len(story.gates()) == 1
    told = note(story.session.state.language, "narrowed", reason=said)
    assert (told in story.prompt()) == (len(written) < 2)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("yes, just the NOTES", ["one.py"]),
        ("only NOTES.md", ["one.py"]),
        ("yes, but leave one.py alone", ["one.py"]),
        ("yes, but leave the rest of the plan's work alone", []),
        ("はい、NOTESだけ元に戻してください", ["one.py"]),
    ],
)
@pytest.mark.parametrize("by", ["model", "command"])
async def test_at_an_undo_the_files_that_are_named_are_the_choice(
    tmp_path: Path, said: str, left: list[str], by: str
) -> None:
    undo = decide(act("undo.turn"), next_step="continue", step="PLANNING")
    replies = [decide(ONE, NOTES, respond("ok")), undo, decide(respond("It is as it was."), step="PLANNING")]
    story = Typing(tmp_path, replies, language="en" if said.isascii() else "ja")
    await story.tell("write both")
    turn = asyncio.create_task(story.tell("take some of it back") if by == "model" else story.chat.run_command("/undo"))
    await story.asked()
    assert (await story.chat.take(said)).meaning == "answer"
    await turn
    assert sorted(path.name for path in story.folder.iterdir()) == left and len(story.all(TurnUndone)) == 1


async def test_a_wish_at_an_undo_is_heard_and_is_no_failure(tmp_path: Path) -> None:
    undo = decide(act("undo.turn"), next_step="continue", step="PLANNING")
    replies = [decide(ONE, NOTES, respond("ok")), undo, decide(respond("I keep it."), step="PLANNING")]
    story = Typing(tmp_path, replies)
    await story.tell("write both")
    turn = asyncio.create_task(story.tell("take some of it back"))
    await story.asked()
    said = "yes, but without the second line of the notes"
    assert (await story.chat.take(said)).meaning == "answer"
    await turn
    assert note("en", "wished", reason=said) in story.prompt() and "ERROR" not in story.prompt()


@pytest.mark.parametrize(
    ("language", "no", "said"),
    [
        ("en", "no, call it uno", "in that case ok"),
        ("ja", "いいえ、名前を変えて", "それならOK"),
    ],
)
async def test_after_a_no_with_a_reason_the_better_proposal_is_agreed_to(
    tmp_path: Path, language: str, no: str, said: str
) -> None:
    story = Typing(tmp_path, [goes_on(ONE), goes_on(ONE), OK], mode="ask", language=language)
    turn = asyncio.create_task(story.tell("write it"))
    await story.asked()
    assert (await story.chat.take(said)).meaning == "unclear", "nothing was said before, so it is asked in one line"
    await story.chat.take(no)
    await story.asked(2)
    assert (await story.chat.take(said)).meaning == "answer"
    await turn
    assert (story.folder / "one.py").exists()


@pytest.mark.parametrize("said", ["for the session", "this session", "for this session please"])
async def test_a_scope_alone_chooses_among_the_answers_that_were_named(tmp_path: Path, said: str) -> None:
    story = Typing(tmp_path, [goes_on(ONE), OK], mode="ask")
    turn = asyncio.create_task(story.tell("write it"))
    await story.asked()
    assert (await story.chat.take("well, this sort of edits in general I guess")).meaning == "unclear"
    [again] = (await story.chat.take("the green one")).told
    assert again.key == "gate.unclear_scope", "a second line names no fewer answers than the box"
    assert (await story.chat.take(said)).meaning == "answer"
    await turn
    assert story.all(PermissionGiven) and (story.folder / "one.py").exists()


@pytest.mark.parametrize(
    ("language", "said"),
    [("en", "yes but only in src/"), ("en", "ok, just that one"), ("en", "sure, src only"), ("ja", "うん、src/だけ")],
)
async def test_a_narrow_yes_that_fits_all_that_is_shown_is_a_yes(tmp_path: Path, language: str, said: str) -> None:
    edit = act("file_ops.write_file", path="src/one.py", content="one = 1\n")
    story = Typing(tmp_path, [goes_on(edit), OK], mode="ask", language=language)
    turn = asyncio.create_task(story.tell("write it"))
    await story.asked()
    assert (await story.chat.take(said)).meaning == "answer"
    await turn
    assert (story.folder / "src/one.py").exists() and not story.all(PermissionGiven)


@pytest.mark.parametrize(("language", "said"), [("en", "yes, delete only that"), ("ja", "うん、それだけ消して")])
async def test_at_an_undo_that_removes_a_file_deleting_it_is_what_was_asked(
    tmp_path: Path, language: str, said: str
) -> None:
    undo = decide(act("undo.turn", paths=["one.py"]), next_step="continue", step="PLANNING")
    story = Typing(tmp_path, [decide(ONE, NOTES, respond("ok")), undo, OK], language=language)
    await story.tell("write both")
    turn = asyncio.create_task(story.tell("take the program back"))
    await story.asked()
    assert (await story.chat.take(said)).meaning == "answer"
    await turn
    assert not (story.folder / "one.py").exists() and (story.folder / "NOTES.md").exists()


@pytest.mark.parametrize(
    ("said", "files"),
    [
        ("only docs", ("docs/README.md",)),
        ("yes, but only in src/", ("src/README.md",)),
        ("not in docs/", ("b.py", "src/README.md")),
        ("yes, but only in lib/", None),
        ("only b.py", ("b.py",)),
        ("just docs/README.md please", ("docs/README.md",)),
        ("only README.md", None),
        ("only docs/other.md", None),
        ("yes, everything", None),
        ("only the good parts of b.py", None),
        ("not b.py", ("docs/README.md", "src/README.md")),
    ],
)
def test_a_name_that_several_files_have_or_none_is_no_choice(said: str, files: tuple[str, ...] | None) -> None:
    assert files_meant(said, ["b.py", "docs/README.md", "src/README.md"], "en") == files


async def test_a_question_typed_at_a_change_is_answered_and_words_are_a_comment(tmp_path: Path) -> None:
    story = Typing(tmp_path, [decide(ONE, respond("ok")), '{"answer": "Because one is one."}'])
    await story.tell("write it")
    walk = asyncio.create_task(story.chat.run_command("/diff walk"))
    await story.asked()
    assert [line.key for line in (await story.chat.take("why is it one and not two?")).told] == ["question.asked_back"]
    await until(story, lambda: len(story.model.requests) == 2)
    assert len(story.all(AskedBack)) == 1 and "one = 1" in story.prompt()
    assert (await story.chat.take("name it better")).meaning == "answer"
    await until(story, lambda: bool(story.session.state.comments))
    assert story.session.state.comments[0].text == "name it better"
    walk.cancel()


async def test_a_question_at_a_gate_is_answered_by_a_model_that_knows_what_it_has_read(tmp_path: Path) -> None:
    read = act("file_ops.read_file", path="utils.py")
    replies = [goes_on(read), goes_on(ONE), '{"answer": "utils.py only counts."}', OK]
    story = Typing(tmp_path, replies, mode="ask")
    (story.folder / "utils.py").write_text("def count_ducks(): ...\n")
    turn = asyncio.create_task(story.tell("write one.py"))
    await story.asked()
    await story.chat.take("why that file? isn't there something in utils.py?")
    await until(story, lambda: len(story.model.requests) == 3)
    assert "def count_ducks" in story.prompt(2)
    await story.chat.take("yes")
    await turn
