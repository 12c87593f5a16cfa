"""Lines of a file too large to be read whole, one after the other."""

from collections.abc import Iterator
from typing import BinaryIO

from duckflow.tools.files.document import decode

PIECE = 64 * 1024
"""Longer lines come in pieces of this size, all with the same number."""


def large_lines(file: BinaryIO, first: int = 1) -> Iterator[tuple[int, str]]:
    """Line numbers and texts from line `first` on; ends where something is no text."""
    number = 1
    while piece := file.readline(PIECE):
        if b"\0" in piece:
            return
        if number >= first:
            yield number, line_text(piece)
        number += piece.endswith(b"\n")


def line_text(line: bytes) -> str:
    """Of one line taken out of a file, without its end."""
    line = line.rstrip(b"\r\n")
    try:
        return line.decode()
    except UnicodeDecodeError:
        decoded = decode(line)
        return decoded.text if decoded else line.decode("utf-8", "replace")
