"""The generateContent wire of Google. Calls carry a signature of the thoughts before them, and are sent back with that
signature."""

import json
import re
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from duckflow.llm.endpoints import Key
from duckflow.llm.wires.anthropic import arguments
from duckflow.llm.wires.wire import Told, Wire, WireRequest, described, ended, reasons
from duckflow.state.data import as_count, as_table, first_table, tables
from duckflow.state.message import PromptMessage

SIGNATURE = "thoughtSignature"
UNSIGNED = "skip_thought_signature_validator"
"""The signature that Google wants for a call that was not made by one of its models."""
BUDGETS = {"none": 0, "minimal": 512, "low": 2048, "medium": 8192, "high": 24_576, "xhigh": 24_576}
LEVELS = {"none": "minimal", "xhigh": "high"}
BY_BUDGET = r"gemini-(1|2)\b|gemini-robotics"
"""Models that take a number of tokens to think; all others take a level."""
REASONS = reasons(
    stop="STOP",
    length="MAX_TOKENS",
    filtered="SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY",
    malformed="MALFORMED_FUNCTION_CALL MALFORMED_RESPONSE UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS",
)


class GoogleWire(Wire):
    listing = "/models?pageSize=1000"
    formats = ("strict", "object", "text")
    parts = MappingProxyType(
        {
            "thoughts": r"include_?thoughts",
            "temperature": r"temperature",
            "effort": r"thinking|thought",
        }
    )

    def path(self, model: str) -> str:
        return f"/models/{model.removeprefix('models/')}:streamGenerateContent?alt=sse"

    def headers(self, key: Key) -> dict[str, str]:
        return {"x-goog-api-key": key.secret}

    def body(self, asked: WireRequest) -> dict[str, Any]:
        request, reply_format = asked.request, asked.abilities.format
        config: dict[str, Any] = {**asked.temperature}
        if asked.limit:
            config["maxOutputTokens"] = asked.limit
        if thinking := _thinking(asked):
            config["thinkingConfig"] = thinking
        if request.schema is not None and reply_format != "text":
            config["responseMimeType"] = "application/json"
            config |= {"responseJsonSchema": request.schema} if reply_format == "strict" else {}
        names = {call.call_id: call.name for message in request.messages for call in message.calls}
        body: dict[str, Any] = {
            "contents": [
                {"role": "model" if by_model else "user", "parts": parts}
                for by_model, parts in asked.turns(lambda message: _parts(message, names, asked))
            ]
        }
        if asked.system:
            body["systemInstruction"] = {"parts": [{"text": asked.system}]}
        if request.tools:
            declarations = [described(tool, "parametersJsonSchema") for tool in request.tools]
            body["tools"] = [{"functionDeclarations": declarations}]
        return body | ({"generationConfig": config} if config else {})

    def reading(self) -> Told:
        return GoogleReader().told


def _thinking(asked: WireRequest) -> dict[str, Any]:
    if asked.facts.has("r") is False or not asked.takes("effort"):
        return {}
    thinking_config = {"includeThoughts": True} if asked.takes("thoughts") else {}
    if not (effort := asked.effort):
        return thinking_config
    if re.search(BY_BUDGET, asked.model):
        return thinking_config | {"thinkingBudget": BUDGETS[effort]}
    return thinking_config | {"thinkingLevel": LEVELS.get(effort, effort)}


def _parts(message: PromptMessage, names: dict[str, str], asked: WireRequest) -> Iterator[dict[str, Any]]:
    if message.answers:
        name = names.get(message.answers, "tool")
        yield {"functionResponse": {"id": message.answers, "name": name, "response": {"result": message.text}}}
        return
    if message.text:
        yield {"text": message.text}
    for media, picture_data in asked.pictures(message):
        yield {"inlineData": {"mimeType": media, "data": picture_data}}
    needs_signature = not re.search(BY_BUDGET, asked.model)
    for number, call in enumerate(message.calls):
        extra_fields: dict[str, Any] = dict(call.extra.get(asked.endpoint.name, {}))
        if needs_signature and not number and SIGNATURE not in extra_fields:
            extra_fields[SIGNATURE] = UNSIGNED
        function = {"id": call.call_id, "name": call.name, "args": arguments(call.arguments)}
        yield {**extra_fields, "functionCall": function}


class GoogleReader:
    """Reads the parts of one streamed reply. A call always comes in one piece."""

    def __init__(self) -> None:
        self._calls = 0

    def told(self, event: dict[str, Any]) -> dict[str, Any]:
        if event.get("error"):
            return event
        usage = {"usage": _counts(as_table(event["usageMetadata"]))} if event.get("usageMetadata") else {}
        if block_reason := as_table(event.get("promptFeedback")).get("blockReason"):
            return ended("filtered", str(block_reason), **usage)
        candidate = first_table(event.get("candidates"))
        message = self._said(tables(as_table(candidate.get("content")).get("parts")))
        raw_reason = str(candidate.get("finishReason") or "")
        finish_fields = {"finish_reason": REASONS.get(raw_reason, "unknown"), "raw": raw_reason} if raw_reason else {}
        return {"choices": [{"delta": message, **finish_fields}], **usage}

    def _said(self, parts: list[dict[str, Any]]) -> dict[str, Any]:
        calls: list[dict[str, Any]] = []
        for part in parts:
            if function := as_table(part.get("functionCall")):
                signature = {SIGNATURE: part[SIGNATURE]} if part.get(SIGNATURE) else {}
                call_function = {"name": function.get("name"), "arguments": json.dumps(function.get("args") or {})}
                calls.append(
                    {"index": self._calls, "id": function.get("id") or "", "function": call_function, **signature}
                )
                self._calls += 1
        texts = [(bool(part.get("thought")), str(part.get("text") or "")) for part in parts]
        return {
            "content": "".join(text for is_thought, text in texts if not is_thought),
            "reasoning": "".join(text for is_thought, text in texts if is_thought),
            "tool_calls": calls,
        }


def _counts(usage: dict[str, Any]) -> dict[str, Any]:
    """Returns the usage under the names of the chat wire, where the reply includes the thoughts."""
    reply_tokens, thought_tokens = (
        as_count(usage.get(name)) for name in ("candidatesTokenCount", "thoughtsTokenCount")
    )
    return {
        "prompt_tokens": usage.get("promptTokenCount"),
        "completion_tokens": reply_tokens + thought_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.get("cachedContentTokenCount")},
    }


WIRE = GoogleWire()
