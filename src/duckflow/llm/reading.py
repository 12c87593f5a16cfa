"""Reads one JSON value the way a careful person would: slips are mended by rule, what is unclear is never guessed."""

import re
import time
import unicodedata
from typing import Any

DEPTH = 60

OPENERS = {"{": "}", "｛": "}", "[": "]", "［": "]"}
CLOSERS = {"}": "}", "｝": "}", "]": "]", "］": "]"}
COMMAS = ",，、"
COLONS = ":："
FENCES = ("```", "~~~")
NOTHING = ("null", "none", "undefined", "nan", "infinity", "-infinity")
LITERALS = {"true": True, "false": False} | dict.fromkeys(NOTHING)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
LITERAL_ESCAPES = "\"'`\\/“”„‘’"

# A quote is closed by its own kind; curly quotes by any of their family, since models mix them.
CLOSING_QUOTES = {'"': '"', "'": "'", "`": "`", "‘": "’‘'", "’": "’'"} | dict.fromkeys("“”„＂", '“”„＂"')
CONTENTS = {
    opener: re.compile(rf"[^{closers}\\]*+(?:\\.[^{closers}\\]*+)*+", re.DOTALL)
    for opener, closers in CLOSING_QUOTES.items()
}

# A line comment must end with its line: one that runs to the end of the text may have swallowed half of it.
BLANKS = r"[\s\ufeff\u200b\u2060\u180e]++|/\*.*?(?:\*/|\Z)|(?://|\#)[^\n]*+\n"
GAP = re.compile(rf"(?:{BLANKS})*+", re.DOTALL)
SEPARATORS = re.compile(rf"(?:{BLANKS}|[{COMMAS}]|\.{{3,}}+|…)*+", re.DOTALL)
BARE_KEY = re.compile(r"[^\s,，、:：{}\[\]｛｝［］\"“”]++")
BARE_VALUE = re.compile(r"[\w/.$@+\-~*%!?](?:(?!/\*|\s//|\s\#)[^,，、{}\[\]｛｝［］\"“”\n])*+")
KEY_AHEAD = re.compile(r"(?:\"[^\"\n]{0,100}\"|'[^'\n]{0,100}'|[A-Za-z_][\w-]{0,100})\s*[:：]")
ITEM_AHEAD = re.compile(r"[\"'\d-]")
GOES_ON = {
    "}": re.compile(rf"\s*[{COMMAS}]\s*(?:{KEY_AHEAD.pattern})"),
    "]": re.compile(rf"\s*[{COMMAS}]\s*[{{\[\"'\d-]"),
}
REST_BLANK = re.compile(r"\s*\Z")
KEY_INSIDE = re.compile(r"\s[\w-]+\s*[:：](?:\s|\Z)")
NUMBER = re.compile(r"([+-]?(?:0|[1-9][\d_]*)?(?:\.[\d_]*)?)([eE][+-]?\d*)?", re.ASCII)
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
CUT_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")


class Unclear(Exception):
    """The text cannot be understood from here on. `final`: looking further is of no use."""

    def __init__(self, position: int, reason: str, final: bool = False) -> None:
        self.position = position
        self.reason = reason
        self.final = final
        super().__init__(reason)


class ReadDeadline:
    """A limit on processor time that is looked at while the work goes on; what else the machine does is not counted."""

    __slots__ = ("_end",)

    def __init__(self, seconds: float) -> None:
        self._end = time.thread_time() + seconds

    def check(self) -> None:
        if time.thread_time() > self._end:
            raise Unclear(0, "too much of it is malformed", final=True)


class JsonReader:
    """Reads the object or list that starts at `position`.

    Mended: comments, commas too many or missing, `...`, bare words, single, curly and triple quotes, full-width
    punctuation, Python's literals, brackets left open or closed by the wrong kind. `missing` holds the closing brackets
    that never came; `half` says that the very last value was cut. A stray quote is not guessed at: it is Unclear.
    """

    def __init__(self, text: str, position: int, clock: ReadDeadline) -> None:
        self.position = position
        self.missing = ""
        self.half = False
        self._text = text
        self._clock = clock
        self._open: list[str] = []

    def read(self) -> Any:
        self._clock.check()
        char = self._text[self.position]
        if char in OPENERS:
            if len(self._open) >= DEPTH:
                raise Unclear(self.position, f"nested more than {DEPTH} levels deep", final=True)
            self._open.append(OPENERS[char])
            self.position += 1
            return self._members() if self._open[-1] == "}" else self._items()
        if char in CLOSING_QUOTES:
            return self._string()
        return self._bare()

    def _items(self) -> list[Any]:
        items: list[Any] = []
        while self._more():
            if not self._cut_at_quote():
                items.append(self.read())
        return items

    def _members(self) -> dict[str, Any]:
        members: dict[str, Any] = {}
        while self._more():
            if not self._cut_at_quote():
                key = self._key()
                members[key] = self._value()
        return members

    def _more(self) -> bool:
        """Whether the innermost bracket holds something more; closes it if not."""
        self._clock.check()
        before = self._gap_end(self.position)
        match = SEPARATORS.match(self._text, before)
        self.position = match.end() if match else before
        if self._at_end():
            # After a comma something more was to come.
            self.half = self.half or self.position > before
            self.missing += self._open.pop()
            return False
        found = CLOSERS.get(self._text[self.position])
        if found is None:
            return True
        if self._closes_too_early(found):
            self.position += 1
            return self._more()
        expected = self._open.pop()
        # The wrong kind of bracket closes this one too, unless one further out is waiting for it.
        if found == expected or found not in self._open:
            self.position += 1
        return False

    def _closes_too_early(self, found: str) -> bool:
        """A bracket is one too many if nobody waits for it, or it ends everything, and yet what it closes goes on."""
        closer, after = self._open[-1], self.position + 1
        following = self._gap_end(after)
        if found != closer and CLOSERS.get(self._text[following : following + 1]) == closer:
            return True
        awaited = found in self._open[:-1] or (found == closer and (len(self._open) > 1 or found == "]"))
        return not awaited and bool(GOES_ON[closer].match(self._text, after))

    def _cut_at_quote(self) -> bool:
        """A lone quote at the very end began something of which nothing came."""
        if self._text[self.position] in CLOSING_QUOTES and REST_BLANK.match(self._text, self.position + 1):
            self.position, self.half = len(self._text), True
            return True
        return False

    def _key(self) -> str:
        start = self.position
        if quoted := self._text[start] in CLOSING_QUOTES:
            key = self._string(key=True)
        elif match := BARE_KEY.match(self._text, start):
            key, self.position = match.group(), match.end()
        else:
            raise Unclear(start, f"a key was expected, not {self._text[start]!r}")
        end = self.position
        self._skip_gap()
        if self._at_end():
            self.half = True
        elif self._text[self.position] in COLONS:
            self.position += 1
        elif not quoted or self.position == end or self._text[self.position] in CLOSERS or self._on_comma():
            raise Unclear(end, f'":" was expected after the key {key[:40]!r}')
        return key

    def _value(self) -> Any:
        self._skip_gap()
        if self._at_end():
            self.half = True
            return None
        if self._text[self.position] in CLOSERS or self._on_comma():
            return None
        return self.read()

    def _string(self, key: bool = False) -> str:
        text, start = self._text, self.position
        opener = text[start]
        if text.startswith(opener * 3, start):
            return self._triple_quoted(opener * 3)
        found = CONTENTS[opener].match(text, start + 1)
        end = found.end() if found else start + 1
        if end >= len(text) or text[end] == "\\":
            return self._cut_string(start)
        self._check_after_string(end, key)
        self.position = end + 1
        return unescaped(_without_last_break(text[start + 1 : end]))

    def _triple_quoted(self, quotes: str) -> str:
        start = self.position + len(quotes)
        end = self._text.find(quotes, start)
        if end < 0:
            raise Unclear(self.position, "a string is not closed")
        self.position = end + len(quotes)
        return self._text[start:end]

    def _cut_string(self, start: int) -> str:
        """A string without an end was cut off, unless brackets at the end say that only its quote is missing."""
        content = self._text[start + 1 :]
        if content.rstrip().endswith((*CLOSERS, *FENCES)):
            raise Unclear(start, "a string is not closed")
        self.position, self.half = len(self._text), True
        return unescaped(CUT_ESCAPE.sub("", content))

    def _check_after_string(self, quote: int, key: bool) -> None:
        """A quote ends a string only if what follows it can follow a string."""
        text, after = self._text, self._gap_end(quote + 1)
        if after >= len(text) or text.startswith(FENCES, after):
            return
        char = text[after]
        if char in CLOSERS or char in COMMAS or (key and char in COLONS):
            return
        spaced = after > quote + 1
        if key and spaced:
            return
        ahead = KEY_AHEAD if self._open[-1] == "}" else ITEM_AHEAD
        if not key and (char in OPENERS or (spaced and ahead.match(text, after))):
            return
        raise Unclear(quote, 'a quote inside a string must be written as \\"')

    def _bare(self) -> Any:
        start = self.position
        match = BARE_VALUE.match(self._text, start)
        if not match:
            raise Unclear(start, f"a value was expected, not {self._text[start]!r}")
        word = match.group().rstrip()
        if match.end() < len(self._text) and word == match.group() and self._text[match.end()] in CLOSING_QUOTES:
            raise Unclear(match.end(), "a quote was not expected here")
        if self._open[-1] == "}" and KEY_INSIDE.search(word):
            raise Unclear(start, "a text without quotes is unclear")
        self.position = start + len(word)
        self.half = self.position >= len(self._text)
        return literal(word)

    def _gap_end(self, position: int) -> int:
        match = GAP.match(self._text, position)
        return match.end() if match else position

    def _skip_gap(self) -> None:
        self.position = self._gap_end(self.position)

    def _on_comma(self) -> bool:
        return self._text[self.position] in COMMAS

    def _at_end(self) -> bool:
        return self.position >= len(self._text) or self._text.startswith(FENCES, self.position)


def literal(word: str) -> Any:
    """What a word without quotes means: a literal, a number (one that was cut keeps what is there), else text."""
    plain = word if word.isascii() else unicodedata.normalize("NFKC", word)
    if plain.lower() in LITERALS:
        return LITERALS[plain.lower()]
    match = NUMBER.fullmatch(plain)
    if not match or not any(char.isdigit() for char in match.group(1)):
        return word
    digits = match.group(1).replace("_", "")
    exponent = match.group(2) or ""
    try:
        if exponent[-1:].isdigit():
            return float(digits + exponent)
        return float(digits) if "." in digits else int(digits)
    except ValueError:
        return word


def unescaped(content: str) -> str:
    """The text of a string; an escape that JSON does not know is taken as it stands (`\\d` in a pattern)."""
    if "\\" not in content:
        return content
    return whole(ESCAPE.sub(_escaped, content))


def _without_last_break(content: str) -> str:
    """A raw line break right before the closing quote is layout."""
    stripped = content.rstrip()
    return stripped if "\n" in content[len(stripped) :] else content


def _escaped(match: re.Match[str]) -> str:
    code, char = match.groups()
    if code is not None:
        return chr(int(code, 16))
    if char in LITERAL_ESCAPES:
        return char
    return ESCAPES.get(char, match.group())


def whole(text: str) -> str:
    """Joins surrogate pairs; half of one can be neither stored nor shown, so it becomes `\ufffd`."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
