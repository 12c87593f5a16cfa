"""The line that says what is being waited for, and how long."""

import pytest

from duckflow.i18n.words import Words
from duckflow.state.data import say
from duckflow.state.message import Usage
from duckflow.ui.console.printer import Glyphs
from duckflow.ui.console.waiting import Wait


def test_the_time_in_which_the_user_is_asked_does_not_count() -> None:
    now = [100.0]
    wait = Wait(Words("en"), Glyphs(plain=True), clock=lambda: now[0])
    wait.begin()
    now[0] += 5
    wait.stand_still(asked=True)
    now[0] += 40
    assert " 40s " in wait.line(80), "while the question is open, the user reads how long it has been"
    wait.stand_still(asked=True)
    wait.stand_still(asked=False)
    now[0] += 2
    assert " 7s " in wait.line(80)
    wait.end()
    wait.stand_still(asked=False)
    assert not wait.going_on


@pytest.mark.parametrize("language", ["en", "ja"])
def test_a_narrow_screen_says_whole_that_the_user_is_waited_for(language: str) -> None:
    words = Words(language)
    wait = Wait(words, Glyphs(plain=True), clock=lambda: 100.0)
    wait.begin(say("wait.you"))
    wait.work = "MULTI_STEP_TASK"
    wait.spend(Usage(prompt_tokens=900, completion_tokens=50))
    assert words("wait.you") not in wait.line(50)
    wait.stand_still(asked=True)
    assert words("wait.you") in wait.line(50)
