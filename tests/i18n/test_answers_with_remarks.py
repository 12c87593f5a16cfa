"""A yes stays a yes beside a remark that asks for nothing, and no remark turns anything else into a yes."""

import pytest

from duckflow.agent.deeds import deeds_asked
from duckflow.i18n.answers import read_whole
from duckflow.state.data import say
from duckflow.state.question import GateRequest, Question

COMMIT = frozenset({"run", "git", "commit"})
BACK = frozenset({"run", "git", "reset", "undo", "uncommit"})


@pytest.mark.parametrize(
    "text",
    [
        *(
            "sure, that only reads anyway",
            "yes, it only lists files",
            "it only reads, go ahead",
            "yes, this just prints",
        ),
        *("yes, that is exactly the change I asked for", "sure, it's exactly the test run I was asking for"),
        *("ok, convinced. yes, do it like that", "I'm persuaded, go ahead", "that convinces me. yes"),
        *("good message, commit it", "message looks good, commit", "I like the message, please commit"),
        *(
            "yes to both",
            "both are fine",
            "ok to both of them",
            "yes to all three",
            "all four are fine",
            "go with both",
        ),
        *("はい、表示するだけだから", "はい、お願いした通りの変更です", "納得しました。それでお願いします"),
        *("いいメッセージだね、コミットして", "きれいなメッセージですね、コミットしていいよ"),
        *("両方OK", "どちらもお願いします", "三つともOK", "両方お願いします", "はい、両方とも"),
    ],
)
def test_a_remark_or_a_count_takes_nothing_from_a_yes_and_widens_nothing(text: str) -> None:
    answer = read_whole(text, "en", COMMIT)
    assert (answer.verdict, answer.scope, answer.about, answer.bounded) == ("yes", "", "", False)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "sure, but only reads",
            "that only breaks things",
            "yes, it only reads and writes",
            "yes, this only looks good",
        ),
        *("yes, it only shows the old version", "yes, if it only reads", "that only reads", "you sure it only reads"),
        *("that is the only change I asked for", "yes, that is the last thing I wanted"),
        *("ok, convinced it is broken", "convinced", "yes, convinced that we need another way"),
        *("good message, but commit it later", "good message", "good message, push it", "good message, wrong branch"),
        *(
            "I like the old message, commit it",
            "the second looks good, commit it",
            "if you can commit it",
            "clear cache, commit it",
        ),
        *(
            "both are wrong",
            "both need work",
            "both have to go",
            "not both",
            "yes to the first",
            "yes to both, not now",
        ),
        *("はい、読むだけにしてね", "はい、消すだけだから後で", "納得したら進めて", "頼んだ変更ではない"),
        *("いいメッセージだね、後でコミットして", "英語だといいな、コミットして", "両方だめ", "どちらか一つOK"),
    ],
)
def test_no_remark_and_no_count_makes_a_yes_of_anything_else(text: str) -> None:
    assert read_whole(text, "en", COMMIT).verdict != "yes"


@pytest.mark.parametrize(
    ("text", "agrees"),
    [
        *((text, True) for text in ("yes, take the commit back", "roll it back", "undo that commit", "元に戻して")),
        *((text, False) for text in ("take the other commit back", "take the commit back later", "if you can undo it")),
        *((text, False) for text in ("I take it back", "コミットは取り消さないで", "別のコミットを取り消して")),
    ],
)
def test_who_is_asked_about_taking_back_may_say_so(text: str, agrees: bool) -> None:
    assert (read_whole(text, "en", BACK).verdict == "yes") is agrees


@pytest.mark.parametrize(
    ("operation", "command", "agrees"),
    [
        ("command.run", "git reset --soft HEAD~1", True),
        ("command.run", "git revert --no-edit HEAD", True),
        ("command.run", "git reset --hard", False),
        ("command.run", "rm -r build", False),
        ("undo", "", False),
    ],
)
def test_only_a_command_that_takes_a_commit_back_is_meant(operation: str, command: str, agrees: bool) -> None:
    gate = GateRequest(
        action_ids=(),
        operations=(operation,),
        intent=(),
        rationale="",
        impacts=(),
        commands=(command,) if command else (),
    )
    deeds = deeds_asked(Question(kind="gate", title=say("gate.title"), gate=gate))
    assert (read_whole("take the commit back", "en", deeds).verdict == "yes") is agrees
