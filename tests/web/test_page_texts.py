"""Every text that reaches the page stays text in a real browser: each kind of event, fleets, models, reviews, names."""

import enum
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel

from duckflow.events.event import Event
from duckflow.state.data import Phrase, say
from tests.journeys.story import act, decide, respond
from tests.web.chromium import Tab, browsing, needs_chromium, visit
from tests.web.payloads import PAYLOADS
from tests.web.played import PlayedFleet, PlayedModels
from tests.web.site import ID, Site, Talk
from tests.web.test_page_hard_days import open_everything

pytestmark = [needs_chromium, pytest.mark.slow]

WORST = "".join(PAYLOADS)
MARK = "\"'><img src=x onerror=window.__ran=1>"
"""Markup for names of fleets and tasks, which have no slashes."""
ENDING = {"SessionOpened", "TurnEnded", "ConversationLeft", "ModeChosen", "LanguageChosen", "QuestionAsked"}
"""Events that end or change a conversation, and the one whose text test_page_hard_days has in a Gate."""
DEEPEST = 6
FOREIGN = """() => {
    const own = ":is(img.duck, .pictures img, .thumb img, form[class])";
    const tags = "script, iframe, object, embed, img, video, audio, style, link, base, meta, math, form, template";
    const found = [...document.querySelectorAll(`#app :is(${tags})`)].filter((one) => !one.matches(own));
    const odd = [...document.querySelectorAll("#app *")].filter((one) => [...one.attributes].some(
        ({ name, value }) => name.startsWith("on") || (/^(href|src|action|formaction|xlink:href)$/.test(name)
            && /^\\s*(javascript|vbscript|file|data:text)/i.test(value)),
    ));
    return [window.__ran, document.scripts.length, ...[...found, ...odd].map((one) => one.outerHTML.slice(0, 200))];
}"""


def kinds(base: type[Event] = Event) -> list[type[Event]]:
    return [kind for child in base.__subclasses__() for kind in (*kinds(child), child) if kind.__dict__.get("kind")]


def filled(annotation: Any, depth: int = 0) -> Any:
    """Returns a value of this type in which every text is made of payloads."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return filled(arguments[0], depth)
    if origin is Literal:
        return arguments[0]
    if origin in (Union, types.UnionType):
        return filled(next(part for part in arguments if part is not types.NoneType), depth)
    if origin in (tuple, list, frozenset, set, Sequence):
        return [filled(part, depth + 1) for part in arguments if part is not ...]
    if origin in (dict, Mapping):
        return {filled(part, depth + 1): filled(arguments[1], depth + 1) for part in arguments[:1]}
    if annotation is Phrase:
        return say(WORST, text=WORST)
    if isinstance(annotation, type) and issubclass(annotation, tuple):
        return [filled(part, depth + 1) for part in get_type_hints(cast("type[object]", annotation)).values()]
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return next(iter(annotation))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = annotation.model_fields.items()
        wanted = [(name, field) for name, field in fields if name != "at" and (field.is_required() or depth < DEEPEST)]
        return annotation.model_validate({name: filled(field.annotation, depth + 1) for name, field in wanted})
    return next((value for value in (True, 1, 0.5) if annotation is type(value)), WORST)


class MarkedFleet(PlayedFleet):
    """A fleet whose every name and text is made of payloads."""

    async def fleets(self) -> Sequence[Mapping[str, Any]]:
        named: dict[str, Any] = {"prompt": WORST, "repository": WORST, "onto": WORST, "told": WORST}
        tasks = [task | named | {"name": f"{number} {MARK}"} for number, task in enumerate(self.tasks)]
        return [{**fleet, "fleet": MARK, "told": WORST, "tasks": tasks} for fleet in await super().fleets()]

    async def inbox(self) -> Sequence[Mapping[str, Any]]:
        return [{**asked, "task": WORST} for asked in await super().inbox()]

    async def workers(self) -> Sequence[Mapping[str, Any]]:
        return [{**worker, "worker": WORST, "place": WORST, "machine": WORST} for worker in await super().workers()]

    async def task(self, fleet: str, task: str) -> Mapping[str, Any]:
        said = {"findings": [WORST], "evidence": [WORST], "touched_outside": [WORST], "said": WORST, "branch": WORST}
        figures = {"commit": MARK, "cost_usd": 0.1, "tokens": 5, "seconds": 3}
        checks = [{"command": WORST, "code": 1, "output": WORST}]
        report = {**said, **figures, "checks": checks, "files": [{"path": WORST, "added": 1, "removed": 1}]}
        line = {"at": 1767225600.0, "attempt": 1, "said": WORST}
        return {"attempts": [report, report], "numbers": [1, 2], "rows": [[WORST, WORST]], "lines": [line]}

    async def diff(self, fleet: str, task: str, attempt: int) -> str:
        return f"--- a/{PAYLOADS[0]}\n+++ b/{PAYLOADS[0]}\n@@ -1 +1 @@\n-{PAYLOADS[1]}\n+{PAYLOADS[2]}"


class MarkedModels(PlayedModels):
    async def models(self) -> Sequence[Mapping[str, Any]]:
        return [{"name": WORST, "window": 5, "price": [1, 2]}]

    async def endpoints(self) -> Sequence[Mapping[str, Any]]:
        return [{"name": WORST, "where": WORST, "key": WORST, "fixed": False}]


async def assert_only_text(tab: Tab, where: str) -> None:
    await open_everything(tab)
    assert await tab.page.evaluate(FOREIGN) == [None, 2], where
    assert [problem for problem in tab.problems if "the server responded" not in problem] == [], where


async def test_every_kind_of_event_is_drawn_as_text(tmp_path: Path) -> None:
    told = [kind for kind in kinds() if kind.__name__ not in ENDING]
    assert len(told) > 40
    async with Talk(tmp_path, []) as talk, Site(talk.paths) as site, browsing() as browser:
        tab = await visit(browser, site)
        await tab.see(".composer")
        asked: list[str] = []
        tab.page.on("request", lambda request: asked.append(request.url))
        for kind in told:
            talk.session.emit(filled(kind))
        await tab.page.wait_for_timeout(3000)
        await assert_only_text(tab, "live")
        for panel in ("work", "changes", "health", "audit", "layers"):
            await tab.go(f"#/s/{ID}/{panel}")
            await tab.see(".panel section")
            await assert_only_text(tab, panel)
        await tab.go("#/")
        await tab.see(".session")
        await assert_only_text(tab, "list")
        assert [address for address in asked if not address.startswith((site.origin, "data:"))] == []


async def test_fleets_and_models_are_drawn_as_text(tmp_path: Path) -> None:
    fleet, models = MarkedFleet(6, asks=2), MarkedModels()
    async with Talk(tmp_path, []) as talk, Site(talk.paths, fleet=fleet, models=models) as site, browsing() as browser:
        tab = await visit(browser, site, "#/models")
        await (await tab.see(".endpoints button")).click()
        await assert_only_text(tab, "models")
        await tab.go("#/fleet")
        await (await tab.see("tbody.task th .link")).click()
        await (await tab.see(".asked.line")).click()
        await tab.find(".closer > summary").first.click()
        await tab.see(".closer .out")
        await assert_only_text(tab, "fleet")
        await tab.see(".closer .diff")
        await assert_only_text(tab, "diff of a fleet")


LINES = "\n".join(payload for payload in PAYLOADS if payload.isprintable())
NAMES = (
    "<img src=x onerror=window.__ran=1>.js", '"onmouseover=window.__ran=1 x=".py', "a'b<svg onload=window.__ran=1>.md",
    "${window.__ran=1}.txt", "javascript:window.__ran=1", "x\u202etxt.exe", "__proto__", "--- a", "+++ b", "@@ 1",
)  # fmt: skip


async def test_a_review_with_its_comments_is_drawn_as_text(tmp_path: Path) -> None:
    writes = [act("file_ops.write_file", path=name, content=LINES) for name in NAMES]
    talk = Talk(tmp_path, [*(decide(write, respond("ok")) for write in writes[1:]), decide(writes[0], respond(WORST))])
    async with talk, Site(talk.paths) as site, browsing() as browser:
        for _ in NAMES:
            await talk.built.conversation.say("write it")
        tab = await visit(browser, site, f"#/s/{ID}/changes")
        await tab.see(".turns li")
        await open_everything(tab)
        await tab.see(".review .d-add")
        for payload in PAYLOADS[::4]:
            await talk.built.conversation.review.comment(len(NAMES), NAMES[0], 3, payload)
        talk.built.conversation.choices.rename(WORST[:100])
        await tab.see("tr.comment p")
        await assert_only_text(tab, "review")
        assert len(await tab.texts(".review .file-name b")) == len(NAMES)
        await tab.go("#/")
        await tab.find(".search input").fill("onerror")
        await tab.see(".said-in .excerpt")
        await assert_only_text(tab, "search")
