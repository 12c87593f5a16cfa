"""Saves the undamaged entries of a damaged journal. It reads the pages one by one, without the tree that holds them
together. Every entry has a checksum, so each one is either undamaged or skipped."""

import contextlib
import itertools
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from duckflow.errors import JournalError
from duckflow.events.apply import apply
from duckflow.events.types import JournalSalvaged
from duckflow.state.agent import AgentState
from duckflow.store.journal import FRAME_HEADER, LOG_HEADER, Journal, Lock, Row, StoredRow, read_event

PAGE = 4096
SIZES = frozenset(1 << power for power in range(9, 16))
FILE_HEADER = 100
LEAF = 13
NULL, FIRST_TEXT = 0, 13
NUMBERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 8: 0, 9: 0}
LARGEST_ENTRY, SMALLEST_ENTRY = 256 * 1024 * 1024, 40


class Salvaged(NamedTuple):
    """The result of saving a damaged journal: how many events were saved, and the new place of the damaged file."""

    kept: int
    aside: Path


class PageImage(NamedTuple):
    """One version of a page. The log may hold several versions of a page; the last one is the newest."""

    number: int
    data: bytes


def salvage(path: Path) -> Salvaged:
    """Replaces the journal at `path` by a journal with all events before the damage, and the later events that can
    still be applied."""
    lock = Lock(path.with_suffix(".lock"))
    try:
        saved_rows = list(_sensible(_entries(path)))
        damaged_path = _unused(path)
        for suffix in ("", "-wal", "-shm"):
            journal_file = path.with_name(path.name + suffix)
            if journal_file.exists():
                journal_file.rename(damaged_path.with_name(damaged_path.name + suffix))
    except OSError as problem:
        raise JournalError("journal.unusable", path=str(path), reason=str(problem)) from problem
    finally:
        lock.release()
    with closing(Journal(path)) as new_journal:
        for row in saved_rows:
            new_journal.append_row(row.kind, row.body)
        new_journal.append(JournalSalvaged(saved=len(saved_rows), aside=str(damaged_path)))
    return Salvaged(len(saved_rows), damaged_path)


def _unused(path: Path) -> Path:
    """Returns an unused name for the damaged file."""
    first_number = int(time.time())
    names = (path.with_name(f"{path.stem}.damaged-{number}{path.suffix}") for number in itertools.count(first_number))
    return next(name for name in names if not name.exists())


def _sensible(rows: Iterable[Row]) -> Iterator[Row]:
    """Skips the events that cannot be applied, because they build on an event that is missing."""
    state = AgentState()
    for row in rows:
        if event := read_event(row):
            try:
                apply(state, event)
            except (ValueError, LookupError, TypeError, AttributeError):
                continue
        yield row


def _entries(path: Path) -> list[Row]:
    """Reads the entries with each likely page size, and returns the longest result, because the page size in the file
    may be damaged."""
    file_bytes = path.read_bytes()
    log = path.with_name(f"{path.name}-wal")
    log_bytes = log.read_bytes() if log.exists() else b""
    stated_size = int.from_bytes(file_bytes[16:18], "big")
    page_sizes = {PAGE, stated_size if stated_size in SIZES else PAGE}
    return max((list(_whole(list(_pages(file_bytes, log_bytes, size)))) for size in page_sizes), key=len)


def _pages(data: bytes, written: bytes, size: int) -> Iterator[PageImage]:
    """Yields every version of every page, first the pages of the file, then the newer ones of the log."""
    for offset in range(0, len(data) - size + 1, size):
        yield PageImage(offset // size + 1, data[offset : offset + size])
    for offset in range(LOG_HEADER, len(written) - FRAME_HEADER - size + 1, FRAME_HEADER + size):
        page_start = offset + FRAME_HEADER
        yield PageImage(int.from_bytes(written[offset : offset + 4], "big"), written[page_start : page_start + size])


def _whole(images: list[PageImage]) -> Iterator[Row]:
    """Yields the undamaged entries in order. It stops at an entry that was altered, and skips a torn entry, which has
    zeros."""
    page_data = {page.number: page.data for page in images}
    rows: dict[int, StoredRow] = {}
    for page in images:
        for seq, record in _records(page.data, FILE_HEADER if page.number == 1 else 0, page_data):
            with contextlib.suppress(IndexError, ValueError):
                row = StoredRow(seq, *_columns(record))
                if row.whole or seq not in rows:
                    rows[seq] = row
    largest_seq = sum(len(page.data) for page in images) // SMALLEST_ENTRY
    for seq in sorted(seq for seq in rows if 0 < seq <= largest_seq):
        if rows[seq].whole:
            yield rows[seq].read()
        elif b"\0" not in rows[seq].body:
            return


def _records(page: bytes, start: int, pages: dict[int, bytes]) -> Iterator[tuple[int, bytes]]:
    """Yields the number and bytes of each row in a page. Numbers rise within a page, so a row out of order is
    damaged."""
    if page[start] != LEAF:
        return
    rows: list[tuple[int, bytes]] = []
    for cell_index in range(min(int.from_bytes(page[start + 3 : start + 5], "big"), len(page) // 4)):
        pointer_place = start + 8 + 2 * cell_index
        with contextlib.suppress(IndexError):
            length, offset = _number(page, int.from_bytes(page[pointer_place : pointer_place + 2], "big"))
            seq, offset = _number(page, offset)
            if length <= LARGEST_ENTRY:
                rows.append((seq, _payload(page, offset, length, pages)))
    for index, (seq, record) in enumerate(rows):
        # A number counts if it fits most of the other numbers, so one wrong number does not make its neighbours wrong.
        rows_in_order = sum(
            (other_seq < seq) == (position < index) for position, (other_seq, _) in enumerate(rows) if position != index
        )
        if 2 * rows_in_order >= len(rows) - 1:
            yield seq, record


def _payload(page: bytes, at: int, length: int, pages: dict[int, bytes]) -> bytes:
    """Returns the bytes of a row. A long row continues in other pages; the bytes of a missing page count as zeros."""
    size = len(page)
    if length <= size - 35:
        return page[at : at + length]
    least_local = (size - 12) * 32 // 255 - 23
    local_length = least_local + (length - least_local) % (size - 4)
    local_length = local_length if local_length <= size - 35 else least_local
    payload_pieces, missing_length = [page[at : at + local_length]], length - local_length
    next_page = int.from_bytes(page[at + local_length : at + local_length + 4], "big")
    while missing_length > 0 and next_page in pages:
        payload_pieces.append(pages[next_page][4 : 4 + missing_length])
        missing_length -= size - 4
        next_page = int.from_bytes(pages[next_page][:4], "big")
    return b"".join(payload_pieces).ljust(length, b"\0")


def _columns(record: bytes) -> tuple[bytes, bytes, int]:
    """Returns kind, body and checksum of a row of events. Raises ValueError for any other row."""
    header_end, offset = _number(record, 0)
    kinds: list[int] = []
    while offset < header_end:
        kind, offset = _number(record, offset)
        kinds.append(kind)
    if len(kinds) != 4 or kinds[0] != NULL or kinds[3] not in NUMBERS or min(kinds[1:3]) < FIRST_TEXT:
        raise ValueError("no event")
    body_start = header_end + (kinds[1] - FIRST_TEXT) // 2
    body_end = body_start + (kinds[2] - FIRST_TEXT) // 2
    crc = int.from_bytes(record[body_end : body_end + NUMBERS[kinds[3]]], "big") if NUMBERS[kinds[3]] else kinds[3] - 8
    return record[header_end:body_start], record[body_start:body_end], crc


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Returns a number of variable length, and the place where it ends."""
    decoded_number = 0
    for offset in range(at, at + 8):
        decoded_number = decoded_number << 7 | data[offset] & 0x7F
        if data[offset] < 0x80:
            return decoded_number, offset + 1
    return decoded_number << 8 | data[at + 8], at + 9
