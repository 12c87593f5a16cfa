"""The page's server, measured from outside: how fast a long session opens, what pages cost a terminal, what it weighs.

usage: python -m benchmarks.page [EVENTS [PAGES [KEYS]]]      (default 10 000 events, 20 pages, 200 keys)

`opens`: from the first request until a page has everything it shows first, and is told what happens from then on; of an
old session (its journal) and of one that runs. `keys`: how long a typed key takes to be echoed by a terminal chat whose
job floods its output, with that many pages looking on. With `chrt -f 10` before it, and on a busy machine, the chat
alone has priority: server and pages do not.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.first_key import until_echoed
from benchmarks.servers import tell
from duckflow.agent.session import Session, begin
from duckflow.events import types as happened
from duckflow.state.action import Action, ActionResult
from duckflow.state.data import SAID, say
from duckflow.state.message import Message, Usage
from duckflow.state.phase import Vitals
from duckflow.store.paths import Paths
from tests.journeys.story import act, decide
from tests.ui.console.terminal import Terminal
from tests.web.site import ID, Browser, Talk

LINK = re.compile(r"http://[\d.]+:(\d+)/\?token=([\w-]+)")
FIRST_SHOWN = 400
PAGE = Path(__file__).parents[1] / "src/duckflow/web/page"
TEXT = "Some **words** about `code`, a [link](https://example.org) and\n\n```python\nprint(1)\n```\n" * 3
FIRST_KEY = 0x4E00
FIRST = os.sched_getscheduler(0) == os.SCHED_FIFO
ORDINARY = ["chrt", "-o", "0"] if FIRST else list[str]()
"""The command that gives a process no priority over others, whoever starts it."""


def turn(number: int) -> Iterator[happened.Event]:
    """Ten events, as a turn with one command leaves them."""
    yield happened.TurnBegan(turn=number)
    yield happened.MessageAdded(message=Message(role="user", text=f"Do the {number}th thing", turn=number))
    yield happened.LoopBegan(turn=number, loop=1, limit=7)
    yield happened.UsageReported(model="m", usage=Usage(prompt_tokens=3000, completion_tokens=200, calls=1))
    action = Action(operation="shell.run", args={"command": "pytest -q"}, reasoning="to see whether it works")
    yield happened.ActionStarted(action=action, doing=say("shell.run"), effect="run")
    yield happened.ActionFinished(result=result(action, say("shell.run"), "passed\n" * 300))
    spoken = Action(operation="response", args={"text": TEXT}, reasoning="to tell")
    yield happened.ActionStarted(action=spoken, effect="talk")
    yield happened.ActionFinished(result=result(spoken, say(SAID, text=TEXT), "shown to the user"))
    yield happened.VitalsChanged(vitals=Vitals(mood=0.9, focus=0.8, stamina=0.7))
    yield happened.TurnEnded(turn=number, outcome="done")


def result(action: Action, told: Any, text: str) -> ActionResult:
    return ActionResult(action_id=action.action_id, operation=action.operation, ok=True, for_model=text, for_user=told)


def fill(session: Session, events: int) -> None:
    number = 0
    while session.number < events:
        number += 1
        for event in turn(number):
            session.emit(event)


class Server:
    """`duckflow web` as a process."""

    def __init__(self, top: Path) -> None:
        home = {"DUCKFLOW_HOME": str(top), "DUCKFLOW_LANG": "en", "HOME": str(top)}
        command = [*ORDINARY, sys.executable, "-m", "duckflow", "web", "--no-open", "--port", "4790"]
        self.process = subprocess.Popen(command, cwd=top, env={**os.environ, **home}, stdout=subprocess.PIPE, text=True)
        said = ""
        while not (found := LINK.search(said)):
            said += self.process.stdout.readline() if self.process.stdout else ""
        self.port, self.token = int(found[1]), found[2]

    async def visit(self) -> Browser:
        browser = Browser(f"http://127.0.0.1:{self.port}")
        browser.top = (await browser.http.get(f"/?token={self.token}")).headers["location"]
        return browser

    def memory(self) -> float:
        """Returns the most memory it ever had, in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


async def opens(browser: Browser) -> dict[str, float]:
    start = time.perf_counter()
    for path in ("", *(f"page/{file.relative_to(PAGE)}" for file in PAGE.rglob("*.*"))):
        await browser.http.get(f"{browser.top}{path}")
    await browser.get("me")
    number = (await browser.get(f"sessions/{ID}"))["number"]
    shown = await browser.get(f"sessions/{ID}/record?before={number + 1}&most={FIRST_SHOWN}")
    async with browser.reading(after=number) as reader:
        await reader.until(lambda: reader.opened)
    first = time.perf_counter() - start
    assert shown[-1]["number"] == number
    start = time.perf_counter()
    async with browser.reading(after=0) as reader:
        await reader.until(lambda: reader.numbers[-1:] == [number])
    return {"opens_ms": round(first * 1000), "whole_stream_ms": round((time.perf_counter() - start) * 1000)}


async def long_session(top: Path, events: int) -> None:
    work, paths = top / "work", Paths(top / "data", top / "config", top / "cache")
    work.mkdir()
    session = begin(paths.sessions_of(work) / f"{ID}.db", ID, work, "en")
    fill(session, events)
    session.close()
    server = Server(top)
    try:
        browser = await server.visit()
        for name in ("old", "old, again"):
            print(f"{events} events, {name}: {json.dumps(await opens(browser))}, server {server.memory():.0f} MB")
        # In this process, and so on its processor, too.
        async with Talk(top, []):
            print(f"{events} events, running: {json.dumps(await opens(browser))}, server {server.memory():.0f} MB")
    finally:
        server.close()


FLOOD = "n=0; while :; do n=$((n+1)); echo line $n of a long output that goes on and on; done"
STEPS = [{"name": "Flood", "description": "print", "success": "", "depends_on": list[int]()}]
REPLIES: list[Any] = [
    {"json": decide(act("plan_tool.propose", goal="flood"), step="PLANNING", next_step="pending_user")},
    {"json": {"name": "Flood", "steps": STEPS, "risks": []}},
    {"json": decide(act("task_loop.run"), next_step="defer")},
    {"json": {"tasks": [act("shell.run", command=FLOOD)]}, "when": "Now its step"},
]
LOOK = """
import asyncio, sys, httpx
async def page(url):
    async with httpx.AsyncClient(timeout=None) as http:
        top = (await http.get(url)).headers["location"]
        base = url.partition("/?")[0] + top
        session = (await http.get(base + "api/sessions")).json()["sessions"][0]["id"]
        heard = 0
        async with http.stream("GET", f"{base}api/sessions/{session}/events?after=0") as answer:
            print("open", flush=True)
            async for piece in answer.aiter_raw():
                heard += piece.count(b"data: ")
                if heard > 20:
                    print("heard", flush=True)
                    heard = -10**9
async def main():
    await asyncio.gather(*(page(sys.argv[1]) for _ in range(int(sys.argv[2]))))
asyncio.run(main())
"""


def keys_beside(top: Path, pages: int, keys: int) -> None:
    """A terminal chat with a busy job, and pages that look on."""
    first = ("chrt", "-R", "-f", "10") if FIRST else ()
    script = top / "script.jsonl"
    script.write_text("\n".join(json.dumps(line) for line in REPLIES))
    command = (*first, sys.executable, "-m", "duckflow", "-m", f"scripted:{script}", "--mode", "full-auto")
    terminal = Terminal(top, None, command=command, DUCKFLOW_LANG="en")
    server = None
    looking = None
    try:
        terminal.wait_for("/help")
        terminal.enter("flood it")
        terminal.wait_for("Should I carry out this plan?")
        terminal.answer("yes")
        terminal.wait_for("line ")
        print("keys without pages: ", end="")
        tell("", typed(terminal, keys, FIRST_KEY))
        server = Server(top / "home")
        link = f"http://127.0.0.1:{server.port}/?token={server.token}"
        looking = subprocess.Popen(
            [*ORDINARY, sys.executable, "-c", LOOK, link, str(pages)], stdout=subprocess.PIPE, text=True
        )
        seen: list[str] = []
        while seen.count("heard\n") < pages and looking.stdout:
            seen.append(looking.stdout.readline())
        print(f"keys with {pages} pages: ", end="")
        tell("", typed(terminal, keys, FIRST_KEY + keys))
        print(f"server with {pages} pages: {server.memory():.0f} MB")
    finally:
        terminal.close()
        for one in (looking, server.process if server else None):
            if one:
                one.kill()
                one.wait()


def typed(terminal: Terminal, keys: int, first: int) -> list[float]:
    handle, found = terminal.process.child_fd, list[float]()
    for number in range(keys):
        key, start = chr(first + number).encode(), time.perf_counter()
        os.write(handle, key)
        found.append((until_echoed(handle, key) - start) * 1000)
        time.sleep(0.05)
        # The line is kept short: a long one is drawn anew with every key.
        if number % 20 == 19:
            os.write(handle, b"\x15")
    return found


def main(events: int, pages: int, keys: int) -> None:
    weight = sum(file.stat().st_size for file in PAGE.rglob("*.*") if file.suffix in (".html", ".css", ".js", ".svg"))
    print(f"page: {weight / 1024:.0f} KB")
    with tempfile.TemporaryDirectory() as top:
        asyncio.run(long_session(Path(top), events))
    with tempfile.TemporaryDirectory() as top:
        keys_beside(Path(top), pages, keys)


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    main(*(given + [10_000, 20, 200][len(given) :]))
