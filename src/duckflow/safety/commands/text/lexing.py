"""A second, independent reading of a text; only when both agree may it be called harmless."""

import re
import shlex

QUIET = re.compile(r"(?<=\s)(?:[12]?>>?\s*/dev/null|&>\s*/dev/null|2>&1|1>&2|>&2)(?=\s|$|[;|&)])")
OPERATORS = frozenset((";", "|", "||", "&&"))


def same_words(text: str, words: list[str]) -> bool:
    """Whether the standard library's shell lexer sees exactly these words in this text."""
    seen = list[str]()
    skip = False
    for token in lexed(QUIET.sub(" ", f" {text}")):
        if skip:
            skip = False
        elif token == "<":
            skip = True
        elif token not in OPERATORS:
            seen.append(token)
    return seen == words


def lexed(text: str) -> list[str]:
    """Words and operators; nothing for a text the lexer cannot read."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:
        return [UNREADABLE]


UNREADABLE = "\0"
"""No word of a command is this."""
