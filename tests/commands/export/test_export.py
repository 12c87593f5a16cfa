"""A session as a document: complete, readable, and harmless."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from duckflow.commands.export.document import Format, rendered
from duckflow.commands.export.transcript import Transcript
from duckflow.commands.table import Commands
from duckflow.i18n.words import Words
from duckflow.state.mode import Mode
from duckflow.state.question import Answer, Question
from tests.journeys.plans import PROPOSE, SNAKE, job_ended, run_step, when
from tests.journeys.story import Story, act, decide, respond

EVIL = "<script>alert(1)</script> & <img src=x onerror=alert(2)>"
KEY = "sk-proj-" + "a1B2" * 8
REPLY = f"""Done. {EVIL}

```html
<b>code stays code</b>
```

| a | b |
|---|---|
| 1 | ![pic](http://127.0.0.1/x.png) [js](javascript:alert(3)) |

````
an open fence"""


@pytest.fixture
async def story(tmp_path: Path) -> Story:
    """Makes a session in which things are asked, allowed, refused, changed without asking, undone and planned."""
    write = decide(act("file_ops.write_file", f"because {EVIL}", path="a.html", content=f"{EVIL}\n"), respond(REPLY))
    refused = decide(act("file_ops.delete_file", path="a.html"))
    edit = act("file_ops.edit_file", path="a.html", old="alert(1)", new="alert(9)")
    run = act("shell.run", command=f"echo {KEY}")
    replies = [write, refused, decide(edit, run, respond("changed")), PROPOSE, SNAKE]
    story = Story(tmp_path, replies, mode="ask")
    story.answers = [Answer(choice="yes"), Answer(choice="no"), Answer(choice="yes")]
    await story.tell(f"Please {EVIL}\nwith key {KEY}")
    await story.tell("delete it")
    story.chat.choices.change_mode(Mode.AUTO_EDIT)
    await story.tell("edit it")
    await story.chat.undo.restore(back=True)
    await story.tell("a snake game")
    return story


@pytest.mark.parametrize("form", list(Format))
async def test_a_job_is_told_with_its_gates_answers_and_causes(tmp_path: Path, form: Format) -> None:
    tasks = {"tasks": [act("shell.run", "動くか確かめる", command="exit 3")]}
    failed = {"summary": "動きません。", "causes": ["exit 3 で終わる"], "next_action": "直す"}
    replies = [PROPOSE, SNAKE, run_step(1), tasks, *[when("ジョブが終わりました", failed)] * 2]
    story = Story(tmp_path, replies, mode="ask", language="ja")
    story.answers = [Answer(choice="yes")] * 3
    await story.tell("ヘビゲームを作って")
    await story.tell("はい")
    ended = await job_ended(story)
    assert ended.status == "failed"
    text = document(story, form, "ja")
    for told in (
        "「Core loop」からの質問:",
        "→ はい",
        "目的: 動くか確かめる",
        "理由: Core loop",
        "原因: exit 3 で終わる",
        "次にすること: 直す",
    ):
        assert told in text, told
    assert "→ yes" not in text


async def nobody(question: Question) -> Answer:
    return Answer(choice="no")


def document(story: Story, form: Format, language: str = "en") -> str:
    return rendered(Transcript().hear_all(story.session.record()), Words(language), form)


class Page(HTMLParser):
    """Reads a page as a browser would."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "br", "hr", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


async def test_the_page_shows_everything_and_runs_nothing(story: Story) -> None:
    text = document(story, Format.HTML)
    page = Page(text)
    assert page.open == []
    assert not {"script", "img", "link", "iframe", "object", "base"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "src"]
    links = [value or "" for name, value in page.attributes if name == "href"]
    assert {link.partition(":")[0] for link in links} == {"#turn-1", "#turn-2", "#turn-3", "#turn-4", "http"}
    assert "default-src 'none'" in text and "url(" not in text and "@import" not in text
    for shown in (EVIL, "<b>code stays code</b>", "→ yes", "→ no", "Snake game", "├─ ○ 1. Core loop", "an open fence"):
        assert shown in page.text, shown
    assert "+alert(9)" in page.text and "was undone" in page.text and "Vitals" in page.text
    assert text.count("<polyline") == 3 and "prefers-color-scheme: dark" in text
    assert '<span class="added">+&lt;script&gt;' in text


async def test_markdown_shows_everything_and_no_html_gets_through(story: Story) -> None:
    text = document(story, Format.MARKDOWN)
    page = Page(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))
    assert not {"script", "img"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    for shown in (EVIL, "<b>code stays code</b>", "→ yes", "Snake game", "├─ ○ 1. Core loop", "▇"):
        assert shown in page.text.replace("█", "▇"), shown
    assert text.startswith("# Snake game\n")


@pytest.mark.parametrize("form", list(Format))
async def test_secrets_are_blotted_out(story: Story, form: Format) -> None:
    text = document(story, form)
    assert KEY not in text and "with key •••" in text and "echo •••" in text


@pytest.mark.parametrize("form", list(Format))
async def test_a_document_speaks_the_users_language(story: Story, form: Format) -> None:
    text = document(story, form, "ja")
    assert "ターン 1" in text and "調子" in text and "費用" in text and "Turn 1" not in text
    assert form is not Format.HTML or '<html lang="ja">' in text


async def test_the_command_writes_a_file_and_overwrites_none(story: Story, tmp_path: Path) -> None:
    async def give(line: str) -> str:
        return await Commands(Words("en")).run(story.chat, nobody, line)

    wanted = tmp_path / "my session.md"
    assert await give(f"/export {wanted}") == f"Written to {wanted}"
    assert wanted.read_text().startswith("# Snake game")
    assert "already exists" in await give(f"/export md {wanted}")
    assert "cannot be written" in await give(f"/export {tmp_path}/no/such/place.html")
    assert await give(f"/export html {tmp_path}") == f"Written to {tmp_path}/duckflow-s.html"
    assert re.match(r"<!doctype html>", (tmp_path / "duckflow-s.html").read_text())


async def test_an_empty_session_has_nothing_to_export(tmp_path: Path) -> None:
    story = Story(tmp_path, [])

    shown = await Commands(Words("en")).run(story.chat, nobody, f"/export {tmp_path}/x.md")
    assert shown == "Nothing has been said in this session yet."
