"""What a page sees and does: real HTTP to a real server, with real conversations behind it."""

from pathlib import Path

from tests.journeys.story import act, decide, respond
from tests.web.site import ID, Site, Talk

WRITE = decide(act("file_ops.write_file", path="a.txt", content="one\n"), respond("Written **well**."))


async def test_a_conversation_is_seen_and_led_from_a_page(tmp_path: Path) -> None:
    async with Talk(tmp_path, [WRITE], mode="plan") as talk, Site(talk.paths) as site:
        browser = await site.visit()
        async with browser.reading() as reader:
            assert await browser.post(f"sessions/{ID}/say", text="write it") == {
                "taken": "message", "told": [], "question_id": "",
            }  # fmt: skip
            await reader.until(lambda: reader.of("turn_ended"))
