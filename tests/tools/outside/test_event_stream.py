"""Streams of servers at an address: lines end as the standard says, or are refused before they fill the memory."""

import json
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from duckflow.rpc import RpcError
from duckflow.tools.outside.http import LONGEST_EVENT, EventStream

MESSAGE = {"a": "one\u2028two\u0085three\x0bfour \ud800"}


async def read(*pieces: bytes) -> list[Any]:
    async def body() -> AsyncGenerator[bytes]:
        for piece in pieces:
            yield piece

    return [message async for message in EventStream().read(httpx.Response(200, content=body()))]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
async def test_lines_end_as_the_standard_says_wherever_the_pieces_end(end: str) -> None:
    written = json.dumps(MESSAGE, ensure_ascii=False).encode("utf-8", "replace")
    whole = b": hello\ndata: " + written.replace(b", ", b",\ndata: ") + b"\n\n"
    sent = whole.replace(b"\n", end.encode()) * 2
    wanted = [{"a": MESSAGE["a"].replace("\ud800", "?")}] * 2
    assert await read(sent) == await read(*(sent[at : at + 1] for at in range(len(sent)))) == wanted


@pytest.mark.parametrize("line", [b"data: ", b": ", b"id: ", b""])
async def test_a_line_without_end_is_refused_before_it_fills_the_memory(line: bytes) -> None:
    sent = 0

    async def body() -> AsyncGenerator[bytes]:
        nonlocal sent
        yield line
        while sent < 4 * LONGEST_EVENT:
            sent += 1 << 20
            yield b"A" * (1 << 20)

    with pytest.raises(RpcError, match="without end"):
        async for _ in EventStream().read(httpx.Response(200, content=body())):
            pass
    assert sent <= LONGEST_EVENT + (1 << 20)
