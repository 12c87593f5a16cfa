"""More stories in a real browser: an old session gone on with, a new one from the form, a dropped picture, agents."""

import asyncio
from pathlib import Path

import pytest

from duckflow.llm.scripted import Line
from tests.cli.shell import Shell
from tests.journeys.cast import Cast, calls, hand, reading
from tests.journeys.story import act, decide, respond
from tests.web.chromium import browsing, needs_chromium, visit
from tests.web.site import ID, Site, Talk
from tests.web.test_page_everywhere import violations
from tests.web.test_page_processes import Program
from tests.web.test_page_stories import PIXEL

pytestmark = [needs_chromium, pytest.mark.slow]

DROP = """([box, data]) => {
    const bytes = Uint8Array.from(atob(data), (sign) => sign.charCodeAt(0));
    const dragged = new DataTransfer();
    dragged.items.add(new File([bytes], "screen.png", { type: "image/png" }));
    const told = { dataTransfer: dragged, bubbles: true, cancelable: true };
    for (const kind of ["dragover", "drop"]) box.dispatchEvent(new DragEvent(kind, told));
}"""


async def test_an_old_session_is_gone_on_with_and_a_new_one_begun_from_the_form(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    model = shell.script(decide(respond("Hello."), step="PLANNING"))
    await asyncio.to_thread(shell.run, "-p", "old words", "-m", model)
    shell.write_config(f'[llm]\nmodel = "{model}"\n')
    program = await asyncio.to_thread(Program, shell)
    try:
        async with browsing() as browser:
            tab = await visit(browser, f"http://127.0.0.1:{program.port}/?token={program.token}", "#/")
            await (await tab.see(".session a", "old words")).click()
            await tab.see(".r-said", "Hello.")
            assert await violations(tab) == []
            await (await tab.see(".read-only button")).click()
            await tab.say("and again")
            await tab.page.wait_for_function("() => document.querySelectorAll('.r-said').length === 2")
            await tab.go("#/")
            await (await tab.see("button.new")).click()
            form = await tab.see("form.new-session")
            folder = form.locator("input.mono")
            assert await folder.input_value() == str(shell.work)
            assert await violations(tab) == []
            await folder.fill(str(tmp_path / "nowhere"))
            await form.locator("textarea").fill("new words")
            await form.locator("button.primary").click()
            await tab.see(".told", "nowhere")
            await folder.fill(str(shell.work))
            await form.locator("textarea").press("Enter")
            await tab.see(".r-user", "new words")
            await tab.see(".r-said", "Hello.")
    finally:
        program.kill()


AT_END = """() => {
    const { scrollHeight, scrollTop, clientHeight } = document.querySelector(".talk");
    return scrollHeight - scrollTop - clientHeight < 2;
}"""


async def test_a_waiting_question_is_in_sight_after_a_long_conversation(tmp_path: Path) -> None:
    """A long paste shows its beginning, an answer stands there once, and a page that is opened shows the end."""
    said = act("response", "Plain **words**.", text="Plain **words**.")
    answer = decide(said, step="PLANNING", rationale="Plain **words**.")
    writes = decide(act("file_ops.write_file", path="a.txt", content="one\n"), rationale="It was asked for")
    paste = "\n".join(f"line {number}" for number in range(5000))
    async with Talk(tmp_path, [answer, writes], mode="ask") as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site)
        await tab.say("hello")
        await tab.see(".r-said strong", "words")
        assert not await tab.find(".r-why").count()
        await talk.built.conversation.take(paste)
        await tab.see(".card .impacts code", "a.txt")
        assert await tab.texts(".r-why .told") == ["It was asked for"]
        later = await visit(browser, site)
        await later.see(".card .impacts code", "a.txt")
        await later.page.wait_for_function(AT_END)
        shown = later.find(".r-user .text").last
        assert len(await shown.inner_text()) <= 2000
        await (await later.see(".r-user button.link")).click()
        assert (await shown.inner_text()).endswith("line 4999")
        await later.go(f"#/s/{ID}/audit")
        await later.see(".audit .what", "result: Plain **words**.")
        assert "why: Plain **words**." not in await later.texts(".audit .what")
        assert tab.problems == later.problems == []


async def test_a_picture_is_dropped_onto_the_line(tmp_path: Path) -> None:
    replies: list[Line] = [decide(respond("A dot."), step="PLANNING")]
    async with Talk(tmp_path, replies) as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site)
        box = await tab.see(".composer")
        await tab.page.evaluate(DROP, [await box.element_handle(), PIXEL])
        await tab.see(".composer .thumb img")
        assert await violations(tab) == []
        await tab.say("what is it?")
        await tab.see(".r-pictures img, .r-user img")
        await tab.see(".r-said", "A dot.")
        assert tab.problems == []


async def test_agents_are_listed_with_what_they_cost_and_their_reports(tmp_path: Path) -> None:
    main: list[Line] = [calls(hand("Where is the price?")), decide(respond("In shop.py."), step="PLANNING")]
    cast = Cast(main, {"explore-1": [calls(reading("shop.py")), decide(respond("Line 1 of shop.py has it."))]})
    async with Talk(tmp_path, cast) as talk, Site(talk.paths) as site, browsing() as browser:
        (talk.folder / "shop.py").write_text("PRICE = 1\n")
        tab = await visit(browser, site, f"#/s/{ID}/work")
        await tab.say("where is the price?")
        agent = await tab.see(".jobs .job", "explore-1")
        await agent.locator(".badge", has_text="done").wait_for()
        assert "Where is the price?" in await agent.inner_text() and "tokens" in await agent.inner_text()
        await agent.locator("summary").click()
        await agent.locator("dd", has_text="Line 1 of shop.py has it.").wait_for()
        assert await violations(tab) == []
        assert tab.problems == []


async def test_an_agent_that_waits_for_an_answer_is_seen_to_wait(tmp_path: Path) -> None:
    """It is shown in the conversation, in both lists, and after a reload; once nothing runs there any more
    it is cut off."""
    main: list[Line] = [calls(hand("Write the price", "work")), decide(respond("Written."), step="PLANNING")]
    write = act("file_ops.write_file", path="shop.py", content="PRICE = 1\n")
    cast = Cast(main, {"work-1": [calls(write), decide(respond("It is there."))]})
    async with Talk(tmp_path, cast, mode="ask") as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site, f"#/s/{ID}/work")
        await tab.say("write the price")
        for _ in range(2):
            await tab.see(".card .chip", "work-1")
            agent = await tab.see(".jobs .job", "work-1")
            await agent.locator(".badge", has_text="waiting for you").wait_for()
            assert await agent.locator(".spinner").count() == 0, "nothing goes on"
            assert await tab.texts("#tab-work .count") == ["1"]
            await tab.page.reload()
        other = await visit(browser, site, "#/")
        assert await (await other.see(".session .question")).inner_text() == "work-1 May I? shop.py"
        talk.socket.unlink()
        async with Site(talk.paths) as later:
            old = await visit(browser, later, f"#/s/{ID}/work")
            await (await old.see(".jobs .job", "work-1")).locator(".badge", has_text="interrupted").wait_for()
            await old.see(".r-asked .chip", "work-1")
            assert await old.texts("#tab-work .count") == []
            assert await old.find(".spinner").count() == 0, "and nothing turns"
        assert tab.problems == [] and other.problems == []
