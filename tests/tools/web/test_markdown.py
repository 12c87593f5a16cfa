"""Ten pages in the style of the web, as Markdown. `UPDATE_SNAPSHOTS=1 pytest` writes them anew."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckflow.tools.web.markdown import to_markdown
from duckflow.tools.web.web_tool import cut_pages, read_text

PAGES = sorted(Path(__file__).with_name("pages").glob("*.html"))
URL = "https://site.example/docs/page.html"


def test_there_are_ten_pages() -> None:
    assert len(PAGES) == 10


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_as_markdown(path: Path) -> None:
    html = read_text(path.read_bytes(), "", html=True)
    assert html
    title, text = to_markdown(html, URL)
    told, wanted = f"title: {title}\n\n{text}\n", path.with_suffix(".md")
    if os.environ.get("UPDATE_SNAPSHOTS"):
        wanted.write_text(told, encoding="utf-8")
    assert told == wanted.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>a<br>b", "a\nb"),
        ("<p>a <b> bold </b> c", "a **bold** c"),
        ("<pre>\n  a\n    b\n</pre>", "```\n  a\n    b\n```"),
        ("<main>short</main><p>" + "the page itself " * 40, "short\n\n" + ("the page itself " * 40).strip()),
        ("<base href='/other/'><a href='x'>x</a>", "[x](https://site.example/other/x)"),
        ("<a href='https://a.example/'>https://a.example/</a>", "<https://a.example/>"),
        ("<a href='/a'><h3>Title</h3><p>text</p></a>", "### Title\n\ntext"),
        ("<ul><li><p>a</p><pre>x\ny</pre></li><li>b</li></ul>", "- a\n\n  ```\n  x\n  y\n  ```\n- b"),
        ("<p>日本語の\n文章と English\nwords", "日本語の文章と English words"),
        ("x &lt; y &amp;&amp; z", "x < y && z"),
        ("", ""),
    ],
)
def test_small_pieces_of_html_become_markdown(html: str, text: str) -> None:
    assert to_markdown(html, URL).text == text


def test_a_text_is_cut_between_paragraphs_and_nothing_is_lost() -> None:
    text = "\n\n".join(f"{number} " + "x" * 300 for number in range(50))
    pages = cut_pages(text, 1000)
    assert max(map(len, pages)) <= 1000 and "\n\n".join(pages) == text
    assert "".join(cut_pages("y" * 2500, 1000)) == "y" * 2500


TAGS = ("p", "div", "ul", "li", "table", "tr", "td", "th", "pre", "code", "a href='x y('", "b", "h1", "dl", "dt", "br")
SIGNS = ("<!--", "-->", "<script>", "</script>", "&lt;", "&#0;", "&#x110000;", "<", ">", "`", "|", "\0", "日本\n語")
PIECES = st.one_of(
    st.sampled_from([f"<{tag}>" for tag in TAGS] + [f"</{tag.split()[0]}>" for tag in TAGS]),
    st.sampled_from(SIGNS),
    st.text(max_size=8),
)


@given(st.lists(PIECES, max_size=60).map("".join))
def test_any_broken_page_can_be_read(html: str) -> None:
    assert "\0" not in to_markdown(html, URL).text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<pre>a\0b", "```\nab\n```"),
        ("<code>a\0b</code>", "`ab`"),
        ("<img alt='a\0b' src=x>", "![ab](https://example.org/x)"),
        ("<a href='/x\0y'>z</a>", "[z](https://example.org/xy)"),
        ("<pre class='language-c\0pp'>x", "```cpp\nx\n```"),
        ("<title>a\0b</title><ul><li>\0x", "- x"),
    ],
)
def test_a_nul_is_dropped_wherever_a_page_has_one(html: str, text: str) -> None:
    page = to_markdown(html, "https://example.org/")
    assert page.text.removeprefix("ab\n\n") == text and "\0" not in page.title
