"""How many tokens fit into a model, by the beginning of its name, for endpoints that do not say."""

DEFAULT_WINDOW = 32_768

WINDOWS: tuple[tuple[str, int], ...] = (
    ("gpt-3.5", 16_385),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4", 8_192),
    ("gpt-oss", 131_072),
    ("gpt-", 400_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4", 200_000),
    ("claude", 200_000),
    ("gemini", 1_048_576),
    ("deepseek", 128_000),
    ("grok", 131_072),
    ("codestral", 128_000),
    ("devstral", 128_000),
    ("mistral", 128_000),
    ("magistral", 128_000),
    ("qwen3", 131_072),
    ("kimi", 131_072),
    ("glm", 128_000),
    ("llama-3", 128_000),
    ("llama-4", 128_000),
)

OLLAMA_WINDOW = 4_096
"""What Ollama gives a model unless told otherwise; it cuts longer prompts without a word."""


def known_window(endpoint: str, model: str) -> int:
    if endpoint == "ollama":
        return OLLAMA_WINDOW
    name = model.rpartition("/")[2].lower()
    return next((tokens for start, tokens in WINDOWS if name.startswith(start)), DEFAULT_WINDOW)
