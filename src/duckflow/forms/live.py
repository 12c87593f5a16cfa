"""The part of a reply that is said to the user, piece by piece while it streams in. It is only displayed: nothing acts
on it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from duckflow.llm.provider import Thoughts
from duckflow.whole_text import make_whole

LONGEST_FENCE = 60

START_OF_JSON = r"[{｛]|`{1,3}"
FENCED_JSON = r"```[\w-]*\s*(?=[{\[｛［])"
FENCE_SO_FAR = r"`{1,2}\Z|```[\w-]*\s*\Z"
QUOTES = ("'", "`")
MARK = r"[\"'{}\[\]:,]"
RUNS = {quote: rf"[^{quote}\\]+" for quote in "\"'"}
ESCAPE = r"(?s)\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u[\da-fA-F]{4}|\\."
ESCAPE_SO_FAR = r"\\(?:u[\da-fA-F]{0,3})?\Z|\\u[dD][89abAB][\da-fA-F]{2}(?:\\(?:u[\da-fA-F]{0,3})?)?\Z"


WHOLE_THOUGHT = r"(?si)\s*<(think|thinking|thought|reasoning)>(?:.*?</\1>|.*)"
END_OF_THOUGHTS = r"</(?:think|thinking)>[ \t]*(?:\n|\Z)"


def without_thoughts(text: str) -> str:
    """Returns the text after the model's thoughts. If the thoughts never end, the text is empty."""
    thoughts_end = 0
    while match := re.compile(WHOLE_THOUGHT).match(text, thoughts_end):
        thoughts_end = match.end()
    text = text[thoughts_end:]
    if text.lstrip()[:1] in ("{", "[", "`"):
        return text
    # Some servers leave out the opening tag.
    orphan_end = re.search(END_OF_THOUGHTS, text)
    return text[orphan_end.end() :] if orphan_end and "<think" not in text[: orphan_end.start()] else text


@dataclass(slots=True)
class OpenBracket:
    """An open object or list, and the part of a Decision (a reply with actions) that it stands for."""

    part: str
    is_object: bool
    key: str = ""
    at_value: bool = False
    operation: str = ""
    held: dict[str, list[str]] = field(default_factory=dict[str, list[str]])


class LiveText:
    """Takes the reply in pieces, and returns what is newly said: the text of a `response`, or plain prose as it is.

    After another action has come nothing more is returned: the text that follows may speak of results not yet known.
    """

    def __init__(self, says: Mapping[str, str], prose: bool = False) -> None:
        """For each operation that speaks to the user, `says` names the argument with the words. `prose` means that the
        reply should be plain text, so that only a reply which begins with JSON is read as JSON."""
        self._says = says
        self._is_prose = prose
        self._thoughts = Thoughts()
        self._rest = ""
        self._mode = "prose"
        self._levels: list[OpenBracket] = []
        self._quote = ""
        self._new_text = False
        self._word: list[str] = []
        self._shown: list[str] = []
        self._last = ""
        self._in_code = False

    def feed(self, delta: str) -> str:
        text, self._rest = self._rest + self._thoughts.pass_on(delta), ""
        position = 0
        while position < len(text) and self._mode != "over" and not self._rest:
            if self._mode == "prose":
                position = self._prose(text, position)
            elif self._quote:
                position = self._string(text, position)
            else:
                position = self._structure(text, position)
        shown_text = "".join(self._shown)
        # Half a surrogate pair, written as an escape, waits for its other half.
        self._shown = [shown_text[-1]] if shown_text and "\ud800" <= shown_text[-1] <= "\udbff" else []
        return make_whole(shown_text[: len(shown_text) - len(self._shown)])

    def _prose(self, text: str, position: int) -> int:
        if not self._last:
            position += len(text) - position - len(text[position:].lstrip())
            if text.startswith(("[", "［"), position):
                self._mode = "json"
                return position
        start = re.compile(START_OF_JSON).search(text, position)
        if not start or (self._is_prose and (self._last or start.start() > position)):
            self._show(text[position:])
            return len(text)
        self._show(text[position : start.start()])
        if not start.group().startswith("`"):
            self._mode = "json"
            return start.start()
        return self._backticks(text, start)

    def _backticks(self, text: str, start: re.Match[str]) -> int:
        """Handles backticks. JSON often stands in a fence, so a fence is held back until it is clear what is inside."""
        begins_word = not self._last or self._last.isspace()
        closes_code = self._in_code and start.group() == "```"
        if begins_word and not closes_code:
            if fence := re.compile(FENCED_JSON).match(text, start.start()):
                self._mode = "json"
                return fence.end()
            if re.compile(FENCE_SO_FAR).match(text, start.start()) and len(text) - start.start() < LONGEST_FENCE:
                self._rest = text[start.start() :]
                return len(text)
        if start.group() == "```":
            self._in_code = not self._in_code
        self._show(start.group())
        return start.end()

    def _structure(self, text: str, position: int) -> int:
        mark_match = re.compile(MARK).search(text, position)
        if not mark_match:
            return len(text)
        level = self._levels[-1] if self._levels else None
        match mark_match.group():
            case "{" | "[" as bracket:
                self._levels.append(OpenBracket(self._part(level, bracket), bracket == "{"))
            case "}" | "]":
                del self._levels[-1:]
                self._mode = "json" if self._levels else "over"
            case ":" if level:
                level.at_value = True
            case "," if level:
                level.at_value = False
            case '"' | "'" as quote:
                self._quote = quote
                self._new_text = True
            case _:
                pass
        return mark_match.end()

    def _part(self, level: OpenBracket | None, bracket: str) -> str:
        match (level.part, level.key, bracket) if level else ("", "", bracket):
            case ("", "", "{"):
                return "decision" if not level else ""
            case ("decision", "actions", "["):
                return "actions"
            case ("decision", "actions", "{") | ("actions", _, "{"):
                return "action"
            case ("action", "args" | "parameters", "{"):
                return "args"
            case _:
                return ""

    def _string(self, text: str, position: int) -> int:
        if run := re.compile(RUNS[self._quote]).match(text, position):
            self._take(run.group())
            return run.end()
        if text[position] == self._quote:
            self._quote = ""
            self._end_string()
            return position + 1
        if re.compile(ESCAPE_SO_FAR).match(text, position):
            self._rest = text[position:]
            return len(text)
        escape = re.compile(ESCAPE).match(text, position)
        end_offset = escape.end() if escape else position + 1
        self._take(_unescaped(text[position:end_offset]))
        return end_offset

    def _take(self, piece: str) -> None:
        """Takes a piece of a string. The piece is shown, held back until the operation is known, added to a name, or
        ignored."""
        if not self._levels:
            return
        level = self._levels[-1]
        if self._saying():
            action = self._action()
            if action.operation:
                self._say(piece)
            else:
                action.held.setdefault(level.key, []).append(piece)
        elif self._names_operation() or (level.is_object and not level.at_value):
            self._word.append(piece)

    def _end_string(self) -> None:
        word = "".join(self._word)
        self._word.clear()
        if not self._levels:
            return
        level = self._levels[-1]
        if self._names_operation():
            level.operation = word.strip() or "?"
            if level.operation not in self._says:
                # Text after an action may speak of its result, so the text is shown only when the result is known.
                self._mode = "over"
            text = "".join(level.held.get(self._says.get(level.operation, ""), ()))
            self._say(text)
            level.held.clear()
        elif level.is_object and not level.at_value:
            level.key = word

    def _names_operation(self) -> bool:
        level = self._levels[-1]
        return level.part == "action" and level.at_value and level.key in ("operation", "name")

    def _saying(self) -> bool:
        """Says whether the current string is, or may turn out to be, said to the user."""
        level = self._levels[-1] if self._levels else None
        if level is None or level.part != "args" or not level.at_value:
            return False
        operation = self._action().operation
        return level.key == self._says.get(operation) if operation else level.key in self._says.values()

    def _action(self) -> OpenBracket:
        return self._levels[-2]

    def _say(self, piece: str) -> None:
        """Shows a piece. Two messages in one reply become two paragraphs."""
        if piece and self._new_text and self._last:
            self._show("\n\n")
        self._new_text = False
        self._show(piece)

    def _show(self, text: str) -> None:
        if text:
            self._shown.append(text)
            self._last = text[-1]


def _unescaped(escape: str) -> str:
    """Returns the text that an escape stands for. An escape that JSON does not know is shown as it is written."""
    try:
        return str(json.loads(f'"{escape}"'))
    except ValueError:
        return escape[1:] if escape[1:] in QUOTES else escape
