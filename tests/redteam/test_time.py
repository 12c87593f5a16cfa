"""A model that tries to make Duckflow stand still: by texts that take long to judge, endless replies, many calls."""

import asyncio
import gc
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from duckflow.code.syntax import available, symbols_in
from duckflow.errors import ReplyUnusable, ToolError
from duckflow.events.types import ActionFinished
from duckflow.forms.json_form import read_decision
from duckflow.pacemaker.signatures import plain_line
from duckflow.proof.rules import KeptRule
from duckflow.safety.commands.handed_over import named_words
from duckflow.safety.commands.judge import LONGEST, judge_command
from duckflow.safety.commands.parse import named_targets
from duckflow.safety.commands.paths import CommandFacts
from duckflow.safety.ignore_rules import IgnoredPaths
from duckflow.safety.secrets import mask, secret_name
from duckflow.tools.files.edit_file import replace
from duckflow.tools.outside.outside_tool import plain_schema
from tests.journeys.story import Story, act, decide, respond

PIECES = (
    "qx(", "qx{", "%x{", "'''", '"""', "`", "'\\''", "\\'", '\\"', "(", "((", "[", "[[", "{", "$(", "${", "$((",
    "<(", "<<A\n", "<<<", "<", "> ", "a|", "|", "a;", "a&&", "&", "a ", "a=", "\\\n", "\n", "#", "!", "{a,b}", "a() { ",
    "if a; then ", "case a in ", "for i in ", "sh -c ", "eval ", "env ", "sudo ", "xargs ", "find . -exec ", "-exec ",
    "-c ", "--exec=a ", "file ", "fs ", "unlink ", "e ", "s/", ":!", ":!\n", "DELETE FROM ", "drop ", "where ", "\\! ",
    "ProxyCommand ", ".shell ", "git -c a.b=", "rm -rf ", "../", "a/", "KEY=", "http://", "é", "\u200b", "－r ", "%s",
    "env A=b ", "nice ", "timeout 5 ",
)  # fmt: skip
CONTEXTS = (
    "{}", "perl -e '{}'", 'python3 -c "{}"', "python3 -c 'import subprocess;{}'", "sed '{}'", "awk '{}' x", "jq '{}' x",
    "psql -c '{}'", "ssh h '{}'", "echo {}", "git -c alias.x='{}' log", "bash -c '{}'", "eval '{}'", "env {}",
    "xargs {}", "find . -exec {}", "cat <<X\n{}\nX", "python3 <<X\nimport os;os.system {}\nX", "bash <<X\n{}\nX",
    "curl -X {}", "rm -rf {}", "printf '{}'", "grep '{}' x", "chmod {}", "A={} ls", "vim -c '{}'", "( {} )", "[ {} ]",
    "docker run {}", "git checkout {}", "git push {}", "alias a='{}'",
)  # fmt: skip
FACTS = CommandFacts("/work", "/home/me", False)
MOST_CALLS, LONGEST_REPLY = 100, 1_000_000
"""The limits that docs/guard.md promises."""
JUDGING_SECONDS = 1.5
LOOP_SECONDS = 0.1
"""The processor time that the loop may spend at a stretch: twice the intended time, since machines differ."""
WAITING_SECONDS = 0.5
"""The time that the loop may wait for others, on a machine that others use too."""


def of_length(piece: str, length: int) -> str:
    return (piece * (length // len(piece) + 1))[:length]


def pairs(seed: int, count: int) -> list[tuple[str, str]]:
    drawn = random.Random(seed)
    return [(drawn.choice(CONTEXTS), drawn.choice(PIECES)) for _ in range(count)]


@pytest.mark.one_in(5)
@pytest.mark.parametrize(("context", "piece"), [("{}", piece) for piece in PIECES] + pairs(29, 60))
def test_judging_any_text_is_soon_over(context: str, piece: str) -> None:
    for length in (3_000, LONGEST - 100, 200_000):
        text = context.replace("{}", of_length(piece, length))
        start = time.process_time()
        judge_command(text, FACTS)
        assert time.process_time() - start < JUDGING_SECONDS


@pytest.mark.parametrize("piece", ["[](", "[a](b", "<", "(", "$(", "{", "`a", "| a "])
def test_what_a_command_names_is_soon_known(piece: str) -> None:
    command = f"echo {of_length(piece, LONGEST - 100)}"
    start = time.process_time()
    named_words(command)
    named_targets(command, Path("/work"))
    assert time.process_time() - start < JUDGING_SECONDS


NAMES = ["-1", "-1-", "- ", "(1)", " copy", ".un1", "-old-", "~", "#", ".bak.1", "_-.", "--2--", "1-", "."]
NAME_SECONDS = 0.1


@pytest.mark.parametrize("end", ["", "!", ".py", "-", "(1"])
@pytest.mark.parametrize("piece", NAMES)
def test_whether_a_name_tells_a_secret_is_soon_known(piece: str, end: str) -> None:
    """A name of 38 letters took a second, and one of 60 never ended."""
    for length in (38, 250, LONGEST):
        start = time.process_time()
        secret_name(f"a{of_length(piece, length)}{end}")
        assert time.process_time() - start < NAME_SECONDS


LETTERS = random.Random(29)
ALIKE = ["".join(LETTERS.choices("ab", k=200)) for _ in range(5005)]
SLOW_EDITS = {
    "one letter": ("a" * 400_000, "a" * 1000),
    "one letter, not there": ("a" * 400_000, "a" * 200_000 + "z"),
    "equal lines, not there": ("```\n" * 100_000, "```\n" * 50_000 + "z"),
    "blank lines": ("\n" * 400_000, "\n" * 200_000 + "z"),
    "lines of the same letters": ("\n".join(ALIKE[5:]), "\n".join(ALIKE[:5])),
    "other indentation": ("  a\n" * 100_000, "a\n" * 50_000),
    "other blanks": ("x y\n" * 100_000, "x  y\n" * 40_000),
    "two letters": ("ab" * 200_000, "ab" * 500),
}
EDIT_SECONDS = 4.0


@pytest.mark.one_in(2)
@pytest.mark.parametrize("all", [False, True])
@pytest.mark.parametrize("name", SLOW_EDITS)
def test_finding_the_place_of_an_edit_is_soon_over(name: str, all: bool) -> None:
    before, old = SLOW_EDITS[name]
    start = time.process_time()
    with suppress(ToolError):
        replace(before, old, "new", all)
    assert time.process_time() - start < EDIT_SECONDS


class LoopWatch:
    """Notes the longest time that the loop was kept from its other work: by its own doing, and by the clock.

    What earlier tests left in memory is hidden from the garbage collector: else looking it through counts as well."""

    def __init__(self) -> None:
        self.busy = self.waited = 0.0

    async def __aenter__(self) -> "LoopWatch":
        gc.freeze()
        self._task = asyncio.create_task(self._look())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        gc.unfreeze()

    async def _look(self) -> None:
        while True:
            busy, clock = time.thread_time(), time.perf_counter()
            await asyncio.sleep(0)
            self.busy = max(self.busy, time.thread_time() - busy)
            self.waited = max(self.waited, time.perf_counter() - clock)


async def assert_the_loop_goes_on(watched: Callable[[Path], Awaitable[LoopWatch]], top: Path, busy: float = 1) -> None:
    """A slow rule is slow each time; a machine that stands still for a moment is not."""
    watches: list[LoopWatch] = []
    for number in range(3):
        (folder := top / str(number)).mkdir()
        watches.append(await watched(folder))
        if watches[-1].busy < busy * LOOP_SECONDS and watches[-1].waited < WAITING_SECONDS * busy:
            return
    pytest.fail(f"busy and waited: {[(watch.busy, watch.waited) for watch in watches]}")


HEAVY = [
    "perl -e '" + "qx(" * 19_000 + "'",
    "ruby -e '" + "%x{" * 19_000 + "'",
    "python3 -c 'import os;os.system(" + '"""' * 19_001 + ")'",
    "a|" * 28_000,
    "find . " + "-exec find . " * 4_000,
    "bash -c '" + "eval " * 11_000 + "'",
    "${" * 28_000,
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("command", HEAVY, ids=lambda command: command[:16])
async def test_the_loop_goes_on_while_a_command_is_judged(tmp_path: Path, command: str) -> None:
    quick = decide(act("shell.run", command="echo ready"), next_step="continue")
    heavy = decide(act("shell.run", command=command), next_step="continue")
    done = decide(respond("done"), step="PLANNING")

    async def watched(folder: Path) -> LoopWatch:
        judge_command.cache_clear()
        story = Story(folder, [quick, done, heavy, done], mode="plan")
        await story.tell("begin")
        async with LoopWatch() as watch:
            await story.tell("go on")
        await story.close()
        return watch

    await assert_the_loop_goes_on(watched, tmp_path)


SAME = {"operation": "file_ops.read_file", "args": {"path": "a.txt"}, "reasoning": "why"}


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("count", "tools"), [(MOST_CALLS + 1, True), (MOST_CALLS + 1, False), (500, True), (5_000, False), (20_000, True)]
)
async def test_more_calls_than_anybody_can_follow_are_not_made(tmp_path: Path, count: int, tools: bool) -> None:
    """The model is told how many calls there may be."""
    replies = [decide(*([SAME] * count)), decide(respond("fewer then"), step="PLANNING")]
    story = Story(tmp_path, replies, native=tools)
    await story.tell("read it all")
    assert [event.result.operation for event in story.all(ActionFinished)] == ["response"]
    assert f"at most {MOST_CALLS}" in story.model.requests[-1].messages[-1].text
    await story.close()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("unit", ['"x" y: ', "((", '"a":</b>', '{k "', "[{'", "a:b,c "])
async def test_the_loop_goes_on_while_a_broken_reply_is_read(tmp_path: Path, unit: str) -> None:
    done = decide(respond("done"), step="PLANNING")

    async def watched(folder: Path) -> LoopWatch:
        story = Story(folder, [done, '{"actions": [' + of_length(unit, 6_000), done])
        await story.tell("begin")
        async with LoopWatch() as watch:
            await story.tell("go on")
        await story.close()
        return watch

    await assert_the_loop_goes_on(watched, tmp_path)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("piece", ["a", "a.", "\\r", "1:", "1", "eyJ-"])
async def test_one_long_line_of_output_is_soon_read(tmp_path: Path, piece: str) -> None:
    """The excerpt of it is one line of some 20,000 characters, and many rules read it."""
    printing = f"printf '{piece}%.0s' $(seq 200000)"

    async def watched(folder: Path) -> LoopWatch:
        story = Story(folder, [decide(act("shell.run", command=printing), respond("done"))], mode="full-auto")
        async with LoopWatch() as watch:
            await story.tell("go")
        finished = [event.result for event in story.events if isinstance(event, ActionFinished)]
        assert "characters left out" in finished[0].for_model
        await story.close()
        return watch

    await assert_the_loop_goes_on(watched, tmp_path, busy=3)


PARTS = (
    *("-eyJ", "eyJ-", "eyJ" + "a" * 16 + ".", "eyJ" + "a" * 16 + ".eyJ-", "sk-", "xoxb-", "-----BEGIN ", "AIza", "a-"),
    *("://a:", "password='", "A" * 40 + "KEY=", "  export ", "1", "9.", "12:", "1 ", "0x", "/tmp/1", "/tmp/a-", "'"),
)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("end", ["", "@", "'", "x\n"])
@pytest.mark.parametrize("part", PARTS)
def test_looking_for_secrets_and_times_in_any_text_is_soon_over(part: str, end: str) -> None:
    text = of_length(part, 150_000) + end
    start = time.process_time()
    mask(text)
    plain_line(text)
    assert time.process_time() - start < EDIT_SECONDS


async def test_a_reply_without_an_end_is_cut_off(tmp_path: Path) -> None:
    drawn = random.Random(3)
    endless = " ".join("".join(drawn.choices("abcdefgh", k=9)) for _ in range(LONGEST_REPLY // 8))
    story = Story(tmp_path, [endless, decide(respond("short"), step="PLANNING")])
    await story.tell("talk")
    assert "cut off" in story.model.requests[-1].messages[-1].text
    await story.close()


NESTED = "function f(){\n" * 30_000 + "\n" * 30_000 + "}\n" * 30_000
SOURCES = {"one line": "function f(){}" * 30_000, "nested": NESTED, "nested in one line": NESTED.replace("\n", "")}


@pytest.mark.skipif(not available(), reason="the map needs the extra `code`")
@pytest.mark.parametrize("text", SOURCES.values(), ids=SOURCES)
def test_no_source_file_takes_the_map_long(text: str) -> None:
    begun = time.process_time()
    symbols_in(text, "a.js")
    assert time.process_time() - begun < 4


def test_a_rule_of_a_folder_has_no_pattern_that_takes_minutes_or_the_stack() -> None:
    assert KeptRule(words="no print", pattern="print")
    for nested in ("-" * 19_000 + "x", "(" * 9_000 + "x" + ")" * 9_000):
        with pytest.raises(ValueError, match="pattern"):
            KeptRule(words="x", pattern=nested)


BRACES = ("{x ", "{", '{"a":1},', '{"a":1}"', "[true,", "{} ", "[1]x", '}{"', "{a:", '{"a" 1}\n```\nx\n```\n', '{"a":{')


@pytest.mark.parametrize("before", ["", "So: "])
@pytest.mark.parametrize("piece", BRACES)
def test_a_reply_of_many_brackets_is_soon_read(piece: str, before: str) -> None:
    started = time.process_time()
    with suppress(ReplyUnusable):
        read_decision(before + of_length(piece, 900_000), ())
    assert time.process_time() - started < JUDGING_SECONDS


UNREADABLE = {
    "a name too long": "echo " + "a" * 5000,
    "a path too long": "touch " + "a/" * 5000,
    "too deep": "echo " + "${a:-" * 3000,
    "too many stages": "true" + " | cat" * 3000,
    "too many calls": "true;" * 30_000,
    "a character that no name has": "touch a\0b",
}


@pytest.mark.parametrize("mode", ["auto", "full-auto", "ask"])
@pytest.mark.parametrize("name", UNREADABLE)
async def test_no_command_breaks_the_turn_off(tmp_path: Path, name: str, mode: str) -> None:
    call = act("shell.run", command=UNREADABLE[name])
    story = Story(
        tmp_path, [decide(call, next_step="continue"), decide(respond("ok"), next_step="pending_user")], mode=mode
    )
    assert await story.tell("go") in ("pending_user", "gate"), "it is asked about, or run"


@pytest.mark.parametrize("piece", ["a/", "../", "./", "//", "a/../"])
async def test_a_path_of_any_length_is_soon_refused(tmp_path: Path, piece: str) -> None:
    call = act("file_ops.read_file", path=piece * 50_000)
    story = Story(tmp_path, [decide(call, next_step="continue"), decide(respond("ok"), next_step="pending_user")])
    started = time.process_time()
    assert await story.tell("go") == "pending_user"
    assert time.process_time() - started < EDIT_SECONDS


RULES = {
    "names": [f"x{number}" for number in range(100_000)],
    "endings": [f"*.x{number}" for number in range(80_000)],
    "paths": [f"x{number}/y*" for number in range(60_000)],
    "stars": [f"*x{number}*y" for number in range(60_000)],
    "exceptions": [f"!*x{number}*y" for number in range(60_000)],
    "classes": [f"[a-c]x{number}?" for number in range(60_000)],
    "any folder": [f"**/x{number}*/y" for number in range(50_000)],
}


@pytest.mark.parametrize("name", RULES)
def test_ignore_rules_without_number_are_soon_looked_through(tmp_path: Path, name: str) -> None:
    (tmp_path / ".gitignore").write_text("\n".join(["*.log", *RULES[name]]))
    started = time.process_time()
    ignored_paths = IgnoredPaths(tmp_path)
    assert ignored_paths.ignores_file("a.log") and not ignored_paths.ignores_file("src/app.py")
    assert time.process_time() - started < EDIT_SECONDS


LEAF = {"$ref": "#/$defs/a"}
SCHEMAS: dict[str, Any] = {
    "properties of itself": {"properties": {f"a{number}": {"$ref": "#"} for number in range(40)}},
    "choices of itself": {"properties": {"x": {"anyOf": [{"$ref": "#/properties/x"}] * 40}}},
    "one of itself": {"properties": {"x": {"oneOf": [{"$ref": "#/properties/x"}] * 40}}},
    "items and choices": {"properties": {"x": {"items": {"anyOf": [{"$ref": "#/properties/x"}] * 60}}}},
    "by a definition": {"$defs": {"a": {"anyOf": [LEAF] * 40}}, "properties": {"x": LEAF}},
    "properties of a definition": {
        "$defs": {"a": {"properties": {f"a{number}": LEAF for number in range(40)}}},
        "properties": {"x": LEAF},
    },
    "all of itself": {"properties": {"x": {"allOf": [{"anyOf": [{"$ref": "#/properties/x"}] * 40}]}}},
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_of_a_server_that_holds_itself_does_not_grow(name: str) -> None:
    begun = time.process_time()
    schema = plain_schema(SCHEMAS[name])
    assert time.process_time() - begun < 1 and len(str(schema)) < 500_000
