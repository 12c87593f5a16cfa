"""What a reply consumed: as the endpoint reports it, else estimated."""

import json
import math
from typing import Any

from duckflow.llm.provider import Request
from duckflow.llm.settings import Price
from duckflow.state.json_fields import as_cost, as_count, as_table
from duckflow.state.usage import Usage

CHARACTERS_PER_TOKEN = 4
TOKENS_PER_MESSAGE = 4


def estimate(text: str) -> int:
    """Four ASCII characters make a token, any other character is one."""
    plain = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    return math.ceil(plain / CHARACTERS_PER_TOKEN) + len(text) - plain


def estimate_request(request: Request) -> int:
    """What a request takes: its messages, and the tools it offers."""
    tools = sum(estimate(f"{one.name}{one.description}{json.dumps(one.parameters)}") for one in request.tools)
    pictures = sum(picture.tokens for message in request.messages for picture in message.pictures)
    return tools + pictures + sum(estimate(message.whole) + TOKENS_PER_MESSAGE for message in request.messages)


def measure(request: Request, reply: str, reported: dict[str, Any], price: Price) -> Usage:
    prompt = as_count(reported.get("prompt_tokens"))
    completion = as_count(reported.get("completion_tokens"))
    if not prompt and not completion:
        prompt = estimate_request(request)
        completion = estimate(reply)
    details = as_table(reported.get("prompt_tokens_details"))
    # DeepSeek has a name of its own for it.
    cached = as_count(details.get("cached_tokens")) or as_count(reported.get("prompt_cache_hit_tokens"))
    cached, written = min(prompt, cached), as_count(details.get("cache_write_tokens"))
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached,
        cost_usd=as_cost(reported.get("cost")) or charge(price, prompt, completion, cached, written),
        calls=1,
    )


def charge(price: Price, prompt: int, completion: int, cached: int, written: int = 0) -> float:
    """Dollars. `prompt` counts what was in the cache and what was written into it."""
    dear = price.input if price.written is None else price.written
    cheap = price.input if price.cached is None else price.cached
    fresh = max(0, prompt - cached - written)
    return (fresh * price.input + cached * cheap + written * dear + completion * price.output) / 1_000_000
