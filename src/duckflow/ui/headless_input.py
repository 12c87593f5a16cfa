"""`--input-format stream-json`: messages and answers as lines of JSON on stdin, for programs that lead a conversation.

{"type": "user", "text": "…"}                            a message; `message.content` as others have it is read too
{"type": "answer", "question_id": "…", "text": "yes"}    or "choice": "yes"
{"type": "interrupt"}                                    stops the running turn
"""

import asyncio
import json
import sys
from typing import Any, Literal, NamedTuple, cast


class Order(NamedTuple):
    """One line."""

    kind: Literal["user", "answer", "interrupt", "unreadable"]
    text: str = ""
    question_id: str = ""
    choice: str = ""


def read_order(line: str) -> Order | None:
    """What a line says; nothing for an empty one."""
    if not line.strip():
        return None
    try:
        given: Any = json.loads(line)
    except (ValueError, RecursionError):
        given = None
    told = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    match told.get("type"):
        case "user" if text := _text(told):
            return Order("user", text)
        case "answer" if told.get("question_id"):
            return Order("answer", str(told.get("text", "")), str(told["question_id"]), str(told.get("choice", "")))
        case "interrupt":
            return Order("interrupt")
        case _:
            return Order("unreadable", line.strip())


def _text(told: dict[str, Any]) -> str:
    message = told.get("message")
    content: Any = told.get("text") or told.get("content")
    if isinstance(message, dict):
        content = cast("dict[str, Any]", message).get("content")
    elif isinstance(message, str):
        content = message
    if isinstance(content, list):
        parts = cast("list[Any]", content)
        texts = [cast("dict[str, Any]", part).get("text") for part in parts if isinstance(part, dict)]
        content = "\n".join(text for text in texts if isinstance(text, str))
    return content.strip() if isinstance(content, str) else ""


async def read_line() -> str:
    """The next line of stdin, empty at its end. In a thread that nobody waits for when the program ends."""
    import threading

    loop = asyncio.get_running_loop()
    came: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        try:
            line = sys.stdin.readline()
        except (OSError, ValueError):
            line = ""
        if not loop.is_closed():
            loop.call_soon_threadsafe(lambda: came.done() or came.set_result(line))

    threading.Thread(target=read, daemon=True).start()
    return await came
