"""The properties of a model, by its name, its window and the settings."""

import pytest

from duckflow.agent.connection import make_profile
from duckflow.prompts.settings import PromptSettings

WIDE = 131_072


@pytest.mark.parametrize(
    ("model", "window", "small"),
    [
        ("local:qwen2.5-coder-1.5b", WIDE, True),
        ("openai:gpt-5-mini", WIDE, False),
        ("openai:gpt-4", 8192, True),
        ("ollama:llama3.2:3b", WIDE, True),
        ("lmstudio:qwen2.5-coder-1.5b-instruct", WIDE, True),
        ("openrouter:google/gemma-2b-it", WIDE, True),
        ("lmstudio:qwen2.5-coder-14b", WIDE, False),
        ("openrouter:qwen/qwen3-30b-a3b", WIDE, False),
        ("openrouter:qwen/qwen3-coder-480b-a35b", WIDE, False),
        ("groq:llama-3.3-70b-versatile", WIDE, False),
        ("openai:web-2beta", WIDE, False),
    ],
)
def test_small_models_get_the_short_form_and_are_led(model: str, window: int, small: bool) -> None:
    profile = make_profile(model, window, PromptSettings())
    assert profile.led is small
    assert (profile.name, profile.window, profile.local) == (model, window, model.startswith("local:"))


def test_the_setting_goes_before_name_and_window() -> None:
    assert not make_profile("local:qwen2.5-coder-1.5b", 4096, PromptSettings(profile="full")).led
    assert make_profile("openai:gpt-5", WIDE, PromptSettings(profile="compact")).led
