"""A page as Markdown: headings, lists, tables, code and links, without the parts that belong to the site, not the
page."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import urljoin

from duckflow.tools.web.html_tree import BLOCKS, Element, read_tree

LEFT_OUT = frozenset(
    ("nav", "aside", "button", "input", "select", "dialog", "head", "rp", "audio", "video", "canvas", "map")
)
SITE_ROLES = frozenset(("navigation", "banner", "contentinfo", "search", "complementary", "dialog", "menu", "menubar"))
SITE_PARTS = frozenset(("header", "footer"))
NOT_READ = re.compile(
    r"(?:^|[\s_-])(?:linenos?|gutter|line-?numbers?|blob-num|headerlink|visually-hidden|sr-only)(?:$|[\s_-])"
)
"""Matches CSS classes of parts that are left out: line numbers beside code, marks beside headings, and texts for screen
readers only."""
LANGUAGE = re.compile(
    r"(?:^|\s)(?:(?:language|lang|highlight-source|highlight)-|brush:\s*|sourceCode\s+)([A-Za-z][\w+#]*)"
)
NOT_LANGUAGES = ("none", "default", "text", "plain", "plaintext", "notranslate")
MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~", "strike": "~~"}
CODE = frozenset(("code", "kbd", "samp", "tt"))
LAID_OUT = frozenset(("pre", "ul", "ol", "table", "h1", "h2", "h3", "h4", "blockquote", "article", "section"))
TABLE_PARTS = ("thead", "tbody", "tfoot", "form")
WIDE = r"\u3000-\u30ff\u3400-\u9fff\uff00-\uffef"
BROKEN_LINE = re.compile(rf"(?<=[{WIDE}])[ \t]*\n\s*(?=[{WIDE}])")
"""A pattern for a line end between Japanese characters, which does not stand for a space."""
SPACES = re.compile(r"[ \t\r\n\f\xa0]+")
MAIN_SHARE = 0.25
IN_ADDRESS = {ord(sign): f"%{ord(sign):02X}" for sign in " ()"}
BREAK = "\x00"
"""Replaces a line break inside a line until the whole block is put together. Pages are read without this character."""


class PageText(NamedTuple):
    title: str
    text: str


def to_markdown(html: str, url: str) -> PageText:
    """Returns the main part of a page as Markdown, with absolute addresses."""
    tree = read_tree(html.replace(BREAK, ""))
    title = next((_flat(element.text()) for element in tree.all("title")), "")
    base = next((element.attrs["href"] for element in tree.all("base") if element.attrs.get("href")), "")
    main_part = _main_part(tree)
    text = "\n\n".join(_Writer(urljoin(url, base), main_part.tag in ("html", "body")).blocks(main_part.children))
    return PageText(title, re.sub(r"\n{3,}", "\n\n", text).strip())


def _main_part(tree: Element) -> Element:
    """Returns the part that is marked as the main one. Returns the whole page where no part is marked, or the marked
    part is only a small share of it."""
    body = next(tree.all("body"), tree)
    body_length = len(_flat(body.text()))
    marked_elements = [
        element
        for element in body.all("main", "div", "section")
        if element.tag == "main" or element.attrs.get("role") == "main"
    ]
    articles = list(body.all("article"))
    for part in (*marked_elements, *(articles if len(articles) == 1 else ())):
        if len(_flat(part.text())) >= MAIN_SHARE * body_length:
            return part
    return body


def _flat(text: str) -> str:
    return SPACES.sub(" ", BROKEN_LINE.sub("", text)).strip()


class _Writer:
    """Writes blocks, each a text without empty lines around it."""

    def __init__(self, base: str, whole_page: bool, classes: str = "") -> None:
        self._base = base
        self._whole_page = whole_page
        self._classes = classes
        """CSS classes of the elements around the current one: some pages name the language of code there."""

    def blocks(self, children: "Iterable[Element | str]") -> list[str]:
        texts: list[str] = []
        line: list[Element | str] = []

        def end_line() -> None:
            if text := self.line(line):
                texts.append(text)
            line.clear()

        for child in children:
            if isinstance(child, Element) and child.tag != "input" and self._is_noise(child):
                continue
            if isinstance(child, str) or not self._is_block(child):
                line.append(child)
            else:
                end_line()
                texts += [text for text in self._block(child) if text.strip()]
        end_line()
        return texts

    def line(self, children: "Iterable[Element | str]") -> str:
        """Returns running text with its marks, such as bold."""
        text = SPACES.sub(" ", BROKEN_LINE.sub("", "".join(map(self._inline, children))))
        return "\n".join(line.strip() for line in text.split(BREAK)).strip()

    def _is_noise(self, element: Element) -> bool:
        attrs = element.attrs
        return (
            element.tag in LEFT_OUT
            or (element.tag in SITE_PARTS and self._whole_page and not next(element.all("h1"), None))
            or attrs.get("role", "") in SITE_ROLES
            or "hidden" in attrs
            or attrs.get("aria-hidden") == "true"
            or re.search(r"display:\s*none", attrs.get("style", "")) is not None
            or NOT_READ.search(attrs.get("class", "")) is not None
        )

    def _is_block(self, element: Element) -> bool:
        """Says whether an element is a block. A link or a mark around whole blocks is a block too."""
        return element.tag in BLOCKS or (
            element.tag not in CODE and next(element.all("p", "div", "ul", "pre", "h2", "h3"), None) is not None
        )

    def _block(self, element: Element) -> Iterator[str]:
        match element.tag:
            case "h1" | "h2" | "h3" | "h4" | "h5" | "h6":
                if text := self.line(element.children).replace("\n", " "):
                    yield f"{'#' * int(element.tag[1])} {text}"
            case "pre":
                yield _fenced(element, self._classes)
            case "ul" | "ol" | "menu":
                yield self._list(element)
            case "dl":
                yield "\n".join(self._terms(element))
            case "table":
                yield from self._table(element)
            case "blockquote":
                quoted_text = "\n\n".join(self.blocks(element.children))
                yield "\n".join(f"> {line}".rstrip() for line in quoted_text.split("\n")) if quoted_text else ""
            case "hr":
                yield "---"
            case "summary":
                text = self.line(element.children)
                yield f"**{text}**" if text else ""
            case "article" | "main":
                # A header inside an article belongs to the article.
                yield from _Writer(self._base, whole_page=False).blocks(element.children)
            case "div" if LANGUAGE.search(element.attrs.get("class", "")):
                yield from _Writer(self._base, self._whole_page, element.attrs["class"]).blocks(element.children)
            case _:
                yield from self.blocks(element.children)

    def _list(self, element: Element) -> str:
        start = element.attrs.get("start", "1")
        number = int(start) if start.isdecimal() and len(start) < 9 else 1
        items: list[str] = []
        for list_element in element.elements():
            if self._is_noise(list_element):
                continue
            blocks = self.blocks(list_element.children if list_element.tag == "li" else [list_element])
            if not blocks:
                continue
            list_marker = f"{number}. " if element.tag == "ol" else "- "
            number += 1
            items.append(_item(list_marker, blocks[0], blocks[1:]))
        return "\n".join(items)

    def _terms(self, element: Element) -> Iterator[str]:
        """Yields terms with their descriptions; both may be in groups."""
        terms: list[str] = []
        for term_element in element.own(("dt", "dd"), ("div",)):
            if term_element.tag == "dt":
                terms.append(self.line(term_element.children) or " ".join(self.blocks(term_element.children)))
                continue
            label = ", ".join(f"**{term.rstrip(':：')}**" for term in terms if term)
            description = self.blocks(term_element.children) or [""]
            first_block = (
                f"{label}: {description[0]}" if label and not _is_list(description[0]) else label or description[0]
            )
            yield _item("- ", first_block, description if first_block == label else description[1:])
            terms = []
        if terms:
            yield "\n".join(f"- **{term}**" for term in terms)

    def _table(self, table: Element) -> Iterator[str]:
        """Yields a table as a grid. A table that is only used for layout is read cell by cell."""
        children = [list(row.elements()) for row in table.own(("tr",), TABLE_PARTS) if not self._is_noise(row)]
        rows = [[cell for cell in row if cell.tag in ("td", "th") and not self._is_noise(cell)] for row in children]
        rows = [row for row in rows if row]
        most_cells = max(map(len, rows), default=0)
        is_layout = most_cells < 2 or any(next(cell.all(*LAID_OUT), None) for row in rows for cell in row)
        for caption in table.own(("caption",), ()):
            yield self.line(caption.children)
        if is_layout:
            for cell in (cell for row in rows for cell in row):
                yield from self.blocks(cell.children)
            return
        grid = [list(self._cells(row)) for row in rows]
        columns = max(map(len, grid))
        lines = [f"| {' | '.join(row + [''] * (columns - len(row)))} |" for row in grid]
        if not any(cell.tag == "th" for cell in rows[0]):
            lines.insert(0, f"|{'  |' * columns}")
        lines.insert(1, f"|{' --- |' * columns}")
        yield "\n".join(lines)

    def _cells(self, row: list[Element]) -> Iterator[str]:
        for cell in row:
            text = " ".join(self.blocks(cell.children)).replace("\n", " ").replace("|", "\\|")
            yield text
            column_span = cell.attrs.get("colspan", "1")
            yield from [""] * (min(int(column_span), 20) - 1 if column_span.isdecimal() and len(column_span) < 4 else 0)

    def _inline(self, node: "Element | str") -> str:
        if isinstance(node, str):
            return node
        tag = node.tag
        if tag == "input" and node.attrs.get("type") == "checkbox":
            return "[x] " if "checked" in node.attrs else "[ ] "
        if self._is_noise(node):
            return ""
        if tag == "br":
            return BREAK
        if tag == "img":
            alt_text = _flat(node.attrs.get("alt", ""))
            return f"![{alt_text}]({self._whole(node.attrs.get('src', ''))})" if alt_text else ""
        if tag in CODE:
            return _code(node.text())
        inner_text = "".join(map(self._inline, node.children))
        if tag == "a":
            return self._link(inner_text, node.attrs.get("href", ""))
        if emphasis_mark := MARKS.get(tag):
            return _marked(inner_text, emphasis_mark)
        return {
            "sup": f"^{inner_text}" if inner_text.strip() else "",
            "rt": f"({inner_text})",
            "q": f'"{inner_text}"',
        }.get(tag, inner_text)

    def _link(self, inside: str, href: str) -> str:
        text = _flat(inside)
        if not text or text in "¶#§🔗":
            return ""
        address = self._whole(href)
        if not address or href.startswith("#"):
            return inside
        return f"[{text}]({address})" if text != address else f"<{address}>"

    def _whole(self, href: str) -> str:
        if href.strip().lower().startswith(("javascript:", "data:", "vbscript:")):
            return ""
        try:
            return urljoin(self._base, href.strip()).translate(IN_ADDRESS) if href.strip() else ""
        except ValueError:
            return ""


def _item(sign: str, first: str, rest: Iterable[str]) -> str:
    """Writes a list item. Its other parts follow below, indented, and separated by an empty line unless they are
    lists."""
    text = first + "".join(("\n" if _is_list(part) else "\n\n") + part for part in rest)
    return sign + re.sub(r"\n(?=[^\n])", "\n" + " " * len(sign), text)


def _is_list(text: str) -> bool:
    return re.match(r"- |\d+\. ", text) is not None


def _marked(inside: str, mark: str) -> str:
    """Puts the mark close to the words: spaces stay outside, and text with a line break is not marked."""
    text = inside.strip()
    if not text or BREAK in text or text.startswith(mark):
        return inside
    leading_blanks, trailing_blanks = inside[: len(inside) - len(inside.lstrip())], inside[len(inside.rstrip()) :]
    return f"{leading_blanks}{mark}{text}{mark}{trailing_blanks}"


def _code(text: str) -> str:
    text = SPACES.sub(" ", text).strip()
    if not text:
        return ""
    fence = "`" * (max(map(len, re.findall(r"`+", text)), default=0) + 1)
    padding = " " if "`" in text else ""
    return f"{fence}{padding}{text}{padding}{fence}"


def _fenced(element: Element, around: str) -> str:
    """Returns the code unchanged, in a fence that is longer than any fence inside the code."""
    text = "".join(_code_text(element.children)).strip("\n").replace("\xa0", " ")
    classes = " ".join(part.attrs.get("class", "") for part in (element, *element.all("code"))) + f" {around}"
    match = LANGUAGE.search(classes)
    language = match[1].lower() if match and match[1].lower() not in NOT_LANGUAGES else ""
    fence = "`" * max(3, max(map(len, re.findall(r"`+", text)), default=0) + 1)
    return f"{fence}{language}\n{text}\n{fence}" if text.strip() else ""


def _code_text(children: "Iterable[Element | str]") -> Iterator[str]:
    for child in children:
        if isinstance(child, str):
            yield child
        elif child.tag == "br":
            yield "\n"
        elif child.tag not in LEFT_OUT and not NOT_READ.search(child.attrs.get("class", "")):
            yield from _code_text(child.children)
