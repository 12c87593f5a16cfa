"""A question is a barrier: who asks does not act in the same breath, in whatever form it asks. A check that says no is
one, too."""

from pathlib import Path
from typing import Any

import pytest

from tests.journeys.story import Story, act, decide, respond

WRITE = act("file_ops.write_file", path="a.txt", content="x\n")
ASKED = [
    ("en", "May I write a.txt? If so, I will."),
    ("en", "Please confirm that I may write a.txt."),
    ("en", "I can use tabs or spaces. Your call."),
    ("ja", "a.txt を書き換えてもよろしいでしょうか。"),
    ("ja", "どちらにするか決めてください。"),
    ("ja", "承認をお待ちしています"),
]
TOLD = {"en": "I will write a.txt now.", "ja": "これから a.txt を書きます。"}
NATIVE = pytest.mark.parametrize("native", [False, True], ids=["json", "native"])


@NATIVE
@pytest.mark.parametrize(("language", "question"), ASKED)
async def test_who_asks_does_not_act(tmp_path: Path, native: bool, language: str, question: str) -> None:
    both = decide(respond(question), WRITE, next_step="continue", rationale="it is asked for")
    story = Story(tmp_path, [both, decide(respond("ok"))], language=language, native=native)
    assert await story.tell("go") == "pending_user"
    assert story.said() == [question] and not (story.folder / "a.txt").exists()
    assert len(story.model.requests) == 1


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_who_waits_for_the_user_does_not_act_either(tmp_path: Path, language: str) -> None:
    both = decide(respond(TOLD[language]), WRITE, next_step="pending_user")
    story = Story(tmp_path, [both], language=language)
    assert await story.tell("go") == "pending_user"
    assert story.said() == [TOLD[language]] and not (story.folder / "a.txt").exists()


@NATIVE
@pytest.mark.parametrize("language", ["en", "ja"])
async def test_who_says_what_it_does_goes_on(tmp_path: Path, native: bool, language: str) -> None:
    both = decide(respond(TOLD[language]), WRITE, next_step="continue")
    story = Story(tmp_path, [both, decide(respond("ok"))], language=language, native=native)
    assert await story.tell("write a.txt") == "done"
    assert (story.folder / "a.txt").exists()


async def test_a_call_for_help_is_a_barrier(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(act("duck_call", text="I am stuck."), WRITE, next_step="continue")])
    assert await story.tell("go") == "pending_user"
    assert not (story.folder / "a.txt").exists()


async def test_who_wonders_and_only_looks_around_goes_on(tmp_path: Path) -> None:
    look = decide(act("file_ops.list_files", path="."), next_step="continue", rationale="Where is it defined?")
    story = Story(tmp_path, [look, decide(respond("Here."))], native=True)
    assert await story.tell("where is it?") == "done"


NO: list[tuple[str, dict[str, Any]]] = [
    ("en", {"constraint_check": "no: it may not be written"}),
    ("en", {"goal_consistency": "false"}),
    ("ja", {"constraint_check": "いいえ、書かない約束です"}),
    ("ja", {"constraint_check": "制約に違反します"}),
]


@pytest.mark.parametrize(("language", "checks"), NO)
async def test_nothing_is_changed_against_its_own_check(tmp_path: Path, language: str, checks: dict[str, Any]) -> None:
    against = decide(WRITE, next_step="continue", **checks)
    story = Story(tmp_path, [against, decide(respond("ok"), step="PLANNING")], language=language)
    await story.tell("go")
    assert not (story.folder / "a.txt").exists()


@pytest.mark.parametrize(("language", "said"), [("en", "Noted"), ("ja", "了解")])
async def test_a_check_that_says_neither_is_asked_for_again(tmp_path: Path, language: str, said: str) -> None:
    unsaid = decide(WRITE, next_step="continue", constraint_check=said)
    for_sure = decide(WRITE, next_step="continue", constraint_check="not violated" if language == "en" else "違反なし")
    story = Story(tmp_path, [unsaid, for_sure, decide(respond("ok"))], language=language)
    assert await story.tell("write a.txt") == "done"
    assert '"no: reason"' in story.prompt(1) and (story.folder / "a.txt").exists()
