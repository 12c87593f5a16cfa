"""Code, answers, commands and diffs are copied with one click; Markdown is shown as people write it."""

from pathlib import Path

import pytest

from duckflow.llm.scripted import Line
from tests.journeys.story import act, decide, respond
from tests.web.chromium import browsing, needs_chromium, visit
from tests.web.site import Site, Talk
from tests.web.test_page_everywhere import violations

pytestmark = [needs_chromium, pytest.mark.slow]

ANSWER = "Run `this`:\n\n```sh\necho one\n```\n\n- [x] done\n- [ ] open\n\nSee[^1].\n\n[^1]: a note"
CLIPBOARD = "() => navigator.clipboard.readText()"


async def test_everything_worth_copying_can_be_copied(tmp_path: Path) -> None:
    runs = decide(act("shell.run", command="touch 'a b'"), rationale="It was asked for")
    writes = decide(act("file_ops.write_file", path="a.py", content="one = 1\n"), rationale="It was asked for")
    replies: list[Line] = [decide(respond(ANSWER), step="PLANNING"), runs, decide(respond("ok")), writes]
    async with Talk(tmp_path, replies, mode="ask") as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site)
        await tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await tab.say("how?")
        await tab.see(".r-said .footnotes", "a note")
        assert await tab.find(".r-said input[type=checkbox]").count() == 2
        await tab.find(".md pre .copy").click()
        assert await tab.page.evaluate(CLIPBOARD) == "echo one\n"
        await tab.find(".r-said").hover()
        await tab.find(".r-said .body > .copy").click()
        assert (await tab.page.evaluate(CLIPBOARD)).startswith("Run this:\n")
        assert await violations(tab) == []
        await tab.say("touch it")
        await tab.see(".card .command")
        await tab.find(".card .copied .copy").click()
        assert await tab.page.evaluate(CLIPBOARD) == "touch 'a b'"
        await tab.choose("yes")
        await tab.see(".r-said", "ok")
        await tab.say("write it")
        await tab.see(".card .diffs")
        await tab.find(".card .diffs .copy").click()
        assert "+one = 1" in await tab.page.evaluate(CLIPBOARD)
        assert tab.problems == []
