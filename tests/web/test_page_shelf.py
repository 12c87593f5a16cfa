"""Sessions as a whole on the page: begun in a chosen folder with a chosen model, named, branched, put away, deleted."""

import asyncio
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.journeys.story import decide, respond
from tests.web.chromium import browsing, needs_chromium, visit
from tests.web.site import Site, Talk
from tests.web.test_page_everywhere import violations
from tests.web.test_page_processes import Program

HELLO = decide(respond("Hello."), step="PLANNING")
OTHER = "20260102-000000-abcdef"


async def test_only_the_home_is_browsed_and_only_ended_sessions_are_put_away(tmp_path: Path) -> None:
    async with Talk(tmp_path, [HELLO]) as talk, Site(talk.paths) as site:
        await talk.built.conversation.say("hello")
        browser = await site.visit()
        for place in ("/etc", "/", "..", "~/../..", "/proc/self/root", str(Path.home().parent)):
            answer = await browser.http.get(f"{browser.top}api/folders", params={"at": place})
            assert answer.status_code == 400 and "root:" not in answer.text, place
        for place in ("a\0b", "~nosuchuser", "x" * 300, "/x" * 3000):
            answer = await browser.http.get(f"{browser.top}api/folders", params={"at": place})
            assert answer.status_code == 400, place[:20]
            await browser.post("sessions", 400, folder=place)
        far = await browser.http.get(f"{browser.top}api/me", headers={"accept-language": "x" * 20_000})
        assert far.status_code in (200, 400, 431)
        assert (await browser.get("folders"))["at"] == str(Path.home().resolve())
        [session] = (await browser.get("sessions"))["sessions"]
        for what in ("archive", "remove"):
            await browser.post(f"sessions/{session['id']}/{what}", 400)
        answer = await browser.http.get(f"{browser.top}api/sessions/{session['id']}/export?format=html")
        assert answer.headers["content-disposition"].startswith("attachment;") and "Hello." in answer.text
        await browser.post("sessions/..%2F..%2Fetc/remove", 404)


@needs_chromium
@pytest.mark.slow
async def test_an_ended_session_is_named_branched_put_away_and_deleted(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    model = shell.script(HELLO)
    await asyncio.to_thread(shell.run, "-p", "old words", "-m", model)
    shell.write_config(f'[llm]\nmodel = "{model}"\n')
    program = await asyncio.to_thread(Program, shell)
    try:
        async with browsing() as browser:
            tab = await visit(browser, f"http://127.0.0.1:{program.port}/?token={program.token}", "#/")
            await (await tab.see(".session .more")).click()
            assert await violations(tab) == []
            await (await tab.see(".deeds button", "Rename")).click()
            await tab.find(".deeds input").fill("A better name")
            await tab.find(".deeds form button").click()
            await tab.see(".session .title", "A better name")
            await (await tab.see(".session .more")).click()
            await (await tab.see(".deeds button", "Branch")).click()
            await tab.see(".composer textarea")
            await tab.see(".r-said", "Hello.")
            await tab.go("#/")
            old = tab.find(".session.st-old:not(:has-text('(2)'))")
            await old.locator(".more").click()
            await (await tab.see(".deeds button", "Archive")).click()
            await tab.see("label.all", "archived")
            await tab.gone(".session.st-old")
            await tab.find("label.all input").check()
            await old.locator(".more").click()
            await (await tab.see(".deeds button", "Delete")).click()
            await (await tab.see(".deeds button.bad")).click()
            await tab.gone(".session.st-old")
            await (await tab.see("button.new")).click()
            await (await tab.see(".folders summary")).click()
            await (await tab.see(".folders button", str(shell.work))).click()
            assert await violations(tab) == []
            assert tab.problems == []
    finally:
        program.kill()
