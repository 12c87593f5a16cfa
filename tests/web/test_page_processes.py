"""`duckflow web` and `duckflow --web` as programs: sessions in processes of their own, servers that are killed."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from duckflow.events.types import MessageAdded
from duckflow.state.message import Message
from tests.cli.shell import Shell
from tests.journeys.story import act, decide, respond
from tests.ui.console.terminal import Terminal
from tests.web.site import Browser, Talk

LINK = re.compile(r"http://127\.0\.0\.1:(\d+)/\?token=([\w-]+)")
COUNT = decide(act("shell.run", command="for n in $(seq 300); do echo line $n; done"), next_step="continue")
HELLO = decide(respond("Hello."), step="PLANNING")


class Program:
    """`duckflow web`, as a shell starts it."""

    def __init__(self, shell: Shell, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "duckflow", "web", "--no-open", *arguments],
            cwd=shell.work, env=shell.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.said = ""
        assert self.process.stdout
        while not (found := LINK.search(self.said)):
            line = self.process.stdout.readline()
            assert line, self.said
            self.said += line
        self.port, self.token = int(found[1]), found[2]

    async def visit(self) -> Browser:
        browser = Browser(f"http://127.0.0.1:{self.port}")
        browser.top = (await browser.http.get(f"/?token={self.token}")).headers["location"]
        return browser

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def stop(self) -> str:
        """Stops it as Ctrl+C does; processes that held a session only for it end, too."""
        self.process.send_signal(signal.SIGINT)
        said, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        return said


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """The processes that hold sessions end with the test."""
    yield Shell(tmp_path)
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        if str(tmp_path) in line and "--host" in line:
            with suppress(OSError):
                os.kill(int(line.split()[0]), signal.SIGKILL)


async def test_a_session_outlives_the_server_that_began_it_and_no_event_is_lost(shell: Shell) -> None:
    model = shell.script(*[COUNT] * 3, HELLO)
    first = Program(shell)
    browser = await first.visit()
    began = await browser.post("sessions", folder=str(shell.work), mode="full-auto", model=model, message="count")
    async with browser.reading(began["id"]) as reader:
        await reader.until(lambda: reader.of("action"))
        first.kill()
        second = Program(shell, "--port", str(first.port))
        await reader.until(lambda: reader.of("text", by="model") and not reader.facts["in_turn"])
        assert "chosen on the page" in reader.of("notice", about="model")[0]["text"]
        assert reader.opened > 1 and reader.numbers == list(range(1, reader.numbers[-1] + 1))
        snapshot = await browser.get(f"sessions/{began['id']}")
        assert snapshot["writable"] and snapshot["number"] == reader.numbers[-1]
    assert "Traceback" not in second.stop()
    log = (shell.home / "data/duckflow.log").read_text()
    assert first.token not in log and second.token not in log


@pytest.mark.slow
async def test_an_old_session_goes_on_in_a_process_of_its_own(shell: Shell) -> None:
    ran = shell.run("-p", "hello", "-m", shell.script(HELLO, HELLO), "--output-format", "json")
    assert ran.returncode == 0, ran.stderr
    shell.write_config(f'[llm]\nmodel = "{shell.script(HELLO)}"\n')
    program = Program(shell)
    browser = await program.visit()
    (entry,) = (await browser.get("sessions"))["sessions"]
    assert entry["state"] == "old"
    await browser.post("sessions", session=entry["id"])
    assert (await browser.get(f"sessions/{entry['id']}"))["writable"]
    async with browser.reading(entry["id"]) as reader:
        await browser.post(f"sessions/{entry['id']}/say", text="again")
        await reader.until(lambda: reader.turns_over == 2)
    assert (await browser.post("sessions", 400, folder="/nowhere/at/all"))["error"]
    # A name that looks like a flag is a name: the session begins, and says there that it knows no such model.
    begun = (await browser.post("sessions", folder=str(shell.work), model="--yes-really", message="hello"))["id"]
    async with browser.reading(begun) as reader:
        await reader.until(lambda: any("--yes-really" in item["text"] for item in reader.of("notice")))
    program.stop()


@pytest.mark.slow
async def test_a_chat_is_led_from_a_page_beside_it_and_only_that_chat(tmp_path: Path) -> None:
    await asyncio.to_thread(Shell(tmp_path).run, "-p", "older", "-m", "scripted:/nothing")
    terminal = Terminal(tmp_path, [{"json": HELLO}], "--web", columns=160)
    try:
        shown = await asyncio.to_thread(terminal.wait_for, "token=")
        found = LINK.search(shown)
        assert found, shown
        browser = Browser(f"http://127.0.0.1:{found[1]}")
        browser.top = (await browser.http.get(f"/?token={found[2]}")).headers["location"]
        (entry,) = (await browser.get("sessions"))["sessions"]
        async with browser.reading(entry["id"]) as reader:
            await browser.post(f"sessions/{entry['id']}/say", text="said on the page")
            await reader.until(lambda: reader.turns_over)
        await asyncio.to_thread(terminal.wait_for, "said on the page")
        assert (await browser.post("sessions", 400, folder=str(tmp_path)))["error"]
        terminal.enter("/quit")
        assert await asyncio.to_thread(terminal.wait_for_end) == 0
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                await browser.http.get("/")
            except httpx.TransportError:
                break
            await asyncio.sleep(0.05)
        else:
            raise AssertionError("the page's server is still there")
    finally:
        terminal.process.close(force=True)


@pytest.mark.slow
async def test_no_event_of_two_thousand_is_lost_or_doubled_by_servers_that_are_killed(shell: Shell) -> None:
    """A page that is there from the start, and one that joins in the middle."""
    async with Talk(shell.home, []) as talk:
        program = Program(shell)
        browser = await program.visit()
        async with browser.reading() as steady, browser.reading(after=700) as late:
            for number in range(2000):
                talk.session.emit(MessageAdded(message=Message(role="system", text=f"event {number}")))
                if number % 400 == 399:
                    heard = len(steady.numbers)
                    await steady.until(lambda heard=heard: len(steady.numbers) > heard)
                    program.kill()
                    program = Program(shell, "--port", str(program.port))
            for reader in (steady, late):
                await reader.until(lambda reader=reader: reader.numbers[-1:] == [talk.session.number])
        assert steady.opened >= 3 and steady.numbers == list(range(1, talk.session.number + 1))
        assert late.numbers == list(range(701, talk.session.number + 1))
        program.stop()
