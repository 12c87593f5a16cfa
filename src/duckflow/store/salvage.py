"""What can be saved from a damaged journal: its pages are read one by one, without the tree that holds them together.

Every entry has a checksum, so whatever is found is either whole or passed over."""

import contextlib
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from duckflow.events.apply import apply
from duckflow.state.agent import AgentState
from duckflow.store.journal import Journal, Row, checksum, read_event
from duckflow.store.older import upgraded

PAGE = 4096
FILE_HEADER, LOG_HEADER, FRAME_HEADER = 100, 32, 24
LEAF = 13
NULL, FIRST_TEXT = 0, 13
NUMBERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 8: 0, 9: 0}
LARGEST_ENTRY = 256 * 1024 * 1024


class Salvaged(NamedTuple):
    """What came of it: how many events were saved, and where the damaged file now lies."""

    kept: int
    aside: Path


def salvage(path: Path) -> Salvaged:
    """Replace the journal at `path` by one with all events before the damage, and those after it that make sense."""
    aside = path.with_name(f"{path.stem}.damaged-{int(time.time())}{path.suffix}")
    saved = list(_sensible(_entries(_pages(path))))
    for suffix in ("", "-wal", "-shm"):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    fresh = Journal(path)
    for row in saved:
        fresh.append_row(row.kind, row.body)
    fresh.close()
    return Salvaged(len(saved), aside)


def _sensible(rows: Iterable[Row]) -> Iterator[Row]:
    """Where some are missing, an event that builds on one of them cannot be applied."""
    state = AgentState()
    for row in rows:
        if event := read_event(row):
            try:
                apply(state, event)
            except (ValueError, LookupError, TypeError, AttributeError):
                continue
        yield row


def _pages(path: Path) -> dict[int, bytes]:
    """By number; what the log holds is newer than what the file holds."""
    data = path.read_bytes()
    size = int.from_bytes(data[16:18], "big") if data.startswith(b"SQLite format 3") else PAGE
    size = size if size in (1 << power for power in range(9, 16)) else PAGE
    pages = {at // size + 1: data[at : at + size] for at in range(0, len(data) - size + 1, size)}
    with contextlib.suppress(FileNotFoundError):
        written = path.with_name(f"{path.name}-wal").read_bytes()
        for at in range(LOG_HEADER, len(written) - FRAME_HEADER - size + 1, FRAME_HEADER + size):
            # What was left over from an earlier use of the log has another mark.
            if written[at + 8 : at + 16] == written[16:24]:
                start = at + FRAME_HEADER
                pages[int.from_bytes(written[at : at + 4], "big")] = written[start : start + size]
    return pages


def _entries(pages: dict[int, bytes]) -> Iterator[Row]:
    """In order. One that was changed by somebody ends them; of one that is torn nothing is left but the gap."""
    found: dict[int, tuple[Row, int]] = {}
    for number, page in pages.items():
        for seq, record in _records(page, FILE_HEADER if number == 1 else 0, pages):
            with contextlib.suppress(IndexError, ValueError):
                kind, body, crc = _columns(record)
                found[seq] = Row(seq, kind, body), crc
    for seq in sorted(found):
        row, crc = found[seq]
        if checksum(row.kind, row.body) == crc:
            yield Row(seq, *upgraded(row.kind, row.body))
        elif "\0" not in row.body:
            return


def _records(page: bytes, start: int, pages: dict[int, bytes]) -> Iterator[tuple[int, bytes]]:
    """Of a page with rows, each row's number and bytes."""
    if page[start] != LEAF:
        return
    for cell in range(int.from_bytes(page[start + 3 : start + 5], "big")):
        at = start + 8 + 2 * cell
        with contextlib.suppress(IndexError):
            length, place = _number(page, int.from_bytes(page[at : at + 2], "big"))
            seq, place = _number(page, place)
            if length <= LARGEST_ENTRY:
                yield seq, _payload(page, place, length, pages)


def _payload(page: bytes, at: int, length: int, pages: dict[int, bytes]) -> bytes:
    """A long row goes on in other pages; one of them that is gone counts as zeros."""
    size = len(page)
    if length <= size - 35:
        return page[at : at + length]
    least = (size - 12) * 32 // 255 - 23
    here = least + (length - least) % (size - 4)
    here = here if here <= size - 35 else least
    parts, missing = [page[at : at + here]], length - here
    further = int.from_bytes(page[at + here : at + here + 4], "big")
    while missing > 0 and further in pages:
        parts.append(pages[further][4 : 4 + missing])
        missing -= size - 4
        further = int.from_bytes(pages[further][:4], "big")
    return b"".join(parts).ljust(length, b"\0")


def _columns(record: bytes) -> tuple[str, str, int]:
    """Kind, body and checksum of a row of events; a ValueError for any other row."""
    end, at = _number(record, 0)
    kinds: list[int] = []
    while at < end:
        kind, at = _number(record, at)
        kinds.append(kind)
    if len(kinds) != 4 or kinds[0] != NULL or kinds[3] not in NUMBERS or min(kinds[1:3]) < FIRST_TEXT:
        raise ValueError("no event")
    first = end + (kinds[1] - FIRST_TEXT) // 2
    second = first + (kinds[2] - FIRST_TEXT) // 2
    crc = int.from_bytes(record[second : second + NUMBERS[kinds[3]]], "big") if NUMBERS[kinds[3]] else kinds[3] - 8
    return record[end:first].decode("utf-8", "replace"), record[first:second].decode("utf-8", "replace"), crc


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of varying length, and where it ends."""
    value = 0
    for place in range(at, at + 8):
        value = value << 7 | data[place] & 0x7F
        if data[place] < 0x80:
            return value, place + 1
    return value << 8 | data[at + 8], at + 9
