"""The page in a real browser, as short as it can be."""

from pathlib import Path

from tests.journeys.story import act, decide, respond
from tests.web.chromium import browsing, needs_chromium, visit
from tests.web.site import Site, Talk

WRITE = decide(act("file_ops.write_file", path="a.txt", content="one\n"), respond("Written **well**."))


@needs_chromium
async def test_a_first_visit_a_message_a_gate_and_an_answer(tmp_path: Path) -> None:
    async with Talk(tmp_path, [WRITE], mode="ask") as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site, place="")
        await (await tab.see(".session a")).click()
        await tab.say("write it")
        await tab.see(".card .impacts code", "a.txt")
        assert not (talk.folder / "a.txt").exists()
        await tab.choose("yes")
        await tab.see(".r-said strong", "well")
        assert (talk.folder / "a.txt").read_text() == "one\n"
        assert await tab.texts(".r-user .text") == ["write it"]
        assert tab.problems == []


@needs_chromium
async def test_words_for_a_question_that_was_just_closed_stay_in_the_field(tmp_path: Path) -> None:
    async with Talk(tmp_path, [WRITE], mode="ask") as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site)
        await tab.say("write it")
        await tab.see(".card .impacts code", "a.txt")
        closed = '{"taken": "closed", "told": ["It is closed."]}'
        await tab.page.route("**/say", lambda route: route.fulfill(body=closed, content_type="application/json"))
        await tab.say("no, call it b.txt")
        await tab.see("[role=status], [role=alert], .notice", "It is closed.")
        assert await tab.find(".composer textarea").input_value() == "no, call it b.txt"
