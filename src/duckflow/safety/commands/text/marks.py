"""Private characters that stand for quoted ones and for word breaks while a word is put together."""

import string

QUOTED = string.punctuation + string.whitespace
OFFSET = 0xF000
BREAK = "\uf7ff"

_HIDE = {ord(character): OFFSET + ord(character) for character in QUOTED}
_SHOW = {code: character for character, code in _HIDE.items()}


def hide(text: str) -> str:
    """Quoted characters lose their meaning."""
    return text.translate(_HIDE)


def show(text: str) -> str:
    return text.translate(_SHOW)
