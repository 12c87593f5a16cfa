"""The line that says what is being waited for, and how long."""

from duckflow.i18n.words import Words
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
