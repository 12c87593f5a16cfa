"""Models that will not stop and honest ones that work for long, of other kinds than those of the scorer `runaway.py`.

usage: python -m benchmarks.misbehaving SCORER [--only NAME] [--form FORM]     (SCORER: ../shared/bench/runaway.py)

Each plays against the real program on both forms, in English or Japanese by turns. A misbehaving model must be stopped
within 30 calls and 0.5 million tokens (characters of the requests, divided by four); an honest one must reach its end
with every call that it needs.
"""

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.figure_sources import headless

MOST_CALLS, MOST_TOKENS = 30, 500_000
SECONDS = 400
FORMS = {"native": "window = 200000", "json": 'window = 200000\\ntools = "json"'}
WORDS = tuple(re.findall(r"\w+", "harbour lantern meadow copper violet thunder walnut saddle ribbon glacier pepper"))
MODULES = tuple(re.findall(r"\w+", "json ast csv abc cmd dis pdb pty sched shelve shlex socket ssl stat string struct"))
PRINT = "Make main.py print the numbers from 1 to 10, and tell me when it works."
PRINT_JA = "main.py が 1 から 10 までの数を表示するように直して、動いたら教えてください。"
COMMITS, FIRST_BAD, PARTS, PIECES = 256, 77, 6, 40

Deed = tuple[str, Any]


def fresh(number: int, count: int = 6) -> str:
    """Returns words that differ from call to call."""
    return " ".join(WORDS[(number * place + place) % len(WORDS)] for place in range(3, 3 + count)) + f" {number}"


def act(operation: str, **args: Any) -> Deed:
    return "act", (operation, args)


def run(command: str) -> list[Deed]:
    return [("run", command)]


def turns(*deeds: list[Deed]) -> Callable[[int], list[Deed]]:
    """Returns a model that does one after the other, round and round."""
    return lambda number: deeds[number % len(deeds)]


def of_own(number: int) -> list[Deed]:
    name = f"notes_{number // 2}.md"
    return [("read", name)] if number % 2 else [("write", (name, f"{fresh(number)}\n{fresh(number + 5)}\n"))]


def tests_itself(number: int) -> list[Deed]:
    place = number // 2
    if number % 2:
        return run(f"python3 -m unittest test_{place}")
    return [("write", (f"test_{place}.py", f"import unittest\n\nclass T{place}(unittest.TestCase):\n"
            f"    def test_{WORDS[place % 11]}(self):\n        self.assertEqual({place}, {place})\n"))]  # fmt: skip


def changes_by_sed(number: int) -> list[Deed]:
    text = fresh(number // 2, 2)
    return run("python3 main.py") if number % 2 else run(f"sed -i \"s/print.*/print('{text}')/\" main.py")


def walks_in_history(number: int) -> list[Deed]:
    place = number // 2
    if number % 2 == 0:
        return run(f"git commit -q --allow-empty -m '{fresh(place)}' && git checkout -q HEAD~0")
    return run(f"git checkout -q HEAD~{place % 3} && python3 main.py")


def waits_for_nothing(number: int) -> list[Deed]:
    if number == 1:
        return [act("shell.run", command="sleep 900", background=True)]
    return run(f"sleep 0.{number % 5}; ps aux | grep -c 'sleep 900'")


def hands_on(number: int) -> list[Deed]:
    return [act("agent.run", kind="work", task=f"look after {fresh(number)}")]


def remembers(number: int) -> list[Deed]:
    return [act("memory.recall" if number % 2 else "memory.remember", text=fresh(number))]


MISBEHAVING: dict[str, tuple[str, Callable[[int], list[Deed]]]] = {
    "says its thoughts by echo": (PRINT, lambda n: run(f"echo '{fresh(n)}'")),
    "reads its own words": (PRINT_JA, of_own),
    "prints falling counts": (PRINT, lambda n: run(f"python3 -c \"print('{200 - n} tests failed'); exit(1)\"")),
    "litters by command": (PRINT_JA, lambda n: run(f"printf '{fresh(n)}' > part_{WORDS[n % 11]}_{n}.txt")),
    "stashes to and fro": (PRINT, turns(run("git stash pop"), run("echo '#' >> main.py"), run("git stash"))),
    "walks in its own history": (PRINT_JA, walks_in_history),
    "polls a file that never comes": (PRINT, lambda n: run(f"sleep 0.{n % 4}; ls build_{n % 3}.log")),
    "waits for a sleeper": (PRINT_JA, waits_for_nothing),
    "nests agents": (PRINT, hands_on),
    "takes agents' reports for news": (PRINT_JA, hands_on),
    "prints random text": (PRINT, lambda n: run(f"head -c {20 + n} /dev/urandom | base64")),
    "reads manuals": (PRINT_JA, lambda n: run(f"python3 -m pydoc {MODULES[n % len(MODULES)]} | head -{40 + n}")),
    "tests its own tests": (PRINT, tests_itself),
    "changes by sed and looks": (PRINT_JA, changes_by_sed),
    "probes with other arguments": (PRINT, lambda n: run(f"python3 main{'.py' if n % 2 else '_.py'} {n}")),
    "remembers and recalls": (PRINT_JA, remembers),
}
PLANNED = [f"app/{area}/{part}.py" for area in ("model", "views", "store", "entry") for part in "abcdefghij"]


def bisection() -> Iterator[list[Deed]]:
    yield run(f"git bisect start HEAD HEAD~{COMMITS - 1}")
    good, bad = 0, COMMITS - 1
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (good, middle) if middle >= FIRST_BAD else (middle, bad)
        yield run("python3 -B check.py")
        yield run(f"git bisect {'bad' if bad == middle else 'good'}")
    yield run("git bisect reset")


def build() -> Iterator[list[Deed]]:
    stages = "for i in $(seq 200); do sleep 0.05; echo stage $i; done > build.log; echo checksum 4711 >> build.log"
    yield [act("shell.run", command=stages, background=True)]
    for _ in range(24):
        yield run("sleep 0.2; tail -n 2 build.log")


HONEST: dict[str, tuple[str, list[list[Deed]]]] = {
    "40 planned files": (
        "Build the project that PLAN.md describes.",
        [[("read", "PLAN.md")], *([("write", (path, f"NAME = '{path}'\n"))] for path in PLANNED)],
    ),
    "a rename in 120 files": (
        "src にあるすべての fetch 関数を load に改名してください。",
        [[("edit", (f"src/m{n}.py", f"def fetch_{n}()", f"def load_{n}()"))] for n in range(1, 120)],
    ),
    "a long build": ("Run the build (it takes a while) and tell me the checksum in build.log.", [*build()]),
    "six agents": ("long.txt には何が書いてありますか。", [[
        act("agent.run", kind="explore", task=f"read part {part} of long.txt") for part in range(PARTS)
    ]]),
    "a bisection": ("python3 check.py fails. Find the commit since which it does.", [*bisection()]),
    "a large text": (
        "long.txt を最後まで読んで、要約してください。",
        [[("read", ("long.txt", 20 * n - 19, 20 * n))] for n in range(1, 101)],
    ),
}  # fmt: skip


def prepare(folder: Path) -> None:
    """Makes the files and the history that all of them work on."""
    git = ["git", "-C", str(folder)]
    subprocess.run([*git, "init", "-q", "-b", "master"], check=True)
    check = "import shop\nprint('right' if shop.RIGHT else 'wrong')\nraise SystemExit(not shop.RIGHT)\n"
    commits: list[str] = []
    for place in range(COMMITS):
        shop = f"RIGHT = {place < FIRST_BAD}\n# {fresh(place)}\n"
        commits.append(
            f"commit refs/heads/master\ncommitter a <a@b> {1700000000 + place} +0000\ndata <<X\n{fresh(place)}\nX\n"
            f"M 644 inline shop.py\ndata {len(shop)}\n{shop}\nM 644 inline check.py\ndata {len(check)}\n{check}\n"
        )
    subprocess.run([*git, "fast-import", "--quiet"], input="".join(commits), text=True, check=True)
    subprocess.run([*git, "reset", "-q", "--hard"], check=True)
    (folder / "main.py").write_text("print('hi')\n")
    (folder / "PLAN.md").write_text("# Files\n" + "".join(f"- {path}: one part\n" for path in PLANNED))
    (folder / "long.txt").write_text("".join(f"line {n}: {fresh(n)} {fresh(3 * n)}\n" for n in range(5000)))
    (folder / "src").mkdir()
    for number in range(1, 121):
        (folder / f"src/m{number}.py").write_text(f"def fetch_{number}():\n    return '{fresh(number)}'\n")
    author = ["-c", "user.email=a@b", "-c", "user.name=a"]
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, *author, "commit", "-qm", "the rest"], check=True)


class Result(NamedTuple):
    form: str
    name: str
    is_honest: bool
    calls: int
    tokens: int
    code: int

    @property
    def is_ok(self) -> bool:
        if self.is_honest:
            return self.code == 0 and self.calls >= calls_due(self.name)
        return self.calls <= MOST_CALLS and self.tokens <= MOST_TOKENS


def calls_due(name: str) -> int:
    """Returns the calls that an honest model and its agents need, each with one for the answer."""
    agents = PARTS * (PIECES + 1) if name == "six agents" else 0
    return len(HONEST[name][1]) + 1 + agents


def make_model(scorer: Any, name: str, usage: Counter[str]) -> Any:
    """Returns the scorer's kind of model. What has no tool for handing on is an agent; it is known by its task."""
    own_calls: Counter[str] = Counter()
    lock = threading.Lock()

    def deeds_of(task: str, number: int) -> list[Deed] | None:
        if task and name == "six agents":
            first = 20 * (PIECES * int(task.split()[1]) + number)
            return [("read", ("long.txt", first - 19, first))] if number <= PIECES else None
        if task and name == "takes agents' reports for news":
            return None
        if name in MISBEHAVING:
            return MISBEHAVING[name][1](number)
        script = HONEST[name][1]
        return script[number - 1] if number <= len(script) else None

    class Model(scorer.Behaviour):
        def reply(self, speaker: Any, _: int, request: dict[str, Any]) -> Any:
            text = json.dumps(request, ensure_ascii=False)
            offers = speaker.native.tools if speaker.native else json.dumps(speaker.schema)
            task = re.search(r"part \d of long|look after [a-z ]+ \d+", text)
            key = task[0] if task and "agent_run" not in offers and "agent.run" not in offers else ""
            with lock:
                usage["tokens"] += len(text) // 4
                own_calls[key] += 1
                number = own_calls[key]
            deeds = deeds_of(key, number)
            if deeds is None:
                return speaker.say([("tell", f"It is all done now: {fresh(hash(key) % 999 if key else 1)}.")], "done")
            return speaker.say(deeds)

    return Model()


def play(scorer: Any, case: tuple[str, str]) -> Result:
    name, form = case
    usage, count = Counter[str](), {"calls": 0, "loops": 0}
    prompt = (MISBEHAVING | HONEST)[name][0]
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top) / "work"
        folder.mkdir()
        prepare(folder)
        server = scorer.serve(make_model(scorer, name, usage), count)
        language = "en" if prompt.isascii() else "ja"
        line = headless(FORMS[form]).replace("{url}", f"http://127.0.0.1:{server.server_port}/v1")
        line = f"{line.replace('{prompt}', shlex.quote(prompt))} --lang {language}"
        ended = subprocess.run(
            ["sh", "-c", line], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False
        )
        server.shutdown()
    return Result(form, name, name in HONEST, count["calls"], usage["tokens"], ended.returncode)


def teach(scorer: Any) -> None:
    """Lets the scorer's models call any operation by its name."""
    action, call = scorer.Speaker._action, scorer.Speaker._call

    def acted(self: Any, kind: str, what: Any, why: str) -> Any:
        return (
            {"operation": what[0], "reasoning": why, "args": what[1]}
            if kind == "act"
            else action(self, kind, what, why)
        )

    def called(self: Any, kind: str, what: Any) -> Any:
        if kind != "act":
            return call(self, kind, what)
        name = what[0].replace(".", "_")
        if name in self.native.tools:
            return [self.native.filled(name, what[1])]
        return [self.native.filled("call", {"tool": what[0], "args": what[1]})]

    scorer.Speaker._action, scorer.Speaker._call = acted, called


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scorer", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--form", choices=FORMS)
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.scorer.resolve().parent))
    scorer = import_module("runaway")
    teach(scorer)
    names = [name for name in MISBEHAVING | HONEST if arguments.only in name]
    with ThreadPoolExecutor(2) as pool:
        results = [*pool.map(partial(play, scorer), product(names, [arguments.form] if arguments.form else FORMS))]
    for result in results:
        print(json.dumps(result._asdict() | {"ok": result.is_ok}))
    bad = [result for result in results if not result.is_honest]
    print(json.dumps({
        "ok": sum(result.is_ok for result in results), "of": len(results),
        "most_calls": max((result.calls for result in bad), default=0),
        "most_tokens": max((result.tokens for result in bad), default=0),
    }))  # fmt: skip


if __name__ == "__main__":
    main()
