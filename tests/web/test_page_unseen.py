"""An attacker's ways to a yes for what nobody has read: zoom, a second click, an edit, a plan behind a question."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.event import Event
from duckflow.events.types import TurnEnded
from duckflow.state.data import quote, say
from duckflow.state.question import Choice, GateRequest, Question
from tests.journeys.cast import two_askers
from tests.journeys.plans import PROPOSE, SNAKE
from tests.journeys.story import act, decide, respond
from tests.web.chromium import PHONE, READING_MS, WIDE, browsing, needs_chromium, visit
from tests.web.played import ASKS, PlayedFleet
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


def endings(talk: Talk) -> asyncio.Queue[Event]:
    """Returns a queue of the turns' endings from now on."""
    over: asyncio.Queue[Event] = asyncio.Queue()
    talk.built.conversation.hear(lambda _, event: over.put_nowait(event) if isinstance(event, TurnEnded) else None)
    return over


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


@needs_chromium
@pytest.mark.slow
async def test_every_choice_but_a_refusal_asks_that_all_was_read(tmp_path: Path) -> None:
    """Programs that a folder brings are agreed to by `more` and `fresh`, rights by their names, forms by values."""
    details = tuple(quote(f"It runs program-{number}.") for number in range(150))
    async with Talk(tmp_path, []) as talk, browsing() as browser:
        for key in ("more", "fresh", "outside", "done", "true", "a", "no", "stop", "skip"):
            choice = Choice(key=key, label=quote(key))
            fleet = PlayedFleet(
                1, asks=1, question=Question(kind="choice", title=ASKS.title, details=details, choices=(choice,))
            )
            async with Site(talk.paths, fleet=fleet) as site:
                tab = await visit(browser, site, "#/fleet")
                await tab.choose(key)
                if key in ("no", "stop", "skip"):
                    await tab.gone(".card")
                else:
                    await tab.see(".told", "There is more to read")
                assert bool(fleet.done) == (key in ("no", "stop", "skip")), key
                assert tab.problems == []


@needs_chromium
@pytest.mark.slow
async def test_no_command_hides_a_part_of_the_diff_that_stands_after_it(tmp_path: Path) -> None:
    """A command is shortened where it stands by itself otherwise than before a diff, if it ends with a line's end."""
    commands = ("$ touch a\r",) * 20
    request = GateRequest(
        action_ids=("a",), operations=("shell.run",), intent=(), rationale="", risk="low", commands=commands,
        diff="\n".join([*commands, "+++ b/hidden.py\n@@ -0,0 +1,1 @@\n+hidden = 1"]),
    )  # fmt: skip
    question = Question(kind="gate", title=say("gate.title"), gate=request, choices=ASKS.choices)
    fleet = PlayedFleet(1, asks=1, question=question)
    async with Talk(tmp_path, []) as talk, Site(talk.paths, fleet=fleet) as site, browsing() as browser:
        tab = await visit(browser, site, "#/fleet")
        await tab.see(".card .diffs .d-add", "hidden = 1")
        await tab.see(".card .diffs .file-name", "hidden.py")
        assert tab.problems == []


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


@pytest.mark.parametrize(
    ("language", "asked_before", "words"),
    [
        ("en", "Will it need a database?", ("in that case yes", "In that case, yes", "if so, yes")),
        ("ja", "データベースは必要ですか？", ("それならはい", "それなら お願いします")),
    ],
)
async def test_words_that_only_the_session_reads_as_a_yes_approve_no_unseen_draft(
    tmp_path: Path, language: str, asked_before: str, words: tuple[str, ...]
) -> None:
    """Each of these is a yes to a draft after a question about it."""
    talk = Talk(tmp_path, [PROPOSE, SNAKE, *[WAITS] * 20], language=language)
    async with talk, Site(talk.paths) as site:
        conversation = talk.built.conversation
        await conversation.say("make a snake game")
        await conversation.say(asked_before)
        browser, over = await site.visit(), endings(talk)
        for text in words:
            for more in ({}, {"later": True}, {"files": [{"name": "a", "data": "YQ=="}]}, {"plan": {"name": "?"}}):
                await browser.post(f"sessions/{ID}/say", text=text, **more)
                await asyncio.wait_for(over.get(), 20)
                assert is_draft(talk), (text, more)


async def test_a_yes_counts_only_for_the_draft_that_was_read_when_it_arrives(tmp_path: Path) -> None:
    """The draft may change while a yes is on its way to the process that holds the session."""
    other = SNAKE | {"name": "Other"}
    async with Talk(tmp_path, [PROPOSE, SNAKE, PROPOSE, other, *[WAITS] * 3]) as talk:
        conversation = talk.built.conversation
        await conversation.say("make a snake game")
        plan = conversation.state.plan
        assert plan
        await conversation.say("another one")
        over = endings(talk)
        for stale in (plan.fingerprint(), ""):
            await conversation.take("yes", None, read=stale)
            await asyncio.wait_for(over.get(), 20)
            assert is_draft(talk)
        plan = conversation.state.plan
        assert plan and plan.name == "Other"
        await conversation.take("yes", None, read=plan.fingerprint())
        await asyncio.wait_for(over.get(), 20)
        assert not is_draft(talk)


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
