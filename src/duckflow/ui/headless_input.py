"""`--input-format stream-json`: messages and answers as lines of JSON on stdin, for programs that lead a conversation.

{"type": "user", "text": "…"}                            a message; `message.content` as others have it is read too
{"type": "answer", "question_id": "…", "text": "yes"}    or "choice": "yes"
{"type": "interrupt"}                                    stops the running turn
"""

import asyncio
import json
import sys
from typing import Any, Literal, NamedTuple, cast

from duckflow.events.ports import Conversation
from duckflow.events.types import Outcome
from duckflow.i18n.words import Words
from duckflow.ui.headless import Headless, print_json

LONGEST_ECHO = 200


class LedLine(NamedTuple):
    """One line."""

    kind: Literal["user", "answer", "interrupt", "unreadable"]
    text: str = ""
    question_id: str = ""
    choice: str = ""


def read_led_line(line: str) -> LedLine | None:
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
            return LedLine("user", text)
        case "answer" if told.get("question_id"):
            return LedLine("answer", str(told.get("text", "")), str(told["question_id"]), str(told.get("choice", "")))
        case "interrupt":
            return LedLine("interrupt")
        case _:
            return LedLine("unreadable", line.strip())


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


async def lead(headless: Headless, conversation: Conversation, words: Words) -> int:
    """A conversation that is led by the lines, to their end; the exit code of its last turn."""
    headless.led = True
    conversation.hear(headless.hear)
    turns: set[asyncio.Task[Outcome]] = set()

    async def say(text: str) -> Outcome:
        return await conversation.say(text)

    while line := await read_line():
        match read_led_line(line):
            case LedLine("user", text):
                turns.add(asyncio.create_task(say(text)))
            case LedLine("answer", text, question_id, choice):
                taken = await conversation.answer(question_id, text, choice)
                print_json({"type": "taken", "question_id": question_id, **taken._asdict()})
            case LedLine("interrupt"):
                conversation.interrupt()
            case LedLine("unreadable", text):
                print_json({"type": "error", "error": words("headless.unreadable", line=text[:LONGEST_ECHO])})
            case _:
                pass
    # Nobody is left who could answer.
    headless.led = False
    for question in conversation.questions:
        headless.answer(question)
    await asyncio.gather(*turns)
    await conversation.work.jobs_over()
    return headless.finish(conversation.state, fits=True)
