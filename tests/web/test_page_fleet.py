"""The fleet on the page, in a real browser: its questions are answered there, its attempts looked at, picked, merged,
cancelled and tried again."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fleet.test_commands import FleetShell, wait_for, write, write_and_sleep
from tests.journeys.processes import processes
from tests.journeys.story import act, decide
from tests.web.chromium import PHONE, Tab, browsing, needs_chromium, visit
from tests.web.played import FLEET, PlayedFleet
from tests.web.site import Site, Talk
from tests.web.test_page_everywhere import violations
from tests.web.test_page_processes import Program

if TYPE_CHECKING:
    from playwright.async_api import Locator

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
            await tab.see(".nothing", "There are no questions.")
            await tab.see(".tasks-of .badge", "done")
            for name in ("tax", "shipping"):
                await unfolded(tab, name)
            await tab.page.wait_for_function("() => document.querySelectorAll('.tasks .i-check').length >= 3")
            assert await tab.texts(".task th .link") == ["tax", "shipping"]
            assert tab.problems == []
        program.kill()
        await asyncio.to_thread(run.communicate, timeout=120)
        assert run.returncode == 0
    finally:
        run.kill()
        run.communicate()


async def unfolded(tab: Tab, task: str) -> "Locator":
    """Unfolds the row of a task and returns it with its details."""
    row = await tab.see("tbody.task", task)
    await row.locator("th .link").click()
    return row


async def press(tab: Tab, task: str, label: str) -> None:
    """Presses a button of a task, and then the one that confirms it."""
    job = tab.find("tbody.task", task)
    await job.get_by_role("button", name=label, exact=True).click()
    await job.locator(".sure").get_by_role("button", name=label, exact=True).click()


async def test_an_attempt_is_looked_at_picked_and_merged(tmp_path: Path) -> None:
    """A failed merge is told, too: the second change conflicts with the first."""
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
            tea = await unfolded(tab, "tea")
            await tea.locator(".closer > summary").click()
            await tea.locator(".closer table th", has_text="#2").wait_for()
            await tea.locator(".closer dd", has_text="✓ grep -q PRICE").first.wait_for()
            await tea.locator(".closer .out", has_text="grep -q PRICE shop.py").wait_for()
            await tea.locator(".closer details summary").first.click()
            await tea.locator(".d-add .tx, .h-add", has_text="PRICE = 2").first.wait_for()
            assert await violations(tab) == []
            await tea.get_by_role("button", name="Pick this attempt").nth(1).click()
            await tea.locator(".tasks > li", has_text="attempt 2").locator(".badge", has_text="picked").wait_for()
            await tea.get_by_role("button", name="Merge", exact=True).click()
            await tab.see(".sure", "tea, attempt 2, will be merged into main of")
            assert await violations(tab) == []
            # Somebody else picks the other attempt: what would be merged now is not what was asked.
            other, chosen = await program.visit(), {"fleet": (await tab.texts(".fleet-of h2"))[0], "tasks": ["tea"]}
            await other.post("fleet/change", what="pick", attempt=1, **chosen)
            await tea.locator(".sure").wait_for(state="detached")
            refused = await other.post("fleet/change", 400, what="merge", attempt=2, **chosen)
            assert "attempt 2 cannot be merged" in refused["error"]
            await tea.get_by_role("button", name="Pick this attempt").click()
            await tea.get_by_role("button", name="Merge", exact=True).click()
            await tea.get_by_role("button", name="Keep things as they are").click()
            await press(tab, "tea", "Merge")
            await tab.see(".came", "tea: duckflow/tea-2 was merged into main of")
            await tea.locator(".badge.b-merged").wait_for()
            await unfolded(tab, "milk")
            await press(tab, "milk", "Merge")
            await tab.see(".came", "After merging, the checks fail:")
            await tab.see(".came", "The attempt gets one chance to fix it.")
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
            task = await unfolded(tab, "tax")
            await task.get_by_role("button", name="Cancel", exact=True).click()
            await tab.see(".sure", "All processes of tax will be ended.")
            assert processes("sleep 73.5")
            await task.locator(".sure").get_by_role("button", name="Cancel").click()
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


async def test_a_fleet_is_begun_from_a_form_and_worked_on(tmp_path: Path) -> None:
    """Mistakes in the tasks are told in the form; a worker of its own carries the tasks out."""
    shell = FleetShell(tmp_path)
    model = shell.script(write("tax.py", "TAX = 2\n"))
    program = await asyncio.to_thread(Program, shell)
    try:
        async with browsing() as browser:
            tab = await visit(browser, f"http://127.0.0.1:{program.port}/?token={program.token}", "#/fleet")
            await (await tab.see("button.new")).click()
            form = await tab.see("form.new-session")
            await form.get_by_label("Folder", exact=True).fill(str(tmp_path))
            await form.get_by_role("textbox", name="Tasks, one per line").fill("# a remark\n- raise the tax")
            await tab.see("form .meta", "1 task")
            await form.get_by_label("Checks").fill("sleep 3 && grep -q 2 tax.py")
            await form.get_by_label("Model", exact=True).fill(model)
            assert await violations(tab) == []
            await form.get_by_role("button", name="Start the fleet").click()
            await tab.see("form .problem")
            await form.get_by_label("Folder", exact=True).fill(str(shell.repository.folder))
            await form.get_by_role("button", name="Start the fleet").click()
            await tab.see(".workers li", "running")
            await tab.see(".tasks-of .badge", "done")
            row = await unfolded(tab, "raise")
            await row.locator(".what", has_text="raise the tax").wait_for()
            await row.locator(".meta", has_text="✓ sleep 3 && grep -q 2 tax.py").first.wait_for()
            assert [problem for problem in tab.problems if "400" not in problem] == []
    finally:
        program.kill()


async def test_two_hundred_tasks_are_counted_filtered_and_acted_on_together(tmp_path: Path) -> None:
    fleet = PlayedFleet(200, asks=1)
    async with Talk(tmp_path, []) as talk, Site(talk.paths, fleet=fleet) as site, browsing() as browser:
        tab = await visit(browser, site, "#/")
        # One question, and twenty tasks of which one attempt is to be picked.
        await tab.see(".fleet-asks", "A fleet waits for 21 answers from you")
        await tab.see(".top nav a .count", "21")
        assert (await tab.page.title()).startswith("●")
        await (await tab.see(".fleet-asks")).click()
        await tab.see(".filters button", "all 200")
        await tab.see(".progress", "140/200")
        await tab.see(".workers li", "running, 4 attempts")
        await tab.see(".workers .warn", "does not answer")
        assert await tab.find(".map i").count() == await tab.find("tbody.task").count() == 200
        bottom = await tab.page.evaluate(
            "() => document.querySelector('.filters').getBoundingClientRect().bottom - "
            "document.querySelector('.fleet-of').getBoundingClientRect().top"
        )
        assert bottom < 400, "all of it at a glance"
        await tab.find(".filters button", "running 40").click()
        await tab.find(".filters input").fill("task-1")
        count = await tab.find("tbody.task").count()
        assert 0 < count < 40
        await tab.find("thead input").check()
        await tab.see(".bulk", f"{count} selected")
        assert await violations(tab) == []
        await tab.find(".bulk button", "Cancel").click()
        await tab.see(".sure", f"All processes of {count} tasks will be ended.")
        await tab.find(".sure button.bad").click()
        await tab.see(".nothing, .filters button", "cancelled")
        await tab.page.wait_for_function("() => document.querySelectorAll('tbody.task').length === 0")
        assert [what for what, *_ in fleet.done] == ["cancel"] * count
        assert tab.problems == []


async def test_a_fleet_that_nobody_works_on_says_so(tmp_path: Path) -> None:
    fleet = PlayedFleet(3, alive=False)
    async with Talk(tmp_path, []) as talk, Site(talk.paths, fleet=fleet) as site, browsing() as browser:
        tab = await visit(browser, site, "#/fleet", PHONE)
        await tab.see(".warn", "No worker is running for")
        assert await violations(tab) == []
        await (await tab.see("button", "Start a worker here")).click()
        await tab.see(".workers li", "running")
        assert fleet.done == [("work", FLEET)]
