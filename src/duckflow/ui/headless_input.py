"""`--input-format stream-json`: messages and answers as lines of JSON on stdin, for programs that lead a conversation.

{"type": "user", "text": "…"}                            a message; `message.content` as others have it is read too,
                                                         with its pictures in base64
{"type": "answer", "question_id": "…", "text": "yes"}    or "choice": "yes"
{"type": "interrupt"}                                    stops the running turn
"""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, cast

from duckflow.events.ports import Conversation
from duckflow.events.views import Attachment
from duckflow.i18n.words import Words
from duckflow.outcome import Outcome
from duckflow.state.noun import as_table
from duckflow.ui.headless import Headless
from duckflow.ui.stream_lines import ErrorLine
from duckflow.whole_text import read_json

LONGEST_ECHO = 200


class LedLine(NamedTuple):
    """One line."""

    kind: Literal["user", "answer", "interrupt", "unreadable"]
    text: str = ""
    question_id: str = ""
    choice: str = ""
    pictures: tuple[Attachment, ...] = ()


def read_led_line(line: str) -> LedLine | None:
    """What a line says; nothing for an empty one."""
    if not line.strip():
        return None
    told = as_table(read_json(line))
    match told.get("type"):
        case "user" if text := _text(told):
            return LedLine("user", text, pictures=tuple(_pictures(told)))
        case "answer" if told.get("question_id"):
            return LedLine("answer", str(told.get("text", "")), str(told["question_id"]), str(told.get("choice", "")))
        case "interrupt":
            return LedLine("interrupt")
        case _:
            return LedLine("unreadable", line.strip())


def _content(told: dict[str, Any]) -> Any:
    message = told.get("message")
    if isinstance(message, dict):
        return cast("dict[str, Any]", message).get("content")
    return message if isinstance(message, str) else told.get("text") or told.get("content")


def _parts(told: dict[str, Any]) -> list[dict[str, Any]]:
    content = _content(told)
    parts = cast("list[Any]", content) if isinstance(content, list) else []
    return [cast("dict[str, Any]", part) for part in parts if isinstance(part, dict)]


def _text(told: dict[str, Any]) -> str:
    content = _content(told)
    if isinstance(content, list):
        texts = [part.get("text") for part in _parts(told)]
        content = "\n".join(text for text in texts if isinstance(text, str))
    return content.strip() if isinstance(content, str) else ""


def _pictures(told: dict[str, Any]) -> Iterator[Attachment]:
    """In either of the two forms that others have: a source with its data, or an address that holds it."""
    for number, part in enumerate(_parts(told), 1):
        source: Any = part.get("source") or part.get("image_url")
        table = cast("dict[str, Any]", source) if isinstance(source, dict) else {}
        data = table.get("data") or str(table.get("url", "")).partition(";base64,")[2]
        if isinstance(data, str) and data:
            yield Attachment(f"picture-{number}", data=data)


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
    turns: set[asyncio.Task[Outcome]] = set()

    async def say(text: str, pictures: Sequence[Attachment]) -> Outcome:
        return await conversation.say(text, pictures)

    with headless.led():
        while line := await read_line():
            match read_led_line(line):
                case LedLine("user", text, pictures=pictures):
                    turns.add(asyncio.create_task(say(text, pictures)))
                case LedLine("answer", text, question_id, choice):
                    taken = await conversation.answer(question_id, text, choice)
                    headless.lines.taken(question_id, taken)
                case LedLine("interrupt"):
                    conversation.interrupt()
                case LedLine("unreadable", text):
                    unread = words("headless.unreadable", line=text[:LONGEST_ECHO])
                    headless.lines.send(ErrorLine(error=unread))
                case _:
                    pass
    await asyncio.gather(*turns)
    await conversation.work.jobs_over(alone=True)
    return headless.finish(conversation.state, fits=True)
