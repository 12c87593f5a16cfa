"""The requests of `benchmarks.two_parts`, with the folder each begins with and the parts that it asks for."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

Kind = Literal["file", "gone", "run", "look", "answer"]


class Part(NamedTuple):
    kind: Kind
    shows: str = ""
    """A pattern: for a file of its text, for a run of the command, for an answer of what must be said."""
    path: str = ""


class TwoParts(NamedTuple):
    language: str
    text: str
    parts: tuple[Part, ...]
    files: Mapping[str, str] = {}


GREET = "def greet(name):\n    return f'Hello, {name}!'\n"
TEST_GREET = "from greet import greet\n\n\ndef test_greet():\n    assert greet('Ann') == 'Good evening, Ann!'\n"
CONFIG = '[server]\nhost = "127.0.0.1"\nport = 8085\n\n[log]\nlevel = "info"\n'
SHOP = {
    "prices.py": "PRICES = {'tea': 3, 'cake': 5}\n",
    "main.py": "from prices import PRICES\n\nprint('tea and cake:', PRICES['tea'] + PRICES['cake'])\n",
}
MODULES = {"alpha.py": "A = 1\n", "beta.py": "B = 2\n", "gamma.py": "C = 3\n", "todo.txt": "call Ann\n"}
README = "# Till\n\nA small cash register.\n\n## Use\n\nRun `python till.py open` in the morning.\n"
SALES = {f"data/{month}.csv": "item,count\ntea,3\n" for month in ("april", "june", "march", "may")}

GIVEN = (
    TwoParts(
        "en",
        "Write a small Python script fizz.py that prints FizzBuzz from 1 to 20, then run it",
        (Part("file", "(?i)fizz", "fizz.py"), Part("run", r"fizz\.py")),
    ),
    TwoParts(
        "en",
        "Read config.toml and explain which port the server uses.",
        (Part("look"), Part("answer", "8085")),
        {"config.toml": CONFIG},
    ),
    TwoParts(
        "en",
        "Change greet.py so that it says Good evening instead of Hello, and run the tests.",
        (Part("file", "Good evening", "greet.py"), Part("run", "pytest|test_greet")),
        {"greet.py": GREET, "test_greet.py": TEST_GREET},
    ),
    TwoParts(
        "en",
        "List the Python files in this folder and tell me how many there are.",
        (Part("look"), Part("answer", r"\b(?:3|three)\b")),
        MODULES,
    ),
    TwoParts(
        "en",
        "Rename notes.txt to ideas.txt and show me what is in it.",
        (Part("file", "lighthouse", "ideas.txt"), Part("gone", path="notes.txt"), Part("answer", "lighthouse")),
        {"notes.txt": "paint the lighthouse\n"},
    ),
    TwoParts(
        "ja",
        "1から10までの合計を計算して表示する total.py を作って、実行してください。",
        (Part("file", "print", "total.py"), Part("run", r"total\.py")),
    ),
    TwoParts(
        "ja",
        "README.md を読んで、朝に使うコマンドを説明してください。",
        (Part("look"), Part("answer", r"till\.py open")),
        {"README.md": README},
    ),
    TwoParts(
        "ja",
        "prices.py の tea の値段を 4 に変えて、そのあと main.py を実行してください。",
        (Part("file", r"'tea': 4|\"tea\": 4", "prices.py"), Part("run", r"main\.py")),
        SHOP,
    ),
    TwoParts(
        "ja",
        "data フォルダーのファイルを一覧にして、いくつあるか教えてください。",
        (Part("look"), Part("answer", "4|４|四")),
        SALES,
    ),
    TwoParts(
        "ja",
        "old.txt を削除して、残っているファイルを教えてください。",
        (Part("gone", path="old.txt"), Part("answer", r"keep\.txt")),
        {"old.txt": "old\n", "keep.txt": "new\n", "till.py": "print(1)\n"},
    ),
)

HALVES = {"given": GIVEN}
