"""Rules that bite: a correction is kept as a check, and later changes are held against it."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.rules import BEFORE, CODE, CORRECTIONS
from duckflow.events.types import Noticed
from duckflow.proof.rules import KeptRule, KeptRules, rule_in
from duckflow.proof.settings import RULES
from duckflow.safety.undo.facts import FileVersions
from duckflow.safety.workspace import Workspace
from duckflow.state.question import Answer
from tests.journeys.cast import calls, hand, on_stage
from tests.journeys.story import Story, act, decide, respond

PRINTS = act("file_ops.write_file", path="app.py", content="def f():\n    print(1)\n")
LOGS = act("file_ops.write_file", path="app.py", content="import logging\n\ndef f():\n    logging.info(1)\n")
MORE = act("file_ops.write_file", path="more.py", content="def g():\n    print(2)\n")
MENDED = act("file_ops.write_file", path="more.py", content="def g():\n    return 2\n")
YES, NO = Answer(choice="yes"), Answer(choice="no")


def work(*actions: Any) -> list[Any]:
    return [decide(*actions, next_step="continue"), decide(respond("It is done."))]


@pytest.mark.parametrize(
    ("language", "native", "words"), [("en", True, "no, we never use print here"), ("ja", False, "print は使わないで")]
)
async def test_a_correction_is_kept_and_a_later_breach_goes_back(
    tmp_path: Path, language: str, native: bool, words: str
) -> None:
    replies = [*work(PRINTS), *work(LOGS), *work(MORE), *work(MENDED), decide(respond("Never said."))]
    story = Story(tmp_path, replies, native=native, language=language, settings={"safety": {"mode": "auto"}})
    await story.tell("write f")
    story.answers = [YES]
    await story.tell(words)
    rule = (story.folder / RULES / "print.toml").read_text()
    assert f'words = "{words}"' in rule and 'pattern = "print"' in rule
    await story.tell("write g")
    assert words in story.prompt(6) and "more.py:2: print(2)" in story.prompt(6)
    assert (story.folder / "more.py").read_text() == MENDED["args"]["content"]
    assert len(story.model.requests) == 8


async def test_a_breach_of_an_agent_goes_back_to_the_agent(tmp_path: Path) -> None:
    ending = decide(respond("It is written."))
    main = [calls(hand("write g", "work")), decide(respond("It is done."))]
    story, cast = on_stage(tmp_path, main, {"work-1": [calls(MORE), ending, calls(MENDED), ending]})
    (story.folder / RULES).mkdir(parents=True)
    (story.folder / RULES / "print.toml").write_text(KeptRule(words="never print", pattern="print").text())
    assert await story.tell("write g") == "done"
    asked = cast.asked("work-1", 2)
    assert "never print" in asked and "more.py:2: print(2)" in asked
    assert (story.folder / "more.py").read_text() == MENDED["args"]["content"]


async def test_it_is_offered_once_and_a_no_keeps_nothing(tmp_path: Path) -> None:
    replies = [*work(PRINTS), *work(LOGS), decide(respond("Yes."))]
    story = Story(tmp_path, replies, settings={"safety": {"mode": "auto"}})
    await story.tell("write f")
    story.answers = [NO, YES]
    await story.tell("never use print")
    await story.tell("I said: never use print")
    assert not (story.folder / RULES).exists() and story.answers == [YES]


async def test_a_breach_that_stays_is_said_at_the_end(tmp_path: Path) -> None:
    stays = [decide(respond("It stays.")), decide(respond("It stays."))]
    story = Story(tmp_path, [*work(MORE), *stays], settings={"safety": {"mode": "auto"}})
    (story.folder / RULES).mkdir(parents=True)
    (story.folder / RULES / "print.toml").write_text(KeptRule(words="never print", pattern="print").text())
    await story.tell("write g")
    left = [event.what for event in story.all(Noticed) if event.what.key == "rules.left"]
    assert [(one.values["words"], one.values["place"]) for one in left] == [("never print", "more.py:2: print(2)")]
    assert len(story.model.requests) == 4


@pytest.mark.parametrize(
    ("rule", "path", "old", "new", "breaches"),
    [
        (KeptRule(words="", pattern="print"), "a.py", "print(1)\n", "print(1)\nx = 2\n", []),
        (KeptRule(words="", pattern="print"), "a.py", "print(1)\n", "print(1)\nprint(2)\n", ["a.py:2: print(2)"]),
        (KeptRule(words="", pattern="print"), "a.py", None, "blueprint(1)\n# print(2)\n", []),
        (
            KeptRule(words="", pattern="console.log($$$)"),
            "a.ts",
            None,
            "console.log(1, 2)\n",
            ["a.ts:1: console.log(1, 2)"],
        ),
        (
            KeptRule(words="", pattern="os.system"),
            "a.py",
            None,
            "import os\nos.system('x')\n",
            ["a.py:2: os.system('x')"],
        ),
        (KeptRule(words="", files=("test_*.py",), path="tests/unit"), "tests/test_a.py", None, "", ["tests/test_a.py"]),
        (KeptRule(words="", files=("test_*.py",), path="tests/unit"), "tests/unit/test_a.py", None, "", []),
        (
            KeptRule(words="", files=("vendor", "vendor/*"), unchanged=True),
            "vendor/x/a.py",
            "1\n",
            "2\n",
            ["vendor/x/a.py"],
        ),
        (KeptRule(words="", files=("vendor", "vendor/*"), unchanged=True), "a.py", "1\n", "2\n", []),
    ],
)
def test_a_change_is_held_against_a_rule(
    rule: KeptRule, path: str, old: str | None, new: str, breaches: list[str]
) -> None:
    change = FileVersions(path, old.encode() if old is not None else None, new.encode())
    assert list(rule.breaches([change])) == breaches


def test_a_rule_is_written_as_it_is_read(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    rule = KeptRule(words='say "no"\nto C:\\x', files=("a*", "b"), pattern="print")
    KeptRules(workspace).keep(rule)
    (tmp_path / RULES / "bad.toml").write_text("words = 1\n")
    kept = KeptRules(workspace)
    assert dict(kept) == {"print": rule.model_copy(update={"words": 'say "no" to C:\\x'})}
    assert kept.problems == [f"{RULES}/bad.toml"]


def test_words_that_name_no_code_are_no_rule() -> None:
    change = FileVersions("a.py", None, b"print(1)\n")
    for words in ("please don't use that word", "stop using emojis", "don't write so much", "そんな言い方は使わないで"):
        assert rule_in(words, "en", [change]) is None


async def test_rules_are_listed_and_removed(tmp_path: Path) -> None:
    story = Story(tmp_path, [])
    (story.folder / RULES).mkdir(parents=True)
    (story.folder / RULES / "print.toml").write_text(KeptRule(words="never print", pattern="print").text())
    assert "never print" in await story.chat.run_command("/rules")
    await story.chat.run_command("/rules remove print")
    assert not (story.folder / RULES / "print.toml").exists()


def rewrite(path: str, text: str) -> Any:
    return act("file_ops.write_file", path=path, content=text)


@pytest.mark.slow
async def test_no_breach_after_compaction_reaches_the_end_unnoticed(tmp_path: Path) -> None:
    """All corrections of the scorer but those about a command: that runs in a trusted folder only."""
    settings = {"safety": {"mode": "auto"}, "memory": {"budget_tokens": 2500, "summaries": False}}
    kept, corrections = 0, [pair for pair in CORRECTIONS if pair[1] != "lint"]
    for number, (words, about) in enumerate(corrections):
        path, bad, _ = CODE[about]
        first = decide(*(rewrite(one.path, one.new) for one in BEFORE), next_step="continue")
        talk = [decide(respond(f"Part {part}: " + "words " * 60)) for part in range(12)]
        stays = [decide(rewrite(path, bad), next_step="continue"), *[decide(respond("It is done."))] * 3]
        top = tmp_path / str(number)
        top.mkdir()
        story = Story(top, [first, *[decide(respond("Yes."))] * 2, *talk, *stays], settings=settings)
        await story.tell("write a loader and a sum")
        story.answers = [YES]
        await story.tell(words)
        for part in range(len(talk)):
            await story.tell(f"go on with part {part}")
        await story.chat.run_command("/compact")
        await story.tell("write the next file")
        if (story.folder / RULES).is_dir():
            kept += 1
            assert [event for event in story.all(Noticed) if event.what.key == "rules.left"], words
        await story.close()
    assert kept >= 0.6 * len(corrections)
