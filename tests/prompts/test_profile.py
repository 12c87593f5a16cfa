"""Which form of the prompt a model gets."""

import pytest

from duckflow.prompts.profile import profile_for
from duckflow.prompts.settings import PromptSettings

WIDE = 131_072


@pytest.mark.parametrize(
    ("model", "window", "profile"),
    [
        ("local:qwen2.5-coder-1.5b", WIDE, "compact"),
        ("openai:gpt-5-mini", WIDE, "full"),
        ("openai:gpt-4", 8192, "compact"),
        ("ollama:llama3.2:3b", WIDE, "compact"),
        ("lmstudio:qwen2.5-coder-1.5b-instruct", WIDE, "compact"),
        ("openrouter:google/gemma-2b-it", WIDE, "compact"),
        ("lmstudio:qwen2.5-coder-14b", WIDE, "full"),
        ("openrouter:qwen/qwen3-30b-a3b", WIDE, "full"),
        ("openrouter:qwen/qwen3-coder-480b-a35b", WIDE, "full"),
        ("groq:llama-3.3-70b-versatile", WIDE, "full"),
        ("openai:web-2beta", WIDE, "full"),
    ],
)
def test_small_models_get_the_short_form(model: str, window: int, profile: str) -> None:
    assert profile_for(model, window, PromptSettings()) == profile


def test_the_setting_decides() -> None:
    assert profile_for("local:qwen2.5-coder-1.5b", 4096, PromptSettings(profile="full")) == "full"
    assert profile_for("openai:gpt-5", WIDE, PromptSettings(profile="compact")) == "compact"
