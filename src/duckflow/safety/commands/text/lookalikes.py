"""Characters that are not what they seem: invisible ones, other dashes, other spaces."""

import re
import unicodedata

DASH_AS_OPTION = re.compile(r"(?<=\s)[‐‑‒–—―−﹘﹣－]{1,2}(?=[A-Za-z])")
SPACE_AT_ASCII = re.compile(r"(?<=[!-~])[^\S \t\n\r\f\v]|[^\S \t\n\r\f\v](?=[!-~])")
INVISIBLE = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
"""Control and format characters, broken bytes, private and unassigned ones, odd line ends."""
ORDINARY = "\n\t"


def made_plain(text: str) -> str:
    """The text as a careless reader, or another shell, would take it."""
    if text.isascii() and text.isprintable():
        return text
    if not text.isascii():
        text = DASH_AS_OPTION.sub(lambda found: "-" * len(found[0]), text)
        text = SPACE_AT_ASCII.sub(" ", text)
    return "".join(mark for mark in text if mark in ORDINARY or unicodedata.category(mark) not in INVISIBLE)
