"""An open page asks for nothing by itself: what happens comes over its stream."""

import asyncio
import re
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.fleet.test_commands import FleetShell, wait_for, write_and_sleep
from tests.journeys.plans import PROPOSE, SNAKE, run_step
from tests.journeys.story import act, decide, respond
from tests.web.chromium import READING_MS, Tab, browsing, needs_chromium, visit
from tests.web.played import PlayedFleet, PlayedModels
from tests.web.site import ID, Site, Talk
from tests.web.test_page_processes import HELLO, Program

pytestmark = [needs_chromium, pytest.mark.slow]

QUIET_MS = 20_000
TICKS = "for n in $(seq 300); do echo tick-$n; sleep 0.2; done"
PANELS = ("work", "changes", "health", "audit", "layers")


async def asked_for(tab: Tab) -> list[str]:
    """Returns the requests of twenty seconds in which nobody touches the page."""
    asked = Requests(tab)
    await tab.page.wait_for_timeout(QUIET_MS)
    return asked.addresses


@pytest.mark.parametrize("panel", PANELS)
async def test_a_quiet_session_asks_for_nothing(tmp_path: Path, panel: str) -> None:
    write = decide(act("file_ops.write_file", path="a.txt", content="one\n"), respond("Written."))
    async with Talk(tmp_path, [write]) as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site)
        await tab.say("write it")
        await tab.see(".r-said", "Written.")
        await tab.go(f"#/s/{ID}/{panel}")
        await tab.see(".panel section")
        await tab.page.wait_for_timeout(3000)
        assert await asked_for(tab) == []
        assert tab.problems == []


@pytest.mark.parametrize("panel", ["work", "audit"])
async def test_a_running_job_is_seen_without_asking(tmp_path: Path, panel: str) -> None:
    replies = [PROPOSE, SNAKE, run_step(1), {"tasks": [act("shell.run", "try", command=TICKS)]}]
    async with Talk(tmp_path, replies) as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site)
        await tab.say("make a snake game")
        await tab.see(".r-plan .step .name", "1. Core loop")
        await tab.page.wait_for_timeout(READING_MS)
        await tab.say("yes")
        await tab.see(".r-action .tail", "tick-")
        await tab.find(f"#tab-{panel}").click()
        await tab.page.wait_for_timeout(3000)
        before = await latest_tick(tab)
        assert await asked_for(tab) == []
        assert await latest_tick(tab) > before + 20
        assert tab.problems == []


async def test_the_list_tells_what_changes_and_asks_for_nothing(tmp_path: Path) -> None:
    question = decide(act("shell.run", command="touch made.txt"))
    async with Talk(tmp_path, [question], mode="ask") as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site, "#/")
        await talk.built.conversation.take("make it")
        await tab.see(".session .state", "waiting for you")
        assert await asked_for(tab) == []
        asked = Requests(tab)
        talk.built.conversation.interrupt()
        await tab.gone(".session.st-waiting")
        # The icon says by another picture that nothing waits any more.
        assert [address for address in asked.addresses if not address.endswith(".svg")] == []
        assert tab.problems == []


async def test_a_fleet_is_followed_without_asking(tmp_path: Path) -> None:
    shell = FleetShell(tmp_path)
    shell.add("tax", write_and_sleep("74.5"))
    run = shell.begin("run", "tasks.toml")
    program = await asyncio.to_thread(Program, shell)
    try:
        await asyncio.to_thread(wait_for, "sleep 74.5")
        async with browsing() as browser:
            tab = await visit(browser, f"http://127.0.0.1:{program.port}/?token={program.token}", "#/fleet")
            task = await tab.see("tbody.task", "tax")
            await task.locator("th .link").click()
            await task.locator(".closer > summary").click()
            await task.locator(".closer .out").wait_for()
            assert await asked_for(tab) == []
            asked = Requests(tab)
            await asyncio.to_thread(shell.fleet, "cancel", "tax")
            await tab.see(".tasks-of .badge", "cancelled")
            assert asked.addresses == [] and tab.problems == []
    finally:
        program.kill()
        run.kill()
        run.communicate()


@pytest.mark.parametrize("place", ["#/", "#/new", "#/models", "#/fleet", f"#/s/{ID}"])
async def test_every_view_is_quiet(tmp_path: Path, place: str) -> None:
    """Even a large fleet whose times go on, and an open list of other sessions, ask for nothing."""
    fleet, models = PlayedFleet(200, asks=1), PlayedModels()
    async with Talk(tmp_path, []) as talk, Site(talk.paths, fleet=fleet, models=models) as site, browsing() as browser:
        tab = await visit(browser, site, place)
        await tab.see("#main")
        if ID in place:
            await (await tab.see(".switch-button")).click()
            await tab.see(".switcher .fleet-asks")
        await tab.page.wait_for_timeout(3000)
        assert await asked_for(tab) == []
        assert tab.problems == []


async def test_a_question_and_what_was_interrupted_are_quiet(tmp_path: Path) -> None:
    question = decide(act("shell.run", command="touch made.txt"))
    async with Talk(tmp_path, [question], mode="ask") as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site)
        await tab.say("make it")
        await tab.see(".card")
        # The icon says by another picture that something waits.
        assert [address for address in await asked_for(tab) if not address.endswith(".svg")] == []
        await tab.find(".composer .stop").click()
        await tab.gone(".card")
        await tab.page.wait_for_timeout(1000)
        assert await asked_for(tab) == []
        assert tab.problems == []


async def test_an_old_session_goes_on_with_a_few_requests(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    model = shell.script(HELLO)
    ran = await asyncio.to_thread(shell.run, "-p", "hi", "-m", model)
    assert ran.returncode == 0, ran.stderr
    shell.write_config(f'[llm]\nmodel = "{model}"\n')
    program = await asyncio.to_thread(Program, shell)
    try:
        async with browsing() as browser:
            tab = await visit(browser, f"http://127.0.0.1:{program.port}/?token={program.token}", "#/")
            await (await tab.see(".session a")).click()
            button = await tab.see(".read-only button")
            asked = Requests(tab)
            await button.click()
            await tab.see(".composer textarea")
            await tab.page.wait_for_timeout(QUIET_MS)
            # The click itself, the stream that it opens, and at most one more when the old one ends.
            assert len(asked.addresses) <= 3, asked.addresses
    finally:
        program.stop()


async def test_a_server_that_is_gone_is_asked_ever_more_seldom(tmp_path: Path) -> None:
    async with Talk(tmp_path, []) as talk, browsing() as browser:
        async with Site(talk.paths) as site:
            tab = await visit(browser, site, "#/")
            await tab.see("h1")
            asked = Requests(tab)
        await tab.see(".problem")
        await tab.page.wait_for_timeout(QUIET_MS)
        assert 2 <= len(asked.addresses) <= 4, asked.addresses
        assert len(await asked_for(tab)) <= 2
        async with Site(talk.paths, port=site.place.port):
            await tab.gone(".problem")


class Requests:
    """The addresses that a page asks for from now on."""

    def __init__(self, tab: Tab) -> None:
        self.addresses: list[str] = []
        tab.page.on("request", lambda request: self.addresses.append(f"{request.method} {request.url}"))


async def latest_tick(tab: Tab) -> int:
    text = await tab.find(".r-action .tail").first.inner_text()
    return int(re.findall(r"tick-(\d+)", text)[-1])
