"""How many corrections become a check, and whether the check is right.

    python -m benchmarks.rules [--fresh]

Each correction comes after a change that it is about. The rule that the product finds in its words is written into a
folder, read again, and held against a change that breaks the correction and one that keeps to it. What is kept on disk
does not depend on what a model remembers. Sentences that hold nothing to check must become no rule. `--fresh` takes 40
other corrections and 20 other sentences, which were written after the rules of the product and tried once."""

import sys
import tempfile
from pathlib import Path

from duckflow.proof.rules import KeptRules, rule_in
from duckflow.safety.undo.facts import FileVersions
from duckflow.safety.workspace import Workspace

PYTHON = """import requests
import pdb
from typing import Optional


def load(url):
    print(url)
    data = eval(url)
    assert data
    return requests.get(url)
"""
SCRIPT = "var total = 0\nconsole.log(total)\nconst shared = lodash.merge({}, total)\n"
BEFORE = [FileVersions("app/load.py", None, PYTHON.encode()), FileVersions("web/sum.ts", None, SCRIPT.encode())]
CODE = {
    "print": ("app/a.py", "print(1)\n", "log.info(1)\n"),
    "requests": ("app/a.py", "import requests\n", "import httpx\n"),
    "eval": ("app/a.py", "x = eval(y)\n", "x = int(y)\n"),
    "pdb": ("app/a.py", "import pdb\npdb.set_trace()\n", "x = 1\n"),
    "Optional": ("app/a.py", "def f(x: Optional[int]): ...\n", "def f(x: int | None): ...\n"),
    "os.system": ("app/a.py", "import os\nos.system('ls')\n", "import subprocess\n"),
    "console.log": ("web/a.ts", "console.log(1)\n", "logger.info(1)\n"),
    "lodash": ("web/a.ts", "const a = lodash.merge(b)\n", "const a = {...b}\n"),
    "tests": ("tests/test_a.py", "x = 1\n", "tests/unit/test_a.py"),
    "sql": ("app/x.sql", "select 1\n", "db/sql/x.sql"),
    "vendor": ("vendor/a.py", "x = 1\n", "app/a.py"),
    "migrations": ("db/migrations/1.py", "x = 1\n", "app/a.py"),
    "lint": ("", "", ""),
}
CORRECTIONS = [
    ("we never use print here", "print"),
    ("Please don't use print, we have a logger.", "print"),
    ("No. Use logging instead of print.", "print"),
    ("print statements are not okay in this project", "print"),
    ("use httpx, not requests", "requests"),
    ("we moved away from requests, httpx only", "requests"),
    ("stop using requests, the project has httpx", "requests"),
    ("requests is deprecated here", "requests"),
    ("eval is forbidden in our code base", "eval"),
    ("do not call eval() ever", "eval"),
    ("never leave pdb in the code", "pdb"),
    ("don't import pdb", "pdb"),
    ("we write X | None rather than Optional", "Optional"),
    ("don't use Optional, write int | None", "Optional"),
    ("never use os.system, take subprocess", "os.system"),
    ("no console.log in the web code please", "console.log"),
    ("don't use `console.log` in this repo", "console.log"),
    ("avoid using lodash", "lodash"),
    ("tests go to tests/unit", "tests"),
    ("please put new tests in tests/unit/", "tests"),
    ("tests belong under tests/unit, not next to the code", "tests"),
    (".sql files live in db/sql", "sql"),
    ("don't touch vendor/", "vendor"),
    ("never edit anything in db/migrations/", "migrations"),
    ("always run `make lint` before you say done", "lint"),
    ("print は使わないでください", "print"),
    ("ここでは print 禁止です。logging を使って", "print"),
    ("print ではなく logger を使ってください", "print"),
    ("requests の代わりに httpx を使って", "requests"),
    ("requests はもう使わないで", "requests"),
    ("eval() は絶対に使わないこと", "eval"),
    ("pdb を入れないで", "pdb"),
    ("Optional じゃなくて | None で書いて", "Optional"),
    ("console.log は残さないで", "console.log"),
    ("lodash は使わない方針です", "lodash"),
    ("テストは tests/unit に置いてください", "tests"),
    ("テストは必ず tests/unit の下に作って", "tests"),
    ("vendor/ は触らないで", "vendor"),
    ("db/migrations/ は変更しないでください", "migrations"),
    ("終わる前に `make lint` を実行してください", "lint"),
]
NO_RULES = [
    "don't use so many words", "please stop writing comments like that", "use a shorter name instead", "not that file",
    "the loader should never fail", "do not call me sir", "tests are red", "put it back", "avoid repeating yourself",
    "もっと短く書いて", "その言い方は使わないで", "テストは後でいいです", "変更しないで説明だけして",
    "ファイルは小さく",
]  # fmt: skip


FRESH = [
    ("please get rid of print, nobody reads stdout", "print"),
    ("print has no place in this code base", "print"),
    ("You used print again. Don't.", "print"),
    ("we don't use print in production code", "print"),
    ("log instead of calling print()", "print"),
    ("replace requests by httpx everywhere from now on", "requests"),
    ("don't import requests", "requests"),
    ("never use requests directly", "requests"),
    ("httpx instead of requests, please", "requests"),
    ("please avoid eval", "eval"),
    ("we don't allow eval here", "eval"),
    ("do not use eval, it is a security hole", "eval"),
    ("remove pdb before you finish and never use pdb again", "pdb"),
    ("Stop using Optional; we are on 3.12.", "Optional"),
    ("use `int | None` instead of `Optional`", "Optional"),
    ("os.system is banned", "os.system"),
    ("please don't use os.system", "os.system"),
    ("don't leave console.log in there", "console.log"),
    ("never use console.log", "console.log"),
    ("use spread instead of lodash", "lodash"),
    ("we no longer use lodash", "lodash"),
    ("all tests should be in tests/unit", "tests"),
    ("new tests must live under tests/unit", "tests"),
    ("put .sql files in db/sql", "sql"),
    ("hands off vendor/", "vendor"),
    ("do not modify vendor/", "vendor"),
    ("please leave db/migrations/ alone", "migrations"),
    ("run `make lint` before finishing", "lint"),
    ("print は避けてください", "print"),
    ("print を使わないようにしてください", "print"),
    ("print の代わりに logging を使うこと", "print"),
    ("requests は使用禁止です", "requests"),
    ("requests ではなく httpx でお願いします", "requests"),
    ("eval は使わないでください", "eval"),
    ("os.system は使わないでください", "os.system"),
    ("console.log を使わないでください", "console.log"),
    ("テストは tests/unit に入れてください", "tests"),
    ("vendor/ には手を入れないでください", "vendor"),
    ("db/migrations/ は編集しないでください", "migrations"),
    ("必ず `make lint` を実行してから完了してください", "lint"),
]
FRESH_NO_RULES = [
    "don't print the whole file, just the part I asked for", "use fewer words instead of long sentences", "stop asking",
    "please don't touch anything yet, just look", "never mind", "the tests in tests/unit are slow", "is eval slow?",
    "why did you use requests and not httpx?", "do not commit this", "this must not happen again", "run them again",
    "print the result at the end", "put the file where it was", "don't use that tone",
    "eval とは何ですか", "print した結果を見せて", "これは使わないでおきましょう", "もう一度やり直してください",
    "requests の使い方を教えて", "テストを先に書いて",
]  # fmt: skip


def judged(words: str, about: str, folder: Path) -> str:
    """`none`: nothing is offered; `right`: the check notices the breach and nothing else; else `wrong`."""
    rule = rule_in(words, "en", BEFORE)
    if rule is None:
        return "none"
    path, bad, good = CODE[about]
    if about == "lint":
        return "right" if rule.command == "make lint" else "wrong"
    rules = KeptRules(Workspace(folder))
    rules.keep(rule)
    rule = KeptRules(Workspace(folder))[rule.name]
    moved = "/" in good
    broken = FileVersions(path, None, bad.encode())
    held = FileVersions(good, None, bad.encode()) if moved else FileVersions(path, None, good.encode())
    return "right" if list(rule.breaches([broken])) and not list(rule.breaches([held])) else "wrong"


def main() -> None:
    fresh = "--fresh" in sys.argv[1:]
    corrections, nothing = (FRESH, FRESH_NO_RULES) if fresh else (CORRECTIONS, NO_RULES)
    ends = dict[str, list[str]]()
    for words, about in corrections:
        with tempfile.TemporaryDirectory() as top:
            ends.setdefault(judged(words, about, Path(top)), []).append(words)
    from_nothing = [words for words in nothing if rule_in(words, "en", BEFORE)]
    total, wrong = len(corrections), len(ends.get("wrong", ())) + len(from_nothing)
    print(f"{len(ends.get('right', ()))} of {total} corrections became a check that notices the breach")
    print(f"{wrong} wrong checks of {total + len(nothing)} sentences: {[*ends.get('wrong', ()), *from_nothing]}")
    print(f"nothing offered: {ends.get('none', [])}")


if __name__ == "__main__":
    main()
