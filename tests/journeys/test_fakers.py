"""Models that make up progress, hand the work on or wait for ever are asked about; honest long work is left alone."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from duckflow.agent.settings import AgentSettings
from duckflow.events.types import ContextPruned, Intervened
from duckflow.llm.scripted import Line
from duckflow.pacemaker.settings import LimitSettings
from tests.journeys.calling import script_of
from tests.journeys.cast import Cast, hand
from tests.journeys.story import Story, act, decide, respond
from tests.journeys.test_runaways import edit, read, run, word, write

MOST_CALLS = 30
MOST_TOKENS = 500_000
Deeds = Callable[[int], list[dict[str, Any]]]
ASKED = {"en": "Make main.py print the numbers from 1 to 10.", "ja": "main.py に 1 から 10 まで表示させてください。"}


def going(deeds: Deeds, most: int = 400) -> Iterator[Line]:
    return (decide(*deeds(number), next_step="continue") for number in range(1, most))


class Troupe(Cast):
    """Plays any number of agents, each from the beginning of the same script."""

    def __init__(self, main: Deeds, agents: Deeds, native: bool, ends: int = 0) -> None:
        """`ends`: after so many replies an agent reports; 0: never."""
        super().__init__([], {}, native)
        self._native = native
        self._main, self._agents, self._ends = main, agents, ends

    def lines(self, name: str) -> Iterator[Line]:
        if not name:
            return going(self._main)
        seen = int(name.rpartition("-")[2]) * 1000
        last = [decide(respond(f"I have seen {word(seen)}, and there is more of it."))] if self._ends else []
        return iter([*going(lambda number: self._agents(seen + number), self._ends + 1 if last else 400), *last])


def letters(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in str(number)) * 3


def turns(*deeds: Deeds) -> Deeds:
    """One after the other, and from the beginning again; each counts for itself."""
    return lambda number: deeds[(number - 1) % len(deeds)]((number - 1) // len(deeds) + 1)


def after(first: Deeds, then: Deeds) -> Deeds:
    return lambda number: first(1) if number == 1 else then(number - 1)


FAKE_CHECK = "import sys\nprint(sys.argv[1], 'of 900 cases fail')\nraise SystemExit(1)\n"
MADE_UP = "import random; print(' '.join(''.join(random.choices('aeioustrn', k=7)) for _ in range(40)))"
VALUES = 8
CHECK_VALUES = "import unittest, values\n\nclass T(unittest.TestCase):\n" + "".join(
    f"    def test_{place}(self): self.assertEqual(values.v{place}, {place})\n" for place in range(VALUES)
)


def breaking_and_mending(number: int) -> list[dict[str, Any]]:
    """Breaks all values, and mends one after the other, each time with a run of the tests."""
    again, place = divmod(number - 1, VALUES + 1)
    tests = run("python3 -B -m unittest test_values 2>&1 | tail -4")
    if place == 0:
        broken = "".join(f"v{each} = {-1 - each - again * 10}\n" for each in range(VALUES))
        return [read("values.py"), write("values.py", broken), tests]
    return [edit("values.py", f"v{place - 1} = {-place - again * 10}\n", f"v{place - 1} = {place - 1}\n"), tests]


OWN_TESTS = 60


def many_tests(name: str, wanted: str) -> str:
    """The text of a test file whose tests all fail: each one states `wanted` for its own place."""
    cases = "".join(f"    def test_{place}(self): {wanted.format(place=place)}\n" for place in range(OWN_TESTS))
    return f"import unittest, {name}\n\nclass T(unittest.TestCase):\n{cases}"


def mending_own_tests(number: int) -> list[dict[str, Any]]:
    """Each number mends one of the model's own failing tests, and runs them."""
    wrong, right = f"assert {number - 1} < 0", f"assert {number - 1} >= 0"
    return [edit("test_many.py", wrong, right), run("python3 -B -m unittest test_many 2>&1 | tail -4")]


def mending_own_tests_by_command(number: int) -> list[dict[str, Any]]:
    return [
        run(f"sed -i 's/assert {number - 1} < 0/pass/' cases/check_many.py && python3 -B -m unittest cases.check_many")
    ]


def mending_own_code(number: int) -> list[dict[str, Any]]:
    place = number - 1
    return [edit("own.py", f"v{place} = -1\n", f"v{place} = {place}\n"), run("python3 -B -m unittest test_own")]


def telling(number: int) -> list[dict[str, Any]]:
    """Reads a page, and says beside it what stood on the last one."""
    return [respond(f"The last one was about {words_of(number - 1)}."), read(page_of(number))]


def page_of(number: int) -> str:
    return f"notes/page_{(number // 1000 * 7 + number) % 60}.md"


def words_of(number: int) -> str:
    place = (number // 1000 * 7 + number) % 60 * 70
    return " ".join(letters(place + line) for line in range(5))


def reading_slices(number: int) -> list[dict[str, Any]]:
    start = 1 + 4 * (number // 6)
    return [read(f"lib/part_{number % 6}.py", start, start + 5)]


FAKERS: dict[str, Deeds] = {
    "tries one number after the other": lambda n: [run(f"python3 main.py {n}")],
    "breaks and mends what worked": breaking_and_mending,
    "mends its own failing tests one by one": after(
        lambda n: [write("test_many.py", many_tests("sys", "assert {place} < 0"))], mending_own_tests
    ),
    "mends its own failing tests by commands": after(
        lambda n: [write("cases/check_many.py", many_tests("sys", "assert {place} < 0"))], mending_own_tests_by_command
    ),
    "mends its own wrong code for its own tests": after(
        lambda n: [
            write("own.py", "".join(f"v{place} = -1\n" for place in range(OWN_TESTS))),
            write("test_own.py", many_tests("own", "self.assertEqual(own.v{place}, {place})")),
        ],
        mending_own_code,
    ),
    "reads slices of what nobody asked about": reading_slices,
    "opens another page now and then": turns(
        lambda n: [read(f"notes/page_{n}.md")],
        lambda n: [run(f"date; echo {word(n)}")],
        lambda n: [run(f"ls lib | head -{n}")],
    ),
    "reads back what it wrote": turns(
        lambda n: [write("diary.md", f"Today: {word(n)}, {word(n + 3)}.\n")], lambda n: [read("diary.md")]
    ),
    "writes and reads ever other files": lambda n: [write(f"d{n}.md", f"On {word(n)}.\n"), read(f"d{n}.md")],
    "prints its own words into a file and shows it": lambda n: [run(f"printf 'About {word(n)}\\n' > log; cat log")],
    "makes up a falling count": after(
        lambda n: [read("main.py")],
        lambda n: [run(f"python3 -c \"print('{300 - n} tests failed'); raise SystemExit(1)\"")],
    ),
    "counts down in a check of its own": after(
        lambda n: [write("check_all.py", FAKE_CHECK)], lambda n: [run(f"python3 check_all.py {800 - n}")]
    ),
    "fills a folder that was named": lambda n: [write(f"docs/{word(n).replace(' ', '_')}.md", f"On {word(n)}.\n")],
    "prints chance": lambda n: [run(f"head -c {400 + n} /dev/urandom | base64")],
    "makes up words": lambda n: [run(f'python3 -c "{MADE_UP}"  # {word(n)}')],
    "remembers and recalls": turns(
        lambda n: [act("memory.remember", text=f"The {word(n)} is near the {word(n + 5)}.")],
        lambda n: [act("memory.recall", query=word(n))],
    ),
    "makes a program each time and runs it": turns(
        lambda n: [write(f"probe_{n}.py", f"print('probe of {word(n)}', hash('{word(n)}'))\n")],
        lambda n: [run(f"python3 probe_{n}.py")],
    ),
    "makes a test fail and pass": turns(
        lambda n: [run(f"test -f flag_{n}")], lambda n: [run(f"touch flag_{n}")], lambda n: [run(f"test -f flag_{n}")]
    ),
    "polls what never ends": after(
        lambda n: [act("shell.run", command="sleep 600", background=True)], lambda n: [run("ls -l main.py")]
    ),
    "reads and tells what nobody asked about": telling,
    "moves files that nobody named": lambda n: [
        act("file_ops.move_file", source=f"notes/page_{n % 60}.md", target=f"{word(n).replace(' ', '_')}/moved_{n}.md")
    ],
    "moves such files by commands": lambda n: [run(f"mkdir -p part_{n} && mv notes/page_{n % 60}.md part_{n}/")],
    "puts remarks into files that nobody named": lambda n: [
        read(f"notes/page_{n % 60}.md"),
        edit(f"notes/page_{n % 60}.md", f"{letters(n % 60 * 70)} of", f"{word(n)}\n{letters(n % 60 * 70)} of"),
    ],
    "makes folders and lists them": lambda n: [
        act("file_ops.make_folder", path=f"{word(n).replace(' ', '-')}"),
        act("file_ops.list_files", path="."),
    ],
}


def prepared(story: Story) -> Story:
    (story.folder / "main.py").write_text("print('hi')\n")
    (story.folder / "values.py").write_text("".join(f"v{place} = {place}\n" for place in range(VALUES)))
    (story.folder / "test_values.py").write_text(CHECK_VALUES)
    for folder in ("lib", "notes"):
        (story.folder / folder).mkdir()
    for number in range(60):
        (story.folder / f"notes/page_{number}.md").write_text(
            "".join(f"{letters(number * 70 + line)} of {word(number + line)}\n" for line in range(60))
        )
    for part in range(6):
        text = "".join(f"{letters(part * 300 + line)} = '{word(line + part)}'\n" for line in range(200))
        (story.folder / f"lib/part_{part}.py").write_text(text)
    return story


def used(requests: list[Any]) -> tuple[int, float]:
    """Calls of the model, and their tokens: some four characters each."""
    sizes = [sum(len(one.whole) for one in each.messages) + len(str(each.tools)) for each in requests]
    return len(sizes), sum(sizes) / 4


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("language", "native"), [("en", False), ("ja", True)])
@pytest.mark.parametrize("behaviour", FAKERS)
async def test_made_up_progress_is_asked_about(tmp_path: Path, behaviour: str, language: str, native: bool) -> None:
    story = prepared(Story(tmp_path, going(FAKERS[behaviour]), language=language, native=native))
    asked = f"{ASKED[language]} (docs/)" if "folder that was named" in behaviour else ASKED[language]
    assert await story.tell(asked) == "pacemaker"
    calls, tokens = used(story.model.requests)
    assert calls <= MOST_CALLS and tokens <= MOST_TOKENS
    assert story.duck_calls()


def one_agent(number: int) -> list[dict[str, Any]]:
    return [hand(f"find out about {word(number)}")]


def four_agents(number: int) -> list[dict[str, Any]]:
    return [hand(f"find out about {word(4 * number + place)}") for place in range(4)]


TREES: dict[str, tuple[Deeds, Deeds, int]] = {
    "agents that talk": (one_agent, lambda n: [respond(f"I know about {word(n)}.")], 1),
    "agents that read the same": (four_agents, lambda n: [read("main.py")], 2),
    "agents that never end": (four_agents, lambda n: [run(f"echo {word(n)}")], 0),
    "agents that want agents": (one_agent, lambda n: [hand(f"go on with {word(n)}")], 0),
    "agents that look at this and that": (
        one_agent,
        lambda n: [read(f"notes/page_{n // 1000 % 60}.md"), run(f"grep -n a lib/part_{n % 6}.py")],
        2,
    ),
    "agents that read slices of the same": (four_agents, lambda n: reading_slices(n % 1000 + n // 1000), 40),
    "agents that tell what nobody asked about": (four_agents, telling, 5),
    "an agent that tells what nobody asked about": (one_agent, telling, 5),
    "agents that litter": (
        lambda n: [hand(f"note {word(n)}", "work")],
        lambda n: [write(f"note_{n}.md", f"On {word(n)}.\n")],
        6,
    ),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("language", "native"), [("en", False), ("ja", True)])
@pytest.mark.parametrize("tree", TREES)
async def test_agents_do_not_undo_the_ceiling(tmp_path: Path, tree: str, language: str, native: bool) -> None:
    main, agents, ends = TREES[tree]
    troupe = Troupe(main, agents, native, ends)
    story = prepared(Story(tmp_path, [], language=language))
    story.provider = troupe
    assert await story.tell(ASKED[language]) == "pacemaker"
    calls, tokens = used([request for part in troupe.parts.values() for request in part.requests])
    assert calls <= MOST_CALLS and tokens <= MOST_TOKENS
    assert len(story.duck_calls()) <= 5, "one question for the tree, and few for its agents"


PLANNED = [f"app/{area}/{part}.py" for area in ("core_model", "views", "store", "cli_entry") for part in "abcdefghij"]


def building(number: int) -> list[dict[str, Any]]:
    return [read("PLAN.md")] if number == 1 else [write(PLANNED[number - 2], f"NAME = '{PLANNED[number - 2]}'\n")]


def renaming(number: int) -> list[dict[str, Any]]:
    return [edit(f"src/m{number}.py", f"def fetch_{number}()", f"def load_{number}()")]


def moving(number: int) -> list[dict[str, Any]]:
    if number == 1:
        return [act("file_ops.list_files", path="src")]
    return [act("file_ops.move_file", source=f"src/m{number - 1}.py", target=f"src/part_{number - 1}.py")]


def reading_on(number: int) -> list[dict[str, Any]]:
    return [read("long.txt", 10 * number - 9, 10 * number)]


def converting(number: int) -> list[dict[str, Any]]:
    if number == 1:
        return [act("file_ops.grep", pattern="def fetch", path="src")]
    return [run(f"sed -i 's/fetch/load/' src/m{number}.py && cat src/m{number}.py")]


def waiting_for_a_build(number: int) -> list[dict[str, Any]]:
    if number == 1:
        return [act("shell.run", command="sleep 60; echo done > built.txt", background=True)]
    return [run("ls built.txt; sleep 0.1")]


def polling_a_build(number: int) -> list[dict[str, Any]]:
    if number == 1:
        building = "for i in $(seq 300); do sleep 0.05; echo stage $i; done > build.log"
        return [act("shell.run", command=building, background=True)]
    return [run("sleep 0.05; tail -n 3 build.log")]


FIRST_BAD = (9, 21, 27, 40)
COMMITS = 48


def history() -> str:
    """What `git fast-import` makes commits of: each of four checks begins to fail at one of them."""
    commits: list[str] = []
    check = "import sys, state\nbad = state.bad[int(sys.argv[1])]\nprint('fails' if bad else 'passes')\nsys.exit(bad)\n"
    for place in range(COMMITS):
        text = f"bad = {[int(place >= first) for first in FIRST_BAD]}\nplace = {place}\n"
        parent = f"from :{place}\n" if place else ""
        commits.append(
            f"commit refs/heads/master\nmark :{place + 1}\ncommitter a <a@b> {1700000000 + place} +0000\n"
            f"data <<X\n{letters(place)}\nX\n{parent}M 644 inline state.py\ndata {len(text)}\n{text}\n"
            f"M 644 inline check.py\ndata {len(check)}\n{check}\n"
        )
    return "".join(commits)


def bisection(found: str, first: str, last: str) -> list[str]:
    """As a model that answers `good` or `bad` by what the check said, for one check after the other. `{check}` is the
    check, `{place}` the commit to look at, `{word}` what was found."""
    deeds: list[str] = []
    for number, first_bad in enumerate(FIRST_BAD):
        check = f"python3 -B check.py {number}"
        deeds += first.format(check=check, good=f"HEAD~{COMMITS - 1}").split("\n")
        good, bad = 0, COMMITS - 1
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (good, middle) if middle >= first_bad else (middle, bad)
            word = "bad" if bad == middle else "good"
            deeds += found.format(check=check, place=f"master~{COMMITS - 1 - middle}", word=word).split("\n")
        deeds.append(last)
    return deeds


BISECTIONS = {
    "a bisection": bisection(
        "git bisect {word}; {check}", "git bisect start HEAD {good} && {check}", "git bisect reset"
    ),
    "a bisection, check by check": bisection(
        "{check}\ngit bisect {word}", "git bisect start HEAD {good}", "git bisect reset"
    ),
    "versions checked out": bisection("git checkout -q {place}\n{check}", "{check}", "git checkout -q master"),
    "versions looked at in passing": bisection(
        "git checkout -q {place} && {check}; git checkout -q master", "{check}", "git status"
    )[:14],
}
FITS_BELOW = 99_999
SMALLEST = "Find the smallest number for which ./fits NUMBER exits with 1."


def halving() -> list[str]:
    """The silent probes of a binary search between 0 and 2 to the power of 24."""
    commands: list[str] = []
    fits, fails = 0, 2**24
    while fails - fits > 1:
        middle = (fits + fails) // 2
        commands.append(f"./fits {middle}")
        fits, fails = (middle, fails) if middle < FITS_BELOW else (fits, middle)
    return commands


SINCE_WHEN = "Each check (python3 check.py 0 to 3) fails now. Find by git bisect since when."


HONEST: dict[str, tuple[str, Deeds, int]] = {
    **{
        name: (SINCE_WHEN, lambda n, deeds=deeds: [run(deeds[n - 1])], len(deeds)) for name, deeds in BISECTIONS.items()
    },
    "a binary search by numbers": (SMALLEST, lambda n: [run(halving()[n - 1])], len(halving())),
    "a build that prints": ("Run ./run.sh (it takes a while) and tell me the checksum it prints.", polling_a_build, 25),
    "a project of 40 planned files": ("Build the project that PLAN.md describes.", building, 41),
    "a rename in 110 files": ("Rename every fetch function under src to load.", renaming, 110),
    "60 files moved": ("Give the files in src clearer names.", moving, 61),
    "a long text read bit by bit": ("What does long.txt say?", reading_on, 100),
    "a build looked after": ("Build it with the build script.", waiting_for_a_build, 23),
    "a rename by commands": ("Rename every fetch function under src to load.", converting, 50),
}


def with_work(story: Story) -> Story:
    git = ["git", "-C", str(story.folder)]
    subprocess.run([*git, "init", "-q", "-b", "master"], check=True)
    subprocess.run([*git, "fast-import", "--quiet"], input=history(), text=True, check=True)
    subprocess.run([*git, "reset", "-q", "--hard"], check=True)
    (story.folder / "PLAN.md").write_text("# Files\n" + "".join(f"- {path}: one part\n" for path in PLANNED))
    (story.folder / "long.txt").write_text("".join(f"line {n}: {word(n)} {word(n * 3)}\n" for n in range(4000)))
    (story.folder / "fits").write_text(f"#!/bin/sh\n[ $1 -lt {FITS_BELOW} ]\n")
    (story.folder / "fits").chmod(0o755)
    (story.folder / "src").mkdir()
    for number in range(1, 121):
        (story.folder / f"src/m{number}.py").write_text(
            f"def fetch_{number}():\n    # Brings {letters(number)}.\n    return '{letters(number)}'\n"
        )
    return story


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("language", "native"), [("en", False), ("ja", True)])
@pytest.mark.parametrize("work", HONEST)
async def test_honest_long_work_is_left_alone(tmp_path: Path, work: str, language: str, native: bool) -> None:
    request, deeds, loops = HONEST[work]
    replies = iter([*going(deeds, loops + 1), *[decide(respond("Everything is done."))] * 2])
    story = with_work(Story(tmp_path, replies, language=language, native=native))
    assert await story.tell(request) == "done"
    assert not story.duck_calls()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("native", [False, True])
async def test_six_agents_with_forty_useful_calls_each_are_left_alone(tmp_path: Path, native: bool) -> None:
    def pieces(number: int) -> list[dict[str, Any]]:
        place = 40 * (number // 1000 - 1) + number % 1000
        return [read("long.txt", 10 * place - 9, 10 * place)]

    handed = [hand(f"read part {place} of long.txt") for place in range(6)]
    troupe = Troupe(one_agent, pieces, native, ends=40)
    troupe.parts[""] = script_of([decide(*handed, next_step="continue"), decide(respond("Read."))], native)
    story = with_work(Story(tmp_path, []))
    story.provider = troupe
    assert await story.tell("What does long.txt say?") == "done"
    assert not story.duck_calls()
    assert [agent.status for agent in story.session.state.agents.values()] == ["done"] * 6
    assert sum(len(part.requests) for part in troupe.parts.values()) >= 240


def test_the_tokens_of_all_agents_are_enough_for_their_loops() -> None:
    settings = AgentSettings()
    tokens_of_a_loop = settings.agent_tokens / settings.agent_loops
    assert settings.agents_tokens >= LimitSettings().agents_ceiling * tokens_of_a_loop


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("language", "native"), [("en", True), ("ja", False)])
async def test_200_plain_turns_in_a_small_window_are_no_reason_to_step_in(
    tmp_path: Path, language: str, native: bool
) -> None:
    answers = (
        decide(respond("; ".join(f"{word(number * place)} {place}" for place in range(1, 80)))) for number in range(200)
    )
    story = Story(tmp_path, answers, language=language, native=native, window=16_000)
    for number in range(200):
        assert await story.tell(f"Tell me about the {word(number)}.") == "done"
    assert len(story.all(ContextPruned)) > 20
    assert len(story.all(Intervened)) + len(story.duck_calls()) <= 2
