"""Limits of tokens and money: the call that cannot fit is not begun."""

from pathlib import Path
from typing import Any

import pytest

from duckflow.llm.provider import estimate_request
from duckflow.llm.scripted import ScriptedReply
from duckflow.state.message import Usage
from tests.journeys.calling import called
from tests.journeys.story import Story, act, decide, respond

LOOK = decide(act("file_ops.list_files"), step="PLANNING", next_step="continue")
both = pytest.mark.parametrize("native", [False, True], ids=["json", "native"])


def limited(tmp_path: Path, replies: list[Any], native: bool = False, **limits: float) -> Story:
    return Story(tmp_path, replies, settings={"agent": limits}, native=native)


async def first_request(tmp_path: Path, native: bool) -> tuple[int, int]:
    """The tokens of a first call: of its prompt, and with its reply."""
    (tmp_path / "before").mkdir()
    story = limited(tmp_path / "before", [LOOK, decide(respond("Nothing."))], native)
    assert await story.tell("look") == "done"
    first, second = (estimate_request(one) for one in story.model.requests)
    used = story.session.state.usage
    return first, used.prompt_tokens + used.completion_tokens - second


@both
async def test_a_call_whose_prompt_alone_passes_the_limit_is_not_begun(tmp_path: Path, native: bool) -> None:
    first, with_reply = await first_request(tmp_path, native)
    story = limited(tmp_path, [LOOK, decide(respond("Nothing."))], native, max_tokens=with_reply + first // 2)
    assert await story.tell("look") == "budget"
    assert len(story.model.requests) == 1
    why = story.ending().why
    assert why and why.key == "budget.tokens_next"
    assert why.values["limit"] == with_reply + first // 2 and int(why.values["next"]) >= first


@both
async def test_not_even_the_first_call_is_begun_where_it_cannot_fit(tmp_path: Path, native: bool) -> None:
    story = limited(tmp_path, [LOOK], native, max_tokens=50)
    assert await story.tell("look") == "budget" and not story.model.requests


async def test_a_call_that_fits_is_made(tmp_path: Path) -> None:
    story = limited(tmp_path, [LOOK, decide(respond("Nothing."))], max_tokens=100_000)
    assert await story.tell("look") == "done"


async def test_how_large_a_prompt_is_is_learned_from_what_the_endpoint_counts(tmp_path: Path) -> None:
    """An endpoint that counts a tenth of what was guessed has room for more."""
    first, _ = await first_request(tmp_path, native=True)
    small = [ScriptedReply(called(LOOK).text, calls=called(LOOK).calls, usage=Usage(prompt_tokens=300))] * 3
    replies = [*small, ScriptedReply("Nothing.", usage=Usage(prompt_tokens=300))]
    story = limited(tmp_path, replies, native=True, max_tokens=first + 200)
    assert await story.tell("look") == "done"
    assert len(story.model.requests) == 4


async def test_a_call_that_costs_more_than_is_left_is_not_begun(tmp_path: Path) -> None:
    dear = ScriptedReply(called(LOOK).text, calls=called(LOOK).calls, usage=Usage(prompt_tokens=5000, cost_usd=0.05))
    story = limited(tmp_path, [dear, decide(respond("Nothing."))], True, max_budget_usd=0.06)
    story.model.least_price = 10.0
    assert await story.tell("look") == "budget"
    assert len(story.model.requests) == 1
    why = story.ending().why
    assert why and why.key == "budget.spent_next" and why.values["used"] == "0.05"


async def test_a_budget_of_money_for_a_model_without_a_price_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    story = limited(tmp_path, [decide(respond("Nothing."))], True, max_budget_usd=0.06)
    story.model.least_price = None
    assert await story.tell("look") == "budget"
    why = story.ending().why
    assert why and why.key == "budget.no_price" and not story.model.requests
