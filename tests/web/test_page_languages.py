"""The page speaks one language at a time: the viewer's, or the one of the session begun there."""

import re
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.journeys.story import act, decide, respond
from tests.web.chromium import READING_MS, browsing, needs_chromium, visit
from tests.web.site import ID, Site, Talk
from tests.web.test_page_everywhere import violations
from tests.web.test_page_processes import HELLO, Program, shell

assert shell
JAPANESE = re.compile(r"[\u3040-\u30ff]")
WRITES = decide(
    act("file_ops.write_file", path="a.py", content="one = 1\n"), respond("Written."), rationale="asked for"
)


@pytest.mark.parametrize(("listed", "japanese"), [("ja,en;q=0.8", True), ("de,ja;q=0.5", True), ("de,en", False)])
async def test_a_command_answers_in_the_language_of_whoever_typed_it(
    tmp_path: Path, listed: str, japanese: bool
) -> None:
    """German has only some of the words: a browser that wants it gets the next language that is whole."""
    async with Talk(tmp_path, []) as talk, Site(talk.paths, as_browser=True) as site:
        browser = await site.visit()
        browser.http.headers["accept-language"] = listed
        assert (await browser.get("me"))["language"] == ("ja" if japanese else "en")
        async with browser.reading() as reader:
            await browser.post(f"sessions/{ID}/say", text="/status")
            [item] = await reader.until(lambda: reader.of("command"))
            assert bool(JAPANESE.search(item["text"])) is japanese
            # A language that is chosen is that of the session from then on, whoever looks at it.
            await browser.post(f"sessions/{ID}/say", text="/lang ja")
            await reader.until(lambda: len(reader.of("command")) == 2)
            browser.http.headers["accept-language"] = "en"
            await browser.post(f"sessions/{ID}/say", text="/status")
            await reader.until(lambda: len(reader.of("command")) == 3)
            assert all(JAPANESE.search(item["text"]) for item in reader.of("command")[1:])
        assert talk.session.state.language == "ja"


@pytest.mark.slow
@pytest.mark.parametrize(("flags", "listed"), [(("--lang", "ja"), "en"), ((), "ja")], ids=["flag", "browser"])
async def test_a_session_that_is_begun_on_the_page_speaks_its_language(
    shell: Shell, flags: tuple[str, ...], listed: str
) -> None:
    program = Program(shell, *flags)
    browser = await program.visit()
    browser.http.headers["accept-language"] = listed
    began = await browser.post("sessions", folder=str(shell.work), mode="ask", model=shell.script(HELLO), message="hi")
    async with browser.reading(began["id"]) as reader:
        await reader.until(lambda: reader.of("text", by="model"))
        for command in ("/status", "/help"):
            await browser.post(f"sessions/{began['id']}/say", text=command)
        await reader.until(lambda: len(reader.of("command")) == 2)
        assert all(JAPANESE.search(item["text"]) for item in reader.of("command"))
    program.stop()


async def test_the_record_is_in_the_language_of_whoever_reads_it(tmp_path: Path) -> None:
    async with Talk(tmp_path, [WRITES], mode="ask") as talk, Site(talk.paths, language="ja") as site:
        browser = await site.visit()
        async with browser.reading() as reader:
            await talk.built.conversation.take("write a.py")
            [question] = await reader.until(lambda: reader.facts.get("questions"))
            await browser.post(f"sessions/{ID}/answer", question_id=question["question_id"], choice="yes")
            await reader.until(lambda: reader.of("action", state="done"))
        [entry, *_] = [entry for entry in await browser.get(f"sessions/{ID}/audit") if entry["gate"]]
        assert (entry["answer"], entry["answer_told"]) == ("yes", "はい")


@pytest.mark.parametrize(("listed", "language"), [("ja", "ja"), ("de", "en"), ("en", "en")])
async def test_a_visitor_without_the_link_is_refused_in_their_language(
    tmp_path: Path, listed: str, language: str
) -> None:
    async with Talk(tmp_path, []) as talk, Site(talk.paths, as_browser=True) as site:
        browser = await site.visit()
        headers = {"accept": "text/html", "accept-language": listed}
        for path in ("/", "/?token=wrong"):
            answer = await browser.http.get(path, headers=headers)
            assert answer.status_code == 401 and f"<html lang={language}>" in answer.text
            assert "<main>" in answer.text and "`" not in answer.text
            assert bool(JAPANESE.search(answer.text)) is (language == "ja")


@needs_chromium
@pytest.mark.slow
async def test_the_refusal_is_a_page_like_any_other(tmp_path: Path) -> None:
    async with Talk(tmp_path, []) as talk, Site(talk.paths, as_browser=True) as site, browsing() as browser:
        for address in (f"{site.origin}/", f"{site.origin}/?token=wrong"):
            tab = await visit(browser, address, "", locale="ja-JP")
            await tab.page.wait_for_timeout(READING_MS)
            assert await violations(tab) == []
            assert await tab.find("main").evaluate("(main) => getComputedStyle(main).maxWidth") != "none"
