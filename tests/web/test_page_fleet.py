"""The fleet on the page, in a real browser: its questions are answered there, for all that ask the same at once."""

import asyncio
from pathlib import Path

import pytest

from tests.fleet.test_commands import FleetShell, write
from tests.web.chromium import browsing, needs_chromium, visit
from tests.web.test_page_everywhere import violations
from tests.web.test_page_processes import Program

pytestmark = [needs_chromium, pytest.mark.slow]


async def test_one_answer_in_the_inbox_lets_both_attempts_go_on(tmp_path: Path) -> None:
    shell = FleetShell(tmp_path)
    shell.add("tax", write("tax.py", "TAX = 2\n"), checks=["grep -q 2 tax.py"])
    shell.add("shipping", write("ship.py", "SHIP = 5\n"), mode="ask", attempts=2)
    run = shell.begin("run", "tasks.toml")
    try:
        await asyncio.to_thread(shell.asked, 2)
        program = await asyncio.to_thread(Program, shell)
        async with browsing() as browser:
            tab = await visit(browser, f"http://127.0.0.1:{program.port}/?token={program.token}", "#/fleet")
            await tab.see(".asked .whose", "shipping")
            await tab.see(".card .impacts code", "ship.py")
            assert await tab.find(".card").count() == 1
            assert await violations(tab) == []
            await (await tab.see(".asked .all", "1 more")).click()
            await tab.choose("yes")
            await tab.see(".nothing", "Nobody asks anything.")
            await tab.see(".tasks-of .badge", "done")
            await tab.page.wait_for_function("() => document.querySelectorAll('.tasks .i-check').length >= 3")
            assert await tab.texts(".tasks-of b") == ["tax", "shipping"]
            assert tab.problems == []
        program.kill()
        await asyncio.to_thread(run.communicate, timeout=120)
        assert run.returncode == 0
    finally:
        run.kill()
        run.communicate()
