"""Are two-kanji words found? Every two-kanji word that stands in exactly one message of a conversation is searched for.

usage: python -m benchmarks.keywords JSQUAD_FILE     (for example ../shared/data/memory/jsquad_dev.jsonl.gz)
"""

import gzip
import json
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from duckflow.memory.gravel import Gravel
from duckflow.state.message import Message

WORD = re.compile(r"(?<![\u3400-\u9fff])[\u3400-\u9fff]{2}(?![\u3400-\u9fff])")
TOP = 5


def main(path: Path) -> None:
    asked = found = 0
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for talk in map(json.loads, lines):
            messages: list[dict[str, Any]] = talk["messages"]
            # A word that also stands inside a longer one elsewhere does not occur only once.
            once = Counter(word for message in messages for word in set(WORD.findall(message["text"])))
            with tempfile.TemporaryDirectory() as folder:
                gravel = Gravel(Path(folder) / "archive.db")
                for message in messages:
                    gravel.add("s", Message(message_id=message["id"], role=message["role"], text=message["text"]))
                for word, times in once.items():
                    holding = [message["id"] for message in messages if word in message["text"]]
                    if times == 1 and len(holding) == 1:
                        asked += 1
                        found += holding[0] in [one.message_id for one in gravel.search(word, TOP)]
                gravel.close()
    print(f"two-kanji words: {asked}, found among the first {TOP}: {100 * found / asked:.1f} %")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
