"""A yes that is limited to some files, folders or programs counts where what is held fits, and holds for the rest."""

import asyncio
import io
from pathlib import Path

import pytest
from rich.console import Console

from duckflow.events.types import ActionFinished, Noticed, PermissionGiven
from duckflow.i18n.template import note
from duckflow.i18n.words import Words
from duckflow.state.data import WISHED
from duckflow.ui.console.printer import Printer
from duckflow.ui.console.screen import Screen
from duckflow.view.items import ActionItem
from tests.journeys.plans import Typing
from tests.journeys.story import act, decide, respond

OK = decide(respond("ok"))


def write(path: str) -> dict[str, object]:
    return decide(act("file_ops.write_file", path=path, content="x = 1\n"), next_step="continue")


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "yes, but only in slugify/ and tests/"),
        ("en", "yes, as long as it stays in slugify/"),
        ("en", "go ahead, but nothing outside slugify/"),
        ("en", "ok, but don't touch anything outside of slugify/ please"),
        ("ja", "はい、でもslugify/とtests/の中だけで"),
        ("ja", "はい、slugify/の外は触らないで"),
    ],
)
async def test_an_edit_that_fits_the_limit_goes_through_and_others_are_held(
    tmp_path: Path, language: str, said: str
) -> None:
    replies = [write("slugify/x.py"), write("slugify/y.py"), write("docs/z.py"), OK, OK]
    story = Typing(tmp_path, replies, mode="ask", language=language)
    turn = asyncio.create_task(story.tell("write it"))
    await story.asked()
    assert (await story.chat.take(said)).meaning == "answer"
    await story.asked(2)
    story.chat.choices.change_mode("auto-edit")
    await story.chat.take("1")
    held = await story.asked(3)
    assert held.gate and [impact.path for impact in held.gate.impacts] == ["docs/z.py"]
    assert [reason.key for reason in held.gate.reasons] == ["risk.limited"], "in every mode"
    await story.chat.take("no")
    await turn
    assert (story.folder / "slugify/x.py").exists() and (story.folder / "slugify/y.py").exists()
    assert not (story.folder / "docs/z.py").exists()
    assert [notice.what.key for notice in story.all(Noticed)].count("gate.limited") == 1
    assert note(language, "gate_said", said=said) in story.prompt()


@pytest.mark.parametrize(
    "said",
    [
        "yes, but only in tests/",
        "yes, but only in slugify/ and only if the tests pass",
        "yes, but only the docstring in lib/slugify/x.py",
        "yes, but not in lib/slugify/",
        "yes, but only in slugify/",
        "yes, but only in ../lib/",
        "はい、tests/の中だけ",
    ],
)
async def test_a_limit_that_is_not_surely_met_runs_nothing(tmp_path: Path, said: str) -> None:
    story = Typing(tmp_path, [write("lib/slugify/x.py"), OK], mode="ask")
    turn = asyncio.create_task(story.tell("write it"))
    question = await story.asked()
    await story.chat.take(said)
    assert not (story.folder / "lib").exists()
    if question in story.chat.questions:
        await story.chat.take("no")
    await turn


@pytest.mark.parametrize(
    ("said", "ran"),
    [
        ("yes, but only slugify/x.py", ["x.py"]),
        ("yes, but only python3", ["log"]),
        ("yes, but only in slugify/ and tests/", ["x.py"]),
        ("yes, only slugify/x.py and python3", ["log", "x.py"]),
    ],
)
async def test_a_command_is_no_part_of_a_yes_that_names_something_else(
    tmp_path: Path, said: str, ran: list[str]
) -> None:
    both = [act("file_ops.write_file", path="slugify/x.py", content="x = 1\n")]
    both.append(act("shell.run", command="python3 -c \"open('log', 'w')\""))
    story = Typing(tmp_path, [decide(*both, next_step="continue"), OK], mode="ask", native=True)
    turn = asyncio.create_task(story.tell("do both"))
    await story.asked()
    assert (await story.chat.take(said)).meaning == "answer"
    await turn
    assert sorted(path.name for path in story.folder.rglob("*") if path.is_file()) == ran and len(story.gates()) == 1


@pytest.mark.parametrize(
    "said",
    [
        "yes, if it is only in slugify/",
        "yes, as long as everything stays in slugify/",
        "yes, but keep slugify/x.py alone",
        "はい、slugify/の中なら",
    ],
)
async def test_a_condition_that_a_part_does_not_meet_allows_nothing(tmp_path: Path, said: str) -> None:
    both = [act("file_ops.write_file", path=path, content="x = 1\n") for path in ("slugify/x.py", "docs/z.py")]
    story = Typing(tmp_path, [decide(*both, next_step="continue"), OK], mode="ask", native=True)
    turn = asyncio.create_task(story.tell("do both"))
    question = await story.asked()
    await story.chat.take(said)
    assert not (story.folder / "slugify").exists()
    if question in story.chat.questions:
        await story.chat.take("no")
    await turn


async def test_a_yes_for_more_lifts_the_limit(tmp_path: Path) -> None:
    replies = [write("slugify/x.py"), write("docs/a.py"), write("docs/b.py"), OK]
    story = Typing(tmp_path, replies, mode="ask")
    turn = asyncio.create_task(story.tell("write it"))
    for number, said in enumerate(("yes, but only in slugify/", "yes, and for the session"), 1):
        await story.asked(number)
        await story.chat.take(said)
    await turn
    assert (story.folder / "docs/b.py").exists() and len(story.gates()) == 2


PYTEST = "python -m pytest -q -p no:cacheprovider tests/test_join.py"


def held(*paths: str, command: str = "") -> str | dict[str, object]:
    calls = [act("file_ops.write_file", path=path, content="def test_it(): pass\n") for path in paths]
    calls += [act("shell.run", command=command)] if command else []
    return decide(*calls, next_step="continue")


CODE, TEST, README = "pond/join.py", "tests/test_join.py", "README.rst"
KINDS = "yes, but only in the code and the tests, leave the README. And don't ask again for pytest"
KINDS_JA = "はい、コードとテストの中だけで、READMEはそのままで。pytestはもう聞かなくていいです"


@pytest.mark.parametrize(("language", "said"), [("en", KINDS), ("ja", KINDS_JA)])
@pytest.mark.parametrize("paths", [(CODE, TEST), (CODE, TEST, README)])
async def test_a_limit_by_kinds_of_files_and_a_program_is_carried_out(
    tmp_path: Path, language: str, said: str, paths: tuple[str, ...]
) -> None:
    replies = [held(*paths, command=PYTEST), held(command=PYTEST), OK]
    story = Typing(tmp_path, replies, mode="ask", native=True, language=language)
    turn = asyncio.create_task(story.tell("do it"))
    await story.asked()
    assert (await story.chat.take(said)).meaning == "answer"
    await turn
    ran = [event.result for event in story.all(ActionFinished) if event.result.operation == "shell.run"]
    assert (story.folder / CODE).exists() and (story.folder / TEST).exists() and [one.ok for one in ran] == [True] * 2
    assert not (story.folder / README).exists() and len(story.gates()) == 1
    assert [given.rule.values["pattern"] for given in story.all(PermissionGiven)] == ["pytest"]
    assert (note(language, "narrowed", reason=said) in story.prompt()) == (README in paths)


@pytest.mark.parametrize(
    ("said", "paths", "done"),
    [
        ("yes, only these two files", (CODE, TEST), (CODE, TEST)),
        ("yes, but only those files", (CODE, TEST), (CODE, TEST)),
        ("yes, only these two files", (CODE, TEST, README), ()),
        ("yes, but not the README", (CODE, README), (CODE,)),
        ("yes, but not the README", (CODE, TEST), (CODE, TEST)),
        ("yes, but leave the readme alone", (CODE, "docs/readme.md"), (CODE,)),
        ("yes, but don't touch the docs", (CODE, "docs/a.md"), (CODE,)),
        ("yes, but don't touch the tests", (CODE, TEST), (CODE,)),
        ("yes, but only the one in notes", (CODE, "notes/a.md"), ("notes/a.md",)),
        ("yes, but only the one in notes", (CODE, "notes/a.md", "notes/b.md"), ()),
        ("yes, but only the code", (CODE, TEST, README, "setup.cfg"), (CODE,)),
        ("yes, just code and tests", (CODE, TEST, README), (CODE, TEST)),
        ("yes, but only the code of the parser", (CODE,), ()),
        ("yes, but only the name in the code", (CODE,), ()),
        ("yes, but only in the code, with tabs", (CODE,), ()),
        ("yes, but only if the tests pass", (CODE, TEST), ()),
        ("yes, but only the tests", (CODE, README), ()),
        ("yes, but not the API", (CODE, "pond/api.py"), ()),
        ("はい、この二つのファイルだけで", (CODE, TEST), (CODE, TEST)),
        ("はい、でもREADMEはそのままで", (CODE, TEST), (CODE, TEST)),
        ("はい、コードだけ", (CODE, TEST), (CODE,)),
    ],
)
async def test_what_a_limit_surely_means_is_done_and_nothing_else(
    tmp_path: Path, said: str, paths: tuple[str, ...], done: tuple[str, ...]
) -> None:
    story = Typing(tmp_path, [held(*paths), OK], mode="ask", native=True, language="en" if said.isascii() else "ja")
    turn = asyncio.create_task(story.tell("do it"))
    question = await story.asked()
    await story.chat.take(said)
    if not done and question in story.chat.questions:
        await story.chat.take("no")
    await turn
    assert [path for path in paths if (story.folder / path).exists()] == [*done] and len(story.gates()) == 1
    assert not story.all(PermissionGiven)


@pytest.mark.parametrize(
    "said", ["yes, but not the README", "yes, but leave the docs", "yes, but only the tests", "yes, only these files"]
)
async def test_a_command_may_change_what_should_stay(tmp_path: Path, said: str) -> None:
    story = Typing(tmp_path, [held(CODE, TEST, command="python3 make.py"), OK], mode="ask", native=True)
    (story.folder / "make.py").write_text("open('README.rst', 'w')\n")
    turn = asyncio.create_task(story.tell("do it"))
    question = await story.asked()
    await story.chat.take(said)
    if question in story.chat.questions:
        await story.chat.take("no")
    await turn
    assert not (story.folder / README).exists()


async def test_a_wish_that_holds_several_actions_back_is_one_sentence(tmp_path: Path) -> None:
    story = Typing(tmp_path, [held(CODE, TEST), OK], mode="ask", native=True)
    turn = asyncio.create_task(story.tell("do it"))
    await story.asked()
    await story.chat.take("yes, but use tabs")
    await turn
    results = [event.result for event in story.all(ActionFinished) if event.result.for_user.key == WISHED]
    assert [result.for_user.values["what"] for result in results] == [f"{CODE}, {TEST}"] * 2
    screen = Screen(Printer(Console(file=(out := io.StringIO()), width=80)), Words("en"))
    for gate in ("first", "first", "second"):
        screen.draw(ActionItem(gate, 1, 0.0, "file_ops.write_file", "failed", gate=gate, result=results[0]))
    assert out.getvalue().count("Not done yet") == 2, "once for each Gate"
