"""The Responses wire of OpenAI, on which its reasoning models call tools. Nothing is stored at the endpoint: what the
model thought comes encrypted, is kept with its reply and goes back with it. Replies are told as the chat wire's chunks,
so that one reader knows both."""

from collections.abc import Mapping, Sequence
from typing import Any

from duckflow.llm.json_fields import as_table, as_text
from duckflow.llm.provider import Request, data_urls
from duckflow.llm.tool_calls import DETAILS
from duckflow.state.message import PromptMessage

PATH = "/responses"
FOR = "for"
"""Of a thought that is kept: the call it belongs to; empty: the text."""
ENDINGS = {"response.completed": "stop", "response.incomplete": "length"}
THINKING = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")


def responses_body(model: str, request: Request, where: str, effort: str) -> dict[str, Any]:
    """What is asked, but for what every wire calls the same. `where` is whose thoughts are sent back."""
    body: dict[str, Any] = {
        "model": model,
        "input": [item for message in request.messages for item in _items(message, where, request.pictures)],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"summary": "auto"} | ({"effort": effort} if effort else {}),
    }
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": one.name,
                "description": one.description,
                "parameters": one.parameters,
                "strict": False,
            }
            for one in request.tools
        ]
    return body


def _content(message: PromptMessage, pictures: Mapping[str, bytes]) -> str | list[dict[str, Any]]:
    urls = data_urls(message, pictures)
    if not urls:
        return message.text
    return [{"type": "input_text", "text": message.text}, *({"type": "input_image", "image_url": one} for one in urls)]


def _items(message: PromptMessage, where: str, pictures: Mapping[str, bytes]) -> list[dict[str, Any]]:
    if message.answers:
        return [{"type": "function_call_output", "call_id": message.answers, "output": message.text}]
    thoughts: Sequence[dict[str, Any]] = as_table(message.extra.get(where)).get(DETAILS, [])
    items = _thoughts_for("", thoughts) if message.text else []
    if message.text:
        items.append({"role": message.role, "content": _content(message, pictures)})
    for call in message.calls:
        items += _thoughts_for(call.call_id, thoughts)
        items.append({"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments})
    return items


def _thoughts_for(owner: str, thoughts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    mine = [one for one in thoughts if one.get(FOR) == owner and one.get("type") == "reasoning"]
    return [{name: value for name, value in one.items() if name != FOR} for one in mine]


class ResponsesChunks:
    """Tells the events of one streamed response as chunks of the chat wire."""

    def __init__(self) -> None:
        self._thoughts: list[dict[str, Any]] = []

    def told(self, event: dict[str, Any]) -> dict[str, Any]:
        kind, text = str(event.get("type", "")), as_text(event.get("delta"))
        match kind:
            case "response.output_text.delta":
                return _delta(content=text)
            case "response.refusal.delta":
                return _delta(refusal=text)
            case "response.function_call_arguments.delta":
                return _delta(tool_calls=[{"index": event.get("output_index"), "function": {"arguments": text}}])
            case "response.output_item.added":
                return self._begun(as_table(event.get("item")), event.get("output_index"))
            case "response.output_item.done":
                item = as_table(event.get("item"))
                if item.get("type") == "reasoning":
                    self._thoughts.append(item)
                return {}
            case "response.failed" | "error":
                return {"error": as_table(event.get("response")).get("error") or event}
            case _ if kind in THINKING:
                return _delta(reasoning=text)
            case _ if kind in ENDINGS:
                return _ended(ENDINGS[kind], as_table(event.get("response")))
            case _:
                return {}

    def _begun(self, item: dict[str, Any], index: Any) -> dict[str, Any]:
        """A text or a call; what was thought before it belongs to it."""
        calls = item.get("type") == "function_call"
        if not calls and item.get("type") != "message":
            return {}
        owner = str(item.get("call_id", "")) if calls else ""
        thoughts, self._thoughts = [one | {FOR: owner} for one in self._thoughts], []
        function = {"name": item.get("name"), "arguments": item.get("arguments") or ""}
        begun = {"tool_calls": [{"index": index, "id": owner, "function": function}]} if calls else {}
        return _delta(**begun, **({DETAILS: thoughts} if thoughts else {}))


def _delta(**said: Any) -> dict[str, Any]:
    return {"choices": [{"delta": said}]}


def _ended(reason: str, response: dict[str, Any]) -> dict[str, Any]:
    used = as_table(response.get("usage"))
    if as_table(response.get("incomplete_details")).get("reason") == "content_filter":
        reason = "content_filter"
    return {
        "choices": [{"delta": {}, "finish_reason": reason}],
        "usage": {
            "prompt_tokens": used.get("input_tokens"),
            "completion_tokens": used.get("output_tokens"),
            "prompt_tokens_details": used.get("input_tokens_details"),
        },
    }
