"""Chat completions: the protocol of OpenAI that most endpoints support."""

import hashlib
import re
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from duckflow.llm.endpoints import Endpoint
from duckflow.llm.wires.wire import Told, Wire, WireRequest, described, reasons
from duckflow.state.data import first_table
from duckflow.state.message import PromptMessage

SCHEMA_NAME = "reply"
REASONS = reasons(
    stop="stop tool_calls function_call tool_use end_turn stop_sequence eos eos_token complete completed",
    length="length max_tokens model_length",
    filtered="content_filter safety guardrail_intervened",
    refusal="refusal",
    failed="error insufficient_system_resource",
)
"""Words that providers use for the reason why a reply ended; any other word counts as `unknown`."""
MALFORMED = r"(?i)malformed"
RESPONSES_NAMED = r"v1/responses|responses api"


class ChatWire(Wire):
    limits = ("max_tokens", "max_completion_tokens")
    parts = MappingProxyType(
        {
            "stream_usage": r"stream_options|include_usage",
            "prompt_cache_key": r"prompt_cache_key",
            "cache_control": r"cache_control",
            "temperature": r"temperature",
            "effort": r"effort",
            "thoughts": r"reasoning_(content|details)|['\"`]reasoning['\"`]",
            "user_after_tool": r"after role.{0,3}tool",
        }
    )

    def path(self, model: str) -> str:
        return "/chat/completions"

    def elsewhere(self, status: int, answer: str) -> str:
        return "responses" if re.search(RESPONSES_NAMED, answer) else ""

    def body(self, asked: WireRequest) -> dict[str, Any]:
        request, abilities = asked.request, asked.abilities
        body: dict[str, Any] = {
            "model": asked.model,
            "messages": [_message(message, asked) for message in _in_order(request.messages, asked)],
            "stream": True,
            **asked.temperature,
            **asked.endpoint.extra,
        }
        if asked.takes("stream_usage"):
            body["stream_options"] = {"include_usage": True}
        if asked.limit:
            body[abilities.reply_limit] = asked.limit
        if asked.effort:
            body["reasoning_effort"] = asked.effort
        if request.tools:
            body["tools"] = [{"type": "function", "function": described(tool, "parameters")} for tool in request.tools]
        if asked.endpoint.cache_key and asked.takes("prompt_cache_key"):
            body["prompt_cache_key"] = cache_key(asked)
        if request.schema is not None and abilities.format != "text":
            body["response_format"] = response_format(request.schema, abilities.format)
        marked_models = asked.endpoint.cache_marks
        if marked_models and request.tools and asked.model.startswith(marked_models) and asked.takes("cache_control"):
            _mark(body["messages"])
        return body

    def reading(self) -> Told:
        return _told


def _told(event: dict[str, Any]) -> dict[str, Any]:
    choice = first_table(event.get("choices"))
    raw_reason = str(choice.get("finish_reason") or "")
    if not raw_reason:
        return event
    reason = REASONS.get(raw_reason.lower(), "malformed" if re.search(MALFORMED, raw_reason) else "unknown")
    return event | {"choices": [choice | {"finish_reason": reason, "raw": raw_reason}]}


def cache_key(asked: WireRequest) -> str:
    """Returns the same key for requests that begin alike, so that they reach the machine that has cached this
    beginning."""
    first_texts = "\n".join(message.text for message in asked.request.messages[:2])
    return hashlib.sha256(f"{asked.model}\n{first_texts}".encode("utf-8", "replace")).hexdigest()[:32]


def _message(message: PromptMessage, asked: WireRequest) -> dict[str, Any]:
    endpoint = asked.endpoint
    fields: dict[str, Any] = {**asked.kept(message), "role": message.role, "content": _content(message, asked)}
    if message.answers:
        fields["tool_call_id"] = _wire_id(endpoint, message.answers)
    if message.calls:
        fields["tool_calls"] = [
            {
                **call.extra.get(endpoint.name, {}),
                "id": _wire_id(endpoint, call.call_id),
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.calls
        ]
    return fields


def _wire_id(endpoint: Endpoint, call_id: str) -> str:
    """Shortens a call's id that came from another endpoint and is too long for this endpoint."""
    if not endpoint.short_ids or re.fullmatch(r"[A-Za-z0-9]{9}", call_id):
        return call_id
    return hashlib.sha256(call_id.encode()).hexdigest()[:9]


def _content(message: PromptMessage, asked: WireRequest) -> str | list[dict[str, Any]] | None:
    """Returns a message's text, or a list of parts for a message with pictures."""
    if urls := asked.picture_urls(message):
        picture_parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
        return [{"type": "text", "text": message.text}, *picture_parts]
    return message.text or (None if message.calls else "")


def _in_order(messages: Sequence[PromptMessage], asked: WireRequest) -> list[PromptMessage]:
    """Returns the messages in an order that the endpoint takes. If the endpoint allows no user message after a tool
    result, the message's text is appended to that result."""
    ordered_messages: list[PromptMessage] = []
    for message in messages:
        after_result = bool(ordered_messages) and ordered_messages[-1].role == "tool" and message.role == "user"
        if after_result and not asked.takes("user_after_tool"):
            tool_message = ordered_messages.pop()
            text = f"{tool_message.text}\n\n{message.text}"
            ordered_messages.append(tool_message._replace(text=text, pictures=message.pictures))
        else:
            ordered_messages.append(message)
    return ordered_messages


def _mark(messages: list[dict[str, Any]]) -> None:
    """Marks places in the prompt; Claude caches everything before a mark. The last message is not cached, since it
    describes the current state."""
    for message in (messages[0], *(messages[-2:-1] if len(messages) > 2 else ())):
        text = message["content"]
        if isinstance(text, str) and text:
            message["content"] = [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]


def response_format(schema: dict[str, Any], form: str) -> dict[str, Any]:
    if form == "object":
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": SCHEMA_NAME, "schema": schema, "strict": form == "strict"}}


WIRE = ChatWire()
