"""What pydantic-ai's models are told, and what is kept of their replies. Imported with the bridge only."""

from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from duckflow.llm.provider import PromptMessage, Request
from duckflow.state.message import ToolCall

THINKING = "bridge"
"""Under this name what only this wire understands is kept with a reply."""
VENDOR_FIELDS = ("id", "signature", "provider_name", "provider_details")


def vendor_messages(request: Request) -> list[ModelMessage]:
    """The messages of a request; what system, user and tools say in a row makes one message. With tools the
    conversation is kept in the vendor's cache, up to what the last message adds."""
    messages: list[ModelMessage] = []
    parts: list[ModelRequestPart] = []
    names = {call.call_id: call.name for message in request.messages for call in message.calls}
    last = request.messages[-1]
    for message in request.messages:
        if message.role == "assistant":
            if parts:
                messages.append(ModelRequest(parts=parts))
                parts = []
            messages.append(ModelResponse(parts=_reply_parts(message)))
        elif message.role == "tool":
            parts.append(ToolReturnPart(names.get(message.answers, "tool"), message.text, message.answers))
        elif message.role == "system":
            parts.append(SystemPromptPart(message.text))
        else:
            cached = [CachePoint()] if message is last and request.tools and messages else []
            shown = [
                BinaryContent(request.pictures[one.digest], media_type=one.media)
                for one in message.pictures
                if one.digest in request.pictures
            ]
            parts.append(UserPromptPart([*cached, message.text, *shown] if cached or shown else message.text))
    return [*messages, ModelRequest(parts=parts)] if parts else messages


def _reply_parts(message: PromptMessage) -> list[ModelResponsePart]:
    """A reply as it came: what was thought, with its signature, the text, the calls."""
    thoughts = [ThinkingPart(**one) for one in message.extra.get(THINKING, ())]
    texts = [TextPart(message.text)] if message.text or not message.calls else []
    calls = [
        ToolCallPart(call.name, call.arguments, call.call_id, **call.extra.get(THINKING, {})) for call in message.calls
    ]
    return [*thoughts, *texts, *calls]


def kept_of(response: ModelResponse) -> tuple[tuple[ToolCall, ...], dict[str, Any]]:
    """The calls of a reply, and what was thought before them, with what the vendor wants back of it."""
    calls: list[ToolCall] = []
    thoughts: list[dict[str, Any]] = []
    for part in response.parts:
        own = {name: value for name in VENDOR_FIELDS if (value := getattr(part, name, None)) is not None}
        match part:
            case ThinkingPart():
                thoughts.append({"content": part.content, **own})
            case ToolCallPart():
                extra = {THINKING: own} if own else {}
                given = part.args_as_json_str()
                calls.append(ToolCall(call_id=part.tool_call_id, name=part.tool_name, arguments=given, extra=extra))
            case _:
                pass
    return tuple(calls), {THINKING: thoughts} if calls and thoughts else {}
