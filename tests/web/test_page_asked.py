"""Answers on the page, in a real browser: each goes to the question that the person sees and has chosen."""

from pathlib import Path

import pytest

from tests.journeys.cast import two_askers
from tests.journeys.story import act, decide, respond
from tests.web.chromium import READING_MS, Tab, browsing, needs_chromium, visit
from tests.web.site import Site, Talk
from tests.web.test_page_everywhere import violations

pytestmark = [needs_chromium, pytest.mark.slow]


async def both_ask(tab: Tab) -> None:
    await tab.say("write both")
    await tab.page.wait_for_function("() => document.querySelectorAll('.card').length === 2")
    await tab.page.wait_for_timeout(READING_MS)


async def test_with_two_open_gates_a_yes_answers_only_the_chosen_one(tmp_path: Path) -> None:
    async with Talk(tmp_path, two_askers(), mode="ask") as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site)
        await both_ask(tab)
        await tab.say("yes")
        await tab.see(".told", "Several questions are open")
        assert await tab.find(".composer textarea").input_value() == "yes"
        assert not list(talk.folder.glob("*.py"))
        assert await violations(tab) == []
        await (await tab.see(".target button", "name.py")).click()
        # The change is long, so that a yes shows its next part until the end was seen.
        for _ in range(20):
            await tab.page.wait_for_timeout(READING_MS)
            if await tab.find(".card").count() == 1:
                break
            await tab.say("yes")
        assert (talk.folder / "name.py").exists()
        assert not (talk.folder / "price.py").exists()
        await tab.see(".target", "price.py")
        assert tab.problems == []


async def test_a_gate_that_is_out_of_sight_is_shown_before_a_yes_counts(tmp_path: Path) -> None:
    long = decide(respond("\n\n".join(f"Paragraph {number}." for number in range(200))), step="PLANNING")
    write = decide(act("file_ops.write_file", path="a.py", content="one = 1\n"), rationale="It was asked for")
    async with Talk(tmp_path, [long, write], mode="ask") as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site)
        await tab.say("tell me much")
        await tab.see(".r-said", "Paragraph 199.")
        await tab.say("write a.py")
        await tab.see(".card")
        await tab.page.wait_for_timeout(READING_MS)
        await tab.page.evaluate("() => { document.querySelector('.talk').scrollTop = 0; }")
        await tab.page.wait_for_timeout(100)
        for way in ("yes", "1"):
            box = tab.find(".composer textarea")
            await box.fill("yes" if way == "yes" else "")
            await box.press("Enter" if way == "yes" else "1")
            await tab.see(".told", "Please read the question first")
            assert not (talk.folder / "a.py").exists()
            await tab.page.evaluate("() => { document.querySelector('.talk').scrollTop = 0; }")
            await tab.page.wait_for_timeout(100)
        await tab.page.evaluate("() => document.querySelector('.card').scrollIntoView()")
        await tab.page.wait_for_timeout(READING_MS)
        await box.fill("")
        await box.press("1")
        await tab.see(".r-action.check", "a.py")
        assert (talk.folder / "a.py").read_text() == "one = 1\n"
        assert tab.problems == []
