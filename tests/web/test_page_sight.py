"""Nothing is approved that is not on screen: whatever covers a Gate, wherever it is drawn, however it is answered."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from duckflow.state.data import say
from duckflow.state.question import Choice, FileImpact, GateRequest, Question
from tests.journeys.plans import PROPOSE, SNAKE
from tests.journeys.story import act, decide, respond
from tests.web.chromium import PHONE, READING_MS, WIDE, Tab, browsing, needs_chromium, visit
from tests.web.played import PlayedFleet
from tests.web.site import ID, Site, Talk

MUCH = decide(respond("\n\n".join(f"Paragraph {number}." for number in range(100))), step="PLANNING")


def writes(lines: int = 3) -> dict[str, Any]:
    content = "".join(f"x_{number} = {number}\n" for number in range(lines))
    return decide(act("file_ops.write_file", path="a.py", content=content), respond("Written."), rationale="asked for")


async def behind_another_tab(tab: Tab) -> None:
    await tab.go(f"#/s/{ID}/changes")
    await tab.see(".panel section")


async def under_the_list_of_sessions(tab: Tab) -> None:
    await tab.find(".switch-button").click()
    await tab.see(".switcher")


async def but_for_its_buttons(tab: Tab) -> None:
    """The answers stick to the lower edge: of a card that begins there only they are visible."""
    await tab.page.evaluate(
        """() => {
            const [talk, card] = ["talk", "card"].map((name) => document.querySelector(`.${name}`));
            talk.scrollTop += card.getBoundingClientRect().top - (talk.getBoundingClientRect().bottom - 70);
        }"""
    )


async def above_the_edge(tab: Tab) -> None:
    await tab.page.evaluate("() => { document.querySelector('.talk').scrollTop = 0; }")


Hides = Callable[[Tab], Coroutine[Any, Any, None]]


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("way", ["1", "yes", "click"])
@pytest.mark.parametrize(
    ("hides", "width"),
    [(behind_another_tab, 900), (under_the_list_of_sessions, 390), (but_for_its_buttons, 900), (above_the_edge, 1440)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
async def test_a_gate_that_is_hidden_is_shown_before_an_answer_counts(
    tmp_path: Path, hides: Hides, width: int, way: str
) -> None:
    size: Any = PHONE if width == 390 else {"width": width, "height": 800}
    talk = Talk(tmp_path, [MUCH, writes()], mode="ask")
    async with talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site, size=size)
        await tab.say("tell me much")
        await tab.see(".r-said", "Paragraph 99.")
        await tab.say("write a.py")
        await tab.see(".card")
        await tab.page.wait_for_timeout(READING_MS)
        await hides(tab)
        await tab.page.wait_for_timeout(READING_MS)
        await tab.page.evaluate("() => document.activeElement.blur()")
        await answer(tab, way)
        await tab.see(".told", "Please read the question first")
        assert not (talk.folder / "a.py").exists()
        await tab.page.wait_for_timeout(READING_MS)
        await tab.find(".composer textarea").fill("")
        await tab.page.keyboard.press("1")
        await tab.see(".r-action.check", "a.py")
        assert tab.problems == []


async def answer(tab: Tab, way: str) -> None:
    """Answers as a person would, or as a foreign script would: by a click on something that cannot be seen."""
    if way == "1":
        await tab.page.keyboard.press("1")
    elif way == "click":
        await tab.page.evaluate("() => document.querySelector('.card .choices button').click()")
    else:
        box = tab.find(".composer textarea")
        await box.evaluate("(box) => { box.value = 'yes'; box.dispatchEvent(new Event('input', { bubbles: true })); }")
        await tab.page.wait_for_timeout(100)
        await tab.page.evaluate("() => document.querySelector('.composer').requestSubmit()")


@pytest.mark.slow
@needs_chromium
async def test_words_that_were_typed_before_a_gate_came_do_not_answer_it(tmp_path: Path) -> None:
    talk = Talk(tmp_path, [writes()], mode="ask")
    async with talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site)
        box = await tab.see(".composer textarea")
        await box.fill("yes")
        await talk.built.conversation.take("write a.py")
        await tab.see(".card")
        await tab.page.wait_for_timeout(READING_MS)
        await box.press("Enter")
        await tab.see(".told", "Please read the question first")
        assert await box.input_value() == "yes"
        assert not (talk.folder / "a.py").exists()
        await tab.page.wait_for_timeout(READING_MS)
        await box.press("Enter")
        await tab.see(".r-action.check", "a.py")
        assert tab.problems == []


async def test_over_the_wire_words_answer_only_the_question_that_they_name(tmp_path: Path) -> None:
    """A page that has not heard of a question yet sends its words without one."""
    talk = Talk(tmp_path, [writes()], mode="ask")
    async with talk, Site(talk.paths) as site:
        browser = await site.visit()
        async with browser.reading() as reader:
            await talk.built.conversation.take("write a.py")
            await reader.until(lambda: reader.facts.get("questions"))
            for more in ({}, {"aimed": True}, {"question_id": ""}):
                taken = await browser.post(f"sessions/{ID}/say", text="yes", **more)
                assert taken["taken"] == "unclear" and "Please read the question first" in taken["told"][0]
            assert not (talk.folder / "a.py").exists()
            [question] = reader.facts["questions"]
            named = {"question_id": question["question_id"]}
            assert (await browser.post(f"sessions/{ID}/say", text="yes", **named))["taken"] == "answer"
            await reader.until((talk.folder / "a.py").exists)
        assert (talk.folder / "a.py").exists()


async def test_over_the_wire_only_the_draft_that_was_drawn_is_approved(tmp_path: Path) -> None:
    """The page sends the plan back as it has drawn it."""
    talk = Talk(tmp_path, [PROPOSE, SNAKE, decide(respond("Shall I start?"), next_step="pending_user")])
    async with talk, Site(talk.paths) as site:
        await talk.built.conversation.say("make a snake game")
        browser = await site.visit()
        async with browser.reading() as reader:
            [drawn] = [item["plan"] for item in await reader.until(lambda: reader.of("plan"))]
            assert drawn in (await browser.get(f"sessions/{ID}"))["state"]["plans"].values()
            another = {**drawn, "checks": ["rm -r ."]}
            for stale in (None, drawn["plan_id"], another):
                refused = await browser.post(f"sessions/{ID}/plan", 409, plan=stale)
                assert "has changed meanwhile" in refused["error"]
            for words in ("yes", "はい", "/plan approve", "／plan approve"):
                for more in ({}, {"plan": another}, {"later": True}, {"files": [{"name": "a", "data": "YQ=="}]}):
                    taken = await browser.post(f"sessions/{ID}/say", text=words, **more)
                    assert taken["taken"] == "unclear" and "Please read the whole plan" in taken["told"][0]
            assert talk.session.state.plan and talk.session.state.plan.status == "draft"
            await browser.post(f"sessions/{ID}/plan", plan=drawn)
            await reader.until(lambda: talk.session.state.plan and talk.session.state.plan.status != "draft")


LONG_PLAN = SNAKE | {
    "steps": [
        {"name": f"Part {number}", "description": f"part_{number}.py", "success": f"part_{number}.py exists"}
        for number in range(1, 31)
    ]
}


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize(("way", "size"), [("click", WIDE), ("yes", PHONE), ("/plan approve", WIDE)])
async def test_a_plan_is_approved_only_once_all_of_it_was_seen(tmp_path: Path, way: str, size: Any) -> None:
    talk = Talk(tmp_path, [PROPOSE, LONG_PLAN, decide(respond("Shall I start?"), next_step="pending_user")])
    async with talk, Site(talk.paths) as site, browsing() as browser:
        await talk.built.conversation.say("make a snake game")
        tab = await visit(browser, site, size=size)
        await tab.see(".r-plan button", "Approve the plan")
        refusals = 0
        while talk.session.state.plan and talk.session.state.plan.status == "draft":
            assert refusals < 20
            await tab.page.wait_for_timeout(READING_MS)
            if way == "click":
                await tab.find(".r-plan footer button").click()
            else:
                await tab.say(way)
            await tab.page.wait_for_timeout(READING_MS)
            refusals += await tab.find(".r-plan footer").count()
            assert "question" not in "".join(await tab.texts(".told")), "it is a plan that has to be read"
        assert refusals, "the first yes only shows what was not seen"
        await tab.gone(".r-plan footer")
        assert tab.problems == []


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("size", [WIDE, PHONE, {"width": 1000, "height": 500}], ids=lambda size: str(size["width"]))
async def test_a_change_whose_middle_was_skipped_is_shown_before_a_yes_counts(tmp_path: Path, size: Any) -> None:
    talk = Talk(tmp_path, [writes(300)], mode="ask")
    async with talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site, size=size)
        await tab.say("write a.py")
        await tab.see(".card header")
        await tab.page.wait_for_timeout(READING_MS)
        for way in ("start", "end"):
            await tab.page.evaluate(
                "(block) => document.querySelector('[data-subject]').scrollIntoView({ block })", way
            )
            await tab.page.wait_for_timeout(READING_MS)
        to_end = "() => { const talk = document.querySelector('.talk'); talk.scrollTop = talk.scrollHeight; }"
        await tab.page.evaluate(to_end)
        await tab.choose("yes")
        await tab.see(".told p", "There is more to read")
        assert not (talk.folder / "a.py").exists()
        # Who scrolls through all of it needs no second yes.
        for _ in range(100):
            await tab.page.evaluate("() => document.querySelector('.talk').scrollBy(0, 100)")
            await tab.page.wait_for_timeout(120)
        await tab.page.evaluate(to_end)
        await tab.choose("yes")
        await tab.see(".r-action.check", "a.py")
        assert tab.problems == []


EMPTY_LINES = "echo begin" + "\n" * 60 + "touch made.txt"
AT_END = """(end) => {
    const part = [...document.querySelectorAll(".card [data-subject]")].at(-1);
    const { left, bottom } = part.getBoundingClientRect();
    return part.innerText.includes(end) && part.contains(document.elementFromPoint(left + 12, bottom - 6));
}"""


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "way", "size"),
    [("a.py", "click", WIDE), ("made.txt", "click", PHONE), ("made.txt", "yes", PHONE), ("made.txt", "1", WIDE)],
    ids=["file", "command, click", "command, words", "command, number"],
)
async def test_a_yes_counts_only_once_the_end_of_a_long_change_was_seen(
    tmp_path: Path, made: str, way: str, size: Any
) -> None:
    """The answers stay within reach, so each yes that comes too early shows the next part, and what was folded."""
    command = decide(act("shell.run", command=EMPTY_LINES), respond("Made."))
    reply, end = (writes(450), "x_449") if made == "a.py" else (command, "touch made.txt")
    talk = Talk(tmp_path, [reply], mode="ask")
    async with talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site, size=size)
        await tab.say("do it")
        await tab.see(".card [data-subject]")
        for _ in range(50):
            await tab.page.wait_for_timeout(READING_MS)
            assert not (talk.folder / made).exists()
            is_at_end = await tab.page.evaluate(AT_END, end)
            await answer(tab, way)
            if is_at_end:
                break
            await tab.see(".told p", "There is more to read")
        await tab.gone(".card")
        await tab.see(".r-action.check")
        assert (talk.folder / made).exists()
        assert tab.problems == []


@needs_chromium
@pytest.mark.slow
async def test_a_no_needs_no_reading_to_the_end(tmp_path: Path) -> None:
    talk = Talk(tmp_path, [writes(600), decide(respond("Then not."), step="PLANNING")], mode="ask")
    async with talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site)
        await tab.say("write a.py")
        await tab.choose("no (you can add a reason)")
        await tab.gone(".card")
        assert not (talk.folder / "a.py").exists() and tab.problems == []


GATE = Question(
    kind="gate",
    title=say("gate.title"),
    gate=GateRequest(
        action_ids=("a",),
        operations=("file_ops.write_file",),
        intent=("a file",),
        rationale="asked for",
        risk="low",
        impacts=(FileImpact(path="a.py", change="create", added=8, removed=0),),
        diff="--- /dev/null\n+++ b/a.py\n@@ -0,0 +1,8 @@\n" + "".join(f"+x_{number} = 1\n" for number in range(8)),
    ),
    choices=(Choice(key="yes", label=say("gate.yes")), Choice(key="no", label=say("gate.no"))),
)


@needs_chromium
@pytest.mark.slow
async def test_only_the_opened_and_visible_gate_of_a_fleet_is_answered(tmp_path: Path) -> None:
    fleet = PlayedFleet(200, asks=2, question=GATE)
    talk = Talk(tmp_path, [])
    async with talk, Site(talk.paths, fleet=fleet) as site, browsing() as browser:
        tab = await visit(browser, site, "#/fleet")
        await tab.see(".asked.line")
        # With two of them the map of all tasks is on the first screen.
        box = await (await tab.see(".map")).bounding_box()
        assert box and box["y"] < WIDE["height"] * 0.7
        await tab.see(".filters i.m-running")
        await tab.page.wait_for_timeout(READING_MS)
        await tab.page.keyboard.press("1")
        await tab.page.wait_for_timeout(READING_MS)
        assert fleet.done == []
        await tab.find(".asked.line").nth(1).click()
        await tab.see(".card")
        await tab.page.wait_for_timeout(READING_MS)
        await tab.page.evaluate(
            "() => { const main = document.querySelector('main'); main.scrollTop = main.scrollHeight; }"
        )
        await tab.page.wait_for_timeout(READING_MS)
        await tab.page.keyboard.press("1")
        await tab.see(".told", "Please read the question first")
        assert fleet.done == []
        await tab.page.wait_for_timeout(READING_MS)
        await tab.page.keyboard.press("1")
        await tab.gone(".asked")
        assert fleet.done == [("answer", "a1", "", "yes")]
        assert tab.problems == []
