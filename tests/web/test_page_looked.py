"""Flaws that people from outside have found: none of them comes back."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Shell
from tests.journeys.plans import PROPOSE, SNAKE, report, run_step, when
from tests.journeys.story import act, decide, respond
from tests.web.chromium import PHONE, READING_MS, Tab, browsing, needs_chromium, visit
from tests.web.played import PlayedFleet, PlayedModels
from tests.web.site import ID, Site, Talk
from tests.web.test_page_everywhere import violations
from tests.web.test_page_processes import Program, shell

assert shell

OTHER = "20260102-000000-abcdef"
TWO = decide(
    act("file_ops.write_file", path="a.py", content="a = 1\n"),
    act("file_ops.write_file", path="b.py", content="b = 1\n"),
    respond("Written."),
)
ASKS = decide(act("shell.run", command="touch made.txt"), respond("Made."), rationale="It was asked for")
FOCUS = "() => document.activeElement.tagName + '.' + document.activeElement.className"


async def test_one_file_that_is_taken_back_leaves_the_others_of_its_turn(tmp_path: Path) -> None:
    async with Talk(tmp_path, [TWO]) as talk, Site(talk.paths) as site:
        await talk.built.conversation.say("write it")
        browser = await site.visit()
        await browser.post(f"sessions/{ID}/review", what="take_back", turn=1, path="b.py")
        [turn] = await browser.get(f"sessions/{ID}/changes")
        assert (turn["files"], turn["taken"]) == (["a.py", "b.py"], ["b.py"])
        await browser.post(f"sessions/{ID}/review", what="take_back", turn=1, path="a.py")
        [turn] = await browser.get(f"sessions/{ID}/changes")
        assert sorted(turn["taken"]) == ["a.py", "b.py"]


async def test_an_open_session_is_renamed_and_branched_and_the_branch_has_a_title_of_its_own(tmp_path: Path) -> None:
    async with Talk(tmp_path, [TWO]) as talk, Site(talk.paths) as site:
        await talk.built.conversation.say("write it")
        browser = await site.visit()
        await browser.post(f"sessions/{ID}/rename", title="My files")
        async with browser.reading() as reader:
            await reader.until(lambda: reader.facts.get("title") == "My files")
        sessions = talk.built.conversation.session.path
        branch = await asyncio.to_thread(lambda: _fork(talk, sessions))
        again = await asyncio.to_thread(lambda: _fork(talk, sessions))
        assert (branch, again) == ("My files (2)", "My files (3)")


def _fork(talk: Talk, source: Path) -> str:
    from duckflow.store.sessions import Sessions, read_headline

    forked = read_headline(Sessions(talk.paths.sessions_of(talk.folder)).fork(source))
    assert forked
    return forked.title


@needs_chromium
@pytest.mark.slow
async def test_a_file_that_is_taken_back_is_the_only_one_struck_through(tmp_path: Path) -> None:
    async with Talk(tmp_path, [TWO]) as talk, Site(talk.paths) as site, browsing() as browser:
        await talk.built.conversation.say("write it")
        tab = await visit(browser, site, f"#/s/{ID}/changes")
        await (await tab.see(".turns summary", "Review, comment")).click()
        await (await tab.see(".file:has-text('b.py') .link", "Undo the whole file")).click()
        for _ in range(2):
            assert await (await tab.see(".impacts .undone")).inner_text() == "b.py"
            assert await tab.find(".impacts .undone").count() == 1
            await tab.see(".turns summary", "Review, comment")
            assert await tab.find(".turns h3 .badge").count() == 0
            await tab.page.reload()
        assert (talk.folder / "a.py").exists() and not (talk.folder / "b.py").exists()
        assert tab.problems == []


@needs_chromium
@pytest.mark.slow
async def test_a_waiting_question_is_shown_on_every_view(tmp_path: Path) -> None:
    fleet = PlayedFleet(10)
    talk = Talk(tmp_path, [ASKS], mode="ask")
    async with talk, Site(talk.paths, fleet=fleet, models=PlayedModels()) as site, browsing() as browser:
        await talk.built.conversation.take("make it")
        picks = sum(task["state"] == "choose" for task in fleet.tasks)
        assert picks
        for place in ("#/", "#/models", "#/fleet"):
            tab = await visit(browser, site, place)
            await tab.page.wait_for_function("() => document.title.startsWith('● ')")
            await tab.see(".top nav a:first-child .count", "1")
            await tab.see(".top nav a:nth-child(2) .count", str(picks))
            assert "duck-waits" in str(await tab.find("link[rel=icon]").get_attribute("href"))
            assert tab.problems == []


COVERED = """() => [...document.querySelectorAll(".copy")].filter((button) => {
    const box = button.getBoundingClientRect();
    const range = document.createRange();
    const walk = document.createTreeWalker(button.parentElement, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        if (button.contains(walk.currentNode)) continue;
        range.selectNodeContents(walk.currentNode);
        for (const text of range.getClientRects()) {
            const beside = text.right <= box.left || text.left >= box.right;
            if (text.width && !beside && text.bottom > box.top && text.top < box.bottom) return true;
        }
    }
    return false;
}).length"""


@needs_chromium
@pytest.mark.slow
async def test_on_a_phone_nothing_is_covered_and_no_choice_is_cut_off(tmp_path: Path) -> None:
    command = "for n in $(seq 60); do echo tick-$n of the job that goes on and on; done && touch made.txt"
    says = decide(respond("A sentence that is as wide as the screen of a phone, and goes on. " * 6), step="PLANNING")
    runs = decide(act("shell.run", command=command), rationale="It was asked for")
    async with Talk(tmp_path, [says, runs], mode="ask") as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site, size=PHONE)
        await tab.say("talk")
        await tab.see(".r-said .copy")
        assert await tab.page.evaluate(COVERED) == 0
        await tab.say("run it")
        await tab.see(".card .command")
        await tab.page.wait_for_timeout(READING_MS)
        assert await tab.page.evaluate(COVERED) == 0
        boxes = [await button.bounding_box() for button in await tab.find(".card .choices button").all()]
        assert len(boxes) >= 2
        assert all(box and box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"] for box in boxes)
        assert tab.problems == []


@needs_chromium
@pytest.mark.slow
async def test_a_draft_is_there_once_and_nothing_turns_while_its_job_is_paused(tmp_path: Path) -> None:
    slow = {"tasks": [act("shell.run", "try", command="for n in $(seq 200); do echo tick-$n; sleep 0.2; done")]}
    replies: Any = [PROPOSE, SNAKE, run_step(1), slow, when("A background job has ended", report("There."))]
    replies.append(decide(respond("On its way."), step="EXECUTION"))
    async with Talk(tmp_path, replies) as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site)
        await tab.say("make a snake game")
        approve = await tab.see(".r-plan button", "Approve the plan")
        assert await tab.find("button", "Approve the plan").count() == 1
        assert await tab.find(".side").count() == 0
        await tab.page.wait_for_timeout(READING_MS)
        await approve.click()
        await (await tab.see(".job .choices button", "Pause")).click()
        await tab.see(".job .badge.b-paused")
        await tab.page.wait_for_function("() => !document.querySelector('.spinner')")
        assert await violations(tab) == [] and tab.problems == []


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("way", ["click", "key"])
async def test_after_an_answer_one_can_type_on_and_stop_with_escape(tmp_path: Path, way: str) -> None:
    sleeps = decide(act("shell.run", command="touch made.txt; sleep 60"), rationale="It was asked for")
    async with Talk(tmp_path, [sleeps], mode="ask") as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site)
        await tab.say("make it")
        await tab.see(".card")
        await tab.page.wait_for_timeout(READING_MS)
        if way == "click":
            await tab.choose("yes")
        else:
            await tab.page.evaluate("() => document.activeElement.blur()")
            await tab.page.keyboard.press("1")
        await tab.gone(".card")
        await tab.page.wait_for_timeout(READING_MS)
        assert (await tab.page.evaluate(FOCUS)).startswith("TEXTAREA")
        await tab.page.evaluate("() => document.activeElement.blur()")
        await tab.page.keyboard.press("Escape")
        await tab.gone(".composer .stop")
        assert tab.problems == []


@needs_chromium
@pytest.mark.slow
async def test_a_command_that_ended_badly_bears_no_check_mark(tmp_path: Path) -> None:
    runs = decide(act("shell.run", command="no-such-program-at-all"), respond("Not there."))
    async with Talk(tmp_path, [runs]) as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site)
        await tab.say("run it")
        await tab.see(".r-action.warn", "exit code 127")
        assert await tab.find(".r-action .i-check").count() == 0


@needs_chromium
@pytest.mark.slow
async def test_a_key_is_typed_where_nobody_reads_it_and_nowhere_else(shell: Shell) -> None:
    program = Program(shell)
    begun = {"folder": str(shell.work), "mode": "ask", "model": "openai:gpt-5-mini", "message": "hi"}
    person = await program.visit()
    session = (await person.post("sessions", **begun))["id"]
    async with browsing() as browser:
        tab = await visit(browser, f"http://127.0.0.1:{program.port}/?token={program.token}", f"#/s/{session}")
        field = await tab.see(".card input[type=password]")
        assert "own words" not in str(await field.get_attribute("placeholder"))
        await tab.see(".target", "in its own field above")
        await tab.say("sk-verysecret")
        await tab.see(".told", "its own field")
        kept = await tab.page.evaluate("() => JSON.stringify(sessionStorage) + JSON.stringify(localStorage)")
        assert "verysecret" not in kept
        assert await tab.page.evaluate(FOCUS) == "INPUT."
        assert await violations(tab) == [] and tab.problems == []
        # A session that waits for somebody would stay for ever.
        await person.post(f"sessions/{session}/interrupt")
    program.stop()


@needs_chromium
@pytest.mark.slow
async def test_commands_that_lead_out_of_a_conversation_lead_there(tmp_path: Path) -> None:
    async with Talk(tmp_path, [TWO]) as talk, Site(talk.paths, models=PlayedModels()) as site, browsing() as browser:
        await talk.built.conversation.say("write it")
        tab = await visit(browser, site)
        for command, place in (("/new", "#/new"), ("/quit", "#/"), ("/resume", "#/")):
            await tab.go(f"#/s/{ID}")
            await tab.see(".composer textarea")
            await tab.say(command)
            await tab.page.wait_for_function("(place) => location.hash === place", arg=place)
        await (await tab.see(".session .more")).click()
        for name in ("Rename", "Branch"):
            await tab.see(".deeds button", name)
        assert "BUTTON" in await tab.page.evaluate(FOCUS)
        assert await violations(tab) == [] and tab.problems == []


def overlaps(one: Any, other: Any) -> bool:
    return bool(
        one["x"] < other["x"] + other["width"]
        and other["x"] < one["x"] + one["width"]
        and one["y"] < other["y"] + other["height"]
        and other["y"] < one["y"] + one["height"]
    )


async def boxes_of(tab: Tab, selector: str) -> list[Any]:
    return [await found.bounding_box() for found in await tab.find(selector).all()]


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("size", [PHONE, {"width": 1440, "height": 900}], ids=["phone", "wide"])
async def test_passing_notices_cover_nothing_that_they_are_about(tmp_path: Path, size: Any) -> None:
    async with Talk(tmp_path, [TWO]) as talk, Site(talk.paths) as site, browsing() as browser:
        await talk.built.conversation.say("write it")
        tab = await visit(browser, site, size=size)
        files = [tmp_path / "empty.txt", tmp_path / "full.txt"]
        for file, text in zip(files, ("", "text"), strict=True):
            file.write_text(text)
        await tab.page.set_input_files(".composer input[type=file]", files)
        await tab.see(".told p")
        [told] = await boxes_of(tab, ".told p")
        about = [
            *await boxes_of(tab, ".attached li"),
            *await boxes_of(tab, ".composer"),
            *await boxes_of(tab, ".r-said"),
        ]
        assert len(about) >= 3
        assert not any(overlaps(told, box) for box in about if box)
