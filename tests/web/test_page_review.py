"""A turn's changes are looked through on the page: comments go as one message, hunks and files are taken back."""

from pathlib import Path

import pytest

from tests.journeys.cast import Cast
from tests.journeys.story import act, decide, respond
from tests.web.chromium import PHONE, Tab, browsing, needs_chromium, visit
from tests.web.site import ID, Site, Talk
from tests.web.test_page_everywhere import violations

OLD = "".join(f"line_{number} = {number}\n" for number in range(1, 41))
NEW = OLD.replace("line_2 = 2\n", "line_2 = 'two'\n").replace("line_38 = 38\n", "line_38 = 38.5\n")
WROTE = decide(
    act("file_ops.write_file", path="a.py", content=NEW),
    act("file_ops.write_file", path="b.py", content="b = 1\n"),
    respond("Written."),
)
MENDED = decide(respond("I mend both."), step="PLANNING")


def a_talk(top: Path, model: Cast | None = None) -> Talk:
    talk = Talk(top, model or [WROTE, MENDED])
    (talk.folder / "a.py").write_text(OLD)
    return talk


async def test_comments_marks_and_hunks_over_the_wire(tmp_path: Path) -> None:
    async with a_talk(tmp_path) as talk, Site(talk.paths) as site:
        await talk.built.conversation.say("write it")
        browser = await site.visit()
        first, second, new = await browser.get(f"sessions/{ID}/hunks?turn=1")
        assert (first["path"], second["path"], new["path"], new["whole"]) == ("a.py", "a.py", "b.py", True)
        wrong = {"what": "comment", "turn": 1, "path": "a.py", "line": 20, "text": "no line of a hunk"}
        assert (await browser.post(f"sessions/{ID}/review", 400, **wrong))["error"]
        await browser.post(f"sessions/{ID}/review", 400, what="steal", turn=1)
        await browser.post(f"sessions/{ID}/review", what="mark", hunk=first["hunk_id"], reviewed=True)
        told = await browser.post(f"sessions/{ID}/review", what="take_back", turn=1, path="b.py")
        assert "b.py" in told["told"] and not (talk.folder / "b.py").exists()
        state = (await browser.get(f"sessions/{ID}"))["state"]
        assert state["reviewed"] == [first["hunk_id"]]
        await browser.post(f"sessions/{ID}/review", 400, what="take_back", turn=1, path="../../etc/passwd")


async def comment(tab: Tab, line: int, text: str) -> None:
    button = tab.find(f'.add-comment[aria-label="Comment on line {line}"]').last
    await button.focus()
    await button.press("Enter")
    await (await tab.see("tr.comment textarea")).fill(text)
    await tab.page.keyboard.press("Enter")
    await tab.see("tr.comment p", text)


@needs_chromium
@pytest.mark.slow
async def test_comments_on_lines_are_sent_as_one_message(tmp_path: Path) -> None:
    cast = Cast([WROTE, MENDED], {}, native=False)
    async with a_talk(tmp_path, cast) as talk, Site(talk.paths) as site, browsing() as browser:
        await talk.built.conversation.say("write it")
        tab = await visit(browser, site, f"#/s/{ID}/changes")
        await (await tab.see(".turns summary", "Review, comment")).click()
        await tab.see(".review .file-name", "a.py")
        await comment(tab, 2, "why a string?")
        await comment(tab, 38, "<img src=x onerror=alert(1)> half is wrong")
        await tab.see(".send-comments", "2 comments to send")
        assert await violations(tab) == []
        await tab.page.reload()
        await tab.see(".send-comments", "2 comments to send")
        await tab.find(".send-comments input").fill("Please:")
        await tab.find(".send-comments button.primary").click()
        await tab.see(".r-said", "I mend both.")
        await tab.gone(".send-comments")
        sent = cast.asked()
        assert "a.py:2: why a string?" in sent and "a.py:38: <img" in sent and "Please:" in sent
        assert len([one for one in talk.session.state.messages if one.role == "user"]) == 2
        assert tab.problems == []


TWICE = """(field) => {
    const enter = { key: "Enter", bubbles: true, cancelable: true };
    for (const _ of [1, 2]) field.dispatchEvent(new KeyboardEvent("keydown", enter));
}"""


@needs_chromium
@pytest.mark.slow
async def test_what_is_asked_for_twice_at_once_is_done_once(tmp_path: Path) -> None:
    """A second Enter, or a double click, before the server has answered."""
    async with a_talk(tmp_path) as talk, Site(talk.paths) as site, browsing() as browser:
        await talk.built.conversation.say("write it")
        tab = await visit(browser, site, f"#/s/{ID}/changes")
        await (await tab.see(".turns summary", "Review, comment")).click()
        await (await tab.see(".add-comment")).press("Enter")
        field = await tab.see("tr.comment textarea")
        await field.fill("why?")
        await field.evaluate(TWICE)
        await tab.see(".send-comments", "1 comment to send")
        await tab.page.wait_for_timeout(300)
        assert [comment.text for comment in talk.session.state.comments] == ["why?"]
        await tab.find(".composer textarea").fill("go on")
        await tab.find(".composer textarea").evaluate(TWICE)
        await tab.see(".r-said", "I mend both.")
        await tab.page.wait_for_timeout(300)
        assert talk.session.state.turn == 2 and tab.problems == []


@needs_chromium
@pytest.mark.slow
async def test_a_hunk_and_a_file_are_taken_back_and_what_was_read_is_marked(tmp_path: Path) -> None:
    async with a_talk(tmp_path) as talk, Site(talk.paths) as site, browsing() as browser:
        await talk.built.conversation.say("write it")
        tab = await visit(browser, site, f"#/s/{ID}/changes", PHONE)
        await (await tab.see(".turns summary", "Review, comment")).click()
        await tab.see(".file-name", "0 of 2 reviewed")
        await tab.find(".hunk-head input").nth(1).check()
        await tab.see(".file-name", "1 of 2 reviewed")
        await tab.find(".hunk-head .link").first.click()
        await tab.see(".taken", "a.py")
        assert (talk.folder / "a.py").read_text() == OLD.replace("line_38 = 38\n", "line_38 = 38.5\n")
        assert await violations(tab) == []
        await tab.find(".taken button").click()
        await tab.gone(".taken")
        assert (talk.folder / "a.py").read_text() == NEW
        await tab.find(".file", "b.py").locator(".file-name .link").click()
        await tab.page.wait_for_function("() => !document.querySelector('.review').innerText.includes('b.py')")
        assert not (talk.folder / "b.py").exists()
        assert tab.problems == []
