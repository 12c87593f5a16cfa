"""The fleet on the page, in a real browser: its questions are answered there, its attempts looked at, picked, merged,
cancelled and tried again."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.fleet.test_commands import FleetShell, wait_for, write, write_and_sleep
from tests.journeys.processes import processes
from tests.journeys.story import act, decide
from tests.web.chromium import Tab, browsing, needs_chromium, visit
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


async def press(tab: Tab, task: str, label: str) -> None:
    """A button of a task, and the one that says what happens then."""
    job = tab.find(".tasks-of > .job", task)
    await job.get_by_role("button", name=label, exact=True).click()
    await job.locator(".sure").get_by_role("button", name=label, exact=True).click()


async def test_an_attempt_is_looked_at_picked_and_merged(tmp_path: Path) -> None:
    """What goes wrong then is told, too: the second one does not go together with it, and cannot mend that."""
    shell = FleetShell(tmp_path)
    read = decide(act("file_ops.read_file", path="shop.py"), next_step="continue")
    checks = ["grep -q PRICE shop.py"]
    shell.add("tea", read, write("shop.py", "PRICE = 2\n"), attempts=2, checks=checks)
    shell.add("milk", write("milk.py", "MILK = 3\n"), checks=["grep -q 'PRICE = 1' shop.py"])
    await asyncio.to_thread(shell.fleet, "run", "tasks.toml", "--json")
    program = await asyncio.to_thread(Program, shell)
    try:
        async with browsing() as browser:
            tab = await visit(browser, f"http://127.0.0.1:{program.port}/?token={program.token}", "#/fleet")
            tea = await tab.see(".tasks-of > .job", "tea")
            await tea.locator(".closer > summary").click()
            await tea.locator(".closer table.data th", has_text="#2").wait_for()
            await tea.locator(".closer dd", has_text="✓ grep -q PRICE").first.wait_for()
            await tea.locator(".closer .out", has_text="grep -q PRICE shop.py").wait_for()
            await tea.locator(".closer details summary").first.click()
            await tea.locator(".d-add .tx, .h-add", has_text="PRICE = 2").first.wait_for()
            assert await violations(tab) == []
            await tea.get_by_role("button", name="Pick this one").nth(1).click()
            await tea.locator(".tasks > li", has_text="attempt 2").locator(".badge", has_text="picked").wait_for()
            await tea.get_by_role("button", name="Merge", exact=True).click()
            await tab.see(".sure", "tea, attempt 2, goes onto main of")
            assert await violations(tab) == []
            await tea.get_by_role("button", name="Leave it").click()
            await press(tab, "tea", "Merge")
            await tab.see(".came", "tea: duckflow/tea-2 is on main of")
            await tea.locator(".badge.b-merged").wait_for()
            milk = tab.find(".tasks-of > .job", "milk")
            await press(tab, "milk", "Merge")
            await tab.see(".came", "Merged, the checks fail:")
            await tab.see(".came", "It goes back to the attempt once.")
            await milk.locator(".badge.b-failed").wait_for()
            assert tab.problems == []
        assert shell.repository.show("main", "shop.py") == "PRICE = 2"
        assert shell.repository.git("status", "--porcelain") == ""
    finally:
        program.kill()


async def test_a_task_is_cancelled_and_tried_again(tmp_path: Path) -> None:
    shell = FleetShell(tmp_path)
    shell.add("tax", write_and_sleep("73.5"))
    run = shell.begin("run", "tasks.toml")
    program = await asyncio.to_thread(Program, shell)
    try:
        await asyncio.to_thread(wait_for, "sleep 73.5")
        async with browsing() as browser:
            tab = await visit(browser, f"http://127.0.0.1:{program.port}/?token={program.token}", "#/fleet")
            task = await tab.see(".tasks-of > .job", "tax")
            await task.get_by_role("button", name="Cancel").click()
            await tab.see(".sure", "All processes of tax are ended now.")
            assert processes("sleep 73.5")
            await task.get_by_role("button", name="Cancel").click()
            await tab.see(".tasks-of .badge", "cancelled")
            await asyncio.to_thread(run.communicate, timeout=120)
            assert not processes("sleep 73.5")
            (shell.work / "tax.jsonl").write_text(json.dumps({"json": write("tax.py", "TAX = 3\n")}), "utf-8")
            await press(tab, "tax", "Try again")
            await tab.see(".tasks > li", "attempt 2 done")
            await tab.see(".tasks-of .badge", "done")
        assert shell.repository.show("duckflow/tax-2", "tax.py") == "TAX = 3"
    finally:
        program.kill()
        run.kill()
        run.communicate()
