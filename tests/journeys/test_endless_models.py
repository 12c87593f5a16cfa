"""Models that litter, poll, fake and nest without an end are asked about; honest long workers are left alone."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from duckflow.llm.scripted import Line
from tests.journeys.cast import hand
from tests.journeys.story import Story, act, decide, respond
from tests.journeys.test_fakers import MOST_CALLS, MOST_TOKENS, Troupe, after, going, letters, turns, used
from tests.journeys.test_runaways import edit, read, run, word, write

Deeds = Callable[[int], list[dict[str, Any]]]


PRINT = ("Make main.py print the numbers from 1 to 10.", "main.py に 1 から 10 まで表示させてください。")


@dataclass(frozen=True)
class Endless:
    """A model that never ends by itself, and the request that it was given in English and in Japanese."""

    deeds: Deeds
    request: tuple[str, str] = PRINT


def background(command: str) -> dict[str, Any]:
    return act("shell.run", command=command, background=True)


def function(number: int) -> str:
    name = word(number).replace(" ", "_")
    return f"def {name}():\n    return '{word(number * 3)}'\n\n\n"


def room(number: int) -> str:
    """A text that has nothing to do with any request."""
    return "".join(f"crate {number} {row} holds {word(number * row)} and {word(number + row)}\n" for row in range(40))


def in_a_case(tests: str, head: str = "") -> str:
    return f"import unittest\n{head}\n\nclass Case(unittest.TestCase):\n{tests}"


def passing_test(number: int) -> str:
    return in_a_case(
        f"    def test_{word(number).replace(' ', '_')}(self):\n        assert {number} + 1 == {number + 1}\n"
    )


def chained(number: int) -> list[dict[str, Any]]:
    """Each new module is used by the next one, and the last one by the program."""
    uses = f"from link_{number - 1} import value\n" if number > 1 else "value = 1\n"
    return [
        write(f"link_{number}.py", f"{uses}value{number} = '{word(number)}'\n"),
        write("main.py", f"import link_{number}\n"),
    ]


def appending(number: int) -> list[dict[str, Any]]:
    if number == 1:
        return [read("main.py")]
    return [run(f"cat >> main.py <<'END'\n{function(number)}END\n")]


def own_test_first(number: int) -> list[dict[str, Any]]:
    place, turn = number // 4, number % 4
    test = in_a_case(f"    def test_it(self):\n        assert answer == {place}\n", f"from part{place} import answer\n")
    deeds = [
        run("python3 -m unittest"),
        write(f"test_part{place}.py", test),
        run("python3 -m unittest"),
        write(f"part{place}.py", f"answer = {place}\n"),
    ]
    return [deeds[turn]]


def dropping_tests(number: int) -> list[dict[str, Any]]:
    if number % 2:
        return [run("python3 -m unittest test_many")]
    return [run(f"sed -i '/def test_{number // 2}(self)/,+1d' test_many.py")]


def renaming(number: int) -> list[dict[str, Any]]:
    names = ["main.py", *[f"{word(place).replace(' ', '_')}.py" for place in range(1, number + 1)]]
    return [act("file_ops.move_file", source=names[number - 1], target=names[number])]


def ever_other_errors(number: int) -> list[dict[str, Any]]:
    kinds = [
        read(f"{word(number).replace(' ', '/')}.py"),
        run(f"{word(number).replace(' ', '-')} --help"),
        edit("main.py", f"# {word(number)}", "# none"),
        act("file_ops.grep", pattern=f"({word(number)}", path="."),
        run(f"python3 -c 'import {word(number).replace(' ', '_')}'"),
    ]
    return [kinds[number % len(kinds)]]


def to_and_fro(number: int) -> list[dict[str, Any]]:
    languages = ("Print the numbers.", "数を表示します。")
    return [write("README.md", f"{languages[number % 2]} {word(number // 2)}\n"), read("README.md")]


def breaking_and_mending(number: int) -> list[dict[str, Any]]:
    """Now one test fails, now two, for ever."""
    values = ("x = 1\ny = 0\n", "x = 0\ny = 0\n")
    return [write("pair.py", values[number % 2]), run("python3 -m unittest test_pair")]


def gone_and_back(number: int) -> list[dict[str, Any]]:
    return [run("rm main.py")] if number % 2 else [write("main.py", f"# {word(number)}\nprint(*range(1, 11))\n")]


def through_filters(number: int) -> list[dict[str, Any]]:
    """Its own words come back in another shape."""
    text = f"{word(number)} {word(number * 5)} {word(number * 11)}"
    filters = ("rev", "base64", "tr a-z n-za-m", "md5sum", "fold -w 3")
    return [run(f"printf '%s' '{text}' | {filters[number % len(filters)]}")]


def through_scratch_files(number: int) -> list[dict[str, Any]]:
    """The same, by a file that lies outside the work folder."""
    place = f"/tmp/{letters(number)}.txt"
    return [run(f"printf '%s' '{word(number)} {word(number * 5)}' | rev > {place}; base64 {place} | tr a-z n-za-m")]


def ever_other_slices(number: int) -> list[dict[str, Any]]:
    start = number % 200
    slices = (
        run(f"sed -n '{start},{start + 9}p' test_many.py"),
        run(f"head -{start + 5} test_many.py | tail -5"),
        run(f"awk 'NR % {number + 2} == 0' test_many.py"),
        act("file_ops.grep", pattern=f"test_{number % 90}", path="."),
    )
    return [read("test_many.py")] if number == 1 else [slices[number % len(slices)]]


RANDOM = (
    "shuf -i 1-1000000 -n 4", "head -c 12 /dev/urandom | od -An -tx1", "cat /proc/sys/kernel/random/uuid", "mktemp -u"
)  # fmt: skip

SERIES = (
    "Split main.py into part_01.py, part_02.py and so on.",
    "main.py を part_01.py、part_02.py … に分けてください。",
)
FOLDER = ("Put a few examples into examples/.", "examples/ に例をいくつか入れてください。")
TESTS = ("Add tests to tests/ and see that they pass.", "tests/ にテストを足して、通ることを確かめてください。")
MACHINE = ["uptime", "cat /proc/stat | head -3", "ps aux | tail -4", "cat /proc/meminfo | head -4", "date +%s.%N"]

ENDLESS: dict[str, Endless] = {
    "litters a named series": Endless(lambda n: [write(f"part_{n:02}.py", function(n))], SERIES),
    "litters a named folder": Endless(
        lambda n: [write(f"examples/{word(n).replace(' ', '_')}.py", function(n))], FOLDER
    ),
    "litters a named folder by commands": Endless(
        lambda n: [run(f"mkdir -p examples; cat > examples/e{n}.py <<'END'\n{function(n)}END\nls examples | wc -l")],
        FOLDER,
    ),
    "litters a named folder with copies": Endless(lambda n: [run(f"cp main.py examples/{n}.py")], FOLDER),
    "litters modules that use each other": Endless(chained),
    "litters tests that pass": Endless(
        turns(
            lambda n: [write(f"tests/test_{n}.py", passing_test(n))],
            lambda n: [run("python3 -m unittest discover tests")],
        ),
        TESTS,
    ),
    "appends to the file that was named": Endless(appending),
    "polls a clock of its own": Endless(
        after(
            lambda n: [background("while true; do date +%N >> clock.log; sleep 0.02; done")],
            lambda n: [run("tail -3 clock.log")],
        )
    ),
    "watches the machine": Endless(lambda n: [run(MACHINE[n % len(MACHINE)])]),
    "starts it anew and looks": Endless(
        turns(lambda n: [background(f"sleep 300 # {word(n)}")], lambda n: [run("ps -o pid,etime,args | head -5")])
    ),
    "writes its own tests first": Endless(own_test_first),
    "drops one failing test after the other": Endless(
        dropping_tests, ("Make test_many.py pass.", "test_many.py を通してください。")
    ),
    "renames the file again and again": Endless(renaming),
    "makes ever other errors": Endless(ever_other_errors),
    "translates to and fro": Endless(to_and_fro),
    "breaks and mends by turns": Endless(
        breaking_and_mending, ("Make test_pair.py pass.", "test_pair.py を通してください。")
    ),
    "deletes and makes anew what was asked for": Endless(gone_and_back),
    "has its own words come back in another shape": Endless(through_filters),
    "has them come back by scratch files": Endless(through_scratch_files),
    "looks at ever other slices of one file": Endless(ever_other_slices),
    "asks for random numbers": Endless(lambda n: [run(RANDOM[n % len(RANDOM)])]),
    "remembers and recalls": Endless(
        turns(
            lambda n: [act("memory.remember", text=f"{word(n)} comes before {word(n + 1)}")],
            lambda n: [act("memory.recall", query=word(n - 1))],
        )
    ),
    "wanders through files that nobody named": Endless(lambda n: [read(f"store/room_{n}.txt")]),
    "wanders by searches": Endless(lambda n: [act("file_ops.grep", pattern=f"crate {n} ", path=".")]),
    "wanders by commands": Endless(lambda n: [run(f"head -30 store/room_{n}.txt")]),
    "wanders, and every other look fails": Endless(lambda n: [run(f"head -30 store/room_{n}.txt; exit {n % 2}")]),
    "wanders, and has seen some of it": Endless(lambda n: [run(f"head -30 store/room_{n if n % 3 else 1}.txt")]),
    "wanders and talks of other things": Endless(
        lambda n: [respond(f"I go on with {word(n)}."), read(f"store/room_{n}.txt")]
    ),
    "commits nothing and reads the log": Endless(
        after(
            lambda n: [run("git init -q . && git config user.email a@b && git config user.name a && git add -A")],
            lambda n: [run(f"git commit -q --allow-empty -m '{word(n)}' && git log --stat -3")],
        )
    ),
}


def prepared(story: Story) -> Story:
    (story.folder / "main.py").write_text("print('hi')\n" + "".join(function(n) for n in range(3)))
    failing = "".join(f"    def test_{n}(self):\n        assert {n} < 0\n" for n in range(1, 90))
    (story.folder / "test_many.py").write_text(in_a_case(failing))
    (story.folder / "store").mkdir()
    for number in range(1, 130):
        (story.folder / f"store/room_{number}.txt").write_text(room(number))
    pair = "".join(f"    def test_{name}(self):\n        assert pair.{name} == 1\n" for name in "xy")
    (story.folder / "test_pair.py").write_text(in_a_case(pair, "import pair\n"))
    return story


FORMS = [("en", False), ("ja", True), ("en", True), ("ja", False)]


def cases(names: Iterable[str], *quick: str) -> list[Any]:
    """Each with every language and form; of those that are named one is quick enough for every day."""
    slow = pytest.mark.slow
    pairs = [(name, *form, form == FORMS[len(name) % 2] and name in quick) for name in names for form in FORMS]
    return [pytest.param(*pair, marks=() if every_day else slow) for *pair, every_day in pairs]


CASES = ("behaviour", "language", "native")


@pytest.mark.parametrize(
    CASES, cases(ENDLESS, "litters a named folder", "watches the machine", "has them come back by scratch files")
)
async def test_endless_work_is_asked_about(tmp_path: Path, behaviour: str, language: str, native: bool) -> None:
    endless = ENDLESS[behaviour]
    story = prepared(Story(tmp_path, going(endless.deeds), language=language, native=native))
    assert await story.tell(endless.request[language == "ja"]) == "pacemaker"
    calls, tokens = used(story.model.requests)
    assert calls <= MOST_CALLS and tokens <= MOST_TOKENS
    assert story.duck_calls()


TREES: dict[str, tuple[Deeds, Deeds, int]] = {
    "agents write what is read": (
        turns(lambda n: [hand(f"write down {word(n)}", "work")], lambda n: [run("cat notes/*.md | tail -5")]),
        lambda n: [write(f"notes/{n}.md", f"{word(n)}, {word(n + 2)}\n")],
        2,
    ),
    "agents test what agents wrote": (
        turns(lambda n: [hand(f"write test {n}", "work")], lambda n: [run("python3 -m unittest discover tests")]),
        lambda n: [write(f"tests/test_{n}.py", passing_test(n))],
        1,
    ),
    "agents wander": (
        lambda n: [hand(f"look around in part {n}")],
        lambda n: [read(f"store/room_{n % 1000 + 12 * (n // 1000)}.txt")],
        12,
    ),
    "agents poll the machine": (
        lambda n: [hand(f"watch {word(n)}", "work")],
        lambda n: [run(MACHINE[n % len(MACHINE)])],
        5,
    ),
}


@pytest.mark.parametrize(CASES, cases(TREES, "agents poll the machine"))
async def test_endless_trees_are_asked_about(tmp_path: Path, behaviour: str, language: str, native: bool) -> None:
    main, agents, ends = TREES[behaviour]
    troupe = Troupe(main, agents, native, ends)
    story = prepared(Story(tmp_path, [], language=language))
    story.provider = troupe
    assert await story.tell(PRINT[language == "ja"]) == "pacemaker"
    calls, tokens = used([request for part in troupe.parts.values() for request in part.requests])
    assert calls <= MOST_CALLS and tokens <= MOST_TOKENS


class Worker(NamedTuple):
    """An honest worker: its request, its deeds and how many of them there are."""

    request: str
    deeds: Deeds
    loops: int


MODULES = [f"shop/{area}/{part}.py" for area in ("orders", "stock", "mail", "bills") for part in "abcdefghij"]


def named_in_the_request(number: int) -> list[dict[str, Any]]:
    return [write(MODULES[number - 1], f"PLACE = '{MODULES[number - 1]}'\n{function(number)}")]


def specified(number: int) -> list[dict[str, Any]]:
    """Each module of SPEC.md gets its test, which fails, and then its code."""
    if number == 1:
        return [read("SPEC.md")]
    place, turn = (number - 2) // 4 + 1, (number - 2) % 4
    result = f"    def test_it(self):\n        assert area({place}) == {place * place}\n"
    test = in_a_case(result, f"from area_{place} import area\n")
    deeds = [
        write(f"test_area_{place}.py", test),
        run("python3 -m unittest"),
        write(f"area_{place}.py", "def area(side):\n    return side * side\n"),
        run("python3 -m unittest"),
    ]
    return [deeds[turn]]


def translating(number: int) -> list[dict[str, Any]]:
    place = (number + 1) // 2
    return (
        [read(f"docs/page{place}.md")]
        if number % 2
        else [write(f"ja/page{place}.md", f"{place} ページ: {word(place)}\n")]
    )


def mending(number: int) -> list[dict[str, Any]]:
    """Ever fewer of the tests that were there fail."""
    place = number // 2
    return (
        [run("python3 -m unittest test_table")]
        if number % 2
        else [edit("table.py", f"v{place} = 0\n", f"v{place} = {place}\n")]
    )


def renaming_everywhere(number: int) -> list[dict[str, Any]]:
    """The same small edit in one file after the other."""
    return [edit(f"parts/p{number}.py", "class Keeper", "class Holder")]


def watching_a_build(number: int) -> list[dict[str, Any]]:
    if number == 1:
        return [background("sh build.sh")]
    return [run("tail -2 build.log; sleep 0.1")]


def summing_up(number: int) -> list[dict[str, Any]]:
    return [run(f"python3 summary.py data/d{number}.csv > sums/d{number}.txt && cat sums/d{number}.txt")]


def researching(number: int) -> list[dict[str, Any]]:
    """Each module is read, and now and then it says what it has found in them."""
    told = f"`Keeper{letters(number - 1)}` renews by `renew_{letters(number - 1)}` within `span_{letters(number - 1)}`."
    return [*([respond(told)] if number % 8 == 0 else []), read(f"parts/p{number}.py")]


def reviewing(number: int) -> list[dict[str, Any]]:
    return [read(f"shop/{('pay', 'stock', 'ship')[number % 3]}/m{number}.py")]


def reading_what_was_named(number: int) -> list[dict[str, Any]]:
    return [read(f"docs/page{number}.md")]


WORKERS: dict[str, Worker] = {
    "60 modules looked into": Worker("Where do things expire here, and how?", researching, 60),
    "45 modules that look alike": Worker("Review all modules under shop and tell me what is wrong.", reviewing, 45),
    "40 pages read": Worker("What do the pages of docs say about harbours?", reading_what_was_named, 40),
    "40 files that the request names": Worker("Write these: " + ", ".join(MODULES), named_in_the_request, 40),
    "15 modules by test and code": Worker("Build what SPEC.md describes, test first.", specified, 61),
    "40 pages translated": Worker("Translate every page of docs into Japanese, into ja/.", translating, 80),
    "30 failing tests mended": Worker("Make test_table.py pass.", mending, 61),
    "a class renamed in 40 files": Worker("Rename Keeper to Holder in all of parts.", renaming_everywhere, 40),
    "a build watched": Worker("Build it with build.sh and tell me when it is done.", watching_a_build, 16),
    "40 tables summed up": Worker("Sum up every table of data with summary.py into sums/.", summing_up, 40),
}


def with_work(story: Story) -> Story:
    folder = story.folder
    (folder / "SPEC.md").write_text("# Modules\n" + "".join(f"- area_{n}.py: area {n}\n" for n in range(1, 16)))
    (folder / "table.py").write_text("".join(f"v{n} = 0\n" for n in range(1, 31)))
    tests = "".join(f"    def test_{n}(self):\n        assert table.v{n} == {n}\n" for n in range(1, 31))
    (folder / "test_table.py").write_text(in_a_case(tests, "import table\n"))
    steps = "for n in $(seq 1 400); do echo compiling part $n of 400 >> build.log; sleep 0.05; done\n"
    (folder / "build.sh").write_text(steps)
    (folder / "summary.py").write_text(
        "import sys\nrows = [int(line) for line in open(sys.argv[1])]\nprint(sys.argv[1], len(rows), sum(rows))\n"
    )
    for name in ("docs", "data", "sums", "parts"):
        (folder / name).mkdir()
    for number in range(1, 46):
        lines = "".join(f"def step_{number}_{n}(x):\n    value = x + {n}\n    return value\n" for n in range(14))
        module = folder / f"shop/{('pay', 'stock', 'ship')[number % 3]}/m{number}.py"
        module.parent.mkdir(parents=True, exist_ok=True)
        module.write_text(lines)
    for number in range(1, 61):
        name = letters(number)
        code = f"class Keeper{name}:\n    def renew_{name}(self):\n        return self.span_{name}\n"
        (folder / f"parts/p{number}.py").write_text(code)
    for number in range(1, 41):
        (folder / f"docs/page{number}.md").write_text(
            f"Page {number} tells of {word(number)} and {word(number * 7)}.\n"
        )
        (folder / f"data/d{number}.csv").write_text("".join(f"{number * row % 97}\n" for row in range(50)))
    return story


@pytest.mark.parametrize(CASES, cases(WORKERS, "40 files that the request names", "45 modules that look alike"))
async def test_honest_workers_are_left_alone(tmp_path: Path, behaviour: str, language: str, native: bool) -> None:
    worker = WORKERS[behaviour]
    last = [decide(respond("Everything that you asked for is there."))] * 2
    replies: Iterator[Line] = iter([*going(worker.deeds, worker.loops + 1), *last])
    story = with_work(Story(tmp_path, replies, language=language, native=native))
    assert await story.tell(worker.request) == "done"
    assert not story.duck_calls()


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_texts_that_are_asked_for_one_by_one_count_as_loops(tmp_path: Path, language: str) -> None:
    """Each loop of a model that writes JSON takes two requests."""
    replies = (
        reply
        for number in range(1, 200)
        for reply in (
            decide(act("file_ops.write_file", path=f"examples/{word(number)}.py"), next_step="continue"),
            function(number),
        )
    )
    story = prepared(Story(tmp_path, replies, language=language))
    assert await story.tell(FOLDER[language == "ja"]) == "pacemaker"
    calls, tokens = used(story.model.requests)
    assert calls <= MOST_CALLS and tokens <= MOST_TOKENS
