"""Fake servers that speak the four wires as the vendors do, and refuse what the vendors refuse."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from fake_endpoint import Answer, Exchange, FakeEndpoint, refuses

from duckflow.llm.endpoint_model import EndpointModel
from duckflow.llm.endpoints import KNOWN, Key
from duckflow.llm.facts import AbilityBook
from duckflow.llm.settings import LlmSettings

Table = dict[str, Any]
SECRET = "sk-very-secret-1234"


class Said(NamedTuple):
    """A reply: its thoughts, text and calls. `finish` is the vendor's own word for its end."""

    text: str = ""
    thought: str = ""
    calls: tuple[tuple[str, str, Table], ...] = ()
    """The id, the name and the arguments of each call."""
    finish: str = ""


class Vendor(NamedTuple):
    """One vendor: streams replies in its form, and refuses wrong requests."""

    endpoint: str
    model: str
    normal: tuple[str, str]
    """What the end of a text and of calls is called."""
    events: Callable[[Said], Iterator[Table]]
    fault: Callable[[Table, Mapping[str, str]], str]
    """What is wrong with a request; empty where nothing is."""

    def says(self, said: Said) -> Answer:
        def answer(exchange: Exchange) -> None:
            fault = self.fault(exchange.endpoint.received[-1], exchange.endpoint.headers_seen[-1])
            if fault:
                refuses(400, fault, type="invalid_request_error")(exchange)
                return
            exchange.begin()
            for event in self.events(said._replace(finish=said.finish or self.normal[bool(said.calls)])):
                name = f"event: {event['type']}\n" if "type" in event else ""
                exchange.piece(f"{name}data: {json.dumps(event)}\n\n".encode())
            if self.endpoint == "openrouter":
                exchange.event("[DONE]")
            exchange.end()

        return answer

    def at(
        self,
        server: FakeEndpoint,
        settings: LlmSettings,
        model: str = "",
        book: AbilityBook | None = None,
    ) -> EndpointModel:
        known = next(endpoint for endpoint in KNOWN if endpoint.name == self.endpoint)
        url = server.url.removesuffix("/v1") if self.endpoint == "anthropic" else server.url
        moved = known._replace(base_url=url, in_keyring=False)
        return EndpointModel(moved, model or self.model, Key(SECRET, known.key_names[0]), settings, book)


def unknown_fields(body: Table, known: str) -> str:
    strange = body.keys() - set(known.split())
    return f"{min(strange)}: Extra inputs are not permitted" if strange else ""


def first_fault(*checks: tuple[bool, str]) -> str:
    return next((fault for wrong, fault in checks if wrong), "")


def alternating(roles: list[str], user: str) -> bool:
    return bool(roles) and roles[0] == user and all(role != after for role, after in pairwise(roles))


# https://platform.claude.com/docs/en/api/messages, https://platform.claude.com/docs/en/api/migration-2026-10-21
ANTHROPIC_FIELDS = "model max_tokens messages system tools stream thinking output_config"


def anthropic_fault(body: Table, headers: Mapping[str, str]) -> str:
    thinking: Table = body.get("thinking", {})
    turns: list[Table] = body["messages"]
    blocks: list[Table] = [block for turn in turns for block in turn["content"]]
    system: list[Table] = body.get("system", [])
    marked = [block for block in (*system, *body.get("tools", []), *blocks) if "cache_control" in block]
    budget = thinking.get("budget_tokens", 0)
    numbers = [int(number) for number in re.findall(r"(?<!\d)\d{1,2}(?!\d)", body["model"])]
    adapts = numbers >= [4, 6]
    effort = body.get("output_config", {}).get("effort")
    replies = [turn["content"] for turn in turns if turn["role"] == "assistant"]
    enabled = thinking.get("type") == "enabled"
    bearer = headers.get("authorization", "").removeprefix("Bearer ")
    calls = bool(replies and any(block["type"] == "tool_use" for block in replies[-1]))
    return unknown_fields(body, ANTHROPIC_FIELDS) or first_fault(
        (SECRET not in (headers.get("x-api-key"), bearer), "x-api-key header is required"),
        (headers.get("anthropic-version") != "2026-10-21", "anthropic-version: header is required"),
        ("max_tokens" not in body, "max_tokens: Field required"),
        (enabled and budget < 1024, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"),
        (enabled and body["max_tokens"] <= budget, "`max_tokens` must be greater than `thinking.budget_tokens`."),
        (enabled and adapts, '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive"'),
        (thinking.get("type") == "adaptive" and not adapts, "adaptive thinking is not supported on this model"),
        (bool(effort) and not adapts, "This model does not support the effort parameter."),
        (effort not in (None, "low", "medium", "high", "xhigh", "max"), "output_config.effort: Input should be 'low'"),
        (not alternating([turn["role"] for turn in turns], "user"), "messages: roles must alternate"),
        (any(not block["text"].strip() for block in blocks if block["type"] == "text"), "text must be non-empty"),
        (len(marked) > 4, "A maximum of 4 blocks with cache_control may be provided."),
        (any("thinking" in block["type"] for block in marked), "thinking blocks cannot have cache_control"),
        (
            any(not block.get("signature") for block in blocks if block["type"] == "thinking"),
            "messages.1.content.0.thinking.signature: Field required",
        ),
        (
            enabled and calls and "thinking" not in replies[-1][0]["type"],
            "Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
        ),
        (not _all_answered(turns), "`tool_use` ids were found without `tool_result` blocks immediately after"),
    )


def _all_answered(turns: list[Table]) -> bool:
    end: Table = {"content": []}
    for turn, after in zip(turns, [*turns[1:], end], strict=True):
        asked = [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
        first = [block.get("tool_use_id") for block in after["content"][: len(asked)]]
        if asked and sorted(asked) != sorted(map(str, first)):
            return False
    return True


def anthropic_events(reply: Said) -> Iterator[Table]:
    usage = {"input_tokens": 20, "output_tokens": 1, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2}
    message: Table = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": []}
    yield {
        "type": "message_start",
        "message": message | {"stop_reason": None, "stop_sequence": None, "usage": usage},
    }
    blocks: list[tuple[Table, list[Table]]] = []
    if reply.thought:
        pieces: list[Table] = [{"type": "thinking_delta", "thinking": reply.thought}]
        pieces.append({"type": "signature_delta", "signature": "signed"})
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, pieces))
    if reply.text:
        half = len(reply.text) // 2
        texts = [reply.text[:half], reply.text[half:]]
        blocks.append(({"type": "text", "text": ""}, [{"type": "text_delta", "text": text} for text in texts]))
    for call_id, name, args in reply.calls:
        written = json.dumps(args)
        pieces = [{"type": "input_json_delta", "partial_json": piece} for piece in (written[:4], written[4:])]
        blocks.append(({"type": "tool_use", "id": call_id, "name": name, "input": {}}, pieces))
    for index, (block, pieces) in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for piece in pieces:
            yield {"type": "content_block_delta", "index": index, "delta": piece}
        yield {"type": "content_block_stop", "index": index}
    end: Table = {"stop_reason": reply.finish, "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": 9}}
    yield {"type": "message_stop"}


# https://ai.google.dev/api/generate-content, https://ai.google.dev/gemini-api/docs/thought-signatures
GOOGLE_FIELDS = "contents systemInstruction tools toolConfig generationConfig"
GOOGLE_CONFIG = "temperature maxOutputTokens thinkingConfig responseMimeType responseJsonSchema"


def google_fault(body: Table, headers: Mapping[str, str]) -> str:
    contents: list[Table] = body["contents"]
    config: Table = body.get("generationConfig", {})
    thinking: Table = config.get("thinkingConfig", {})
    unsigned, unanswered = False, False
    end: Table = {"parts": []}
    for content, after in zip(contents, [*contents[1:], end], strict=True):
        calls = [part for part in content["parts"] if "functionCall" in part]
        answers = [part for part in after["parts"] if "functionResponse" in part]
        unsigned |= bool(calls) and not calls[0].get("thoughtSignature")
        unanswered |= len(calls) != len(answers)
    effort = thinking.get("thinkingLevel")
    return (
        unknown_fields(body, GOOGLE_FIELDS)
        or unknown_fields(config, GOOGLE_CONFIG)
        or first_fault(
            (headers.get("x-goog-api-key") != SECRET, "API key not valid. Please pass a valid API key."),
            (not alternating([content["role"] for content in contents], "user"), "Please ensure that turns alternate"),
            (any(not content["parts"] for content in contents), "contents.parts must not be empty."),
            (unsigned, "Function call is missing a thought_signature in functionCall parts."),
            (unanswered, "the number of function response parts is not equal to the function call parts"),
            ("thinkingBudget" in thinking and bool(effort), "You can only set only one of thinking budget and level."),
            (
                effort not in (None, "minimal", "low", "medium", "high"),
                "Invalid value at thinking_config.thinking_level",
            ),
        )
    )


def google_events(reply: Said) -> Iterator[Table]:
    parts: list[Table] = [{"text": reply.thought, "thought": True}] if reply.thought else []
    half = len(reply.text) // 2
    parts += [{"text": text} for text in (reply.text[:half], reply.text[half:]) if text]
    signature = {"thoughtSignature": "c2lnbmVk"}
    for number, (call_id, name, args) in enumerate(reply.calls):
        made = {"functionCall": {"id": call_id, "name": name, "args": args}}
        parts.append(made | ({} if number else signature))
    figures = {"promptTokenCount": 27, "cachedContentTokenCount": 5, "candidatesTokenCount": 6, "thoughtsTokenCount": 3}
    for part in parts:
        yield {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}], "usageMetadata": figures}
    yield {"candidates": [{"finishReason": reply.finish, "index": 0}], "usageMetadata": figures}


# https://platform.openai.com/docs/api-reference/responses/create
RESPONSES_FIELDS = (
    "model input stream store include reasoning tools temperature max_output_tokens prompt_cache_key text"
)


def responses_fault(body: Table, headers: Mapping[str, str]) -> str:
    items: list[Table] = body["input"]
    calls = {item["call_id"] for item in items if item.get("type") == "function_call"}
    answers = {item["call_id"] for item in items if item.get("type") == "function_call_output"}
    kinds = [str(item.get("type", "message")) for item in items]
    follows = [after for kind, after in zip(kinds, [*kinds[1:], ""], strict=True) if kind == "reasoning"]
    efforts = (None, "none", "minimal", "low", "medium", "high", "xhigh")
    effort = body.get("reasoning", {}).get("effort")
    return unknown_fields(body, RESPONSES_FIELDS) or first_fault(
        (headers.get("authorization") != f"Bearer {SECRET}", "Incorrect API key provided"),
        (effort not in efforts, f"Unsupported value: '{effort}' is not supported. Supported values are: 'low', 'high'"),
        (body.get("max_output_tokens", 16) < 16, "Invalid 'max_output_tokens': integer below minimum value"),
        (bool(answers - calls), "No tool call found for function call output"),
        (bool(calls - answers), "No tool output found for function call"),
        (
            any(after not in ("function_call", "message") for after in follows),
            "Item of type 'reasoning' was provided without its required following item.",
        ),
        ("temperature" in body and "gpt-5" in body["model"], "Unsupported parameter: 'temperature'"),
    )


def responses_events(reply: Said) -> Iterator[Table]:
    number = iter(range(1000))
    whole: Table = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt", "output": []}
    whole |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "status": "in_progress"}

    def event(kind: str, **fields: Any) -> Table:
        return {"type": f"response.{kind}", "sequence_number": next(number), **fields}

    yield event("created", response=whole)
    index = 0
    if reply.thought:
        item: Table = {"type": "reasoning", "id": "rs_1", "summary": []}
        place = {"item_id": "rs_1", "output_index": index}
        yield event("output_item.added", output_index=index, item=item)
        yield event("reasoning_summary_text.delta", summary_index=0, delta=reply.thought, **place)
        yield event("output_item.done", output_index=index, item=item | {"encrypted_content": "gAAAA"})
        index += 1
    if reply.text:
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}
        item |= {"phase": "commentary" if reply.calls else "final_answer"}
        place = {"item_id": "msg_1", "output_index": index, "content_index": 0}
        yield event("output_item.added", output_index=index, item=item)
        part: Table = {"type": "output_text", "text": "", "annotations": []}
        yield event("content_part.added", part=part, **place)
        half = len(reply.text) // 2
        for text in (reply.text[:half], reply.text[half:]):
            yield event("output_text.delta", delta=text, logprobs=[], **place)
        done = item | {"status": "completed", "content": [part | {"text": reply.text}]}
        yield event("output_item.done", output_index=index, item=done)
        index += 1
    for call_id, name, args in reply.calls:
        written = json.dumps(args)
        item = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name, "arguments": ""}
        yield event("output_item.added", output_index=index, item=item)
        for piece in (written[:4], written[4:]):
            yield event("function_call_arguments.delta", item_id=item["id"], output_index=index, delta=piece)
        yield event("output_item.done", output_index=index, item=item | {"arguments": written})
        index += 1
    figures: Table = {"input_tokens": 27, "output_tokens": 9, "total_tokens": 36}
    figures |= {"input_tokens_details": {"cached_tokens": 5}, "output_tokens_details": {"reasoning_tokens": 3}}
    complete = reply.finish == "completed"
    whole |= {"status": "completed" if complete else "incomplete", "usage": figures}
    whole |= {} if complete else {"incomplete_details": {"reason": reply.finish}}
    yield event("completed" if complete else "incomplete", response=whole)


# https://platform.openai.com/docs/api-reference/chat, https://openrouter.ai/docs/features/prompt-caching
CHAT_FIELDS = (
    "model messages stream stream_options max_tokens tools reasoning_effort temperature usage response_format"
    " prompt_cache_key"
)


def chat_fault(body: Table, headers: Mapping[str, str]) -> str:
    waiting: set[str] = set()
    unanswered = False
    messages: list[Table] = body["messages"]
    for message in messages:
        if message["role"] == "tool":
            waiting.discard(message["tool_call_id"])
            continue
        unanswered |= bool(waiting)
        waiting = {call["id"] for call in message.get("tool_calls", [])}
    marks = json.dumps(messages).count('"cache_control"')
    return unknown_fields(body, CHAT_FIELDS) or first_fault(
        (headers.get("authorization") != f"Bearer {SECRET}", "No auth credentials found"),
        (unanswered or bool(waiting), "An assistant message with 'tool_calls' must be followed by tool messages"),
        (marks > 4, "A maximum of 4 blocks with cache_control may be provided."),
        (
            any(message["content"] is None and not message.get("tool_calls") for message in messages),
            "Invalid value for 'content': expected a string, got null.",
        ),
    )


def chat_events(reply: Said) -> Iterator[Table]:
    def chunk(finish: str | None = None, **delta: Any) -> Table:
        choice: Table = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return {"id": "gen-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}

    yield chunk(role="assistant", content="")
    if reply.thought:
        yield chunk(reasoning=reply.thought, reasoning_details=[{"type": "reasoning.text", "text": reply.thought}])
    half = len(reply.text) // 2
    for text in (reply.text[:half], reply.text[half:]):
        yield chunk(content=text)
    for index, (call_id, name, args) in enumerate(reply.calls):
        written = json.dumps(args)
        begun: Table = {"index": index, "id": call_id, "type": "function"}
        yield chunk(tool_calls=[begun | {"function": {"name": name, "arguments": written[:4]}}])
        yield chunk(tool_calls=[{"index": index, "function": {"arguments": written[4:]}}])
    yield chunk(finish=reply.finish)
    figures = {"prompt_tokens": 27, "completion_tokens": 9, "total_tokens": 36}
    yield chunk() | {"choices": [], "usage": figures | {"prompt_tokens_details": {"cached_tokens": 5}}}


VENDORS = {
    "chat": Vendor("openrouter", "anthropic/claude-sonnet-4.5", ("stop", "tool_calls"), chat_events, chat_fault),
    "responses": Vendor("openai", "gpt-5-mini", ("completed", "completed"), responses_events, responses_fault),
    "anthropic": Vendor("anthropic", "claude-sonnet-4-5", ("end_turn", "tool_use"), anthropic_events, anthropic_fault),
    "google": Vendor("google", "gemini-3-pro-preview", ("STOP", "STOP"), google_events, google_fault),
}
