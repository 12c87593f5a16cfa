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

MATHS = "def double(x):\n    return 2 * x\n"
TEST_MATHS = "from maths import double\n\n\ndef test_double():\n    assert double(4) == 8\n"
LOG = "10:01 started\n10:02 user Ann came\n10:07 ERROR: disk full\n10:08 stopped\n"
REPORTS = {"reports/north.csv": "a,1\n", "reports/south.csv": "b,2\n", "reports/readme.md": "Two regions.\n"}

HELD = (
    TwoParts(
        "en",
        "Create temps.py that converts 100 Fahrenheit to Celsius and prints it. Execute it afterwards.",
        (Part("file", "print", "temps.py"), Part("run", r"temps\.py")),
    ),
    TwoParts(
        "en",
        "Look at app.log and tell me which line has the error.",
        (Part("look"), Part("answer", "disk full|10:07|third|line 3")),
        {"app.log": LOG},
    ),
    TwoParts(
        "en",
        "Add a function triple(x) to maths.py and check that the tests still pass.",
        (Part("file", r"def triple\(", "maths.py"), Part("run", "pytest|test_maths")),
        {"maths.py": MATHS, "test_maths.py": TEST_MATHS},
    ),
    TwoParts(
        "en",
        "How many CSV files are in reports, and what are they called?",
        (Part("look"), Part("answer", r"(?s)(?=.*\b(?:2|two)\b)(?=.*north)(?=.*south)")),
        REPORTS,
    ),
    TwoParts(
        "en",
        "Delete draft.md, then list what remains.",
        (Part("gone", path="draft.md"), Part("answer", r"final\.md")),
        {"draft.md": "old\n", "final.md": "new\n", "logo.svg": "<svg/>\n"},
    ),
    TwoParts(
        "ja",
        "九九の表を表示する kuku.py を書いて動かしてみて。",
        (Part("file", "print", "kuku.py"), Part("run", r"kuku\.py")),
    ),
    TwoParts(
        "ja",
        "settings.ini を見て、タイムアウトが何秒か教えて。",
        (Part("look"), Part("answer", "45")),
        {"settings.ini": "[http]\nretries = 3\ntimeout = 45\n"},
    ),
    TwoParts(
        "ja",
        "hello.py の挨拶を「こんばんは」に直してから実行結果を見せてください。",
        (Part("file", "こんばんは", "hello.py"), Part("run", r"hello\.py"), Part("answer", "こんばんは")),
        {"hello.py": "print('こんにちは')\n"},
    ),
    TwoParts(
        "ja",
        "この中の .txt ファイルを探して、名前を全部教えてください。",
        (Part("look"), Part("answer", r"(?s)(?=.*plum\.txt)(?=.*pear\.txt)")),
        {"plum.txt": "1\n", "pear.txt": "2\n", "fig.md": "3\n"},
    ),
    TwoParts(
        "ja",
        "memo.txt を archive.txt にリネームして、中身を要約してください。",
        (Part("file", "金曜", "archive.txt"), Part("gone", path="memo.txt"), Part("answer", "金曜|会議")),
        {"memo.txt": "会議は金曜日の 10 時から。資料は田中さんが用意する。\n"},
    ),
)
"""Written when the rules stood; what they showed has been mended since."""

STOCK = "name,left\nbolts,12\nnuts,0\nscrews,7\n"
CLOCK = "def hours(minutes):\n    return minutes / 60\n"
TEST_CLOCK = "from clock import hours\n\n\ndef test_hours():\n    assert hours(120) == 2\n"

FRESH = (
    TwoParts(
        "en",
        "Make a Python file squares.py that prints the squares of 1 to 5 and run it for me.",
        (Part("file", "print", "squares.py"), Part("run", r"squares\.py")),
    ),
    TwoParts(
        "en",
        "Open stock.csv and tell me which item has run out.",
        (Part("look"), Part("answer", "nuts")),
        {"stock.csv": STOCK},
    ),
    TwoParts(
        "en",
        "Rewrite clock.py so that hours returns a rounded number, then run test_clock.py.",
        (Part("file", "round", "clock.py"), Part("run", r"test_clock\.py|pytest")),
        {"clock.py": CLOCK, "test_clock.py": TEST_CLOCK},
    ),
    TwoParts(
        "en",
        "Move plan.txt to old_plan.txt and summarize it in one sentence.",
        (Part("gone", path="plan.txt"), Part("file", "bridge", "old_plan.txt"), Part("answer", "bridge")),
        {"plan.txt": "In May we build the bridge over the river.\n"},
    ),
    TwoParts(
        "en",
        "Write colors.json with three colours and show me the file.",
        (Part("file", r"[\[{]", "colors.json"), Part("answer", r"[\[{]|red|blue|green")),
    ),
    TwoParts(
        "ja",
        "今日の日付を表示するスクリプト today.py を作成して、動作確認をしてください。",
        (Part("file", "print", "today.py"), Part("run", r"today\.py")),
    ),
    TwoParts(
        "ja",
        "stock.csv を開いて、残りが 7 の品物を教えてください。",
        (Part("look"), Part("answer", "screws")),
        {"stock.csv": STOCK},
    ),
    TwoParts(
        "ja",
        "main.py を実行して、表示された合計を教えてください。",
        (Part("run", r"main\.py"), Part("answer", "8")),
        SHOP,
    ),
    TwoParts(
        "ja",
        "clock.py に分を秒に変える関数 seconds を追加して、テストが通るか確かめてください。",
        (Part("file", r"def seconds", "clock.py"), Part("run", r"test_clock\.py|pytest")),
        {"clock.py": CLOCK, "test_clock.py": TEST_CLOCK},
    ),
    TwoParts(
        "ja",
        "tmp.log を消して、フォルダーに何が残ったか一覧にしてください。",
        (Part("gone", path="tmp.log"), Part("answer", r"(?s)(?=.*notes\.md)(?=.*app\.py)")),
        {"tmp.log": "x\n", "notes.md": "# Notes\n", "app.py": "print(1)\n"},
    ),
)
"""Written after the last of these changes."""

HALVES = {"given": GIVEN, "held": HELD, "fresh": FRESH}
