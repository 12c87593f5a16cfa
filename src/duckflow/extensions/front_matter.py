"""The head of a Markdown file: `key: value` lines between two lines of dashes, as people really write them.

It is not all of YAML: only the top level, and every value is a text. Things that YAML would refuse (a colon in a plain
text, a quote that is not closed) are read as they were meant. Lines that cannot be read are named, and the other lines
are used."""

import re
from pathlib import Path
from typing import NamedTuple

from duckflow.safety.files import read_plain

LONGEST_FILE = 400_000
KEY = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(.*)|)$")
BLOCK = re.compile(r"([|>])[+-]?\d?[+-]?(?:\s+#.*)?$")
COMMENT = re.compile(r"\s#\s.*$")
ESCAPES = {"n": "\n", "t": "\t", "r": "", "0": ""}


class FrontMatter(NamedTuple):
    """The values by their keys in lower case, the text after the head, and lines of the head that could not be read."""

    values: dict[str, str]
    body: str
    strange: tuple[str, ...] = ()

    def flag(self, key: str, default: bool) -> bool:
        value = self.values.get(key, "").lower()
        return value in ("true", "yes", "on") if value else default


def read_markdown(path: Path, within: Path | None) -> FrontMatter:
    """Reads a file, which must lie in the folder `within` if there is one. Raises OSError if that fails; bytes that are
    not UTF-8 become a replacement mark."""
    return split_front_matter(read_plain(path, LONGEST_FILE, cut=True, within=within).decode("utf-8-sig", "replace"))


def split_front_matter(text: str) -> FrontMatter:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    first_index = next((index for index, line in enumerate(lines) if line.strip()), 0)
    if lines[first_index].rstrip() != "---":
        return FrontMatter({}, text.strip())
    end = next((index for index in range(first_index + 1, len(lines)) if lines[index].rstrip() in ("---", "...")), None)
    if end is None:
        return FrontMatter({}, "\n".join(lines[first_index + 1 :]).strip(), ("---",))
    values, strange_lines = _read(lines[first_index + 1 : end])
    return FrontMatter(values, "\n".join(lines[end + 1 :]).strip(), tuple(strange_lines))


def _read(lines: list[str]) -> tuple[dict[str, str], list[str]]:
    values: dict[str, str] = {}
    strange_lines: list[str] = []
    index = 0
    while index < len(lines):
        line = lines[index].rstrip()
        index += 1
        if not line or line.lstrip().startswith("#"):
            continue
        match = KEY.match(line)
        if not match:
            strange_lines.append(line.strip())
            continue
        lines_below: list[str] = []
        while index < len(lines) and _belongs(lines[index], match[2]):
            lines_below.append(lines[index].rstrip())
            index += 1
        values[match[1].lower()] = _value((match[2] or "").strip(), lines_below)
    return values, strange_lines


def _belongs(line: str, value: str | None) -> bool:
    """Says whether a line still belongs to the key above it: it is indented, empty, or an entry of its list."""
    return not line.strip() or line[0] in " \t" or (not value and line.startswith("- "))


def _value(first: str, below: list[str]) -> str:
    if block := BLOCK.match(first):
        return _folded(below) if block[1] == ">" else "\n".join(_dedented(below)).strip()
    texts = [line.strip() for line in below if line.strip()]
    if not first and texts and texts[0].startswith("-"):
        entries = [_unquoted(line.removeprefix("-").strip()) for line in texts if line.startswith("-")]
        return ", ".join(entry for entry in entries if entry)
    if not first and texts and all(KEY.match(line) for line in texts):
        # A nested table holds nothing that is looked for here.
        return ""
    text = " ".join([first, *texts]).strip()
    if text.startswith("[") and text.endswith("]"):
        return ", ".join(filter(None, (_unquoted(entry.strip()) for entry in text[1:-1].split(","))))
    return _unquoted(text)


def _unquoted(text: str) -> str:
    quote = text[:1]
    if quote in ('"', "'"):
        closed_match = re.match(r'"((?:[^"\\]|\\.)*)"(?:\s+#.*)?$|' + r"'((?:[^']|'')*)'(?:\s+#.*)?$", text, re.DOTALL)
        if closed_match and closed_match[1] is not None:
            return re.sub(r"\\(.)", lambda sign: ESCAPES.get(sign[1], sign[1]), closed_match[1])
        if closed_match:
            return closed_match[2].replace("''", "'")
        return text.removeprefix(quote) if text.count(quote) == 1 else text
    return COMMENT.sub("", text).strip()


def _folded(lines: list[str]) -> str:
    paragraphs = "\n".join(_dedented(lines)).strip().split("\n\n")
    return "\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _dedented(lines: list[str]) -> list[str]:
    indent_width = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [line[indent_width:] for line in lines]
