"""Every compiled prompt: step, pattern, language, profile. `UPDATE_SNAPSHOTS=1 pytest` writes the snapshots anew."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from duckflow.agent.connection import form_of
from duckflow.i18n.template import load
from duckflow.prompts.compile import Compiler, Moment
from duckflow.prompts.layers import alternate
from duckflow.prompts.settings import PromptSettings
from duckflow.state.agent import AgentState
from duckflow.state.message import Message, PromptMessage
from duckflow.state.phase import Phase
from duckflow.state.plan import Plan
from duckflow.state.profile import ModelProfile
from tests.journeys.quotations import outside_marks
from tests.prompts.scene import at_work, compiler, long_one

SNAPSHOTS = Path(__file__).with_name("snapshots")
STEPS = (Phase.PLANNING, Phase.EXECUTION, Phase.REVIEW, Phase.AWAITING_APPROVAL)
PATTERNS = ("base_main", "base_main_specialized")
LANGUAGES = ("en", "ja")
STEP = {"name": "one"}
PROFILES = {
    "full": ModelProfile(),
    "compact": ModelProfile(led=True),
    "native": ModelProfile(native_tools=True),
}


def requested(by: Compiler, state: AgentState, messages: list[Message], now: Moment) -> tuple[PromptMessage, ...]:
    """The messages as an endpoint gets them."""
    return alternate(by.main(state, messages, now))


def moment(profile: str = "full", limit: int = 15) -> Moment:
    return Moment(form_of(PROFILES[profile]), PROFILES[profile], limit)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("profile", PROFILES)
def test_every_compiled_prompt_is_as_recorded(language: str, profile: str) -> None:
    state = at_work(language)
    stable, _ = requested(compiler(), state, state.messages, moment(profile))
    shown = [f"=== system\n{stable.text}"]
    for step in STEPS:
        for pattern in PATTERNS:
            state.phase, state.prompt_pattern = step, pattern
            system, user = requested(compiler(), state, state.messages, moment(profile))
            assert system == stable
            shown.append(f"=== user, {step}, {pattern}\n{user.text}")
    text, path = "\n\n".join(shown) + "\n", SNAPSHOTS / f"{language}-{profile}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("make", [at_work, long_one])
def test_no_layer_is_over_its_budget(language: str, profile: str, make: Callable[[str], AgentState]) -> None:
    state = make(language)
    for step in STEPS:
        for pattern in PATTERNS:
            state.phase, state.prompt_pattern = step, pattern
            for layer in compiler().weighed(state, state.messages, moment(profile)):
                assert not layer.budget or layer.tokens <= layer.budget, (step, pattern, layer)


def test_the_longest_state_keeps_its_goal_and_constraints_and_loses_what_is_cut_first() -> None:
    state = long_one("en")
    prompt = requested(compiler(PromptSettings(main_tokens=460)), state, state.messages, moment())[1].text
    assert f"Goal: {state.five.goal}" in prompt and f"Constraints: {state.five.constraints[0]}" in prompt
    assert "Decided:" not in prompt and "Files changed:" not in prompt and "Open questions:" not in prompt
    assert "Plan: word" in prompt and state.messages[0].text in prompt


@pytest.mark.parametrize("language", LANGUAGES)
def test_empty_values_leave_no_trace(language: str) -> None:
    state = AgentState(language=language, folder="/work", prompt_pattern="base_main_specialized")
    for step in STEPS:
        state.phase = step
        for profile in PROFILES:
            text = "\n".join(message.text for message in requested(compiler(), state, [], moment(profile)))
            assert "{" not in text.replace('{"', "").replace('":{', "")
            assert not [line for line in text.split("\n") if line.endswith((": ", ": ;", "''", "「」"))]


def test_the_base_says_who_it_is_in_less_than_a_thousand_characters() -> None:
    assert all(len(load(one, name)) <= 1000 for one in LANGUAGES for name in ("base", "base_compact"))


@pytest.mark.parametrize("profile", PROFILES)
def test_a_turn_adds_to_the_request_before_it_and_changes_nothing_of_it(profile: str) -> None:
    """The next request begins with the same bytes, except for the last message, which describes the state."""
    state = at_work("en")
    state.plans, state.active_plan = {}, ""
    earlier = ""
    for turn, step in enumerate([*STEPS, Phase.PLANNING], 1):
        state.turn, state.phase, state.prompt_pattern = turn, step, PATTERNS[turn % 2]
        state.messages.append(Message(role="user", text=f"request {turn}", turn=turn))
        texts = [
            f"{one.role}\n{one.text}" for one in requested(compiler(), state, state.messages, moment(profile, turn))
        ]
        assert "\n".join(texts).startswith(earlier)
        spoken = f"request {turn}"
        earlier = "\n".join(texts[:-1]) + "\n" + texts[-1][: texts[-1].index(spoken) + len(spoken)]
        state.messages.append(Message(role="assistant", text="{}", turn=turn))
        state.messages.append(Message(role="tool", operation="file_ops.grep", text=f"found {turn}", turn=turn))
        state.messages.append(Message(role="assistant", text="{}", turn=turn))
        state.files_changed.append(f"file{turn}.py")


def test_a_plan_that_advances_changes_the_offered_operations_but_not_the_prefix() -> None:
    state = at_work("en")
    seen: list[str] = []
    offered = {"draft": "plan_tool.revise(", "in_progress": "task_loop.run(", "completed": "plan_tool.propose("}
    for status, offers in offered.items():
        state.plans["p"] = Plan.model_validate({"name": "Snake", "goal": "g", "status": status, "steps": [STEP]})
        system, user = requested(compiler(), state, state.messages, moment())
        assert offers in user.text and offers not in system.text
        seen.append(system.text)
    assert len(set(seen)) == 1


def test_procedures_have_the_base_the_rules_and_a_budget() -> None:
    state = at_work("en")
    values = {
        "conversation": "",
        "status": "done",
        "goal": "g",
        "steps": "s",
        "counts": "1",
        "shown": "",
        "changes": "",
    }
    values["results"] = "\n".join(["- a result"] * 2000)
    system, user = compiler().procedure(state, "report", values, [("nonsense", "no JSON")])[:2]
    assert system.text.startswith(load("en", "base")[:50]) and "Use tabs." in system.text
    assert "Plan: g" in user.text and 10 < user.text.count("- a result") < 2000
    assert "- a result" not in outside_marks(user.text) and "Write the report" in outside_marks(user.text)
