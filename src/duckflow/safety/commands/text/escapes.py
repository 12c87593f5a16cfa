"""Backslashes: plain ones, those in double quotes, and those of `$'…'`."""

import re

ANSI = re.compile(
    r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.|.)",
    re.DOTALL,
)
SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
UNQUOTED = re.compile(r"\\(.|\n|$)", re.DOTALL)
IN_DOUBLE_QUOTES = re.compile(r'\\([$`"\\]|\n)')
HIGHEST_CODE = 0x10FFFF


def unquoted(text: str) -> str:
    return UNQUOTED.sub(lambda found: "" if found[1] == "\n" else found[1], text)


def double_quoted(text: str) -> str:
    return IN_DOUBLE_QUOTES.sub(lambda found: "" if found[1] == "\n" else found[1], text)


def ansi(text: str) -> str:
    """What `$'…'`, `echo -e` and `printf` make of backslashes."""
    return ANSI.sub(_ansi_escape, text)


def _ansi_escape(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "xuU" and len(code) > 1:
        return _character(int(code[1:], 16))
    if code[0] in "01234567":
        return _character(int(code, 8) & 0xFF)
    if code[0] == "c" and len(code) == 2:
        return chr(ord(code[1].upper()) & 0x1F)
    return SIMPLE.get(code, code if code in "\\'\"?" else f"\\{code}")


def _character(number: int) -> str:
    return chr(number) if number <= HIGHEST_CODE else "�"
