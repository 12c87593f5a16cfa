"""A second, independent reading of a text; only when both agree may it be called harmless."""

import re
import shlex

QUIET = re.compile(r"(?<=\s)(?:[12]?>>?\s*/dev/null|&>\s*/dev/null|2>&1|1>&2|>&2)(?=\s|$|[;|&)])")
OPERATORS = frozenset((";", "|", "||", "&&"))


def same_words(text: str, words: list[str]) -> bool:
    """Whether the standard library's shell lexer sees exactly these words in this text."""
    try:
        lexer = shlex.shlex(QUIET.sub(" ", f" {text}"), posix=True, punctuation_chars=True)
        lexer.commenters = "#"
        lexer.whitespace_split = True
        tokens = list(lexer)
    except ValueError:
        return False
    seen = list[str]()
    skip = False
    for token in tokens:
        if skip:
            skip = False
        elif token == "<":
            skip = True
        elif token not in OPERATORS:
            seen.append(token)
    return seen == words
