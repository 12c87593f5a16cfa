"""An open page asks for nothing by itself: what happens comes over its stream."""

import re
from pathlib import Path

import pytest

from tests.journeys.plans import PROPOSE, SNAKE, run_step
from tests.journeys.story import act, decide, respond
from tests.web.chromium import Tab, browsing, needs_chromium, visit
from tests.web.site import Site, Talk

pytestmark = [needs_chromium, pytest.mark.slow]

QUIET_MS = 20_000
TICKS = "for n in $(seq 300); do echo tick-$n; sleep 0.2; done"
PANELS = ("work", "changes", "health", "audit", "layers")


async def asked_for(tab: Tab) -> list[str]:
    """The requests of twenty seconds in which nobody touches the page."""
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(f"{request.method} {request.url}"))
    await tab.page.wait_for_timeout(QUIET_MS)
    return asked


@pytest.mark.parametrize("panel", PANELS)
async def test_a_quiet_session_asks_for_nothing(tmp_path: Path, panel: str) -> None:
    write = decide(act("file_ops.write_file", path="a.txt", content="one\n"), respond("Written."))
    async with Talk(tmp_path, [write]) as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site)
        await tab.say("write it")
        await tab.see(".r-said", "Written.")
        await tab.find(f"#tab-{panel}").click()
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
        await tab.see(".side .plan .step .name", "1. Core loop")
        await tab.say("yes")
        await tab.see(".r-action .tail", "tick-")
        await tab.find(f"#tab-{panel}").click()
        await tab.page.wait_for_timeout(3000)
        before = await latest_tick(tab)
        assert await asked_for(tab) == []
        assert await latest_tick(tab) > before + 20
        assert tab.problems == []


async def latest_tick(tab: Tab) -> int:
    text = await tab.find(".r-action .tail").first.inner_text()
    return int(re.findall(r"tick-(\d+)", text)[-1])
