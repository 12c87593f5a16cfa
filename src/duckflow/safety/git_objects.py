"""Contents that a git repository holds, read from its files: no git program runs.

What comes from here is only bytes that somebody put there: whoever asked for a content checks that it has the name."""

import contextlib
import os
import re
import zlib
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from duckflow.safety.repository import read_number, read_plain

LARGEST = 256 * 1024 * 1024
LONGEST_CHAIN = 5000
PIECE = 64 * 1024
FAN_OUT, TABLES = 8, 8 + 256 * 4
ID_BYTES, CHECK_BYTES = 20, 4
FAR = 1 << 31
INDEX_MAGIC = b"\xfftOc\0\0\0\2"
BLOB, OFFSET_DELTA, NAMED_DELTA = 3, 6, 7
PACK_INDEX = re.compile(r"pack-[0-9a-f]+\.idx")


class GitObjects:
    """The `objects` folder of a repository: a file for each content, or many of them in a pack."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._packs: dict[str, Pack] = {}
        self._listed = 0
        self.refresh()

    def refresh(self) -> bool:
        """Look which packs there are; says whether they are others than the last time."""
        try:
            changed = (self._folder / "pack").stat().st_mtime_ns
            names = os.listdir(self._folder / "pack") if changed != self._listed else []
        except OSError:
            changed, names = 0, []
        if changed == self._listed:
            return False
        self._listed = changed
        known, self._packs = self._packs, {}
        for name in filter(PACK_INDEX.fullmatch, names):
            with contextlib.suppress(OSError, ValueError):
                self._packs[name] = known.get(name) or Pack(self._folder / "pack" / name)
        return True

    def has(self, name: str) -> bool:
        return self._in_pack(name) is not None or os.path.exists(self._loose(name))

    def read(self, name: str) -> bytes | None:
        """Nothing when it is not there, damaged, or very large."""
        try:
            if found := self._in_pack(name):
                return self._from_pack(*found)
            header, _, data = _inflate([read_plain(Path(self._loose(name)), LARGEST)]).partition(b"\0")
        except (OSError, ValueError, IndexError, zlib.error):
            return None
        return data if header.startswith(b"blob ") else None

    def _loose(self, name: str) -> str:
        return f"{self._folder}/{name[:2]}/{name[2:]}"

    def _in_pack(self, name: str) -> "tuple[Pack, int] | None":
        wanted = bytes.fromhex(name)
        for pack in self._packs.values():
            offset = pack.find(wanted)
            if offset is not None:
                return pack, offset
        return None

    def _from_pack(self, pack: "Pack", offset: int) -> bytes | None:
        """Mostly kept as the difference to another content, that one to yet another, and so on."""
        deltas: list[bytes] = []
        while len(deltas) < LONGEST_CHAIN:
            kind, base, data = pack.entry(offset)
            if kind == BLOB:
                for delta in reversed(deltas):
                    data = _apply(delta, data)
                return data
            found = self._in_pack(base) if isinstance(base, str) else (pack, base)
            if kind not in (OFFSET_DELTA, NAMED_DELTA) or found is None:
                return None
            deltas.append(data)
            pack, offset = found
        return None


class Pack:
    """One pack with its index. The index is read as a whole: a file mapped into memory could be cut off by others."""

    def __init__(self, index: Path) -> None:
        self._path = index.with_suffix(".pack")
        self._index = read_plain(index, LARGEST)
        if not self._index.startswith(INDEX_MAGIC) or len(self._index) < TABLES or not self._path.is_file():
            raise ValueError(str(index))
        self._count = self._number(TABLES - 4)

    def find(self, name: bytes) -> int | None:
        """Where in the pack it begins."""
        first = self._number(FAN_OUT + 4 * name[0] - 4) if name[0] else 0
        place, end = (TABLES + ID_BYTES * at for at in (first, self._number(FAN_OUT + 4 * name[0])))
        while (place := self._index.find(name, place, end)) >= 0 and (place - TABLES) % ID_BYTES:
            place += 1
        if place < 0:
            return None
        at = (place - TABLES) // ID_BYTES
        offsets = TABLES + (ID_BYTES + CHECK_BYTES) * self._count
        offset = self._number(offsets + 4 * at)
        if offset < FAR:
            return offset
        far = offsets + 4 * self._count + 8 * (offset - FAR)
        return int.from_bytes(self._index[far : far + 8])

    def entry(self, offset: int) -> tuple[int, int | str, bytes]:
        """Its kind, what it is the difference to (a place in this pack, or a name), and its bytes."""
        # Without waiting, should there be a pipe by now.
        with os.fdopen(os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            file.seek(offset)
            head = file.read(PIECE)
            kind, at = head[0] >> 4 & 7, _after_number(head, 0)
            base: int | str = 0
            if kind == OFFSET_DELTA:
                back, at = read_number(head, at)
                base = offset - back
            elif kind == NAMED_DELTA:
                base, at = head[at : at + ID_BYTES].hex(), at + ID_BYTES
            return kind, base, _inflate(chain([head[at:]], iter(lambda: file.read(PIECE), b"")))

    def _number(self, at: int) -> int:
        return int.from_bytes(self._index[at : at + 4])


def _inflate(pieces: Iterable[bytes]) -> bytes:
    unpacking, found = zlib.decompressobj(), bytearray()
    for piece in pieces:
        found += unpacking.decompress(piece, LARGEST)
        if unpacking.eof:
            return bytes(found)
        if len(found) >= LARGEST:
            break
    raise ValueError("cut off, or very large")


def _apply(delta: bytes, base: bytes) -> bytes:
    """A difference is a list of parts: copied from the other content, or given."""
    made = bytearray()
    at = _after_number(delta, _after_number(delta, 0))
    while at < len(delta):
        code = delta[at]
        at += 1
        if not code & 0x80:
            made += delta[at : at + code]
            at += code
            continue
        values = [0] * 7
        for bit in range(7):
            if code >> bit & 1:
                values[bit] = delta[at]
                at += 1
        offset, length = int.from_bytes(values[:4], "little"), int.from_bytes(values[4:], "little")
        made += base[offset : offset + (length or 0x10000)]
        if len(made) > LARGEST:
            raise ValueError("very large")
    return bytes(made)


def _after_number(data: bytes, at: int) -> int:
    """The sizes are not needed: the name of a content vouches for it."""
    while data[at] & 0x80:
        at += 1
    return at + 1
