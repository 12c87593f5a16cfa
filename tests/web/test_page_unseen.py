"""An attacker's ways to a yes for what nobody has read: zoom, a second click, an edit, a plan behind a question."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.cast import two_askers
from tests.journeys.plans import PROPOSE, SNAKE
from tests.journeys.story import act, decide, respond
from tests.web.chromium import PHONE, READING_MS, WIDE, browsing, needs_chromium, visit
from tests.web.site import ID, Site, Talk
from tests.web.test_page_asked import both_ask
from tests.web.test_page_sight import LONG_PLAN, writes

WAITS = decide(respond("Shall I start?"), next_step="pending_user")
UNSEEN = "Please read the whole plan"


def command(text: str) -> dict[str, Any]:
    return decide(act("shell.run", command=text), respond("Made."))


def is_draft(talk: Talk) -> bool:
    plan = talk.session.state.plan
    return plan is not None and plan.status == "draft"


@needs_chromium
@pytest.mark.slow
async def test_what_fingers_have_enlarged_out_of_sight_is_not_on_screen(tmp_path: Path) -> None:
    talk = Talk(tmp_path, [command("touch made.txt")], mode="ask")
    async with talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site, size=PHONE)
        devtools: Any = await tab.page.context.new_cdp_session(tab.page)
        await devtools.send("Emulation.setPageScaleFactor", {"pageScaleFactor": 5})
        await tab.find(".composer textarea").evaluate(
            "(box) => { box.value = 'do it'; box.dispatchEvent(new Event('input', { bubbles: true })); }"
        )
        await tab.page.wait_for_timeout(READING_MS)
        await tab.page.evaluate("() => document.querySelector('.composer').requestSubmit()")
        await tab.see(".card .choices button")
        await tab.page.wait_for_timeout(2 * READING_MS)
        await tab.page.evaluate("() => document.querySelector('.card .choices button').click()")
        await tab.see(".told p")
        assert not (talk.folder / "made.txt").exists()
        await devtools.send("Emulation.setPageScaleFactor", {"pageScaleFactor": 1})
        await tab.choose("yes")
        await tab.see(".r-action.check")
        assert (talk.folder / "made.txt").exists() and tab.problems == []


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("size", [{**WIDE, "height": 1600}, {**PHONE, "height": 1800}], ids=["wide", "phone"])
async def test_a_second_click_does_not_answer_the_gate_that_moves_up(tmp_path: Path, size: Any) -> None:
    async with Talk(tmp_path, two_askers(1), mode="ask") as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site, size=size)
        await both_ask(tab)
        await tab.page.wait_for_timeout(2 * READING_MS)
        # The click that comes as soon as the first Gate has gone, to what then stands at its place.
        await tab.page.evaluate(
            """() => new Promise((done) => {
                const watch = new MutationObserver(() => {
                    if (document.querySelectorAll(".card").length > 1) return;
                    watch.disconnect();
                    setTimeout(() => done(document.querySelector(".card .choices button")?.click()), 100);
                });
                watch.observe(document.body, { childList: true, subtree: true });
                document.querySelector(".card .choices button").click();
            })"""
        )
        await tab.see(".told", "Please read the question first")
        await tab.page.wait_for_timeout(READING_MS)
        assert len(list(talk.folder.glob("*.py"))) == 1
        await tab.choose("yes")
        await tab.gone(".card")
        assert len(list(talk.folder.glob("*.py"))) == 2 and tab.problems == []


@needs_chromium
@pytest.mark.slow
async def test_a_command_is_not_run_by_way_of_an_edit_before_its_end_was_seen(tmp_path: Path) -> None:
    talk = Talk(tmp_path, [command("echo a" + "\n" * 80 + "touch made.txt")], mode="ask")
    async with talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site)
        await tab.say("do it")
        await tab.choose("edit it first")
        await tab.find(".card form.words button").click()
        await tab.see(".told", "There is more to read")
        assert not (talk.folder / "made.txt").exists()
        for _ in range(50):
            await tab.page.wait_for_timeout(READING_MS)
            if not await tab.find(".card").count():
                break
            await tab.page.evaluate("() => document.querySelector('.card form.words button')?.click()")
        await tab.see(".r-action.check")
        assert (talk.folder / "made.txt").exists() and tab.problems == []


@needs_chromium
@pytest.mark.slow
async def test_words_approve_only_the_draft_that_is_drawn(tmp_path: Path) -> None:
    """A busy page knows of another draft before it has drawn it."""
    other = SNAKE | {"name": "Other", "steps": [{"name": "Delete", "description": "everything", "success": ""}]}
    talk = Talk(tmp_path, [PROPOSE, SNAKE, PROPOSE, other, WAITS])
    async with talk, Site(talk.paths) as site, browsing() as browser:
        await talk.built.conversation.say("make a snake game")
        tab = await visit(browser, site)
        await tab.see(".r-plan footer")
        await tab.page.wait_for_timeout(2 * READING_MS)
        await tab.find(".composer textarea").fill("yes")
        await tab.page.evaluate(
            """() => {
                const real = setTimeout;
                window.setTimeout = (done, ms, ...more) => real(done, ms === 40 ? 5000 : ms, ...more);
            }"""
        )
        await talk.built.conversation.say("another one")
        assert is_draft(talk)
        await tab.page.wait_for_timeout(150)
        async with tab.page.expect_response("**/say") as answered:
            await tab.page.evaluate("() => document.querySelector('.composer').requestSubmit()")
        assert UNSEEN in await (await answered.value).text()
        assert is_draft(talk) and tab.problems == []


CONFIRM = "Looks nice, what a colourful thing"
PASSED_ON = decide(act("plan_tool.approve", words=CONFIRM), next_step="continue", step="PLANNING")


@needs_chromium
@pytest.mark.slow
async def test_the_question_whether_a_plan_is_to_start_asks_that_it_was_read(tmp_path: Path) -> None:
    talk = Talk(tmp_path, [PROPOSE, LONG_PLAN, PASSED_ON, WAITS])
    async with talk, Site(talk.paths) as site, browsing() as browser:
        await talk.built.conversation.say("make a snake game")
        tab = await visit(browser, site, size=PHONE)
        await tab.say(CONFIRM)
        await tab.choose("yes, start it")
        await tab.see(".card .problem", UNSEEN)
        assert is_draft(talk)
        await tab.find(".r-plan").first.evaluate("(plan) => plan.scrollIntoView({ block: 'start' })")
        await tab.page.wait_for_timeout(2 * READING_MS)
        for _ in range(40):
            await tab.page.wait_for_timeout(120)
            await tab.page.evaluate("() => document.querySelector('.talk').scrollBy(0, 150)")
        await tab.choose("yes, start it")
        await tab.gone(".card")
        assert not is_draft(talk) and tab.problems == []


@needs_chromium
@pytest.mark.slow
async def test_marks_piled_on_one_letter_cover_no_line_around_it(tmp_path: Path) -> None:
    talk = Talk(tmp_path, [command("echo a" + "\u0301" * 60 + " \U0001f468\u200d\U0001f467 e\u0301")], mode="ask")
    async with talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site)
        await tab.say("do it")
        shown = await (await tab.see(".card .command")).inner_text()
        assert shown == "$ echo a" + "\u0301" * 3 + "⟨+57⟩ \U0001f468\u200d\U0001f467 e\u0301"


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("focus", ["body", ".composer textarea"])
async def test_a_key_that_was_held_before_the_gate_came_answers_nothing(tmp_path: Path, focus: str) -> None:
    talk = Talk(tmp_path, [command("touch made.txt")], mode="ask")
    async with talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site)
        await tab.see(".composer textarea")
        await tab.page.evaluate(
            "(focus) => (document.activeElement.blur(), document.querySelector(focus).focus())", focus
        )
        await tab.page.keyboard.down("1")
        await talk.built.conversation.take("do it")
        await tab.see(".card .choices button")
        for _ in range(60):
            await tab.page.keyboard.down("1")
            await tab.page.wait_for_timeout(30)
        assert not (talk.folder / "made.txt").exists()
        await tab.page.keyboard.up("1")
        await tab.find(".composer textarea").fill("")
        await tab.page.keyboard.press("1")
        await tab.see(".r-action.check")
        assert (talk.folder / "made.txt").exists() and tab.problems == []


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("key", ["Enter", "Space"])
async def test_a_key_held_on_a_button_answers_one_gate_only(tmp_path: Path, key: str) -> None:
    again = decide(act("shell.run", command="touch made.txt"), respond("Made."))
    first = decide(act("shell.run", command="touch first.txt"), next_step="continue")
    async with Talk(tmp_path, [first, again], mode="ask") as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site)
        await talk.built.conversation.take("do it")
        button = await tab.see(".card .choices button")
        await tab.page.wait_for_timeout(2 * READING_MS)
        await button.focus()
        for _ in range(60):
            await tab.page.keyboard.down(key)
            await tab.page.wait_for_timeout(30)
        await tab.page.keyboard.up(key)
        assert not (talk.folder / "made.txt").exists()


async def test_over_the_wire_no_question_lets_a_draft_through_that_was_not_drawn(tmp_path: Path) -> None:
    talk = Talk(tmp_path, [PROPOSE, SNAKE, PASSED_ON, WAITS])
    async with talk, Site(talk.paths) as site:
        await talk.built.conversation.say("make a snake game")
        browser = await site.visit()
        # A session that goes on takes no message: it would be sent by no page that shows the plan.
        await browser.post("sessions", session=ID, message="yes")
        turn = asyncio.ensure_future(talk.built.conversation.say(CONFIRM))
        async with browser.reading() as reader:
            [question] = await reader.until(lambda: reader.facts.get("questions"))
            for words in ("yes", "1", "yes, start it", "start", "/plan approve"):
                for more in ({}, {"question_id": question["question_id"]}, {"later": True}):
                    taken = await browser.post(f"sessions/{ID}/say", text=words, **more)
                    assert taken["taken"] == "unclear" and UNSEEN in taken["told"][0], (words, more)
            for given in ({"choice": "yes"}, {"text": "yes"}, {"text": "１"}, {"text": "start it"}):
                taken = await browser.post(f"sessions/{ID}/answer", question_id=question["question_id"], **given)
                assert taken["taken"] == "unclear" and UNSEEN in taken["told"][0], given
            assert is_draft(talk)
            [drawn] = [item["plan"] for item in await reader.until(lambda: reader.of("plan"))]
            named = {"question_id": question["question_id"], "choice": "yes", "plan": drawn}
            await browser.post(f"sessions/{ID}/answer", **named)
            await reader.until(lambda: not is_draft(talk))
        await turn


async def test_a_command_approves_no_unseen_draft_while_a_gate_is_open(tmp_path: Path) -> None:
    talk = Talk(tmp_path, [writes(), PROPOSE, SNAKE])
    async with talk, Site(talk.paths) as site:
        await talk.built.conversation.say("write a.py")
        await talk.built.conversation.say("make a snake game")
        browser = await site.visit()
        async with browser.reading() as reader:
            await talk.built.conversation.take("/undo")
            await reader.until(lambda: reader.facts.get("questions"))
            taken = await browser.post(f"sessions/{ID}/say", text="/plan approve")
            assert taken["taken"] == "unclear" and UNSEEN in taken["told"][0]
        assert is_draft(talk)
