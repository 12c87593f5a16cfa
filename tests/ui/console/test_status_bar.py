import pytest

from duckflow.ui.console.status_bar import short_name


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("ollama:llama3.2:latest", "llama3.2"),
        ("ollama:me/duck:7b", "duck:7b"),
        ("openrouter:anthropic/claude-x", "claude-x"),
        ("openai:gpt-5", "gpt-5"),
        ("scripted", "scripted"),
    ],
)
def test_the_short_name_of_a_model_says_which_it_is(model: str, name: str) -> None:
    assert short_name(model) == name
