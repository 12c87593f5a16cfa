"""Makes text of the bytes a command prints, without the codes that steer a terminal."""

import codecs
import re

STEERING = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links and other texts for the terminal
    r"|\x1b[ -/]*[0-~]"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
UNFINISHED = re.compile(r"(?:\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)|\x9b[0-?]*[ -/]*|\r)\Z")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
LONGEST_CODE = 4096


class Cleaner:
    """Piece by piece; a character or a code may be split between two pieces. What is no UTF-8 becomes `�`."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._kept = ""

    def clean(self, data: bytes, last: bool = False) -> str:
        text = self._kept + self._decoder.decode(data, last)
        self._kept = ""
        if not last and (cut := UNFINISHED.search(text, max(0, len(text) - LONGEST_CODE))):
            text, self._kept = text[: cut.start()], text[cut.start() :]
        if "\x1b" in text or "\x9b" in text:
            text = STEERING.sub("", text)
        return CONTROL.sub("", text.replace("\r\n", "\n"))
