"""The archive with 100 000 messages: cost of adding, of searching, and size on disk against the text.

usage: python -m benchmarks.archive [MESSAGES]
"""

import json
import random
import sys
import tempfile
import time
from itertools import accumulate
from pathlib import Path

from duckflow.memory.gravel import Gravel
from duckflow.state.message import Message

VOCABULARY = 20_000
SEARCHES = 300
KANJI = [chr(0x4E00 + number * 7) for number in range(1500)]


def vocabulary(chance: random.Random) -> list[str]:
    """Made-up words: English-looking ones, identifiers, and Japanese."""

    def word(number: int) -> str:
        letters = "".join(
            chance.choices("etaoinshrdlucmfwypvbgkjqxz", weights=range(26, 0, -1), k=chance.randint(3, 9))
        )
        match number % 10:
            case 0:
                return f"{letters}_{chance.choice('abcdefgh')}{number}"
            case 1 | 2:
                return "".join(chance.choices(KANJI, k=2)) + chance.choice("のをにはがでと")
            case _:
                return letters

    return [word(number) for number in range(VOCABULARY)]


def main(messages: int) -> None:
    chance = random.Random(1)
    words = vocabulary(chance)
    frequent = list(accumulate(1 / (rank + 3) for rank in range(VOCABULARY)))
    adding: list[float] = []
    size = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "archive.db"
        gravel = Gravel(path)
        for number in range(messages):
            text = " ".join(chance.choices(words, cum_weights=frequent, k=chance.randint(5, 90)))
            size += len(text.encode())
            message = Message(message_id=f"m{number}", role="user", text=text)
            start = time.perf_counter()
            gravel.add("s", message)
            adding.append(time.perf_counter() - start)
        searching: list[float] = []
        for _ in range(SEARCHES):
            question = " ".join(chance.choices(words, cum_weights=frequent, k=chance.randint(2, 25)))
            start = time.perf_counter()
            gravel.search(question, 5)
            searching.append(time.perf_counter() - start)
        gravel.close()
        on_disk = path.stat().st_size
    print(
        json.dumps(
            {
                "messages": messages,
                "add_ms": [at(adding, 0.5), at(adding, 0.95)],
                "search_ms": [at(searching, 0.5), at(searching, 0.95)],
                "disk_per_text": round(on_disk / size, 2),
            }
        )
    )


def at(values: list[float], share: float) -> float:
    return round(sorted(values)[int(len(values) * share)] * 1e3, 3)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
