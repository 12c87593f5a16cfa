"""Whole stories in a real browser: a message, Gates, a plan and its job, a Duck Call, undo, pictures, several pages."""

import asyncio
import base64
from pathlib import Path

import pytest

from duckflow.llm.scripted import ScriptedReply
from tests.journeys.plans import PROPOSE, SNAKE, report, run_step, when
from tests.journeys.story import act, decide, respond
from tests.web.chromium import READING_MS, Tab, browsing, needs_chromium, visit
from tests.web.site import ID, Site, Talk

pytestmark = [needs_chromium, pytest.mark.slow]

LOOK = decide(act("file_ops.list_files"), step="PLANNING", next_step="continue")
HELLO = "echo job-says-hello; sleep 3"
PIXEL = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0000003010100"
        "c9fe92ef0000000049454e44ae426082"
    )
).decode()


def write(path: str, content: str, said: str) -> dict[str, object]:
    return decide(act("file_ops.write_file", f"{path} is wanted", path=path, content=content), respond(said))


async def test_the_whole_story(tmp_path: Path) -> None:
    replies = [
        decide(respond("It **wraps** around.\n\n```python\nx = 1\n```"), step="PLANNING"),
        write("a.py", "one = 1\n", "First file."),
        write("b.py", "two = 2\n", "Second file."),
        decide(respond("Then not."), step="PLANNING"),
        PROPOSE, SNAKE, run_step(1),
        {"tasks": [act("file_ops.write_file", "game", path="game.py"), act("shell.run", "try", command=HELLO)]},
        when("complete content of game.py", "print('game')\n"),
        when("A background job has ended", report("The core is there.")),
        *[LOOK] * 6,
    ]  # fmt: skip
    async with Talk(tmp_path, replies, mode="ask") as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site)
        await tab.say("how does it move?")
        await tab.see(".r-said strong", "wraps")
        await tab.see(".r-said pre code .x-n", "1")
        await by_click(tab, talk)
        await by_words(tab, talk)
        await plan_and_job(tab)
        await duck_call(tab)
        await undo(tab, talk)
        assert tab.problems == []


async def by_click(tab: Tab, talk: Talk) -> None:
    await tab.say("write a.py")
    await tab.see(".card .diff .d-add .tx, .card .diff .h-add", "one = 1")
    assert await tab.texts(".card .badge") == ["risk: medium"]
    await tab.choose("yes")
    await tab.see(".r-said", "First file.")
    assert (talk.folder / "a.py").read_text() == "one = 1\n"
    await tab.see(".r-asked .meta", "answered: yes")


async def by_words(tab: Tab, talk: Talk) -> None:
    await tab.say("write b.py")
    await tab.see(".card .impacts code", "b.py")
    await tab.page.wait_for_timeout(400)
    await tab.say("no: call it c.py")
    await tab.gone(".card")
    await tab.see(".r-asked .meta", "call it c.py")
    await tab.see(".r-said", "Then not.")
    await tab.see(".composer textarea[placeholder^='Say what']")
    assert not (talk.folder / "b.py").exists()


async def plan_and_job(tab: Tab) -> None:
    await tab.say("make a snake game")
    await tab.see(".r-plan .step .name", "1. Core loop")
    await tab.page.wait_for_timeout(READING_MS)
    await tab.say("yes")
    await tab.choose("yes")
    await tab.see(".side .job .badge", "running")
    await tab.see(".side .job .tail", "job-says-hello")
    await tab.see(".r-report", "The core is there.")
    await tab.see(".side .job .badge", "completed")
    await tab.see(".side .step .evidence")


async def duck_call(tab: Tab) -> None:
    await tab.say("look around")
    await tab.see(".card.q-duck_call")
    await tab.page.wait_for_timeout(400)
    # By its number, with the focus anywhere but in a text.
    await tab.find(".talk").focus()
    await tab.page.keyboard.press("1")
    await tab.gone(".card")


async def undo(tab: Tab, talk: Talk) -> None:
    await tab.go(f"#/s/{ID}/changes")
    await tab.see(".turns .impacts code", "a.py")
    await (await tab.see(".panel button", "Undo")).click()
    await tab.choose("the last turn (2)")
    await tab.see(".card .impacts code", "a.py")
    await tab.choose("yes")
    await tab.see(".turns .undone")
    assert not (talk.folder / "a.py").exists() and (talk.folder / "game.py").exists()


async def test_two_pages_see_the_same_and_the_first_answer_counts(tmp_path: Path) -> None:
    replies = [write("a.py", "one = 1\n", "Written.")]
    async with Talk(tmp_path, replies, mode="ask") as talk, Site(talk.paths) as site, browsing() as browser:
        first, second = await visit(browser, site), await visit(browser, site)
        await second.see(".composer")
        await first.say("write a.py")
        for tab in (first, second):
            await tab.see(".r-user", "write a.py")
            await tab.see(".card")
        question = talk.built.conversation.questions[0].question_id
        path = f"api/sessions/{ID}/answer"
        send = """([path, question_id, choice]) => fetch(path, {
            method: "POST", body: JSON.stringify({question_id, choice}), headers: {"Content-Type": "application/json"},
        }).then((answer) => answer.json())"""
        await first.choose("yes")
        late = await second.page.evaluate(send, [path, question, "no"])
        assert late["taken"] == "closed" and "no longer open" in late["told"][0]
        for tab in (first, second):
            await tab.see(".r-said", "Written.")
            await tab.gone(".card")
        for tab in (first, second):
            await tab.see(".r-note .text", "checks")
            # The row that says what is being done goes with the turn.
            await tab.gone(".r-wait")
        assert await first.texts(".row .text") == await second.texts(".row .text")


async def test_a_message_during_a_turn_steers_now_or_waits(tmp_path: Path) -> None:
    slow = ScriptedReply('{"', delay=30)
    async with Talk(tmp_path, [slow]) as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site)
        await tab.say("begin")
        await tab.see(".composer .stop")
        await tab.say("and quickly")
        box = tab.find(".composer textarea")
        await box.fill("then the tests")
        await box.press("Control+Enter")
        await tab.see(".queued li", "then the tests")
        assert [one.later for one in talk.built.conversation.waiting] == [False, True]
        await tab.page.keyboard.press("Escape")
        await tab.see(".row .text", "nterrupted")
        assert "and quickly" in await box.input_value()


async def test_the_menu_offers_every_command_of_the_terminal(tmp_path: Path) -> None:
    """What `/help` lists in the terminal is offered on the page, and the one that is chosen is in sight."""
    async with Talk(tmp_path, []) as talk, Site(talk.paths) as site, browsing() as browser:
        listed = {f"/{command.name}" for command in talk.built.conversation.commands}
        assert {"/help", "/status", "/plan", "/undo", "/mcp", "/review", "/agents", "/rules"} < listed
        tab = await visit(browser, site)
        box = await tab.see(".composer textarea")
        await box.press_sequentially("/")
        await tab.see(".offers li")
        assert set(await tab.texts(".offers code")) == listed
        await box.press("ArrowUp")
        last = await tab.see(".offers li:last-child[aria-selected=true]")
        menu, chosen = await tab.find(".offers").bounding_box(), await last.bounding_box()
        assert menu and chosen and menu["y"] <= chosen["y"] < menu["y"] + menu["height"] - 10
        assert tab.problems == []


async def test_completion_and_pictures(tmp_path: Path) -> None:
    replies = [decide(respond("A dot."), step="PLANNING")]
    async with Talk(tmp_path, replies) as talk, Site(talk.paths) as site, browsing() as browser:
        (talk.folder / "my notes.md").write_text("x\n")
        tab = await visit(browser, site)
        box = tab.find(".composer textarea")
        await box.press_sequentially("/stat")
        await tab.see(".offers [aria-selected=true]", "/status")
        await box.press("Tab")
        assert await box.input_value() == "/status "
        await box.press("Enter")
        await tab.see(".r-lines", ID)
        await box.press_sequentially("look at @notes")
        await tab.see(".offers li", "my notes.md")
        await box.press("Enter")
        assert await box.input_value() == 'look at @"my notes.md" '
        await paste_picture(tab)
        await tab.see(".thumb img")
        await box.press("Enter")
        picture = await tab.see(".r-pictures img")
        await tab.see(".r-said", "A dot.")
        await asyncio.sleep(0.2)
        assert await picture.evaluate("(image) => image.naturalWidth") == 1
        assert tab.problems == []


async def paste_picture(tab: Tab) -> None:
    await tab.page.evaluate(
        """(data) => {
            const bytes = Uint8Array.from(atob(data), (sign) => sign.charCodeAt(0));
            const clipboardData = new DataTransfer();
            clipboardData.items.add(new File([bytes], "dot.png", { type: "image/png" }));
            document.querySelector(".composer textarea").dispatchEvent(
              new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
        }""",
        PIXEL,
    )
