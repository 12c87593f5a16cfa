"""From hint to replan to Duck Call, the limit, and going on after an answer."""

from itertools import cycle, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckflow.i18n.template import notes
from duckflow.pacemaker.interventions import DuckCall, Effect, Hint, Pattern, Reason, Replan, Verdict
from duckflow.pacemaker.pacemaker import LoopView, Pacemaker
from duckflow.pacemaker.settings import LimitSettings, PacemakerSettings
from duckflow.pacemaker.signatures import LoopStep, user_spoke
from duckflow.pacemaker.vitals import Signal
from duckflow.state.phase import Vitals
from tests.pacemaker.story import ask_after, bad_edit, edit, grep, read, run, tell

V = PacemakerSettings().vitals
NOTHING_FOUND = [grep(str(number)) for number in range(20)]


def view(loop: int, profile: str = "DEBUGGING") -> LoopView:
    return LoopView(loop=loop, profile=profile)


def test_a_quiet_turn_is_left_alone() -> None:
    assert tell(Pacemaker(), [read("a"), edit("a", "1"), run("pytest", "ok")]) == [None, None, None]


def test_first_a_hint_then_a_replan_then_the_question() -> None:
    verdicts = tell(Pacemaker(), NOTHING_FOUND)
    assert [type(verdict) for verdict in verdicts[4:]] == [Hint, Replan, DuckCall]
    hint, replan, call = verdicts[4:]
    assert isinstance(hint, Hint)
    assert [phrase.key for phrase in hint.why] == ["pacemaker.hint.focus"]
    assert "simpler" in notes("en", hint.for_model)
    assert isinstance(replan, Replan)
    assert replan.reason is Reason.FOCUS_LOST or replan.reason is Reason.STAGNATION
    assert "- file_ops.grep 3" in notes("en", replan.for_model)
    assert isinstance(call, DuckCall)
    assert call.tried[0] == "file_ops.grep 6", "the latest first"


def test_after_a_replan_that_helps_nothing_is_asked() -> None:
    pacemaker = Pacemaker()
    assert isinstance(tell(pacemaker, NOTHING_FOUND[:6])[-1], Replan)
    helped = tell(pacemaker, [read(str(number)) for number in range(10)])
    assert not any(isinstance(verdict, Replan | DuckCall) for verdict in helped)
    assert helped[-1] is None
    assert isinstance(tell(pacemaker, NOTHING_FOUND[10:16])[-1], Replan), "and later there is another one"


def test_it_does_not_ask_while_the_last_step_brought_something_new() -> None:
    pacemaker = Pacemaker()
    tell(pacemaker, NOTHING_FOUND[:6])
    pacemaker.observe(read("the right file"))
    assert not isinstance(pacemaker.beat(), DuckCall)


def test_many_steps_in_one_loop_still_get_a_replan_before_the_question() -> None:
    pacemaker = Pacemaker()
    for step in NOTHING_FOUND[:15]:
        pacemaker.observe(step)
    assert isinstance(pacemaker.beat(), Replan)
    pacemaker.observe(NOTHING_FOUND[15])
    assert isinstance(pacemaker.beat(), DuckCall)


def test_stamina_used_up_goes_straight_to_the_question() -> None:
    pacemaker = Pacemaker(vitals=Vitals(stamina=0.15))
    pacemaker.observe(bad_edit("a", "1"))
    call = pacemaker.beat()
    assert isinstance(call, DuckCall)
    assert (call.reason, call.pattern, call.severity) == (Reason.STAMINA_DEPLETED, Pattern.EXHAUSTED, "critical")
    assert call.health.stamina.face == "💀"


def test_low_confidence_hints_then_plans_anew_then_asks() -> None:
    pacemaker, seen = Pacemaker(), list[str]()
    for number in range(12):
        pacemaker.notice(Signal.CONFIDENCE, 0.3)
        pacemaker.observe(read(str(number)))
        verdict = pacemaker.beat()
        seen.append(type(verdict).__name__)
        if isinstance(verdict, DuckCall):
            assert (verdict.reason, verdict.pattern) == (Reason.CONFIDENCE_LOW, Pattern.LOW_CONFIDENCE)
            break
    assert seen == ["NoneType", "Hint", "Replan", "Hint", "DuckCall"]


def test_low_confidence_is_told_of_once_and_again_only_when_it_falls() -> None:
    pacemaker, verdicts = Pacemaker(vitals=Vitals(mood=0.7)), list[str]()
    for turn in range(12):
        pacemaker.observe(user_spoke("and the next one"))
        for loop in range(4):
            pacemaker.observe(read(f"{turn}-{loop}"))
            if turn in (1, 2, 7) and loop == 1:
                pacemaker.notice(Signal.REFUSED)
            verdict = pacemaker.beat()
            if verdict is not None:
                verdicts.append(f"{turn} {type(verdict).__name__}")
            if isinstance(verdict, DuckCall):
                pacemaker.answered(verdict, "go_on")
    assert verdicts == ["1 Hint", "2 Replan", "7 DuckCall"], "a low mood that stays as it is says nothing new"


def test_a_yes_after_the_new_plan_brings_confidence_back() -> None:
    pacemaker = Pacemaker(vitals=Vitals(mood=0.65))
    assert isinstance(pacemaker.beat(), Hint)
    pacemaker.notice(Signal.REFUSED)
    assert isinstance(pacemaker.beat(), Replan)
    pacemaker.notice(Signal.APPROVED)
    assert pacemaker.vitals.mood == V.rested
    assert pacemaker.beat() is None
    pacemaker.notice(Signal.APPROVED)
    assert pacemaker.vitals.mood == pytest.approx(V.rested + V.approved_mood), "from then on a yes counts as ever"


def test_confidence_that_comes_back_is_not_asked_about() -> None:
    pacemaker = Pacemaker(vitals=Vitals(mood=0.4))
    for number in range(8):
        pacemaker.notice(Signal.CONFIDENCE, 0.9)
        pacemaker.observe(read(str(number)))
        assert not isinstance(pacemaker.beat(), DuckCall)


def test_loops_used_up_without_progress_go_straight_to_the_question() -> None:
    pacemaker = Pacemaker()
    call = pacemaker.beat(view(20))
    assert isinstance(call, DuckCall)
    assert (call.reason, call.pattern) == (Reason.LOOP_EXHAUSTED, Pattern.NO_PROGRESS)
    assert call.findings[0].times == 20


def test_loops_used_up_by_errors_are_too_many_tries() -> None:
    pacemaker = Pacemaker()
    pacemaker.observe(bad_edit("a", "1"))
    call = pacemaker.beat(view(20))
    assert isinstance(call, DuckCall)
    assert call.pattern is Pattern.TOO_MANY_TRIES


def test_a_turn_that_is_advancing_gets_more_loops_and_says_so() -> None:
    pacemaker = Pacemaker()
    pacemaker.observe(user_spoke("What do part_0.py to part_99.py do?"))
    for loop in range(60):
        assert not isinstance(pacemaker.beat(view(loop)), DuckCall)
        pacemaker.observe(read(f"part_{loop}.py"))
    limit = pacemaker.limit
    assert limit is not None
    assert limit.value > 60 - LimitSettings().extension
    assert "limit.extended" in [part.key for part in limit.parts]
    notices = pacemaker.take_notices()
    assert {notice.key for notice in notices} == {"pacemaker.extended.read"}
    assert pacemaker.take_notices() == ()


def test_a_completed_task_earns_more_loops_once() -> None:
    pacemaker = Pacemaker()
    pacemaker.notice(Signal.DONE)
    assert pacemaker.beat(view(20)) is None
    assert [notice.key for notice in pacemaker.take_notices()] == ["pacemaker.extended.completed"]
    asked = next(loop for loop in range(21, 60) if isinstance(pacemaker.beat(view(loop)), DuckCall))
    assert asked == 35, "one piece of progress is enough for fifteen loops"


def test_even_progress_ends_at_the_ceiling() -> None:
    pacemaker = Pacemaker(PacemakerSettings(limits=LimitSettings(ceiling=30)))
    pacemaker.observe(user_spoke("What do part_0.py to part_99.py do?"))
    loop = 0
    while not isinstance(call := pacemaker.beat(view(loop)), DuckCall):
        pacemaker.observe(read(f"part_{loop}.py"))
        loop += 1
    assert (loop, call.reason, call.findings[0].key) == (30, Reason.LOOP_EXHAUSTED, "ceiling")


def test_reading_unrelated_places_leads_to_a_hint_and_then_a_question() -> None:
    pacemaker, loop = Pacemaker(), 0
    pacemaker.observe(user_spoke("Make main.py print the numbers."))
    while not isinstance(call := pacemaker.beat(view(loop)), DuckCall):
        assert isinstance(call, Hint) == (loop > LimitSettings().elsewhere)
        pacemaker.observe(read(f"part_{loop}.py"))
        loop += 1
    assert (loop, call.findings[0].key) == (LimitSettings().wandering, "wandering")


@pytest.mark.parametrize(
    ("asked", "may_go_on"),
    [
        ("Where do things expire here, and how?", True),
        ("ここでは何がいつ期限切れになりますか。", True),
        ("Make main.py print the numbers.", False),
        ("main.py に数を表示させてください。", False),
    ],
)
def test_a_report_makes_reading_on_worthwhile_unless_the_request_names_a_file(asked: str, may_go_on: bool) -> None:
    words = [f"{first}{second}{third}" for first in "abcd" for second in "abcd" for third in "abcd"]
    pacemaker = Pacemaker()
    pacemaker.observe(user_spoke(asked))
    verdicts: list[Verdict] = []
    for number, word in enumerate(words):
        if number % 8 == 7:
            pacemaker.heard(", ".join(f"renew_{last_word}" for last_word in words[number - 5 : number]))
        pacemaker.observe(read(f"part_{number}.py", f"class K{word}: renew_{word} span_{word}"))
        verdicts.append(pacemaker.beat(view(0)))
    assert any(isinstance(verdict, DuckCall) for verdict in verdicts) is not may_go_on


def test_an_unknown_profile_falls_back_and_says_so() -> None:
    pacemaker = Pacemaker()
    assert pacemaker.beat(view(14, "")) is None
    assert isinstance(pacemaker.beat(view(15, "")), DuckCall)
    assert pacemaker.why()[0].key == "limit.fallback"


@pytest.mark.parametrize(
    ("steps", "key", "effect"),
    [
        ([read("a")] * 4, "go_on", Effect.GO_ON),
        ([bad_edit("a", "1")] * 4, "simplify", Effect.SIMPLIFY),
        (NOTHING_FOUND, "take_stock", Effect.TAKE_STOCK),
    ],
)
def test_after_the_answer_vitals_recover_and_counts_start_anew(steps: list[LoopStep], key: str, effect: Effect) -> None:
    pacemaker = Pacemaker()
    call = ask_after(pacemaker, steps)
    assert pacemaker.vitals.focus < 0.6
    pacemaker.take_changes()
    resolution = pacemaker.answered(call, key, "never mind the warning", loop=17)
    assert resolution.effect is effect
    assert notes("en", resolution.pinned).startswith("The user says: never mind the warning")
    assert pacemaker.vitals.focus >= 0.7
    assert {change.cause.key for change in pacemaker.take_changes()} == {"vitals.cause.answered"}
    assert pacemaker.beat(view(17)) is None
    assert pacemaker.beat(view(17 + 12)) is None, "the loops are counted from the answer on"
    assert tell(pacemaker, steps[:2])[-1] is None, "what was tried may be tried again"


def test_a_message_of_the_user_starts_afresh() -> None:
    pacemaker = Pacemaker()
    tell(pacemaker, [read("a")] * 3)
    pacemaker.observe(user_spoke("try again"))
    assert not pacemaker.interventions
    assert tell(pacemaker, [read("a")] * 2) == [None, None]


def test_it_can_always_explain_its_verdict() -> None:
    pacemaker = Pacemaker()
    assert [phrase.key for phrase in pacemaker.why()] == ["limit.none", "pacemaker.verdict.fine"]
    pacemaker.beat(view(1))
    assert pacemaker.why()[0].key == "limit.base"
    keys: set[str] = set()
    for step in [read("a")] * 4:
        pacemaker.observe(step)
        pacemaker.beat(view(1))
        keys |= {phrase.key for phrase in pacemaker.why()}
    assert {"pacemaker.verdict.replan", "pacemaker.verdict.duck_call", "pacemaker.found.same_call"} <= keys
    pacemaker = Pacemaker(vitals=Vitals(stamina=0.2))
    pacemaker.beat()
    assert [phrase.key for phrase in pacemaker.why()][1:] == [
        "pacemaker.verdict.hint",
        "pacemaker.hint.stamina",
        "severity.low",
    ]


def test_interventions_are_counted_for_the_log() -> None:
    pacemaker = Pacemaker()
    tell(pacemaker, NOTHING_FOUND)
    assert pacemaker.interventions["DuckCall"] == 1
    assert pacemaker.interventions["Replan"] == 1


kinds = st.sampled_from(["read", "search", "edit", "run", "talk", "ask", "other"])
any_step = st.builds(
    LoopStep,
    name=st.sampled_from(["a", "b", "c"]),
    args=st.sampled_from(["", "1", "2"]),
    result=st.sampled_from(["", "one", "two", "no match", "x: command not found", "long " * 100]),
    is_error=st.booleans(),
    kind=kinds,
    waits=st.just(False),
)


def test_waiting_is_not_a_repetition_but_its_loops_count() -> None:
    pacemaker, poll = Pacemaker(), run("ls built.txt", "not yet")._replace(waits=True)
    verdicts = [(pacemaker.beat(view(loop)), pacemaker.observe(poll)) for loop in range(17)]
    assert not any(isinstance(verdict, Replan | DuckCall) for verdict, _ in verdicts[:16])
    assert isinstance(pacemaker.beat(view(40)), DuckCall)


@given(st.lists(any_step, min_size=1, max_size=6))
def test_whatever_is_repeated_forever_ends_in_a_question(steps: list[LoopStep]) -> None:
    assert isinstance(tell(Pacemaker(), islice(cycle(steps), 60))[-1], DuckCall)


@given(st.lists(any_step, max_size=80))
def test_it_never_runs_on_without_progress_a_limit_or_a_question(steps: list[LoopStep]) -> None:
    pacemaker, new_steps, seen = Pacemaker(), list[int](), set[tuple[str, object, str, bool]]()
    for loop, step in enumerate(steps, 1):
        pacemaker.observe(step)
        what = (step.name, step.args, step.result, step.is_error)
        if what not in seen:
            new_steps.append(loop)
        seen.add(what)
        verdict = pacemaker.beat(view(loop))
        if isinstance(verdict, DuckCall):
            return
        assert pacemaker.limit is not None
        assert loop < pacemaker.limit.value
        recent = [number for number in new_steps if number > loop - 16]
        assert recent, "sixteen steps that were all seen before"


@given(st.lists(st.text(alphabet="abcdef", min_size=3), min_size=12, max_size=12, unique=True))
def test_even_ever_new_errors_end_in_a_question(errors: list[str]) -> None:
    steps = [bad_edit(error, error, error) for error in errors]
    assert isinstance(tell(Pacemaker(), steps)[-1], DuckCall)


def test_a_stash_taken_and_put_back_goes_round_although_its_commit_has_another_name_each_time() -> None:
    rounds = [
        step._replace(changed=("main.py",))
        for number in range(12)
        for step in (
            run("echo '#' >> main.py", "exit code 0"),
            run("git stash", "Saved working directory"),
            run("git stash pop", f"Dropped refs/stash@{{0}} ({number * 7919 + 10**9:040x})"),
        )
    ]
    verdicts = tell(Pacemaker(), rounds)
    assert isinstance(verdicts[-1], DuckCall) and len(verdicts) <= 9
