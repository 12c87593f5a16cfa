"""`--input-format stream-json`: messages and answers as lines of JSON on stdin, for programs that lead a conversation.

{"type": "user", "text": "…"}                            a message or a slash command; `message.content` as others have
                                                         it is read too, with its pictures in base64
{"type": "answer", "question_id": "…", "text": "yes"}    or "choice": "yes"
{"type": "interrupt"}                                    stops the running turn
"""

import asyncio
import sys
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, cast

from duckflow.events.ports import Conversation
from duckflow.events.views import Attachment
from duckflow.i18n.words import Words
from duckflow.state.data import as_table
from duckflow.ui.headless import Headless, IsCommand
from duckflow.ui.stream_lines import ErrorLine
from duckflow.whole_text import read_json

LONGEST_ECHO = 200


class LedLine(NamedTuple):
    """One line of input."""

    kind: Literal["user", "answer", "interrupt", "unreadable"]
    text: str = ""
    question_id: str = ""
    choice: str = ""
    pictures: tuple[Attachment, ...] = ()


def read_led_line(line: str) -> LedLine | None:
    """Parses a line; returns None for an empty line."""
    if not line.strip():
        return None
    table = as_table(read_json(line))
    match table.get("type"):
        case "user" if text := _text(table):
            return LedLine("user", text, pictures=tuple(_pictures(table)))
        case "answer" if table.get("question_id"):
            return LedLine(
                "answer", str(table.get("text", "")), str(table["question_id"]), str(table.get("choice", ""))
            )
        case "interrupt":
            return LedLine("interrupt")
        case _:
            return LedLine("unreadable", line.strip())


def _content(table: dict[str, Any]) -> Any:
    message = table.get("message")
    if isinstance(message, dict):
        return cast("dict[str, Any]", message).get("content")
    return message if isinstance(message, str) else table.get("text") or table.get("content")


def _parts(table: dict[str, Any]) -> list[dict[str, Any]]:
    content = _content(table)
    content_parts = cast("list[Any]", content) if isinstance(content, list) else []
    return [cast("dict[str, Any]", part) for part in content_parts if isinstance(part, dict)]


def _text(table: dict[str, Any]) -> str:
    content = _content(table)
    if isinstance(content, list):
        texts = [part.get("text") for part in _parts(table)]
        content = "\n".join(text for text in texts if isinstance(text, str))
    return content.strip() if isinstance(content, str) else ""


def _pictures(line: dict[str, Any]) -> Iterator[Attachment]:
    """Yields the pictures in either of two common forms: a source with its data, or a data URL."""
    for number, part in enumerate(_parts(line), 1):
        source: Any = part.get("source") or part.get("image_url")
        table = cast("dict[str, Any]", source) if isinstance(source, dict) else {}
        picture_data = table.get("data") or str(table.get("url", "")).partition(";base64,")[2]
        if isinstance(picture_data, str) and picture_data:
            yield Attachment(f"picture-{number}", data=picture_data)


async def read_line() -> str:
    """Returns the next line of stdin, empty at its end. It reads in a thread that does not keep the program alive."""
    import threading

    loop = asyncio.get_running_loop()
    line_future: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        try:
            line = sys.stdin.readline()
        except (OSError, ValueError):
            line = ""
        if not loop.is_closed():
            loop.call_soon_threadsafe(lambda: line_future.done() or line_future.set_result(line))

    threading.Thread(target=read, daemon=True).start()
    return await line_future


async def lead(headless: Headless, conversation: Conversation, words: Words, is_command: IsCommand) -> int:
    """Carries out the lines to their end, and returns the exit code of the last turn."""
    turn_tasks: set[asyncio.Task[None]] = set()

    with headless.led():
        while line := await read_line():
            match read_led_line(line):
                case LedLine("user", text, pictures=pictures):
                    turn_tasks.add(asyncio.create_task(headless.take_led(text, pictures, is_command)))
                case LedLine("answer", text, question_id, choice):
                    answer_outcome = await conversation.answer(question_id, text, choice)
                    headless.lines.taken(question_id, answer_outcome)
                case LedLine("interrupt"):
                    conversation.interrupt()
                case LedLine("unreadable", text):
                    complaint = words("headless.unreadable", line=text[:LONGEST_ECHO])
                    headless.lines.send(ErrorLine(error=complaint))
                case _:
                    pass
    await asyncio.gather(*turn_tasks)
    await conversation.work.jobs_over(alone=True)
    return headless.finish(conversation.state, fits=True)
