"""Private characters that stand for quoted ones and for word breaks while a word is put together."""

QUOTED = "{},*?[]~=^#!.\\ \t\n"
OFFSET = 0xF000
BREAK = "\uf7ff"
FIRST, LAST = "\uf000", "\uf7ff"

_HIDE = {ord(character): OFFSET + ord(character) for character in QUOTED}
_SHOW = {code: character for character, code in _HIDE.items()}


def hide(text: str) -> str:
    """Quoted characters lose their meaning."""
    return text.translate(_HIDE)


def show(text: str) -> str:
    return text.translate(_SHOW)


def uses_marks(text: str) -> bool:
    """Such characters have no meaning of their own; a text that brings them is not trusted."""
    return any(FIRST <= character <= LAST for character in text)
