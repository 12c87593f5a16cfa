"""Pictures: their type and size, read from their first bytes without decoding them."""

import math
import struct
from typing import Literal

from duckflow.state.data import FrozenData

MediaType = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
PIXELS_PER_TOKEN = 750
MB = 1_000_000
LEAST_TOKENS, MOST_TOKENS = 85, 1600
"""The limits of a picture's tokens. Models scale pictures themselves, so a large one costs no more than this."""
# The markers of the JPEG segments that hold the size.
FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})


class Picture(FrozenData):
    """A picture that came with a message. Its bytes are stored beside the journal, in a file named by their digest."""

    digest: str
    name: str
    media: MediaType
    size: int
    width: int
    height: int

    @property
    def tokens(self) -> int:
        """Returns about how many tokens the picture takes in a request."""
        return min(MOST_TOKENS, max(LEAST_TOKENS, math.ceil(self.width * self.height / PIXELS_PER_TOKEN)))

    def describe(self) -> str:
        """Returns type, dimensions and size in a few characters."""
        return describe_picture(self.media, self.width, self.height, self.size)


def describe_picture(media: MediaType, width: int, height: int, size: int) -> str:
    small_size = f"{size / 1000:.0f} KB" if size >= 1000 else f"{size} B"
    size_text = f"{size / MB:.2f} MB" if size >= MB else small_size
    return f"{media.removeprefix('image/').upper()}, {width}×{height}, {size_text}"


def looks_like_picture(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def read_header(data: bytes) -> tuple[MediaType, int, int] | None:
    """Returns type, width and height; None if the data is none of the four known types of pictures."""
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR":
            return _sized("image/png", *struct.unpack(">II", data[16:24]))
        if data.startswith((b"GIF87a", b"GIF89a")):
            return _sized("image/gif", *struct.unpack("<HH", data[6:10]))
        if data.startswith(b"\xff\xd8\xff"):
            return _jpeg(data)
        if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
            return _webp(data)
    except (struct.error, IndexError):
        pass
    return None


def _sized(media: MediaType, width: int, height: int) -> tuple[MediaType, int, int] | None:
    return (media, width, height) if width and height else None


def _jpeg(data: bytes) -> tuple[MediaType, int, int] | None:
    offset = 2
    while data[offset] == 0xFF:
        kind = data[offset + 1]
        if kind == 0xFF:
            offset += 1
        elif kind in FRAMES:
            height, width = struct.unpack(">HH", data[offset + 5 : offset + 9])
            return _sized("image/jpeg", width, height)
        else:
            offset += 2 + struct.unpack(">H", data[offset + 2 : offset + 4])[0]
    return None


def _webp(data: bytes) -> tuple[MediaType, int, int] | None:
    match data[12:16]:
        case b"VP8X":
            width, height = (1 + int.from_bytes(data[offset : offset + 3], "little") for offset in (24, 27))
        case b"VP8L":
            size_bits = int.from_bytes(data[21:25], "little")
            width, height = 1 + (size_bits & 0x3FFF), 1 + (size_bits >> 14 & 0x3FFF)
        case b"VP8 ":
            width, height = (size & 0x3FFF for size in struct.unpack("<HH", data[26:30]))
        case _:
            return None
    return _sized("image/webp", width, height)
