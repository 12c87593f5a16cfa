"""Text files: their encoding, line ends and lines; and lines of files that are too large to be read whole."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from duckflow.errors import ToolError
from duckflow.safety.files import digest
from duckflow.safety.path_names import shown, shown_size
from duckflow.safety.workspace import Workspace

KINDS = (
    (b"\x89PNG\r\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"%PDF", "PDF document"),
    (b"PK\x03\x04", "ZIP archive (or office document)"),
    (b"\x1f\x8b", "gzip archive"),
    (b"BZh", "bzip2 archive"),
    (b"\xfd7zXZ", "xz archive"),
    (b"7z\xbc\xaf", "7z archive"),
    (b"\x7fELF", "executable program"),
    (b"MZ", "Windows program"),
    (b"SQLite format 3", "SQLite database"),
    (b"OggS", "Ogg sound"),
    (b"ID3", "MP3 sound"),
    (b"wOF2", "font"),
)


def kind_of_bytes(data: bytes) -> str:
    return next((kind for start, kind in KINDS if data.startswith(start)), "binary file")


BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
UTF32 = (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")
CONTROL = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f]")
KANA = re.compile("[\u3041-\u30fe]")
NAMES = {"cp932": "CP932", "euc_jp": "EUC-JP", "cp1252": "Windows-1252", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16"}


@dataclass(frozen=True, slots=True)
class TextForm:
    """The form of a text on disk: its encoding and line ends."""

    encoding: str = "utf-8"
    bom: bytes = b""
    newline: str = "\n"
    exact: bool = True
    """True if encoding the text again gives the same bytes. If not, the file can be read but not rewritten."""

    def describe(self) -> str:
        """Names the unusual encoding or line ends of the text; empty if both are usual."""
        name = "UTF-8 with BOM" if self.bom and self.encoding == "utf-8" else NAMES.get(self.encoding, "")
        line_ends = {"\r\n": "CRLF", "\r": "CR"}.get(self.newline, "")
        return ", ".join(filter(None, (name, line_ends)))


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text with the line ends as they are in the file."""

    text: str
    form: TextForm


def decode(data: bytes) -> Decoded | None:
    """Returns the text of a file, or None when it is no text."""
    if data.startswith(UTF32):
        return None
    for bom, encoding in BOMS:
        if data.startswith(bom):
            text = _read(data.removeprefix(bom), encoding)
            return None if text is None else Decoded(text, TextForm(encoding, bom, dominant_newline(text)))
    if b"\0" in data:
        return None
    encoding, text = _guess(data)
    if text is None:
        return None
    return Decoded(text, TextForm(encoding, b"", dominant_newline(text), text.encode(encoding) == data))


def encode(text: str, form: TextForm) -> bytes:
    """Returns the bytes of a text in a file's form. The text must already have the file's line ends."""
    try:
        return form.bom + text.encode(form.encoding)
    except UnicodeEncodeError as problem:
        char = problem.object[problem.start]
        line = text.count("\n", 0, problem.start) + 1
        name = NAMES.get(form.encoding, "UTF-8")
        code = f"U+{ord(char):04X}"
        shown_char = char if char.isprintable() else code
        raise ToolError(
            f"The file is {name}, which has no character {shown_char} ({code}, line {line} of the new text). "
            "Nothing was written. Write the text without it.",
            "file.encoding",
            encoding=name,
            char=f"{shown_char} ({code})",
            line=line,
        ) from None


def dominant_newline(text: str) -> str:
    r"""Returns the line end that most lines have; `\n` if no line has any."""
    crlf = text.count("\r\n")
    lf = text.count("\n") - crlf
    if crlf > lf:
        return "\r\n"
    return "\r" if not lf and "\r" in text else "\n"


def to_lf(text: str) -> str:
    """Converts line ends to `\\n`, as the model sees them."""
    text = text.replace("\r\n", "\n")
    return text if "\n" in text else text.replace("\r", "\n")


def with_newline(text: str, newline: str) -> str:
    return to_lf(text).replace("\n", newline)


def _guess(data: bytes) -> tuple[str, str | None]:
    """Guesses the encoding: UTF-8 if the bytes are valid, else the Japanese encodings, else Western text. Control
    characters mean that the file is no text."""
    text = _read(data, "utf-8")
    if text is not None:
        return "utf-8", text
    if CONTROL.search(data):
        return "", None
    readings = {name: text for name in ("cp932", "euc_jp") if (text := _read(data, name)) is not None}
    if readings:
        # EUC-JP often reads as CP932 too, but as half-width letters without kana. The reverse hardly occurs.
        return max(readings.items(), key=lambda reading: len(KANA.findall(reading[1])))
    return "cp1252", _read(data, "cp1252")


def _read(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


@dataclass(frozen=True, slots=True)
class Document:
    """A text file. `raw` has the line ends of the file, `text` only `\\n`."""

    path: str
    raw: str
    form: TextForm
    digest: str

    @property
    def text(self) -> str:
        return to_lf(self.raw)

    @property
    def lines(self) -> list[str]:
        return lines_of(self.text)


def lines_of(text: str) -> list[str]:
    """Returns the lines; a newline at the end starts no further line."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def load(workspace: Workspace, path: str, limit: int) -> Document:
    """Reads a text file. `path` is in the spelling that Workspace.relative returns. Raises a ToolError that names the
    kind of a file that is no text."""
    file_bytes = workspace.read_bytes(path, limit)
    decoded = decode(file_bytes)
    if decoded is None:
        kind, size, name = kind_of_bytes(file_bytes), shown_size(len(file_bytes)), shown(path)
        raise ToolError(
            f"{name} is no text but a {kind} ({size}); it cannot be read or edited here.",
            "file.binary",
            path=name,
            size=size,
        )
    return Document(path, decoded.text, decoded.form, digest(file_bytes))


PIECE = 64 * 1024
"""The number of bytes after which a longer line is split. All its pieces have the same line number."""


def large_lines(file: BinaryIO, first: int = 1) -> Iterator[tuple[int, str]]:
    """Yields line numbers and texts from line `first` on; ends where the file is no text."""
    number = 1
    while piece := file.readline(PIECE):
        if b"\0" in piece:
            return
        if number >= first:
            yield number, line_text(piece)
        number += piece.endswith(b"\n")


def line_text(line: bytes) -> str:
    """Decodes one line of a file, without its line end."""
    line = line.rstrip(b"\r\n")
    try:
        return line.decode()
    except UnicodeDecodeError:
        decoded = decode(line)
        return decoded.text if decoded else line.decode("utf-8", "replace")
