"""The Responses wire of OpenAI. The endpoint stores nothing: the model's thoughts come encrypted, are stored with the
reply, and are sent back with it."""

from types import MappingProxyType
from typing import Any

from duckflow.llm.provider import DETAILS, PHASE, Finish
from duckflow.llm.wires.chat import cache_key, response_format
from duckflow.llm.wires.wire import ThoughtKeeper, Told, Wire, WireRequest, delta, described, ended, thoughts_for
from duckflow.state.data import as_table, as_text
from duckflow.state.message import PromptMessage

INCOMPLETE: dict[str, Finish] = {"max_output_tokens": "length", "content_filter": "filtered"}
THINKING = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")


class ResponsesWire(Wire):
    parts = MappingProxyType(
        {
            "summary": r"summar",
            "prompt_cache_key": r"prompt_cache_key",
            "temperature": r"temperature",
            "phase": r"\bphase\b",
            "effort": r"effort",
            "thoughts": r"encrypted|\binclude\b",
        }
    )

    def path(self, model: str) -> str:
        return "/responses"

    def elsewhere(self, status: int, answer: str) -> str:
        return "chat" if status in (404, 405, 501) and "model" not in answer else ""

    def body(self, asked: WireRequest) -> dict[str, Any]:
        request, format_name = asked.request, asked.abilities.format
        body: dict[str, Any] = {
            "model": asked.model,
            "input": [item for message in request.messages for item in _items(message, asked)],
            "stream": True,
            "store": False,
            **asked.temperature,
            **({"max_output_tokens": asked.limit} if asked.limit else {}),
        }
        if asked.facts.has("r") is not False:
            summary = {"summary": "auto"} if asked.takes("summary") else {}
            reasoning = summary | ({"effort": asked.effort} if asked.effort else {})
            body |= {"reasoning": reasoning} if reasoning else {}
            body |= {"include": ["reasoning.encrypted_content"]} if asked.takes("thoughts") else {}
        if asked.endpoint.cache_key and asked.takes("prompt_cache_key"):
            body["prompt_cache_key"] = cache_key(asked)
        if request.tools:
            function = {"type": "function", "strict": False}
            body["tools"] = [function | described(tool, "parameters") for tool in request.tools]
        if request.schema is not None and format_name != "text":
            reply_format = response_format(request.schema, format_name)
            body["text"] = {"format": reply_format.get("json_schema", {}) | {"type": reply_format["type"]}}
        return body

    def reading(self) -> Told:
        return ResponsesReader().told


def _items(message: PromptMessage, asked: WireRequest) -> list[dict[str, Any]]:
    if message.answers:
        return [{"type": "function_call_output", "call_id": message.answers, "output": message.text}]
    kept_fields = asked.kept(message)
    thoughts = [thought for thought in kept_fields.get(DETAILS, []) if thought.get("type") == "reasoning"]
    items = thoughts_for("", thoughts) if message.text else []
    if message.text:
        phase_field = {PHASE: kept_fields[PHASE]} if PHASE in kept_fields and asked.takes("phase") else {}
        items.append({"role": message.role, "content": _content(message, asked), **phase_field})
    for call in message.calls:
        items += thoughts_for(call.call_id, thoughts)
        items.append({"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments})
    return items


def _content(message: PromptMessage, asked: WireRequest) -> str | list[dict[str, Any]]:
    if not (urls := asked.picture_urls(message)):
        return message.text
    picture_parts = [{"type": "input_image", "image_url": url, "detail": "auto"} for url in urls]
    return [{"type": "input_text", "text": message.text}, *picture_parts]


class ResponsesReader(ThoughtKeeper):
    """Reads the events of one reply that the Responses API streams."""

    def told(self, event: dict[str, Any]) -> dict[str, Any]:
        kind, text = str(event.get("type", "")), as_text(event.get("delta"))
        match kind:
            case "response.output_text.delta":
                return delta(content=text)
            case "response.refusal.delta":
                return delta(refusal=text)
            case "response.function_call_arguments.delta":
                return delta(tool_calls=[{"index": event.get("output_index"), "function": {"arguments": text}}])
            case "response.output_item.added":
                return self._begun(as_table(event.get("item")), event.get("output_index"))
            case "response.output_item.done":
                return self._whole(as_table(event.get("item")))
            case "response.failed" | "error":
                return {"error": as_table(event.get("response")).get("error") or event}
            case "response.completed" | "response.incomplete" | "response.cancelled":
                return _ended(as_table(event.get("response")), completed=kind == "response.completed")
            case _ if kind in THINKING:
                return delta(reasoning=text)
            case _:
                return {}

    def _begun(self, item: dict[str, Any], index: Any) -> dict[str, Any]:
        """Begins a text or a call. The thoughts before a text or call belong to it."""
        calls = item.get("type") == "function_call"
        if not calls and item.get("type") != "message":
            return {}
        owner = str(item.get("call_id", "")) if calls else ""
        function = {"name": item.get("name"), "arguments": item.get("arguments") or ""}
        call_fields = {"tool_calls": [{"index": index, "id": owner, "function": function}]} if calls else {}
        return delta(**call_fields, **self.given_to(owner))

    def _whole(self, item: dict[str, Any]) -> dict[str, Any]:
        if item.get("type") == "reasoning":
            self.thoughts.append(item)
        # Since gpt-5.3-codex a text has a phase, which says whether it is the answer or a remark. The phase must be
        # sent back with the text.
        return delta(phase=item[PHASE]) if item.get("type") == "message" and item.get(PHASE) else {}


def _ended(response: dict[str, Any], completed: bool) -> dict[str, Any]:
    usage = as_table(response.get("usage"))
    raw_reason = str(as_table(response.get("incomplete_details")).get("reason") or response.get("status") or "")
    token_counts = {
        "prompt_tokens": usage.get("input_tokens"),
        "completion_tokens": usage.get("output_tokens"),
        "prompt_tokens_details": usage.get("input_tokens_details"),
    }
    return ended("stop" if completed else INCOMPLETE.get(raw_reason, "unknown"), raw_reason, usage=token_counts)


WIRE = ResponsesWire()
