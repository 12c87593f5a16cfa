"""The page for everybody and everywhere: an input method, a phone, dark colours, only keys, a screen reader."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import QuestionAsked
from duckflow.llm.scripted import Line
from tests.journeys.plans import PROPOSE, SNAKE, run_step, when
from tests.journeys.story import act, decide, respond
from tests.web.chromium import PHONE, WIDE, Tab, browsing, needs_chromium, visit
from tests.web.played import PlayedFleet, PlayedModels
from tests.web.site import ID, Site, Talk

pytestmark = [needs_chromium, pytest.mark.slow]

PANELS = ("talk", "work", "changes", "health", "audit", "layers")
TABLE = "It **wraps**:\n\n| side | leaves |\n|---|---:|\n| right | 0 |\n\n```python\nx = 1\n```\n\n> so [see](https://example.org/)"
SCRIPT: list[Line] = [
    decide(act("file_ops.read_file", path="a.py"), step="PLANNING", next_step="continue"),
    decide(respond(TABLE), step="PLANNING"),
    PROPOSE, SNAKE, run_step(1),
    {"tasks": [act("shell.run", "try", command="echo line-of-the-job; sleep 60")]},
    when("write a.py", decide(act("file_ops.write_file", "wanted", path="a.py", content="one = 1\n"), respond("ok"))),
]  # fmt: skip


VIEWS = {"#/models": ".endpoints button", "#/fleet": "tbody.task th .link"}
"""Views with what is unfolded there."""


async def everything(talk: Talk) -> None:
    """Makes a conversation that has one of each: an answer with a table and code, a plan, a job that runs, a Gate."""
    conversation = talk.built.conversation
    (talk.folder / "a.py").write_text("one = 0\n")
    for text in ("how does it move?", "make a snake game", "yes"):
        await conversation.say(text)
    conversation.choices.change_mode("ask")
    asked = asyncio.Event()
    conversation.hear(lambda _, event: asked.set() if isinstance(event, QuestionAsked) else None)
    await conversation.take("write a.py")
    async with asyncio.timeout(60):
        await asked.wait()


async def test_enter_that_ends_a_word_of_an_input_method_sends_nothing(tmp_path: Path) -> None:
    replies: list[Line] = [decide(respond("はい。"), step="PLANNING")]
    async with Talk(tmp_path, replies) as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site)
        box = await tab.see(".composer textarea")
        await box.focus()
        keyboard: Any = await tab.page.context.new_cdp_session(tab.page)
        await tab.page.evaluate(
            """() => {
                window.heard = [];
                const hear = (event) => window.heard.push([event.key, event.isComposing, event.keyCode]);
                document.addEventListener("keydown", hear, true);
            }"""
        )
        await keyboard.send("Input.imeSetComposition", {"text": "にほんご", "selectionStart": 4, "selectionEnd": 4})
        enter = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 229, "text": ""}
        await keyboard.send("Input.dispatchKeyEvent", {"type": "rawKeyDown", **enter})
        await keyboard.send("Input.dispatchKeyEvent", {"type": "keyUp", **enter})
        assert await tab.page.evaluate("() => window.heard") == [["Enter", True, 229]]
        await keyboard.send("Input.insertText", {"text": "日本語で"})
        assert await box.input_value() == "日本語で"
        # The same key as some browsers tell it: the word is over, and it is still the input method's.
        await keyboard.send("Input.dispatchKeyEvent", {"type": "rawKeyDown", **enter})
        await tab.page.wait_for_timeout(300)
        assert talk.session.state.turn == 0 and await box.input_value() == "日本語で"
        await box.press("Enter")
        await tab.see(".r-said", "はい。")
        assert await tab.texts(".r-user .text") == ["日本語で"]


async def test_a_phone_shows_everything_in_its_width(tmp_path: Path) -> None:
    async with Talk(tmp_path, SCRIPT) as talk, Site(talk.paths) as site, browsing() as browser:
        await everything(talk)
        tab = await visit(browser, site, size=PHONE)
        for panel in PANELS:
            await tab.go(f"#/s/{ID}/{panel}")
            await tab.see(".card" if panel == "talk" else ".panel section")
            assert await wider_than_the_screen(tab) == [], panel
        await tab.go("#/")
        await tab.see(".session .question", "May I?")
        assert await wider_than_the_screen(tab) == []
        await (await tab.see(".session a")).click()
        await tab.choose("yes")
        await tab.see(".r-said", "ok")


async def wider_than_the_screen(tab: Tab) -> list[str]:
    """Returns the elements that stick out, except inside ones that scroll by themselves."""
    return await tab.page.evaluate(
        """() => [...document.querySelectorAll("#app *")].filter((one) => {
            const box = one.getBoundingClientRect();
            const scrolls = one.closest(".wide, .tabs, pre, .unseen, svg, .folder, .card .choices");
            return box.width > 1 && box.right > innerWidth + 1 && !scrolls;
        }).map((one) => one.outerHTML.slice(0, 120))"""
    )


async def test_parts_that_have_a_gap_between_them_stand_in_a_row(tmp_path: Path) -> None:
    """A gap has no effect where nothing is laid out in rows or a grid: the parts would touch each other."""
    fleet, models = PlayedFleet(30, asks=1), PlayedModels()
    async with (
        Talk(tmp_path, SCRIPT) as talk,
        Site(talk.paths, fleet=fleet, models=models) as site,
        browsing() as browser,
    ):
        await everything(talk)
        tab = await visit(browser, site, "#/fleet")
        await (await tab.see("tbody.task input")).check()
        await tab.see(".bulk")
        touching = {"#/fleet": await without_rows(tab)}
        views = {"#/new": ".new-session textarea", "#/models": ".endpoints li", "#/": ".session"}
        for place, shown in (views | {f"#/s/{ID}/{panel}": ".panel section" for panel in PANELS[1:]}).items():
            await tab.go(place)
            await tab.see(shown)
            await tab.page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            touching[place] = await without_rows(tab)
        assert {place: parts for place, parts in touching.items() if parts} == {}


async def without_rows(tab: Tab) -> list[str]:
    """Returns the elements that have a gap and are laid out so that it has no effect."""
    return await tab.page.evaluate(
        """() => [...document.querySelectorAll("#app *")].filter((one) => {
            const { columnGap, display } = getComputedStyle(one);
            return parseFloat(columnGap) > 0 && !/flex|grid|none/.test(display) && !one.matches("option");
        }).map((one) => one.outerHTML.slice(0, 120))"""
    )


async def test_dark_is_dark_and_a_choice_of_colours_stays(tmp_path: Path) -> None:
    async with Talk(tmp_path, SCRIPT) as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site, colours="dark")
        light = (
            "() => getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).every((one) => one > 128)"
        )
        await tab.see(".theme")
        assert not await tab.page.evaluate(light)
        await tab.find(".theme").click()
        assert await tab.page.evaluate(light)
        await tab.page.reload()
        await tab.see(".theme")
        assert await tab.page.evaluate(light)


async def test_everything_is_reached_with_keys_alone(tmp_path: Path) -> None:
    async with Talk(tmp_path, SCRIPT) as talk, Site(talk.paths) as site, browsing() as browser:
        await everything(talk)
        tab = await visit(browser, site, place="")
        await tab.see(".session a")
        wanted = {".skip", ".brand", ".theme", ".new", ".session a"}
        assert await reached(tab, wanted, 10) == set()
        await tab.find(".session a").focus()
        await tab.page.keyboard.press("Enter")
        await tab.see(".card")
        choices = {f".card .choices button:nth-child({number})" for number in (1, 2, 3)}
        wanted = {".head .back", ".mode select", "#tab-work", ".composer textarea", ".job .choices button", *choices}
        assert await reached(tab, wanted, 80) == set()
        await tab.find("#tab-work").focus()
        await tab.page.keyboard.press("ArrowRight")
        await tab.see("#tab-changes[aria-selected=true]")


async def reached(tab: Tab, wanted: set[str], most: int) -> set[str]:
    """Returns the elements that so many steps of the Tab key do not reach."""
    left = set(wanted)
    for _ in range(most):
        await tab.page.keyboard.press("Tab")
        here = "(all) => all.filter((one) => document.activeElement?.matches(one))"
        left -= set(await tab.page.evaluate(here, sorted(left)))
        if not left:
            break
    return left


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
async def test_axe_finds_nothing(tmp_path: Path, size: Any, colours: Any) -> None:
    fleet, models = PlayedFleet(30, asks=1), PlayedModels()
    async with (
        Talk(tmp_path, SCRIPT) as talk,
        Site(talk.paths, fleet=fleet, models=models) as site,
        browsing() as browser,
    ):
        await everything(talk)
        tab = await visit(browser, site, place="", size=size, colours=colours)
        await tab.see(".session .question")
        await (await tab.see(".new")).click()
        await tab.see(".new-session textarea")
        found = {"list": await violations(tab)}
        for place, shown in VIEWS.items():
            await tab.go(place)
            await (await tab.see(shown)).click()
            await tab.page.wait_for_timeout(300)
            found[place] = await violations(tab)
        for panel in PANELS:
            await tab.go(f"#/s/{ID}/{panel}")
            await tab.see(".card" if panel == "talk" else ".panel section")
            await tab.page.wait_for_timeout(500)
            await tab.page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            await tab.page.wait_for_timeout(300)
            found[panel] = await violations(tab)
        assert {name: some for name, some in found.items() if some} == {}


async def violations(tab: Tab) -> list[str]:
    from axe_playwright_python.async_playwright import Axe

    axe: Any = Axe()
    results = await axe.run(tab.page)
    return [
        f"{one['id']}: {node['html'][:160]} {node['any'][0]['message'] if node['any'] else ''}"
        for one in results.response["violations"]
        for node in one["nodes"]
    ]
