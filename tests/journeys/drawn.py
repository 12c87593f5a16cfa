"""Pictures drawn byte by byte: no imaging library is needed to make them, and none to read them."""

import struct
import zlib


def png(width: int = 3, height: int = 2, noise: bytes = b"") -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\xff\x80\0" * width for _ in range(height)) if width * height < 10_000 else b""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return (
        b"\x89PNG\r\n\x1a\n"
        + head
        + chunk(b"tEXt", b"note\0" + noise)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0, 0, 0) + b";"


def jpeg(width: int, height: int) -> bytes:
    exif = b"\xff\xe1" + struct.pack(">H", 8) + b"Exif\0\0"
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\1\x11\0"
    return b"\xff\xd8" + exif + b"\xff" + frame + b"\xff\xd9"


def webp(width: int, height: int, kind: bytes = b"VP8X") -> bytes:
    match kind:
        case b"VP8X":
            body = bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
        case b"VP8L":
            body = b"\x2f" + ((width - 1) | (height - 1) << 14).to_bytes(4, "little")
        case _:
            body = b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height)
    return b"RIFF" + struct.pack("<I", len(body) + 12) + b"WEBP" + kind + struct.pack("<I", len(body)) + body
