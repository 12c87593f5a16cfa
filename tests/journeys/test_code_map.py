"""The code map in a conversation: offered where it pays, never elsewhere, and its answers."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import ActionFinished
from duckflow.state.action import ActionResult
from tests.journeys.story import Story, act, decide, respond

OK = decide(respond("ok"), step="PLANNING")
FILES = {
    "till.py": "class Till:\n    def add(self, price): ...\n",
    "use.py": "from till import Till\ndef ring(t: Till):\n    t.add(3)\n",
}


def story(tmp_path: Path, replies: list[Any], files: int, native: bool = True, **settings: object) -> Story:
    folder = tmp_path / "work"
    folder.mkdir(parents=True)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    for number in range(files - len(FILES)):
        (folder / f"m{number}.py").write_text(f"def f{number}(): ...\n")
    return Story(tmp_path, replies, native=native, settings={"code": {"from_files": 20, **settings}})


def asks(operation: str, **args: str) -> dict[str, Any]:
    return decide(act(operation, **args), step="PLANNING", next_step="continue")


def results(told: Story) -> list[ActionResult]:
    return [one.result for one in told.all(ActionFinished) if one.result.operation.startswith("code.")]


@pytest.mark.parametrize("native", [False, True], ids=["json", "native"])
async def test_a_small_folder_pays_nothing_for_it(tmp_path: Path, native: bool) -> None:
    told = story(tmp_path, [OK], 19, native)
    await told.tell("hello")
    request = told.model.requests[0]
    assert not any(tool.name.startswith("code_") for tool in request.tools) and "code.find" not in told.prompt()


async def test_a_large_folder_is_asked_about_with_one_call(tmp_path: Path) -> None:
    replies = [asks("code.find", symbol="Till.add"), asks("code.callers", symbol="add"), asks("code.outline"), OK]
    told = story(tmp_path, replies, 20)
    await told.tell("who adds?")
    offered = [tool.name for tool in told.model.requests[0].tools]
    assert [name for name in offered if name.startswith("code")] == ["code_outline", "code_find", "code_callers"]
    assert all([tool.name for tool in request.tools] == offered for request in told.model.requests)
    found, used, outline = results(told)
    assert found.for_model == "till.py:2 (to 2) function Till.add: def add(self, price): ..."
    assert "Till.add (till.py:2) is used in 1 places, in 1 files\nuse.py\n  in ring\n  3: t.add(3)" in used.for_model
    assert "till.py: Till" in outline.for_model and "m3.py: f3" in outline.for_model


async def test_it_sees_what_the_turn_has_changed(tmp_path: Path) -> None:
    write = decide(act("file_ops.write_file", path="late.py", content="def late(): ...\n"), next_step="continue")
    told = story(tmp_path, [asks("code.find", symbol="Till"), write, asks("code.find", symbol="late"), OK], 20)
    await told.tell("write it")
    assert results(told)[-1].for_model.startswith("late.py:1")


async def test_wrong_questions_say_what_to_do(tmp_path: Path) -> None:
    replies = [asks("code.find", symbol="Tillx"), asks("code.outline", path="a.ex"), OK]
    told = story(tmp_path, replies, 20)
    (told.folder / "a.ex").write_text("defmodule X do\nend\n")
    await told.tell("look")
    missing, unknown = results(told)
    assert not missing.ok and "Till" in missing.for_model
    assert not unknown.ok and "not known" in unknown.for_model


async def test_without_the_extra_everything_is_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ast_grep_py", None)
    told = story(tmp_path, [OK], 20)
    assert await told.tell("hello") == "done"
    assert not any(tool.name.startswith("code_") for tool in told.model.requests[0].tools)


async def test_a_mentioned_definition_is_handed_over_and_nothing_else(tmp_path: Path) -> None:
    told = story(tmp_path, [OK], 3)
    text = "import os\n\nclass Till:\n    @property\n    def total(self):\n        return 1\n\n    def add(self): ...\n"
    (told.folder / "shop.py").write_text(text)
    await told.tell("look at @shop.py:Till.total, please")
    sent = told.prompt()
    assert "shop.py (lines 4-6 of 8)" in sent and "@property" in sent and "def add" not in sent
    again = story(tmp_path / "again", [OK], 3)
    (again.folder / "shop.py").write_text(text)
    await again.tell("look at @shop.py:Nothing")
    assert "shop.py (lines 1-8 of 8)" in again.prompt()


async def test_definitions_complete_behind_the_sign(tmp_path: Path) -> None:
    told = story(tmp_path, [OK], 3)

    def offered(typed: str) -> list[str]:
        return list(told.chat.find_files(typed, 20))

    for _ in range(200):
        if "till.py:Till" in await asyncio.to_thread(offered, "Til"):
            break
        await asyncio.sleep(0.1)
    assert offered("ad") == ["till.py:Till.add"]
    assert offered("till.py:Till.") == ["till.py:Till.add"]
    assert offered("till")[0] == "till.py"


async def test_the_map_shows_the_project_a_folder_or_a_file(tmp_path: Path) -> None:
    told = story(tmp_path, [OK], 5)
    whole = await told.chat.run_command("/map")
    assert whole.startswith("python 5\n") and "till.py: Till" in whole
    assert await told.chat.run_command("/map till.py") == "1-2: class Till:\n2-2:   def add(self, price): ..."
    assert "nowhere" in await told.chat.run_command("/map nowhere")


async def test_a_folder_too_large_for_a_list_of_files_shows_how_many_each_folder_has(tmp_path: Path) -> None:
    told = story(tmp_path, [asks("code.outline"), OK], 800)
    (told.folder / "deep").mkdir()
    (told.folder / "deep/one.py").write_text("def one(): ...\n")
    shown = await told.chat.run_command("/map")
    assert shown == "python 801\nfolder: source files, definitions\n./: 800, 801\ndeep/: 1, 1"
    await told.tell("look around")
    [outline] = results(told)
    assert outline.for_model.endswith("of definitions]\n./: 800, 801\ndeep/: 1, 1")
