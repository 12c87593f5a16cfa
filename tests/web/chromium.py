"""A real browser on the page. Without one installed, its tests are skipped."""

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal

import pytest

from tests.web.site import ID, Site

if TYPE_CHECKING:
    from playwright.async_api import Browser, ConsoleMessage, Locator, Page, ViewportSize

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
WIDE: "ViewportSize" = {"width": 1440, "height": 900}
PHONE: "ViewportSize" = {"width": 390, "height": 844}
PATIENCE_MS = 60_000
READING_MS = 500


def chromium() -> str:
    """Returns the path of the browser, or nothing if there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), "")


needs_chromium = pytest.mark.skipif(not chromium(), reason="no Chromium here: the page is not tried in a browser")


@asynccontextmanager
async def browsing() -> AsyncGenerator["Browser"]:
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        # As root Chromium has no sandbox of its own; it sees nothing but pages that these tests make.
        browser = await playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            await browser.close()


class Tab:
    """One page that somebody has open. `problems` are the complaints of its scripts and its policy."""

    def __init__(self, page: "Page") -> None:
        self.page = page
        self.problems: list[str] = []
        page.on("pageerror", lambda problem: self.problems.append(str(problem)))
        page.on("console", self._hear)

    def _hear(self, said: "ConsoleMessage") -> None:
        if said.type == "error":
            self.problems.append(said.text)

    def find(self, selector: str, text: str | None = None) -> "Locator":
        return self.page.locator(selector, has_text=text)

    async def see(self, selector: str, text: str | None = None) -> "Locator":
        found = self.find(selector, text).first
        await found.wait_for()
        return found

    async def gone(self, selector: str) -> None:
        await self.page.locator(selector).first.wait_for(state="detached")

    async def go(self, place: str) -> None:
        await self.page.evaluate("(place) => { location.hash = place; }", place)

    async def say(self, text: str) -> None:
        box = self.find(".composer textarea")
        await box.fill(text)
        await box.press("Enter")

    async def choose(self, label: str) -> None:
        """Clicks on a choice of an open question, once it has been there long enough to be read."""
        button = await self.see(".card .choices button", label)
        await self.page.wait_for_timeout(READING_MS)
        await button.click()

    async def texts(self, selector: str) -> list[str]:
        return await self.find(selector).all_inner_texts()


async def visit(
    browser: "Browser",
    site: Site | str,
    place: str = f"#/s/{ID}",
    size: "ViewportSize" = WIDE,
    colours: Literal["light", "dark"] = "light",
    scale: float = 1,
    first: str = "",
    locale: str = "en-US",
) -> Tab:
    """Opens a tab with a cookie of its own at a site or at an address with its token. `first`: what runs in it
    before anything else."""
    phone = size["width"] < 600
    context = await browser.new_context(
        viewport=size,
        color_scheme=colours,
        device_scale_factor=scale,
        is_mobile=phone,
        has_touch=phone,
        locale=locale,
    )
    context.set_default_timeout(PATIENCE_MS)
    tab = Tab(await context.new_page())
    await tab.page.add_init_script(first)
    address = site if isinstance(site, str) else f"{site.origin}/?token={site.visitors.token}"
    await tab.page.goto(f"{address}{place}")
    return tab
