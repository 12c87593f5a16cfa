"""The data types keep their limits."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from duckflow.events.apply import apply
from duckflow.events.types import QuestionAsked, QuestionClosed
from duckflow.state.action import Action, Decision
from duckflow.state.agent import AgentState, Job, SubAgent
from duckflow.state.data import say, shorten, whole_sentences
from duckflow.state.phase import FiveItems, StateDelta, Vitals
from duckflow.state.plan import Plan, Step, Task
from duckflow.state.question import Answer, Question

DECISION: dict[str, Any] = {
    "rationale": "r",
    "goal_consistency": "yes",
    "constraint_check": "yes",
    "confidence": 0.5,
    "task_profile": "GENERAL_CHAT",
    "step": "PLANNING",
    "next_step": "done",
    "prompt_pattern": "base_main",
    "actions": [],
}


@given(st.text(), st.integers(min_value=2, max_value=300))
def test_shortened_text_never_exceeds_its_limit(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert len(short) <= limit
    assert short.endswith("…") or short == " ".join(text.split())


def test_text_is_cut_at_a_word_and_japanese_anywhere() -> None:
    assert shorten("one two three four", 12) == "one two…"
    assert shorten("これはとても長い日本語の文です", 8) == "これはとても長…"


@given(st.text(alphabet="ab `.。!\n", max_size=300), st.integers(20, 200))
def test_sentences_are_cut_after_a_whole_one_and_never_in_code(text: str, limit: int) -> None:
    cut = whole_sentences(text, limit)
    assert len(cut) <= limit + 2 and (cut == text.strip() or cut.count("`") % 2 == 0)


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("Added `os.key` to natsort/x.py. Then it was told in CHANGELOG.md.", "Added `os.key` to natsort/x.py. …"),
        ("変更しました。次に CHANGELOG.md に書きましたが、まだ説明が続きます。", "変更しました。 …"),
        ("No end " * 9, "No end No end No end No end No end No…"),
    ],
)
def test_a_summary_is_not_cut_in_a_sentence(text: str, cut: str) -> None:
    assert whole_sentences(text, 40 if text.isascii() else 24) == cut


def test_five_items_shorten_what_is_too_long_instead_of_failing() -> None:
    five = FiveItems(goal="g" * 500, constraints=["a", "b", "c"], plan_brief=["x" * 150, "y", "z", "w"])
    assert len(five.goal) == 200
    assert five.constraints == ["a", "b"]
    assert [len(line) for line in five.plan_brief] == [100, 1, 6] and five.plan_brief[2] == "z … +1"


def test_a_delta_names_only_what_changed() -> None:
    assert StateDelta(goal="new").items() == {"goal": "new"}
    assert StateDelta().items() == {}


def test_an_action_takes_aliases_and_must_say_why() -> None:
    action = Action.model_validate({"name": "response", "parameters": {"text": "hi"}, "thought": "greeting"})
    assert (action.operation, action.args, action.reasoning) == ("response", {"text": "hi"}, "greeting")
    with pytest.raises(ValidationError):
        Action.model_validate({"operation": "response", "args": {}, "reasoning": "  "})
    with pytest.raises(ValidationError):
        Action.model_validate({"operation": "response", "args": {}})


@pytest.mark.parametrize("missing", DECISION)
def test_a_decision_needs_every_required_field(missing: str) -> None:
    with pytest.raises(ValidationError):
        Decision.model_validate({name: value for name, value in DECISION.items() if name != missing})


@pytest.mark.parametrize(
    ("goal", "constraint", "objection"),
    [("yes", "yes", ""), ("no: off topic", "yes", "off topic"), ("Yes", "NO: too big", "too big"), ("no", "yes", "no")],
)
def test_a_check_that_says_no_is_an_objection(goal: str, constraint: str, objection: str) -> None:
    decision = Decision.model_validate(DECISION | {"goal_consistency": goal, "constraint_check": constraint})
    assert decision.objection() == objection


def test_a_decision_cannot_say_that_it_is_done_in_its_step() -> None:
    with pytest.raises(ValidationError):
        Decision.model_validate(DECISION | {"step": "DONE"})


@given(st.floats(allow_nan=False), st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_vitals_stay_between_0_and_1(mood: float, focus: float, stamina: float) -> None:
    vitals = Vitals(mood=mood, focus=focus, stamina=stamina)
    assert all(0 <= value <= 1 for value in (vitals.mood, vitals.focus, vitals.stamina))


def test_ids_begin_with_what_they_identify() -> None:
    plan = Plan(name="p", goal="g", steps=[Step(name="s")])
    assert plan.plan_id.startswith("plan_") and len(plan.plan_id) == len("plan_") + 8
    assert plan.steps[0].step_id.startswith("step_")
    assert Task(operation="response").task_id.startswith("task_")


@pytest.mark.parametrize("asker", ["job", "agent"])
def test_the_time_in_which_the_user_is_waited_for_is_no_work(asker: str) -> None:
    state = AgentState(session_id="s")
    job = Job(job_id="worker", name="n", plan_id="p", began=1000.0)
    agent = SubAgent(agent_id="worker", kind="work", task="t", began=1000.0)
    if asker == "job":
        state.jobs["worker"] = job
    else:
        state.agents["worker"] = agent
    question = Question(kind="choice", title=say("commit.title"), job="worker", on_record=True)
    apply(state, QuestionAsked(question=question, at=1010.0))
    working = job if asker == "job" else agent
    assert working.took() == 10.0, "the clock stands still while the question is open"
    apply(
        state, QuestionClosed(question_id=question.question_id, answer=Answer(choice="yes"), on_record=True, at=1100.0)
    )
    assert working.began == 1090.0 and working.question is None
