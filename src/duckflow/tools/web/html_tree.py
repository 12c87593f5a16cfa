"""A page as a small tree, read with the standard library's parser. Reading stops in limited time, whatever the page
contains."""

import re
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"))
UNSEEN = r"script|style|template|noscript|svg|iframe|object|textarea|math-annotation"
UNSEEN_BEGINS = re.compile(rf"<(?:(!--)|({UNSEEN})\b)", re.IGNORECASE)
INLINE_DATA = re.compile(r"data:[\w/+.-]+;base64,[A-Za-z0-9+/=]+")
# Tags that end by themselves where another tag begins: the open tags that end, and the tags at which the search for
# them stops.
ENDS = {
    "li": ({"li"}, {"ul", "ol", "menu"}),
    "dt": ({"dt", "dd"}, {"dl"}),
    "dd": ({"dt", "dd"}, {"dl"}),
    "tr": ({"tr", "td", "th"}, {"table"}),
    "td": ({"td", "th"}, {"tr", "table"}),
    "th": ({"td", "th"}, {"tr", "table"}),
    "option": ({"option"}, {"select"}),
}
BLOCKS = frozenset(
    ("address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog", "div", "dl", "dt")
    + ("fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup")
    + ("hr", "html", "li", "main", "menu", "nav", "ol", "p", "pre", "section", "summary", "table", "tbody", "td")
    + ("tfoot", "th", "thead", "tr", "ul")
)
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
TEXTS = frozenset(("p", "ul", "ol", "dl", "pre", "table", "blockquote", "hr", *HEADINGS))
ENDED_BY_TEXT = {"p", *HEADINGS}
"""Tags that end where a tag of TEXTS begins, even without a closing tag."""
DEEPEST = 80
MOST_ELEMENTS = 100_000
PIECE, LONGEST_TAG = 16_384, 65_536
SECONDS = 10.0


@dataclass(slots=True)
class Element:
    """A tag with its content."""

    tag: str
    attrs: dict[str, str] = field(default_factory=dict[str, str])
    children: "list[Element | str]" = field(default_factory=list["Element | str"])

    def elements(self) -> "Iterator[Element]":
        return (child for child in self.children if isinstance(child, Element))

    def all(self, *tags: str) -> "Iterator[Element]":
        """Yields the elements with one of these tags anywhere inside this element, in the order of the page."""
        pending = list(self.elements())[::-1]
        while pending:
            element = pending.pop()
            if element.tag in tags:
                yield element
            pending += list(element.elements())[::-1]

    def own(self, tags: Collection[str], through: Collection[str]) -> "Iterator[Element]":
        """Yields the elements with one of `tags` directly inside this element, or inside parts with one of the tags in
        `through`."""
        for element in self.elements():
            if element.tag in tags:
                yield element
            elif element.tag in through:
                yield from element.own(tags, through)

    def text(self) -> str:
        text_pieces: list[str] = []
        pending: list[Element | str] = [self]
        while pending:
            node = pending.pop()
            if isinstance(node, str):
                text_pieces.append(node)
            else:
                pending += node.children[::-1]
        return "".join(text_pieces)


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("html")
        self._open = [self.root]
        self._made = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ENDS:
            self._close(*ENDS[tag])
        elif tag in BLOCKS:
            self._close(ENDED_BY_TEXT if tag in TEXTS else {"p"}, {"td", "th", "li", "div", "blockquote", "table"})
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._made += 1
        if self._made > MOST_ELEMENTS:
            return
        self._open[-1].children.append(element)
        if tag not in VOID and len(self._open) < DEEPEST:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        # A slash at the end means something only in svg; in a page `<div/>` stays open.

    def handle_endtag(self, tag: str) -> None:
        for index in range(len(self._open) - 1, 0, -1):
            if self._open[index].tag == tag:
                del self._open[index:]
                return
            if self._open[index].tag in ("table", "pre") and tag not in ("table", "body", "html"):
                return

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)

    def _close(self, tags: set[str], walls: set[str]) -> None:
        """Closes the outermost open element with one of `tags`, looking no further out than the innermost element with
        one of `walls`."""
        outermost_index = 0
        for index in range(len(self._open) - 1, 0, -1):
            if self._open[index].tag in walls:
                break
            if self._open[index].tag in tags:
                outermost_index = index
        if outermost_index:
            del self._open[outermost_index:]


def read_tree(html: str) -> Element:
    """Returns the parts of the page that a browser would show. A page that would take too long is cut off."""
    builder, deadline = _Builder(), time.monotonic() + SECONDS
    html = INLINE_DATA.sub("data:", "".join(_seen(html)))
    for start in range(0, len(html), PIECE):
        builder.feed(html[start : start + PIECE])
        if len(builder.rawdata) > LONGEST_TAG or time.monotonic() > deadline:
            return builder.root
    builder.close()
    return builder.root


def _seen(html: str) -> Iterator[str]:
    """Yields the page without comments, scripts and the like. Each kind is looked for only once, so that the time is
    bounded."""
    offset = 0
    while unseen_start := UNSEEN_BEGINS.search(html, offset):
        yield html[offset : unseen_start.start()]
        unseen_end = re.compile(r"--!?>" if unseen_start[1] else rf"</{unseen_start[2]}\s*>", re.IGNORECASE).search(
            html, unseen_start.end()
        )
        if unseen_end is None:
            return
        offset = unseen_end.end()
    yield html[offset:]
