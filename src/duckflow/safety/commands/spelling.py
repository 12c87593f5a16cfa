"""A text before and beside the grammar: characters that deceive, lines that go on, and a second reading of it all."""

import re
import shlex
import unicodedata

DASH_AS_OPTION = re.compile(r"(?<=\s)[‐‑‒–—―−﹘﹣－]{1,2}(?=[A-Za-z])")
SPACE_AT_ASCII = re.compile(r"(?<=[!-~])[^\S \t\n\r\f\v]|[^\S \t\n\r\f\v](?=[!-~])")
INVISIBLE = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
"""Control and format characters, broken bytes, private and unassigned ones, odd line ends."""
ORDINARY = "\n\t"
ESCAPED = re.compile(r"\\(\r?\n|.)", re.DOTALL)
QUIET = re.compile(r"(?<=\s)(?:[12]?>>?\s*/dev/null|&>\s*/dev/null|2>&1|1>&2|>&2)(?=\s|$|[;|&)])")
OPERATORS = frozenset((";", "|", "||", "&&"))


def made_plain(text: str) -> str:
    """The text as a careless reader, or another shell, would take it: no invisible characters, no other dashes."""
    if text.isascii() and text.isprintable():
        return text
    if not text.isascii():
        text = DASH_AS_OPTION.sub(lambda found: "-" * len(found[0]), text)
        text = SPACE_AT_ASCII.sub(" ", text)
    return "".join(mark for mark in text if mark in ORDINARY or unicodedata.category(mark) not in INVISIBLE)


def joined_lines(text: str) -> str:
    """Lines that end in a backslash go on in the next one, except in single quotes and comments."""
    if "\\\n" not in text or "#" in text or "'" in text:
        return text
    return ESCAPED.sub(lambda found: "" if found[1].endswith("\n") else found[0], text)


def reads_the_same(text: str, words: list[str]) -> bool:
    """Whether the standard library's shell lexer sees exactly these words in this text. The grammar is large and has
    its mistakes; only when both readings agree may a text be called harmless."""
    lexer = shlex.shlex(QUIET.sub(" ", f" {text}"), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        tokens = list(lexer)
    except ValueError:
        return False
    sources = {place + 1 for place, token in enumerate(tokens) if token == "<"}
    skipped = OPERATORS | {"<"}
    return words == [token for place, token in enumerate(tokens) if token not in skipped and place not in sources]
