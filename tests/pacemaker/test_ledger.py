"""The ledger tells new results from old ones."""

from duckflow.pacemaker.ledger import Ledger
from duckflow.pacemaker.signatures import LoopStep
from tests.pacemaker.story import bad_edit, edit, grep, read, run, say_it


def news(*steps: LoopStep) -> list[bool]:
    ledger = Ledger(window=40, memory=1000)
    return [ledger.record(step).new for step in steps]


def test_different_files_are_new_and_the_same_file_again_is_not() -> None:
    assert news(read("a.py"), read("b.py"), read("a.py")) == [True, True, False]


def test_the_same_content_under_another_name_is_no_news() -> None:
    assert news(read("a.py", "same"), read("link.py", "same")) == [True, False]


def test_an_edit_is_news_once() -> None:
    assert news(edit("a.py", "1"), edit("a.py", "2"), edit("a.py", "1")) == [True, True, False]


def test_a_search_that_finds_nothing_is_a_result_but_no_news() -> None:
    ledger = Ledger(window=40, memory=1000)
    entry = ledger.record(LoopStep("file_ops.grep", {"pattern": "x"}, "No matches", is_error=True, kind="search"))
    assert (entry.came, entry.new, ledger.errors) == ("nothing", False, 0)


def test_a_failing_test_run_is_a_result_not_an_error() -> None:
    ledger = Ledger(window=40, memory=1000)
    first = ledger.record(run("pytest", "1 failed, 2 passed in 0.1s", failed=True))
    second = ledger.record(run("pytest", "1 failed, 2 passed in 0.7s", failed=True))
    third = ledger.record(run("pytest", "3 passed in 0.7s"))
    assert [first.new, second.new, third.new] == [True, False, True]
    assert ledger.errors == 0


def test_a_command_that_could_not_be_started_is_an_error() -> None:
    ledger = Ledger(window=40, memory=1000)
    assert ledger.record(run("javac A.java", "sh: line 3: javac: command not found", failed=True)).failed
    assert ledger.error_rate() == 1.0


def test_an_error_is_news_when_its_kind_was_not_seen_before() -> None:
    steps = (
        bad_edit("a", "1", "line 3: 'x' missing"),
        bad_edit("a", "2", "line 9: 'y' missing"),
        bad_edit("a", "3", "busy"),
    )
    assert news(*steps) == [True, False, True]


def test_a_result_that_an_edit_has_changed_is_news_even_if_it_was_seen_before() -> None:
    passes, fails = run("pytest", "ok"), run("pytest", "broken", failed=True)
    assert news(passes, edit("a", "1"), fails, edit("a", "2"), passes) == [True, True, True, True, True]
    found, gone = grep("old_name", "a.py:3: old_name"), grep("old_name")
    assert news(found, edit("a", "1"), gone) == [True, True, True]


def test_a_result_that_alternates_without_an_edit_is_not_new() -> None:
    ok, broken = run("pytest", "ok"), run("pytest", "broken", failed=True)
    assert news(ok, broken, ok, broken, ok) == [True, True, False, False, False]


def test_talk_is_not_new() -> None:
    assert news(say_it("hello"), say_it("hello"), say_it("good bye")) == [False, False, False]


def test_memory_is_bounded() -> None:
    ledger = Ledger(window=5, memory=10)
    for number in range(1000):
        ledger.record(read(f"{number}.py"))
    assert len(ledger.recent) == 5
    assert not ledger.record(read("999.py")).new
    assert ledger.record(read("1.py")).new, "long forgotten"


def test_tokens_are_counted_for_the_last_steps_and_for_all() -> None:
    ledger = Ledger(window=3, memory=10)
    for number in range(5):
        ledger.record(LoopStep("x", str(number), "y", tokens=10))
    assert (ledger.tokens(2), ledger.tokens(0), ledger.tokens()) == (20, 0, 50)
    ledger.reset()
    assert (ledger.steps, ledger.tokens()) == (0, 0)
