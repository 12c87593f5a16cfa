"""Questions that wait for somebody are shown as waiting: in the list, in the title, in the conversation, on a phone."""

from pathlib import Path

import pytest

from duckflow.llm.scripted import Line
from tests.journeys.plans import PROPOSE, SNAKE, run_step
from tests.journeys.story import act, decide, respond
from tests.web.chromium import PHONE, READING_MS, browsing, needs_chromium, visit
from tests.web.site import Site, Talk
from tests.web.test_page_everywhere import violations

pytestmark = [needs_chromium, pytest.mark.slow]


async def test_a_draft_waits_everywhere_and_is_approved_where_it_stands(tmp_path: Path) -> None:
    task = {"tasks": [act("shell.run", "try", command="echo hello")]}
    replies: list[Line] = [PROPOSE, SNAKE, run_step(1), task, decide(respond("On its way."), step="EXECUTION")]
    async with Talk(tmp_path, replies) as talk, Site(talk.paths) as site, browsing() as browser:
        await talk.built.conversation.say("make a snake game")
        listed = await visit(browser, site, "#/")
        await listed.see(".session.st-waiting .question", "waiting for your approval")
        phone = await visit(browser, site, size=PHONE)
        await phone.see("#tab-talk .count", "1")
        tab = await visit(browser, site)
        await tab.page.wait_for_function("() => document.title.startsWith('● ')")
        approve = await tab.see(".r-plan button", "Approve the plan")
        assert await violations(tab) == []
        await tab.page.wait_for_timeout(READING_MS)
        await approve.click()
        await tab.gone(".r-plan button")
        await tab.page.wait_for_function("() => !document.title.startsWith('● ')")
        assert talk.session.state.plan and talk.session.state.plan.status != "draft"
        assert tab.problems == listed.problems == phone.problems == []


async def test_a_question_of_the_model_waits_in_the_list_and_the_title(tmp_path: Path) -> None:
    asks = decide(respond("Tabs or spaces?"), step="PLANNING", next_step="pending_user")
    async with Talk(tmp_path, [asks]) as talk, Site(talk.paths) as site, browsing() as browser:
        await talk.built.conversation.say("format it")
        listed = await visit(browser, site, "#/")
        await listed.see(".session.st-waiting .question", "Tabs or spaces?")
        tab = await visit(browser, site)
        await tab.page.wait_for_function("() => document.title.startsWith('● ')")
        assert tab.problems == listed.problems == []
