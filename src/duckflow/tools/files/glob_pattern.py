"""Globs over paths: `*`, `?`, `[…]`, `**` across folders, `{a,b}`."""

import re
from functools import lru_cache

from duckflow.errors import ToolError


@lru_cache(maxsize=256)
def glob_regex(pattern: str) -> "re.Pattern[str]":
    """For a path relative to where the search starts; a pattern without `/` fits the last name at any depth."""
    pattern = pattern.removeprefix("./")
    anywhere = "/" not in pattern
    try:
        return re.compile(("(?:.*/)?" if anywhere else "") + translate(pattern.lstrip("/"), braces=True), re.DOTALL)
    except re.error:
        raise ToolError(
            f"The glob {pattern!r} cannot be read. Use something like *.py or src/**/*.ts.",
            "file.bad_glob",
            glob=pattern,
        ) from None


def translate(glob: str, braces: bool = False) -> str:
    """A regular expression for the whole of a path. `*` and `?` stop at `/`."""
    out: list[str] = []
    at = 0
    open_braces = 0
    while at < len(glob):
        char = glob[at]
        if glob.startswith("**/", at) and (at == 0 or glob[at - 1] == "/"):
            out.append("(?:.*/)?")
            at += 3
            continue
        if glob.startswith("**", at):
            out.append(".*")
            at += 2
            continue
        if char == "[" and (end := _class_end(glob, at)):
            out.append(_class(glob[at + 1 : end]))
            at = end + 1
            continue
        if char == "\\" and at + 1 < len(glob):
            at += 1
            out.append(re.escape(glob[at]))
        elif braces and char == "{" and "}" in glob[at:]:
            open_braces += 1
            out.append("(?:")
        elif open_braces and char in ",}":
            open_braces -= char == "}"
            out.append("|" if char == "," else ")")
        else:
            out.append({"*": "[^/]*", "?": "[^/]"}.get(char) or re.escape(char))
        at += 1
    return "".join(out) + r"\Z"


def _class_end(glob: str, start: int) -> int:
    """Where a `[…]` closes; 0 when it does not. A `]` right after the opening belongs to it."""
    skip = 3 if glob[start + 1 : start + 2] in ("!", "^") else 2
    return max(0, glob.find("]", start + skip))


def _class(inside: str) -> str:
    negated = inside[0] in "!^"
    members = inside[1:] if negated else inside
    members = members.replace("\\", r"\\").replace("[", r"\[").replace("]", r"\]").replace("^", r"\^")
    members = re.sub(r"([&~|])", r"\\\1", members)
    return f"(?!/)[{'^' if negated else ''}{members}]"
