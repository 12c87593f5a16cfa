"""Facts about models that are known without asking: windows, prices, abilities."""

import pytest

from duckflow.llm.endpoints import KNOWN
from duckflow.llm.facts import DEFAULT_WINDOW, facts_of, models_of, price_of
from duckflow.llm.provider import charge
from duckflow.llm.settings import LlmSettings, Price

LISTED = LlmSettings()


@pytest.mark.parametrize(
    ("endpoint", "model", "prompt", "cached", "written", "completion", "dollars"),
    [
        ("openai", "gpt-5-mini", 100_000, 40_000, 0, 2_000, 0.06 * 0.25 + 0.04 * 0.025 + 0.002 * 2),
        ("openai", "gpt-5-mini-2025-08-07", 1_000_000, 0, 0, 0, 0.25),
        ("openai", "gpt-4.1", 50_000, 10_000, 0, 1_000, 0.04 * 2 + 0.01 * 0.5 + 0.001 * 8),
        ("anthropic", "claude-sonnet-5", 30_000, 20_000, 5_000, 1_000, 0.005 * 2 + 0.02 * 0.2 + 0.005 * 2.5 + 0.01),
        ("anthropic", "claude-haiku-4-5", 10_000, 0, 10_000, 500, 0.01 * 1.25 + 0.0005 * 5),
        ("gemini", "gemini-2.5-pro", 200_000, 100_000, 0, 4_000, 0.1 * 1.25 + 0.1 * 0.125 + 0.004 * 10),
        ("deepseek", "deepseek-chat", 64_000, 60_000, 0, 1_000, 0.004 * 0.14 + 0.06 * 0.0028 + 0.001 * 0.28),
        ("mistral", "mistral-large-latest", 10_000, 5_000, 0, 1_000, 0.01 * 0.5 + 0.001 * 1.5),
        ("xai", "grok-4.3", 10_000, 5_000, 0, 1_000, 0.005 * 1.25 + 0.005 * 0.2 + 0.001 * 2.5),
        ("groq", "openai/gpt-oss-120b", 10_000, 0, 0, 10_000, 0.01 * 0.15 + 0.01 * 0.6),
        ("openrouter", "openai/gpt-5-mini", 100_000, 0, 0, 2_000, 0.1 * 0.25 + 0.002 * 2),
    ],
)
def test_the_cost_of_a_reply(
    endpoint: str, model: str, prompt: int, cached: int, written: int, completion: int, dollars: float
) -> None:
    price = price_of(LISTED, endpoint, model)
    assert price and charge(price, prompt, completion, cached, written) == pytest.approx(dollars)


def test_the_users_own_price_comes_first_and_an_unlisted_model_has_none() -> None:
    own = LlmSettings(prices={"openai:gpt-5-mini": Price(input=7), "mine": Price()})
    assert price_of(own, "openai", "gpt-5-mini") == Price(input=7)
    assert price_of(own, "openai", "mine") == price_of(own, "ollama", "qwen3") == Price()
    for endpoint, model in (("mine", "gpt-5-mini"), ("openai", "gpt-9"), ("openai", "gpt-5-mini-mega")):
        assert price_of(LISTED, endpoint, model) is None


@pytest.mark.parametrize(
    ("endpoint", "model", "window"),
    [
        ("openai", "gpt-4.1", 1_047_576),
        ("gateway", "anthropic/claude-opus-4-8", 1_000_000),
        ("gateway", "claude-opus-4-8-20260301", 1_000_000),
        ("openai", "gpt-9", 400_000),
        ("vllm", "Qwen/Qwen3-Coder-480B-A35B-Instruct", 131_072),
        ("ollama", "qwen3-coder:30b", 4_096),
        ("gateway", "quack-7", DEFAULT_WINDOW),
    ],
)
def test_the_window_of_a_model_or_of_models_with_similar_names(endpoint: str, model: str, window: int) -> None:
    assert facts_of(endpoint, model).window == window


def test_an_ability_is_true_false_or_unknown() -> None:
    seeing = facts_of("openai", "gpt-5-mini")
    assert [seeing.has(flag) for flag in "tvrs"] == [True] * 4
    assert facts_of("deepseek", "deepseek-chat").has("v") is False
    assert facts_of("gateway", "quack-7").has("v") is None
    assert facts_of("gateway", "claude-opus-9").has("v") is True


def test_default_models_of_endpoints_are_in_the_table() -> None:
    named = [endpoint for endpoint in KNOWN if endpoint.model and models_of(endpoint.name)]
    assert len(named) > 10
    assert [
        f"{endpoint.name}:{endpoint.model}" for endpoint in named if not facts_of(endpoint.name, endpoint.model).known
    ] == []
