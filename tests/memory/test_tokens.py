"""The estimate is near a real tokenizer's count, and learns."""

import inspect
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import duckflow
from benchmarks.real_tokens import real_tokens
from duckflow.memory import bubble
from duckflow.memory.tokens import Tokens, count, estimate

LANGUAGES = Path(duckflow.__file__).parent / "i18n"


@pytest.mark.parametrize(
    "text",
    [
        inspect.getsource(bubble),
        (LANGUAGES / "en/prompts/base.md").read_text(encoding="utf-8"),
        (LANGUAGES / "ja/prompts/base.md").read_text(encoding="utf-8"),
        (LANGUAGES / "ja/prompts/format.md").read_text(encoding="utf-8"),
    ],
    ids=["code", "English", "Japanese", "Japanese with code"],
)
def test_the_estimate_is_near_the_real_count(text: str) -> None:
    assert estimate(text) == pytest.approx(real_tokens(text), rel=0.12)


@given(st.text())
def test_any_text_has_a_count(text: str) -> None:
    assert count(text) >= 0


def test_reported_tokens_correct_the_count_of_that_model() -> None:
    tokens = Tokens()
    tokens.use("dear")
    for _ in range(30):
        tokens.learn(1000, 1500)
    assert tokens.factor == pytest.approx(1.5, rel=0.05)
    tokens.use("other")
    assert tokens.factor == 1.0
    tokens.learn(1000, 10_000_000)
    assert tokens.factor < 2, "one wild report does not turn it over"
