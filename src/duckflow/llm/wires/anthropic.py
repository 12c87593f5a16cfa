"""The Messages wire of Anthropic. Claude's thoughts are signed, stored with its reply, and sent back with it."""

import re
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any, cast

from duckflow.llm.endpoints import Key
from duckflow.llm.provider import DETAILS
from duckflow.llm.wires.wire import (
    ThoughtKeeper,
    Told,
    Wire,
    WireRequest,
    delta,
    described,
    ended,
    reasons,
    thoughts_for,
)
from duckflow.state.data import as_count, as_table
from duckflow.state.message import PromptMessage
from duckflow.whole_text import read_json

VERSION = "2026-10-21"
"""The version of Anthropic's API. This wire sends no temperature."""
MARK = {"cache_control": {"type": "ephemeral"}}
REPLY_TOKENS = 8192
"""The limit of a reply in tokens if none is set. The API requires a limit, and every model accepts this many tokens."""
LONGEST_REPLY = 32_000
LEAST_BUDGET = 1024
BUDGETS = {"minimal": 1024, "low": 4096, "medium": 10_000, "high": 24_000, "xhigh": 48_000}
ADAPTIVE = (4, 6)
"""The first version of models that take a level of effort instead of a number of tokens to think."""
GREATEST_NAMED = (4, 7)
"""The first version of models that call the effort above high `xhigh`; earlier models call it `max`."""
REASONS = reasons(
    stop="end_turn tool_use stop_sequence", length="max_tokens model_context_window_exceeded", refusal="refusal"
)
NOT_IN_SCHEMAS = ("minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
                  "multipleOf", "minItems", "maxItems", "uniqueItems", "pattern", "title", "default")  # fmt: skip
"""Keywords that the endpoint refuses in a schema. The caller checks the reply by the whole schema."""


class AnthropicWire(Wire):
    listing = "/v1/models"
    formats = ("strict", "text")
    parts = MappingProxyType(
        {
            "display": r"display",
            "cache_control": r"cache_control",
            "effort": r"effort|thinking|budget_tokens",
        }
    )

    def path(self, model: str) -> str:
        return "/v1/messages"

    def headers(self, key: Key) -> dict[str, str]:
        return {"x-api-key": key.secret, "anthropic-version": VERSION}

    def body(self, asked: WireRequest) -> dict[str, Any]:
        request = asked.request
        body: dict[str, Any] = {
            "model": asked.model,
            "max_tokens": asked.limit or min(asked.facts.longest_reply or REPLY_TOKENS, LONGEST_REPLY),
            "messages": [
                {"role": "assistant" if by_model else "user", "content": blocks}
                for by_model, blocks in asked.turns(lambda message: _blocks(message, asked))
            ],
            "stream": True,
        }
        if asked.system:
            body["system"] = [{"type": "text", "text": asked.system}]
        if request.tools:
            body["tools"] = [described(tool, "input_schema") for tool in request.tools]
        if request.schema is not None and asked.abilities.format == "strict":
            body["output_config"] = {"format": {"type": "json_schema", "schema": closed(request.schema)}}
        if request.tools and asked.takes("cache_control"):
            _mark(body)
        return _with_thinking(body, asked)

    def reading(self) -> Told:
        return AnthropicReader().told


def _version(model: str) -> tuple[int, int]:
    """Returns the two version numbers in a model's name. A date at the end of the name does not count."""
    numbers = re.findall(r"(?<!\d)\d{1,2}(?!\d)", model)
    return (int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else 0) if numbers else (99, 0)


def _with_thinking(body: dict[str, Any], asked: WireRequest) -> dict[str, Any]:
    """Returns the body with the effort that the settings name. Thinking counts against the limit of the reply, so the
    limit grows by the tokens for thinking."""
    effort, version = asked.effort, _version(asked.model)
    replies = [message for message in asked.request.messages if message.role == "assistant"]
    # A reply whose calls are being answered must be sent with its thoughts. If the reply had none, thinking stays off.
    continues_calls = bool(replies and replies[-1].calls and asked.request.messages[-1].role in ("tool", "user"))
    lacks_thoughts = continues_calls and not asked.kept(replies[-1]).get(DETAILS)
    if not effort or asked.facts.has("r") is False:
        return body
    if version >= ADAPTIVE:
        if effort == "none":
            return body | {"thinking": {"type": "disabled"}}
        display_field = {"display": "summarized"} if asked.takes("display") else {}
        level = {"minimal": "low", "xhigh": "xhigh" if version >= GREATEST_NAMED else "max"}.get(effort, effort)
        config = as_table(body.get("output_config")) | {"effort": level}
        return body | {"thinking": {"type": "adaptive", **display_field}, "output_config": config}
    longest_reply = asked.facts.longest_reply or REPLY_TOKENS
    reply_tokens = min(longest_reply, int(body["max_tokens"]) + BUDGETS.get(effort, 0))
    budget = min(BUDGETS.get(effort, 0), reply_tokens - LEAST_BUDGET)
    if lacks_thoughts or budget < LEAST_BUDGET:
        return body
    return body | {"max_tokens": reply_tokens, "thinking": {"type": "enabled", "budget_tokens": budget}}


def _blocks(message: PromptMessage, asked: WireRequest) -> Iterator[dict[str, Any]]:
    if message.answers:
        yield {"type": "tool_result", "tool_use_id": _wire_id(message.answers), "content": message.text}
        return
    thoughts: list[dict[str, Any]] = asked.kept(message).get(DETAILS, [])
    if message.text.strip():
        yield from thoughts_for("", thoughts)
        yield {"type": "text", "text": message.text}
    for media, picture_data in asked.pictures(message):
        yield {"type": "image", "source": {"type": "base64", "media_type": media, "data": picture_data}}
    for call in message.calls:
        yield from thoughts_for(call.call_id, thoughts)
        yield {"type": "tool_use", "id": _wire_id(call.call_id), "name": call.name, "input": arguments(call.arguments)}


def _wire_id(call_id: str) -> str:
    """Replaces signs that this endpoint refuses. An id from another endpoint may contain them."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", call_id)


def arguments(text: str) -> dict[str, Any]:
    """Returns the arguments of a call as an object. Text that is not JSON is passed on as it is."""
    value = read_json(text or "{}")
    return {"unreadable": text} if value is None else as_table(value)


def _mark(body: dict[str, Any]) -> None:
    """Marks places in the prompt; the endpoint caches everything before a mark. The tools, the system text and the
    conversation are cached. The last text is not, since it describes the current state."""
    if body.get("system"):
        body["system"][-1] |= MARK
    blocks = [block for turn in body["messages"] for block in turn["content"]]
    earlier_blocks = [block for block in blocks[:-1] if block["type"] in ("text", "tool_use", "tool_result", "image")]
    if len(body["messages"]) > 1 and earlier_blocks:
        earlier_blocks[-1] |= MARK


def closed(schema: Any) -> Any:
    """Returns the schema in the form that the endpoint takes: objects allow no other fields, and bounds are left
    out."""
    if isinstance(schema, list):
        return [closed(listed_schema) for listed_schema in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    table: dict[str, Any] = {}
    for name, value in cast("dict[str, Any]", schema).items():
        if name in ("properties", "$defs", "definitions"):
            table[name] = {key: closed(inner_schema) for key, inner_schema in as_table(value).items()}
        elif name in ("enum", "const", "required"):
            table[name] = value
        elif name not in NOT_IN_SCHEMAS:
            table[name] = closed(value)
    return table | {"additionalProperties": False} if "properties" in table else table


class AnthropicReader(ThoughtKeeper):
    """Reads the events of one reply that Anthropic streams."""

    def told(self, event: dict[str, Any]) -> dict[str, Any]:
        match event.get("type"):
            case "message_start":
                return {"usage": _counts(as_table(as_table(event.get("message")).get("usage")))}
            case "content_block_start":
                return self._begun(as_table(event.get("content_block")), event.get("index"))
            case "content_block_delta":
                return self._piece(as_table(event.get("delta")), event.get("index"))
            case "message_delta":
                stop_reason = str(as_table(event.get("delta")).get("stop_reason") or "")
                usage = _counts(as_table(event.get("usage")))
                return (
                    ended(REASONS.get(stop_reason, "unknown"), stop_reason, usage=usage)
                    if stop_reason
                    else {"usage": usage}
                )
            case "error":
                return {"error": event.get("error") or event}
            case _:
                return {}

    def _begun(self, block: dict[str, Any], index: Any) -> dict[str, Any]:
        """Begins a thought, a call or a text. Thoughts before a call or a text belong to that call or text."""
        match block.get("type"):
            case "thinking" | "redacted_thinking":
                self.thoughts.append(dict(block))
                return delta(reasoning=block.get("thinking") or "")
            case "tool_use":
                owner = str(block.get("id", ""))
                text = block.get("input") or ""
                call = {"index": index, "id": owner, "function": {"name": block.get("name"), "arguments": text}}
                return delta(tool_calls=[call], **self.given_to(owner))
            case "text":
                return delta(content=block.get("text") or "", **self.given_to(""))
            case _:
                return {}

    def _piece(self, piece: dict[str, Any], index: Any) -> dict[str, Any]:
        match piece.get("type"):
            case "text_delta":
                return delta(content=piece.get("text"))
            case "thinking_delta" | "signature_delta":
                name = "thinking" if piece["type"] == "thinking_delta" else "signature"
                text = str(piece.get(name) or "")
                if self.thoughts:
                    self.thoughts[-1][name] = str(self.thoughts[-1].get(name) or "") + text
                return delta(reasoning=text) if name == "thinking" else {}
            case "input_json_delta":
                return delta(tool_calls=[{"index": index, "function": {"arguments": piece.get("partial_json")}}])
            case _:
                return {}


def _counts(usage: dict[str, Any]) -> dict[str, Any]:
    """Returns the usage under the names of the chat wire, where the prompt includes tokens from the cache."""
    token_counts: dict[str, Any] = {}
    if "input_tokens" in usage and usage["input_tokens"] is not None:
        cached_tokens, written_tokens = (
            as_count(usage.get(name)) for name in ("cache_read_input_tokens", "cache_creation_input_tokens")
        )
        token_counts["prompt_tokens"] = as_count(usage["input_tokens"]) + cached_tokens + written_tokens
        token_counts["prompt_tokens_details"] = {"cached_tokens": cached_tokens, "cache_write_tokens": written_tokens}
    if "output_tokens" in usage:
        token_counts["completion_tokens"] = usage["output_tokens"]
    return token_counts


WIRE = AnthropicWire()
