"""The part of the conversation that fits into a prompt."""

from collections.abc import Sequence

from duckflow.memory.tokens import count
from duckflow.state.message import Message


def view(messages: Sequence[Message], budget: int, aside: Sequence[tuple[int, int]] = ()) -> list[Message]:
    """The first instruction and the latest messages, within the budget. History itself is never changed.

    What was set aside is passed over. The cost depends on the budget, not on the length of the conversation."""
    if not messages:
        return []
    first = next((message for message in messages if message.role == "user"), messages[0])
    pinned = _fitted(first, budget // 4)
    room = budget - count(pinned.text)
    latest: list[Message] = []
    for number in range(len(messages) - 1, -1, -1):
        message = messages[number]
        if any(start <= number < end for start, end in aside) and message is not first:
            continue
        fitted = _fitted(message, max(room, budget // 4)) if not latest else message
        room -= count(fitted.text)
        if room < 0 and latest:
            break
        latest.append(fitted if message is not first else pinned)
        if message is first:
            return latest[::-1]
    # A result without the call it belongs to says nothing.
    while latest and latest[-1].role == "tool":
        latest.pop()
    return [pinned, *latest[::-1]]


def _fitted(message: Message, tokens: int) -> Message:
    """A very long message: its head and its tail."""
    if count(message.text) <= tokens:
        return message
    half = max(200, tokens // 2)
    text = f"{message.text[:half]}\n… [{len(message.text) - 2 * half} characters left out] …\n{message.text[-half:]}"
    return message.model_copy(update={"text": text})
