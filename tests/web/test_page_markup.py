"""Texts of the model, files, commands, servers and people stay text on the page, whatever they look like."""

import json
import re
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest

from duckflow.events.types import (
    ActionFinished,
    ActionStarted,
    MessageAdded,
    OutputStreamed,
    QuestionAsked,
    TextStreamed,
)
from duckflow.i18n.words import catalogue, languages
from duckflow.state.action import Action, ActionResult
from duckflow.state.data import SAID, say
from duckflow.state.message import Message
from duckflow.state.question import Choice, FileImpact, GateRequest, Question
from duckflow.web.telling import markdown
from tests.journeys.story import decide, respond
from tests.web.payloads import PAYLOADS
from tests.web.site import ID, Site, Talk

TAGS = re.compile(r"p|a|em|strong|s|code|pre|ul|ol|li|h[1-6]|blockquote|hr|br|table|thead|tbody|tr|th|td")
ATTRIBUTES = {
    "a": {"href", "title", "target", "rel"}, "code": {"class"}, "ol": {"start"}, "th": {"class"}, "td": {"class"}
}  # fmt: skip
LINK = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)


class Checker(HTMLParser):
    """Collects every tag and attribute that a browser would see."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert TAGS.fullmatch(tag), tag
        for name, value in attrs:
            assert name in ATTRIBUTES.get(tag, set()), (tag, name)
            if name == "href":
                assert LINK.match(value or ""), value

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)


def test_there_are_enough_payloads() -> None:
    assert len(set(PAYLOADS)) >= 60


def test_names_of_files_keep_their_signs() -> None:
    assert markdown("natsort/*.py, test_*.py and __init__.py") == "<p>natsort/*.py, test_*.py and __init__.py</p>\n"


def test_no_markup_comes_out_of_markdown_but_its_own() -> None:
    for payload in PAYLOADS:
        around = (payload, f"# {payload}", f"- {payload}", f"`{payload}`", f"```{payload}\n{payload}\n```")
        links = (
            f"[{payload}](https://e.example)",
            f"[x]({payload})",
            f"[x](https://e.example '{payload}')",
            f"![x]({payload})",
        )
        table = f"| a | b |\n|:--|--:|\n| {payload} | x |"
        for text in (*around, *links, table, f"[x]: {payload}\n\n[x]", f"<{payload}>", f"> {payload}\n\n{payload}"):
            checker = Checker(convert_charrefs=False)
            checker.feed(markdown(text))
            checker.close()


async def test_nothing_that_is_said_anywhere_comes_out_as_markup(tmp_path: Path) -> None:
    """Everything goes through the server: file names, diffs, the model's texts, outputs, messages, tool names."""
    async with Talk(tmp_path, []) as talk, Site(talk.paths) as site:
        for payload in PAYLOADS:
            for event in said_everywhere(payload):
                talk.session.emit(event)
        browser = await site.visit()
        kept = talk.session.number
        async with browser.reading() as reader:
            await reader.until(lambda: reader.numbers[-1:] == [kept])
            for payload in PAYLOADS:
                talk.session.emit(TextStreamed(text=payload))
                talk.session.emit(OutputStreamed(text=payload))
            talk.session.emit(TextStreamed(text="the end"))
            await reader.until(lambda: "the end" in str(reader.items[-2:]))
        for item in reader.items:
            assert "html" not in item or (item["kind"], item["by"]) == ("text", "model")
            Checker(convert_charrefs=False).feed(item.get("html", ""))
        for path in ("", "/record?before=100000", "/audit", "/changes", "/chart"):
            answer = await browser.http.get(f"{browser.top}api/sessions/{ID}{path}")
            # Never a kind that a browser would show as a page, and no line of its own in a stream.
            assert answer.headers["content-type"] == "application/json" and answer.headers["x-content-type-options"]
            json.loads(answer.text)
        listed = await browser.http.get(f"{browser.top}api/sessions")
        assert listed.headers["content-type"] == "application/json"


async def test_nobody_breaks_out_of_the_stream(tmp_path: Path) -> None:
    """Lines of a text are no lines of the stream: no event can be made up inside another."""
    forged = "x\n\nid: 999\ndata: {}\n\n\r\rid: 998\rdata: {}\u2028id: 997"
    async with Talk(tmp_path, [decide(respond(forged), step="PLANNING")]) as talk, Site(talk.paths) as site:
        browser = await site.visit()
        async with browser.reading() as reader:
            await browser.post(f"sessions/{ID}/say", text=forged)
            await reader.until(lambda: reader.turns_over)
        assert reader.numbers == list(range(1, talk.session.number + 1))


async def test_values_that_json_lacks_do_not_end_the_stream(tmp_path: Path) -> None:
    """Numbers that JSON does not have, and what is nested too deep, do not end a stream."""
    deep: list[object] = []
    for _ in range(150):
        deep = [deep]
    args = {"deep": deep, "nan": float("nan"), "far": float("inf")}
    async with Talk(tmp_path, []) as talk, Site(talk.paths) as site:
        browser = await site.visit()
        async with browser.reading() as reader:
            await reader.until(lambda: reader.numbers)
            talk.session.emit(
                ActionStarted(action=Action(operation="mcp.x", args=args, reasoning="x"), doing=say("wait.you"))
            )
            await reader.until(lambda: reader.of("action"))
        told = reader.of("action")[0]["action"]["args"]
        assert told["nan"] is told["far"] is None and told["deep"]


@pytest.mark.parametrize("texts", [{}, {"en": "harmless"}])
async def test_arguments_that_look_like_a_sentence_are_shown_as_they_are(tmp_path: Path, texts: dict[str, str]) -> None:
    hidden = {"key": "page.close", "values": {"path": "rm -rf"}, "texts": texts}
    action = Action(operation="mcp.x", args={"target": hidden, "all": [{"deep": hidden}]}, reasoning="x")
    async with Talk(tmp_path, []) as talk, Site(talk.paths) as site:
        talk.session.emit(ActionStarted(action=action, doing=say("wait.you")))
        ended = ActionResult(
            action_id=action.action_id, operation="mcp.x", ok=True, for_model="", for_user=say("wait.you")
        )
        talk.session.emit(ActionFinished(result=ended))
        browser = await site.visit()
        told = await browser.get(f"sessions/{ID}/record?before=99")
        shown = next(item["action"] for entry in told for item in entry["items"] if item.get("action"))
        audited = await browser.get(f"sessions/{ID}/audit")
        for args in (shown["args"], audited[0]["args"]):
            assert args == {"target": hidden, "all": [{"deep": hidden}]}


async def test_characters_that_steer_a_text_are_made_visible(tmp_path: Path) -> None:
    async with Talk(tmp_path, []) as talk, Site(talk.paths) as site:
        talk.session.emit(MessageAdded(message=Message(role="user", text="evil\u202egnp.exe\u2066 \x1b[2J \u200b")))
        browser = await site.visit()
        (said,) = [item for told in await browser.get(f"sessions/{ID}/record?before=99") for item in told["items"]]
        assert said["text"] == "evil\\x202egnp.exe\\x2066 \\x1b[2J \\x200b"


def said_everywhere(payload: str) -> list[QuestionAsked | MessageAdded | ActionStarted | ActionFinished]:
    action = Action(operation=f"mcp.{payload}", args={"path": payload, payload: payload}, reasoning=payload)
    diff = f"--- a/{payload}\n+++ b/{payload}\n@@ -1 +1 @@\n-{payload}\n+{payload}"
    impact = FileImpact(path=payload, change="edit")
    gate = GateRequest(
        action_ids=(action.action_id,),
        operations=(action.operation,),
        intent=(payload,),
        rationale=payload,
        alternatives=(payload,),
        commands=(f"git commit -m '{payload}'",),
        impacts=(impact,),
        diff=diff,
        reasons=(say("risk.inside", path=payload),),
    )
    question = Question(
        kind="gate", title=say(payload), gate=gate, choices=(Choice(key="yes", label=say(payload)),), on_record=True
    )
    printed = ActionResult(
        action_id=action.action_id, operation=action.operation, ok=True, for_model=payload, for_user=say(payload),
        changed=(payload,),
    )  # fmt: skip
    spoken = printed.model_copy(update={"for_user": say(SAID, text=payload)})
    return [
        MessageAdded(message=Message(role="user", text=payload), title=payload),
        QuestionAsked(question=question),
        ActionStarted(action=action, doing=say(payload, x=payload)),
        ActionFinished(result=printed),
        ActionFinished(result=spoken),
    ]


def test_words_have_no_markup_of_their_own() -> None:
    """The page inserts its words as text, so they contain no markup."""
    words = [entry for language in languages() for entry in catalogue(language).items()]
    texts = [text for key, text in words if key.startswith(("page.", "serve."))]
    assert texts and "<" not in "".join(texts)


@pytest.mark.parametrize("text", ["![" * 40_000, "[](" * 40_000, "*a_ " * 200_000])
def test_text_that_takes_long_to_read_holds_nobody_up(text: str) -> None:
    began = time.process_time()
    shown = markdown(f"<script>{text}")
    assert time.process_time() - began < 2 and shown.startswith("<pre>&lt;script&gt;")
