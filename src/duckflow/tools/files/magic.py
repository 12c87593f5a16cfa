"""What a file that is no text is, by its first bytes."""

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
