"""Values that are too long are cut in a fixed order."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as some

from duckflow.prompts.layers import CUTTING_ORDER, fitted, shorter


def written(values: Mapping[str, str]) -> str:
    return "\n".join(f"{name}: {text}" for name, text in values.items() if text)


def count(text: str) -> int:
    return len(text)


VALUES: dict[str, str] = dict.fromkeys(
    ("goal", "evidence", "conversation", "open_questions", "plan_brief"), "words " * 10
)


def test_evidence_goes_first_then_the_conversation_then_questions_then_the_plan() -> None:
    kept: list[list[str]] = []
    for budget in (1000, 320, 260, 190, 110, 1):
        left = fitted(VALUES, budget, written, count)
        kept.append([name for name, text in left.items() if text == VALUES[name]])
    assert kept == [
        ["goal", "evidence", "conversation", "open_questions", "plan_brief"],
        ["goal", "conversation", "open_questions", "plan_brief"],
        ["goal", "open_questions", "plan_brief"],
        ["goal", "plan_brief"],
        ["goal"],
        ["goal"],
    ]


@given(some.dictionaries(some.sampled_from(CUTTING_ORDER), some.text(max_size=200)), some.integers(1, 400))
def test_within_the_budget_or_nothing_is_left_to_cut(values: dict[str, str], budget: int) -> None:
    left = fitted({"goal": "stay", **values}, budget, written, count)
    assert left["goal"] == "stay"
    assert count(written(left)) <= budget or not any(left[name] for name in values)


def test_a_text_of_several_lines_is_cut_to_whole_lines() -> None:
    assert shorter("one line\ntwo line\nthree line", 18, count) == "one line\ntwo line"
    assert shorter("one long line of words", 12, count) == "one long…"
    assert shorter("one", 3, count) == ""
