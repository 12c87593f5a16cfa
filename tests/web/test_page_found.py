"""Faults that somebody who had not built the page found by using it; each stays mended."""

import asyncio
from pathlib import Path

import pytest

from duckflow.events.types import ActionStarted
from tests.journeys.story import act, decide, respond
from tests.web.chromium import PHONE, browsing, needs_chromium, visit
from tests.web.played import PlayedFleet
from tests.web.site import ID, Site, Talk

pytestmark = [needs_chromium, pytest.mark.slow]

WRITE = decide(act("file_ops.write_file", path="a.py", content="a = 1\n"), respond("Written."))


async def test_tasks_that_are_chosen_one_by_one_are_all_chosen(tmp_path: Path) -> None:
    async with Talk(tmp_path, []) as talk, Site(talk.paths, fleet=PlayedFleet(12)) as site, browsing() as browser:
        tab = await visit(browser, site, "#/fleet")
        await tab.see("table.tasks-of")
        boxes = tab.find("table.tasks-of tbody input[type=checkbox]")
        for place in (0, 4, 6):
            await boxes.nth(place).check()
        await tab.see(".bulk", "3 selected")
        await boxes.nth(4).uncheck()
        await tab.see(".bulk", "2 selected")
        names = tab.find("table.tasks-of th .link")
        for place in (0, 4):
            await names.nth(place).click()
        assert await tab.find("table.tasks-of th .link[aria-expanded=true]").count() == 2
        assert tab.problems == []


async def test_a_command_that_ran_before_the_server_came_stops_turning_when_it_is_stopped(tmp_path: Path) -> None:
    runs = decide(act("shell.run", command="sleep 60"), respond("Slept."))
    async with Talk(tmp_path, [runs]) as talk:
        started = asyncio.Event()
        talk.built.conversation.hear(lambda _, event: started.set() if isinstance(event, ActionStarted) else None)
        await talk.built.conversation.take("sleep")
        await started.wait()
        async with Site(talk.paths) as site, browsing() as browser:
            tab = await visit(browser, site)
            await tab.see(".r-action .spinner")
            await tab.find(".composer .stop").click()
            await tab.see(".r-warn", "Interrupted")
            await tab.gone(".r-action .spinner")
            assert await tab.texts(".r-action .told") == ["sleep 60"], "it does not say that something still runs"
            assert tab.problems == []


async def test_a_phone_says_in_every_tab_that_the_server_is_gone(tmp_path: Path) -> None:
    async with Talk(tmp_path, [WRITE]) as talk, browsing() as browser:
        await talk.built.conversation.say("write a.py")
        async with Site(talk.paths) as site:
            tab = await visit(browser, site, f"#/s/{ID}/changes", PHONE)
            await tab.see(".panel .turns")
        await tab.page.wait_for_function(
            "() => [...document.querySelectorAll('.link-lost button')].some((button) => button.offsetHeight)"
        )


async def test_a_comment_on_a_line_that_is_gone_can_still_be_deleted(tmp_path: Path) -> None:
    async with Talk(tmp_path, [WRITE]) as talk, Site(talk.paths) as site, browsing() as browser:
        conversation = talk.built.conversation
        await conversation.say("write a.py")
        await conversation.review.comment(1, "a.py", 1, "why?")
        await conversation.review.take_back(1, "a.py")
        tab = await visit(browser, site, f"#/s/{ID}/changes")
        await (await tab.see(".send-comments summary", "1 comment to send")).click()
        await tab.see(".send-comments p", "a.py:1 why?")
        await tab.find(".send-comments p button").click()
        await tab.gone(".send-comments")
        assert talk.session.state.comments == [] and tab.problems == []


FOCUS_WHEN_ASKED = """([opens, asks]) => new Promise((done) => {
    const watch = new MutationObserver(() => {
        if (!document.querySelector(asks)) return;
        watch.disconnect();
        done(document.activeElement.textContent);
    });
    watch.observe(document.body, { childList: true, subtree: true });
    const button = [...document.querySelectorAll("button")].find((one) => one.textContent.startsWith(opens));
    button.focus();
    button.click();
})"""


async def test_the_way_out_has_the_focus_as_soon_as_something_grave_is_asked(tmp_path: Path) -> None:
    """A busy page draws late, and an Enter that comes before must not get lost, nor do anything."""
    async with Talk(tmp_path, [WRITE]) as talk:
        await talk.built.conversation.say("write a.py")
    async with Site(talk.paths, fleet=PlayedFleet(12)) as site, browsing() as browser:
        tab = await visit(browser, site, "#/")
        await (await tab.see(".session .more")).click()
        await tab.see(".deeds button", "Delete")
        assert await tab.page.evaluate(FOCUS_WHEN_ASKED, ["Delete", ".deeds .bad"]) == "Cancel"
        await tab.go("#/fleet")
        await tab.see(".fleet-of button", "Cancel")
        assert await tab.page.evaluate(FOCUS_WHEN_ASKED, ["Cancel", ".sure"]) == "Keep things as they are"
        assert tab.problems == []


async def test_a_second_enter_deletes_no_session(tmp_path: Path) -> None:
    async with Talk(tmp_path, [WRITE]) as talk:
        await talk.built.conversation.say("write a.py")
    async with Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site, "#/")
        await (await tab.see(".session .more")).click()
        await tab.find(".deeds button", "Delete").press("Enter")
        await tab.see(".deeds .bad")
        await tab.page.keyboard.press("Enter")
        await tab.gone(".deeds")
        await tab.see(".session .title", "write a.py")
        assert list(talk.paths.data.glob("sessions/*/*.db"))
