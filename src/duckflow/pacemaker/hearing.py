"""What a message of the user does to the vitals, by simple rules."""

import re

from duckflow.pacemaker.vitals import Signal

THANKS = re.compile(
    r"\b(?:thanks|thank you|thx|great|perfect|nice work|well done)\b|ありがと|助かり|助かる|完璧|素晴らし",
    re.IGNORECASE,
)
TURNAROUND = re.compile(
    r"^(?:no[,.!]|stop\b|wait\b|forget (?:it|that|about))|\b(?:instead of that|not what i|something else|never mind)\b"
    r"|違う|ちがう|そうじゃな|そうではな|やめて|中止|別のこと|やっぱり",
    re.IGNORECASE,
)


def heard_in(text: str) -> tuple[Signal, ...]:
    """Thanks lift the mood; a sharp change of direction costs focus. Only the beginning of a long message counts."""
    opening = text.strip()[:200]
    signals: list[Signal] = []
    if THANKS.search(opening):
        signals.append(Signal.THANKS)
    if TURNAROUND.search(opening):
        signals.append(Signal.TURNAROUND)
    return tuple(signals)
