"""A link as a QR code in a terminal, for the camera of a phone.

Only what a link needs: bytes, the lowest level of repair, the five smallest sizes (up to 106 bytes), in which all
repair bytes belong to one block.
"""

from collections.abc import Iterator
from itertools import pairwise

from duckflow.errors import UsageError

DATA = {1: 19, 2: 34, 3: 55, 4: 80, 5: 108}
"""By size: the bytes of data."""
REPAIR = {1: 7, 2: 10, 3: 15, 4: 20, 5: 26}
FINDER = ("1111111", "1000001", "1011101", "1011101", "1011101", "1000001", "1111111")
EDGE = 4
"""Light modules around it."""

Modules = dict[tuple[int, int], bool]


def qr_lines(text: str) -> Iterator[str]:
    """Two rows of modules a line; light ones are drawn, so that it is right on a dark ground."""
    modules, width = qr_modules(text)
    for row in range(-EDGE, width + EDGE, 2):
        cells = range(-EDGE, width + EDGE)
        yield "".join(_cell(modules.get((row, column)), modules.get((row + 1, column))) for column in cells)


def _cell(upper: bool | None, lower: bool | None) -> str:
    return {(False, False): "█", (False, True): "▀", (True, False): "▄", (True, True): " "}[bool(upper), bool(lower)]


def qr_modules(text: str) -> tuple[Modules, int]:
    """Which are dark, by row and column; and how many stand in a row."""
    data = text.encode()
    size = next((size for size, room in DATA.items() if len(data) + 2 <= room), 0)
    if not size:
        raise UsageError("serve.qr_too_long")
    width = size * 4 + 17
    fixed = _fixed(size, width)
    bits = "".join(f"{byte:08b}" for byte in _codewords(data, size))
    path = [place for place in _snake(width) if place not in fixed]
    drawn = [_masked(fixed, path, bits, mask, width) for mask in range(8)]
    return min(drawn, key=lambda modules: _penalty(modules, width)), width


def _codewords(data: bytes, size: int) -> bytes:
    """Kind (bytes), length, the data, the end, filled up; and the bytes for repair."""
    room = DATA[size]
    bits = f"0100{len(data):08b}" + "".join(f"{byte:08b}" for byte in data)
    bits += "0" * min(4, room * 8 - len(bits))
    bits += "0" * (-len(bits) % 8)
    words = [int(bits[at : at + 8], 2) for at in range(0, len(bits), 8)]
    words += [(0xEC, 0x11)[place % 2] for place in range(room - len(words))]
    return bytes(words + _repair(words, REPAIR[size]))


def _repair(words: list[int], count: int) -> list[int]:
    """Reed-Solomon: the rest of a division in the field of 256 elements."""
    powers, value = list[int](), 1
    for _ in range(255):
        powers.append(value)
        value = value << 1 ^ (0x11D if value & 0x80 else 0)
    logs = {power: place for place, power in enumerate(powers)}

    def times(left: int, right: int) -> int:
        return powers[(logs[left] + logs[right]) % 255] if left and right else 0

    divisor = [1]
    for place in range(count):
        longer = [*divisor, 0]
        for at, one in enumerate(divisor):
            longer[at + 1] ^= times(one, powers[place])
        divisor = longer
    rest = [*words, *[0] * count]
    for at in range(len(words)):
        lead = rest[at]
        for place, one in enumerate(divisor):
            rest[at + place] ^= times(one, lead)
    return rest[len(words) :]


def _fixed(size: int, width: int) -> Modules:
    """What does not carry data; where the format will stand is kept free."""
    fixed: Modules = {}
    for top, left in ((0, 0), (0, width - 7), (width - 7, 0)):
        for row in range(-1, 8):
            for column in range(-1, 8):
                if 0 <= top + row < width and 0 <= left + column < width:
                    inside = 0 <= row < 7 and 0 <= column < 7
                    fixed[top + row, left + column] = inside and FINDER[row][column] == "1"
    for at in range(8, width - 8):
        fixed[6, at] = fixed[at, 6] = at % 2 == 0
    if size > 1:
        middle = width - 7
        for row in range(-2, 3):
            for column in range(-2, 3):
                fixed[middle + row, middle + column] = max(abs(row), abs(column)) != 1
    for place in (*_format_places(width)[0], *_format_places(width)[1]):
        fixed[place] = False
    fixed[width - 8, 8] = True
    return fixed


def _format_places(width: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Both copies, from the first bit to the last."""
    near = [(8, at) for at in (0, 1, 2, 3, 4, 5, 7, 8)] + [(at, 8) for at in (7, 5, 4, 3, 2, 1, 0)]
    far = [(at, 8) for at in range(width - 1, width - 8, -1)] + [(8, at) for at in range(width - 8, width)]
    return near, far


def _snake(width: int) -> Iterator[tuple[int, int]]:
    """Up and down in columns of two, from the right; the column of the timing is left out."""
    upwards = True
    for right in (*range(width - 1, 6, -2), *range(5, 0, -2)):
        for row in range(width - 1, -1, -1) if upwards else range(width):
            yield row, right
            yield row, right - 1
        upwards = not upwards


def _masked(fixed: Modules, path: list[tuple[int, int]], bits: str, mask: int, width: int) -> Modules:
    modules = dict(fixed)
    for at, (row, column) in enumerate(path):
        modules[row, column] = (at < len(bits) and bits[at] == "1") ^ _flips(mask, row, column)
    # The lowest level of repair is 01.
    kind = 0b01 << 3 | mask
    rest = kind << 10
    for place in range(14, 9, -1):
        rest ^= 0b10100110111 << (place - 10) if rest >> place & 1 else 0
    told = (kind << 10 | rest) ^ 0b101010000010010
    for places in _format_places(width):
        for at, place in enumerate(places):
            modules[place] = bool(told >> (14 - at) & 1)
    return modules


def _flips(mask: int, row: int, column: int) -> bool:
    product = row * column
    return (
        (row + column) % 2,
        row % 2,
        column % 3,
        (row + column) % 3,
        (row // 2 + column // 3) % 2,
        product % 2 + product % 3,
        (product % 2 + product % 3) % 2,
        ((row + column) % 2 + product % 3) % 2,
    )[mask] == 0


def _penalty(modules: Modules, width: int) -> int:
    """How hard it is to read: long runs, blocks, what looks like a corner, and too much of one shade."""
    lines = ["".join("01"[modules[row, column]] for column in range(width)) for row in range(width)]
    lines += ["".join(line[column] for line in lines) for column in range(width)]
    total = 0
    for line in lines:
        run = 1
        for before, now in zip(line, f"{line[1:]}-", strict=True):
            if before == now:
                run += 1
                continue
            total += run - 2 if run >= 5 else 0
            run = 1
        total += 40 * sum(line.startswith(("10111010000", "00001011101"), at) for at in range(width - 10))
    rows = lines[:width]
    for upper, lower in pairwise(rows):
        total += 3 * sum(upper[at : at + 2] + lower[at : at + 2] in ("0000", "1111") for at in range(width - 1))
    dark = sum(modules.values()) * 100 / len(modules)
    return total + 10 * int(abs(dark - 50) // 5)
