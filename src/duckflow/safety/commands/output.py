"""What a command prints, where that can be said without running it: this is how hidden commands are put together."""

import base64
import binascii
import re
from collections.abc import Callable
from itertools import takewhile

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.text.escapes import ansi
from duckflow.safety.commands.text.words import joined

ECHO_OPTION = re.compile(r"^-[neE]+$")
FORMAT = re.compile(r"%[-#0 +]*\d*(?:\.\d+)?[sbdiqcxo%]")
SPAN = re.compile(r"([ -~])-([ -~])")
LONGEST = 20_000


def printed(call: Invocation) -> str | None:
    """The text that goes to the next command, or nothing when it depends on the world."""
    made = PRINTERS.get(call.program)
    text = made(call) if made and call.words[0].known else None
    return text if text is not None and len(text) <= LONGEST else None


def _echo(call: Invocation) -> str | None:
    options = list(takewhile(lambda word: ECHO_OPTION.match(word.text), call.arguments))
    escaped = any("e" in option.text for option in options)
    line = joined(call.arguments[len(options) :])
    if not line.known:
        return None
    return (ansi(line.text) if escaped else line.text) + "\n"


def _printf(call: Invocation) -> str | None:
    words = list(call.arguments)
    if words and words[0].text == "--":
        words.pop(0)
    if not words or words[0].text.startswith("-v") or not all(word.known for word in words):
        return None
    values = [word.text for word in words[1:]]
    shape = ansi(words[0].text)
    once = len([found for found in FORMAT.findall(shape) if found != "%%"])
    text = ""
    while True:
        text += FORMAT.sub(lambda found: _value(found[0], values), shape)
        if not values or not once or len(text) > LONGEST:
            return text


def _value(shape: str, values: list[str]) -> str:
    if shape == "%%":
        return "%"
    value = values.pop(0) if values else ""
    return ansi(value) if shape.endswith("b") else value


def _fed(call: Invocation) -> str | None:
    return call.feed.text if call.feed else None


def _cat(call: Invocation) -> str | None:
    return _fed(call) if call.texts in ((), ("-",)) else None


def _base64(call: Invocation) -> str | None:
    text = _fed(call)
    if text is None or not any(re.fullmatch(r"-[a-zA-Z]*[dD][a-zA-Z]*|--d[ecode]*", option) for option in call.texts):
        return None
    try:
        return base64.b64decode(re.sub(r"\s", "", text) + "==").decode("utf-8", "replace")
    except (ValueError, binascii.Error):
        return None


def _xxd(call: Invocation) -> str | None:
    text = _fed(call)
    if text is None or not any("r" in option for option in call.texts if option.startswith("-")):
        return None
    try:
        return bytes.fromhex(re.sub(r"\s", "", text)).decode("utf-8", "replace")
    except ValueError:
        return None


def _rev(call: Invocation) -> str | None:
    text = _fed(call)
    return None if text is None else "".join(line[::-1] + "\n" for line in text.splitlines())


def _tr(call: Invocation) -> str | None:
    text = _fed(call)
    if text is None or len(call.texts) != 2 or call.texts[0].startswith("-"):
        return None
    old, new = (_spread(part) for part in call.texts)
    if not old or not new:
        return None
    return text.translate({ord(a): new[min(place, len(new) - 1)] for place, a in enumerate(old)})


def _spread(letters: str) -> str:
    """`a-e` is `abcde`."""
    return SPAN.sub(lambda found: "".join(map(chr, range(ord(found[1]), ord(found[2]) + 1))), letters)


def _found_program(call: Invocation) -> str | None:
    """`which rm` prints a path that ends in rm."""
    names = [text for text in call.texts if not text.startswith("-")]
    return f"/usr/bin/{names[0]}\n" if len(names) == 1 and names[0].isalnum() else None


PRINTERS: dict[str, Callable[[Invocation], str | None]] = {
    "echo": _echo,
    "printf": _printf,
    "cat": _cat,
    "base64": _base64,
    "xxd": _xxd,
    "rev": _rev,
    "tr": _tr,
    "which": _found_program,
    "command": _found_program,
}
