"""The page shows the other sessions beside one: what waits there, what was said, and the agents at work."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from duckflow.llm.scripted import ScriptedReply
from tests.journeys.calling import called
from tests.journeys.cast import Cast, calls, hand, reading
from tests.journeys.story import act, decide, respond
from tests.web.chromium import PHONE, WIDE, browsing, needs_chromium, visit
from tests.web.played import PlayedFleet
from tests.web.site import ID, Site, Talk
from tests.web.test_page_everywhere import violations

if TYPE_CHECKING:
    from playwright.async_api import ViewportSize

OTHER = "20260102-000000-abcdef"
ASKS = decide(act("shell.run", command="touch made.txt"))
HELLO = decide(respond("Hello."), step="PLANNING")


def saying(text: str) -> dict[str, Any]:
    return decide(respond(text), step="PLANNING")


async def test_search_finds_words_only_in_sessions_that_are_shown(tmp_path: Path) -> None:
    async with Talk(tmp_path, [saying("The heron stands <b>still</b>."), HELLO]) as talk, Site(talk.paths) as site:
        await talk.built.conversation.say("what does the heron do?")
        await talk.built.conversation.say("thanks")
        browser = await site.visit()
        places = await browser.get("search?q=heron")
        assert {place["id"] for place in places} == {ID} and any("heron" in place["excerpt"] for place in places)
        for nothing in ("", "%20", "zebra", "%00", "x" * 5000, "%22%20OR%201=1", "*", "NEAR(", "heron%20AND"):
            await browser.get(f"search?q={nothing}")
        assert await browser.get("search?q=zebra") == []


@needs_chromium
@pytest.mark.slow
async def test_a_place_in_a_long_session_is_found_and_opened(tmp_path: Path) -> None:
    chatter = [saying(f"Number {number}.") for number in range(40)]
    replies = [saying("The heron stands still."), *chatter]
    async with Talk(tmp_path, replies) as talk, Site(talk.paths) as site, browsing() as browser:
        await talk.built.conversation.say("what does the bird do?")
        for number in range(40):
            await talk.built.conversation.say(f"go on {number}")
        tab = await visit(browser, site, "#/")
        await (await tab.see(".search input")).fill("heron still")
        hit = await tab.see(".said-in a", "heron")
        assert await violations(tab) == []
        await hit.click()
        await tab.see(".sought", "heron")
        box = "document.querySelector('.sought').getBoundingClientRect()"
        seen = f"() => {box}.top > 0 && {box}.bottom < innerHeight"
        await tab.page.wait_for_function(seen)
        assert tab.problems == []


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
async def test_other_sessions_are_beside_with_what_waits(tmp_path: Path, size: "ViewportSize") -> None:
    fleet = PlayedFleet(2, asks=1)
    async with (
        Talk(tmp_path, [HELLO]) as talk,
        Talk(tmp_path, [ASKS], "ask", OTHER, folder="other") as other,
        Site(talk.paths, fleet=fleet) as site,
        browsing() as browser,
    ):
        await talk.built.conversation.say("hello")
        tab = await visit(browser, site, f"#/s/{ID}", size)
        await tab.see(".r-said", "Hello.")
        await other.built.conversation.take("make it")
        await tab.see(".switch-button .count", "2")
        await (await tab.see(".switch-button")).click()
        await tab.see(".switcher .fleet-asks")
        row = await tab.see(".switcher li.st-waiting", "make it")
        assert await violations(tab) == []
        await row.locator("a").click()
        await tab.see(".card", "touch made.txt")
        assert (await tab.page.title()).startswith("●")
        assert tab.problems == []


@needs_chromium
@pytest.mark.slow
async def test_one_agent_is_stopped_and_another_told_something(tmp_path: Path) -> None:
    agents = {
        "explore-1": [replace(called(calls(reading("a.py"))), delay=6), saying("Only the tests.")],
        "work-2": [calls(act("file_ops.list_files")), ScriptedReply("Never.", delay=60)],
    }
    main = [calls(hand("look at the code"), hand("write b.py", "work")), decide(respond("Done."))]
    cast = Cast(main, agents)
    async with Talk(tmp_path, cast) as talk, Site(talk.paths) as site, browsing() as browser:
        (talk.folder / "a.py").write_text("A = 1\n")
        tab = await visit(browser, site, f"#/s/{ID}/work")
        await tab.say("look and write")
        first = await tab.see(".agent", "look at the code")
        second = await tab.see(".agent", "write b.py")
        assert await violations(tab) == []
        await first.locator("input").fill("only the tests")
        await first.locator("input").press("Enter")
        await tab.see(".r-note", "to explore-1: only the tests")
        await second.get_by_role("button", name="Stop work-2").click()
        await second.locator(".badge", has_text="stopped").wait_for()
        await tab.see(".r-said", "Done.")
        assert "only the tests" in cast.asked("explore-1")
        assert talk.session.state.agents["explore-1"].status == "done"
        assert tab.problems == []
