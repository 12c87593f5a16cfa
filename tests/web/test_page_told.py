"""News that the page tells by itself: a turn's proof, questions that wait unseen, the fate of an attached file."""

import zipfile
from pathlib import Path

import pytest

from duckflow.events.types import ProofTried
from duckflow.llm.scripted import Line
from duckflow.programs.find import find_program
from duckflow.state.checks import Proof
from duckflow.state.data import say
from tests.journeys.story import act, decide, respond
from tests.journeys.test_proof import FIX, OLD, QUICK, REAL, RUN, work
from tests.tools.web.test_fetch import pdf_of
from tests.web.chromium import PHONE, browsing, needs_chromium, visit
from tests.web.played import PlayedFleet
from tests.web.site import ID, Site, Talk
from tests.web.test_page_everywhere import violations

pytestmark = [needs_chromium, pytest.mark.slow]

OTHER = "20260102-000000-abcdef"
NOTICES = """
window.told = [];
window.away = false;
Object.defineProperty(document, "hidden", { get: () => window.away });
window.Notification = class {
  static permission = localStorage.getItem("granted") ?? "default";
  static async requestPermission() {
    localStorage.setItem("granted", (this.permission = "granted"));
  }
  constructor(title, { body }) {
    window.told.push([title, body.trim()]);
  }
};
"""
"""A browser whose notices are kept in `told`, and that is `away` on wish."""
TOLD = "(text) => window.told.some((notice) => notice.join(': ') === text)"
ASKS = decide(act("shell.run", command="touch made.txt"), rationale="It was asked for")


@pytest.mark.skipif(find_program("bwrap", Path("/nowhere")) is None, reason="needs bubblewrap")
async def test_the_proof_line_of_a_turn_names_its_tests(tmp_path: Path) -> None:
    async with (
        Talk(tmp_path, work(FIX, REAL, RUN), settings=QUICK) as talk,
        Site(talk.paths) as site,
        browsing() as browser,
    ):
        (talk.folder / "app.py").write_text(OLD)
        tab = await visit(browser, site)
        await tab.say("fix double and test it")
        await (await tab.see(".talk .proof summary.check", "failed before and passes now")).click()
        await tab.see(".talk .proof dd", "test_app.py::test_two")
        await tab.go(f"#/s/{ID}/changes")
        await tab.see(".turns .proof summary.check", "failed before and passes now")
        assert await violations(tab) == []
        # What could not be tried is not shown as a success.
        unknown = Proof(untold=("test_app.py::test_two",), why=say("proof.not_run"))
        talk.session.emit(ProofTried(proof=unknown))
        await tab.see(".talk .proof summary.note")
        talk.session.emit(ProofTried(proof=Proof(hollow=("test_app.py::test_two",))))
        await tab.see(".talk .proof summary.warn")
        assert await violations(tab) == [] and tab.problems == []


async def test_a_waiting_question_is_told_while_nobody_looks_at_the_page(tmp_path: Path) -> None:
    ends = decide(respond("Made."))
    fleet = PlayedFleet(2, asks=0)
    async with (
        Talk(tmp_path, [ASKS, ends, ASKS, ASKS], "ask") as talk,
        Talk(tmp_path, [ASKS], "ask", OTHER, folder="other") as other,
        Site(talk.paths, fleet=fleet) as site,
        browsing() as browser,
    ):
        tab = await visit(browser, site, first=NOTICES)
        await tab.say("make it")
        await (await tab.see(".card .notices button", "Yes")).click()
        await tab.gone(".notices")
        assert await violations(tab) == []
        await tab.choose("yes")
        await tab.see(".r-said", "Made.")
        assert await tab.page.evaluate("() => window.told") == []
        await tab.page.evaluate("() => { window.away = true; }")
        await talk.built.conversation.take("once more")
        await tab.page.wait_for_function(TOLD, arg="make it: May I? $ touch made.txt")
        await other.built.conversation.take("make another")
        await tab.page.wait_for_function(TOLD, arg="make another: May I? $ touch made.txt")
        assert await tab.find(".notices").count() == 0
        listed = await visit(browser, site, "#/", first=NOTICES + "localStorage.setItem('granted', 'granted');")
        await listed.page.reload()
        await listed.see(".session.st-waiting", "make another")
        await listed.page.evaluate("() => { window.away = true; }")
        assert await listed.page.evaluate("() => window.told") == []
        talk.built.conversation.interrupt()
        await listed.page.wait_for_function("() => document.querySelectorAll('.st-waiting.session').length === 1")
        await talk.built.conversation.take("and again")
        await listed.page.wait_for_function(TOLD, arg="make it: May I? $ touch made.txt")
        assert tab.problems == listed.problems == []


async def test_any_file_is_attached_and_it_is_told_what_became_of_it(tmp_path: Path) -> None:
    replies: list[Line] = [decide(respond("I see."), step="PLANNING")]
    archive, document = tmp_path / "data.zip", tmp_path / "letter.pdf"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a.txt", "inside")
    document.write_bytes(pdf_of("The total is 42", title="A letter"))
    (tmp_path / "old.txt").write_bytes("価格は千円です\n".encode("cp932"))
    (tmp_path / "page.html").write_text("<script>window.ran = true</script><img src=x onerror='window.ran = true'>\n")
    async with Talk(tmp_path, replies) as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site)
        await tab.see(".composer textarea")
        files = [archive, document, tmp_path / "old.txt", tmp_path / "page.html"]
        await tab.page.set_input_files(".composer input[type=file]", files)
        await tab.see(".attached .chip", "data.zip")
        assert await violations(tab) == []
        await tab.say("what is in these?")
        await tab.see(".r-note", "data.zip (")
        for name in ("letter.pdf", "old.txt", "page.html"):
            await tab.see(".r-note", f"attached: {name}")
        await tab.see(".r-said", "I see.")
        heard = "\n".join(message.text for message in talk.session.state.messages)
        assert "The total is 42" in heard and "価格は千円です" in heard and "ZIP archive" in heard
        assert not await tab.page.evaluate("() => window.ran") and tab.problems == []


async def test_the_end_of_the_talk_is_there_after_a_look_at_another_tab(tmp_path: Path) -> None:
    replies = [decide(respond("\n\n".join(f"Answer {number}, {line}." for line in range(60)))) for number in range(3)]
    async with Talk(tmp_path, replies) as talk, Site(talk.paths) as site, browsing() as browser:
        for number in range(2):
            await talk.built.conversation.say(f"go on {number}")
        tab = await visit(browser, site, size=PHONE)
        await tab.see(".r-said", "Answer 1, 59.")
        await tab.find("#tab-changes").click()
        await tab.see(".panel section")
        await talk.built.conversation.say("go on 2")
        await tab.find("#tab-talk").click()
        box = "document.querySelector('.talk')"
        await tab.page.wait_for_function(f"() => {box}.scrollHeight - {box}.scrollTop - {box}.clientHeight < 40")
        assert await tab.find(".to-end").count() == 0 and tab.problems == []


async def test_boxes_of_a_list_and_notes_stand_where_they_belong(tmp_path: Path) -> None:
    answer = "- [x] done\n- [ ] `open`\n\nSee[^1].\n\n" + "And on.\n\n" * 80 + "[^1]: a note"
    async with (
        Talk(tmp_path, [decide(respond(answer), step="PLANNING")]) as talk,
        Site(talk.paths) as site,
        browsing() as browser,
    ):
        tab = await visit(browser, site)
        await tab.say("what is open?")
        await tab.see(".footnotes", "a note")
        width = await tab.find(".md input[type=checkbox]").first.evaluate("(box) => box.offsetWidth")
        assert width < 30
        await tab.find(".footnote-ref a").click()
        await tab.page.wait_for_timeout(200)
        assert ID in tab.page.url and len(tab.page.context.pages) == 1
        assert await tab.find(".footnotes li").evaluate("(note) => note.getBoundingClientRect().bottom < innerHeight")


@pytest.mark.parametrize("place", ["", "#/", "#/new", "#/fleet", "#/models"])
async def test_beside_a_terminal_there_is_that_chat_and_nothing_else(tmp_path: Path, place: str) -> None:
    async with (
        Talk(tmp_path, [decide(respond("Hello."), step="PLANNING")]) as talk,
        Talk(tmp_path, [], session_id=OTHER, folder="other"),
        Site(talk.paths, only=[ID]) as site,
        browsing() as browser,
    ):
        tab = await visit(browser, site, place)
        await tab.say("hello")
        await tab.see(".r-said", "Hello.")
        for beyond in (".new", ".switch-button", ".sessions", ".top nav", ".head a"):
            assert await tab.find(beyond).count() == 0, beyond
        assert await violations(tab) == [] and tab.problems == []
