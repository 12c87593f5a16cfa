"""Hard days for the page: markup from everywhere, a server that is killed, a session of ten thousand events."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.talking import CommandFinished
from duckflow.events.types import ActionFinished, ActionStarted, MessageAdded, OutputStreamed, TextStreamed, TurnBegan
from duckflow.state.action import Action, ActionResult
from duckflow.state.data import SAID, say
from duckflow.state.message import Message
from tests.cli.shell import Shell
from tests.journeys.story import act, decide, respond
from tests.web.chromium import Tab, browsing, needs_chromium, visit
from tests.web.payloads import PAYLOADS
from tests.web.site import ID, Site, Talk
from tests.web.test_page_markup import said_everywhere
from tests.web.test_page_processes import Program

pytestmark = [needs_chromium, pytest.mark.slow]

SEEN = """
window.seen = [];
const known = new WeakSet();
new MutationObserver((changes) => {
  for (const change of changes)
    for (const node of change.addedNodes)
      for (const one of node.querySelectorAll?.(".r-user .text") ?? [])
        // One that is only moved is no new one.
        if (!known.has(one)) known.add(one) && window.seen.push([one.textContent, performance.now()]);
}).observe(document, { childList: true, subtree: true });
"""
"""What is ever shown as said by the user, in its order, and when."""


async def test_no_text_from_anywhere_runs_as_code(tmp_path: Path) -> None:
    """Names of files, diffs, texts of the model, outputs, messages, commands, names of tools; live and from the record,
    in the conversation, the record, the changes, the list, and in a Gate that is open."""
    worst = "".join(PAYLOADS[:40])
    write = decide(act("file_ops.write_file", worst, path="a.html", content=worst), respond(worst), rationale=worst)
    async with Talk(tmp_path, [write], mode="ask") as talk, Site(talk.paths) as site, browsing() as browser:
        half = len(PAYLOADS) // 2
        for payload in PAYLOADS[:half]:
            for event in said_everywhere(payload):
                talk.session.emit(event)
        tab = await visit(browser, site)
        await tab.see(".r-said")
        for payload in PAYLOADS[half:]:
            talk.session.emit(TextStreamed(text=payload))
            talk.session.emit(TextStreamed(text=payload, channel="think"))
            talk.session.emit(OutputStreamed(text=payload))
            talk.session.emit(CommandFinished(command_id=1, text=payload))
            for event in said_everywhere(payload):
                talk.session.emit(event)
        await talk.built.conversation.take(worst)
        await tab.see(".card")
        for place in (f"#/s/{ID}/audit", f"#/s/{ID}/changes", f"#/s/{ID}/work", "#/", f"#/s/{ID}"):
            await tab.go(place)
            await tab.see({"#/": ".session", f"#/s/{ID}": ".card"}.get(place, ".panel section"))
            await open_everything(tab)
        await tab.page.mouse.move(300, 300)
        assert await tab.page.evaluate("() => [window.__ran, document.scripts.length]") == [None, 2]
        marked = (
            "script, iframe, object, embed, form:not([class]), [onerror], [onload], [srcdoc], a[href^='javascript' i]"
        )
        own = "#app :is(" + marked + ")"
        assert (
            await tab.page.evaluate("(own) => [...document.querySelectorAll(own)].map((one) => one.outerHTML)", own)
            == []
        )
        assert not [one for one in tab.problems if "Content Security Policy" in one]


async def open_everything(tab: Tab) -> None:
    await tab.page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    await tab.page.wait_for_timeout(500)


EVENTS = 2000


async def test_a_server_that_is_killed_costs_no_event_and_doubles_none(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    async with Talk(shell.home, []) as talk, browsing() as browser:
        program = await asyncio.to_thread(Program, shell)
        port = str(program.port)
        tab = await visit(browser, f"http://127.0.0.1:{port}/?token={program.token}", first=SEEN)
        await tab.see(".composer")
        said = [f"message {number}" for number in range(1, EVENTS + 1)]
        for number, text in enumerate(said, 1):
            talk.session.emit(MessageAdded(message=Message(role="user", text=text)))
            if number % 20 == 0:
                await asyncio.sleep(0.02)
            if number in (500, 1300):
                program.kill()
                await tab.see(".link-lost")
            if number in (800, 1500):
                program = await asyncio.to_thread(Program, shell, "--port", port)
                await tab.gone(".link-lost")
        await tab.see(".r-user .text", said[-1])
        seen = [text for text, _ in await tab.page.evaluate("() => window.seen")]
        assert seen == said
        program.kill()


LONG = 10_000


async def test_ten_thousand_events_open_at_once_and_scroll(tmp_path: Path) -> None:
    async with Talk(tmp_path, []) as talk, Site(talk.paths) as site, browsing() as browser:
        fill(talk, LONG)
        opened: list[float] = []
        tab = await visit(browser, site, place="", first=SEEN)
        busy = await busy_seconds(tab)
        for _ in range(3):
            await tab.page.reload()
            await tab.see(".session a")
            began = await busy()
            await tab.go(f"#/s/{ID}")
            await tab.see(".r-user .text", "the last message")
            opened.append(await busy() - began)
            await tab.go("#/")
        await tab.go(f"#/s/{ID}")
        await tab.see(".r-user .text", "the last message")
        began = await busy()
        await tab.page.evaluate(SCROLL, FRAMES)
        frame = (await busy() - began) / FRAMES
        assert min(opened) <= 1 and frame <= 0.05, (opened, frame)
        # As far back as one likes.
        for _ in range(40):
            await tab.page.evaluate("() => { document.querySelector('.talk').scrollTop = 0; }")
            await tab.page.wait_for_timeout(150)
            if await tab.find(".r-user .text", "the first message").count():
                break
        await tab.see(".r-user .text", "the first message")


async def busy_seconds(tab: Tab) -> Callable[[], Coroutine[Any, Any, float]]:
    """Returns a function that says how long the page and its server, which runs here, have used a processor."""
    devtools: Any = await tab.page.context.new_cdp_session(tab.page)
    await devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    async def busy() -> float:
        metrics = (await devtools.send("Performance.getMetrics"))["metrics"]
        return time.process_time() + sum(one["value"] for one in metrics if one["name"] == "TaskDuration")

    return busy


FRAMES = 60
SCROLL = """async (frames) => {
  const talk = document.querySelector(".talk");
  for (let frame = 0; frame < frames; frame += 1) {
    talk.scrollTop -= 300;
    await new Promise(requestAnimationFrame);
  }
}"""


def fill(talk: Talk, count: int) -> None:
    """Fills a journal with turns of one message, one call with its result, and one answer."""
    emit = talk.session.emit
    emit(MessageAdded(message=Message(role="user", text="the first message")))
    while talk.session.number < count - 1:
        number = talk.session.number
        emit(TurnBegan(turn=number))
        emit(MessageAdded(message=Message(role="user", text=f"message {number}")))
        action = Action(operation="file_ops.read_file", args={"path": f"src/part{number}.py"}, reasoning="to see it")
        emit(ActionStarted(action=action, doing=say("wait.action", operation="read"), effect="read"))
        result = ActionResult(
            action_id=action.action_id, operation=action.operation, ok=True, for_model="x = 1\n" * 30,
            for_user=say("wait.action", operation=f"Read src/part{number}.py (30 lines)"),
        )  # fmt: skip
        emit(ActionFinished(result=result))
        text = f"Part {number} **holds** `x`:\n\n```python\nx = {number}\n```\n"
        emit(
            ActionFinished(
                result=result.model_copy(update={"action_id": f"a{number}", "for_user": say(SAID, text=text)})
            )
        )
    emit(MessageAdded(message=Message(role="user", text="the last message")))
