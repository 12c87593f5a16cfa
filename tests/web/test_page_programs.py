"""`duckflow web` when it cannot serve, the code for a phone, and pages that do not read their stream."""

import asyncio
from pathlib import Path

import pytest

from duckflow.cli.web import qr_lines
from duckflow.events.types import MessageAdded
from duckflow.state.message import Message
from duckflow.web.stream import UNREAD
from duckflow.web.watched import MOST_STREAMS
from tests.cli.shell import Shell
from tests.web.site import ID, Site, Talk

QR = """
█████████████████████████████████
█████████████████████████████████
████ ▄▄▄▄▄ █ ▄▄ █ ▀█▄█ ▄▄▄▄▄ ████
████ █   █ ██▄█▀▀ █▄▀█ █   █ ████
████ █▄▄▄█ █ ▀▀▄ ▄▀█▄█ █▄▄▄█ ████
████▄▄▄▄▄▄▄█ ▀▄█▄█▄▀▄█▄▄▄▄▄▄▄████
████▄▄▄█▀▄▄█ ▄█▄ █ ▀█▄ ▄▄▀█  ████
████▄▄▀ █ ▄ ▀▄ ▀ █▀▄██▀▄▄ ▄█▄████
████▄ ▄▄  ▄▄▄  ██▀▄ █  ████▀ ████
████▄▄▀  ▀▄▀▀▀▀▄██▀  ▄▄█▄▄▄█▄████
████▄▄██▄█▄█▀▀▀▄ ▄▄█ ▄▄▄ █▀▄▀████
████ ▄▄▄▄▄ █▀ █▀ ▄▄█ █▄█ ▄█▀▄████
████ █   █ ███ ██ ▄▄▄▄▄   ▀▀▄████
████ █▄▄▄█ █ ▀▄▄█▀█   ▀  ██▄▄████
████▄▄▄▄▄▄▄█▄█▄▄▄▄█▄▄▄███▄██▄████
█████████████████████████████████
█████████████████████████████████"""
"""Read by an independent reader (zxing-cpp)."""


@pytest.fixture
def bare(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_a_server_that_cannot_start_says_what_to_do(bare: Shell) -> None:
    cases = {"--qr": "--host", "--host=my.machine.example": "192.168.1.20", "--host=192.0.2.7": "--port"}
    for argument, told in cases.items():
        ran = bare.run("web", "--no-open", argument)
        assert ran.returncode == 2 and told in ran.stderr and not ran.stdout, argument


def test_without_its_parts_it_says_how_to_get_them(bare: Shell) -> None:
    (bare.work / "sitecustomize.py").write_text("import sys\nsys.modules['uvicorn'] = None\n")
    ran = bare.run("web", PYTHONPATH=str(bare.work), DUCKFLOW_LANG="ja")
    assert ran.returncode == 2 and "[web]'" in ran.stderr and "ページ" in ran.stderr


def test_a_link_is_a_code_that_a_phone_reads() -> None:
    assert qr_lines("http://10.0.0.1:4747/") == QR.strip().split("\n")


@pytest.mark.slow
async def test_a_page_that_does_not_read_is_cut_off_and_holds_nobody_up(tmp_path: Path) -> None:
    async with Talk(tmp_path, []) as talk, Site(talk.paths) as site:
        browser = await site.visit()
        reader, writer = await asyncio.open_connection("127.0.0.1", site.place.port, limit=1024)
        cookie = browser.http.cookies[f"duckflow-{site.place.port}"]
        host = f"Host: 127.0.0.1:{site.place.port}\r\nCookie: duckflow-{site.place.port}={cookie}"
        writer.write(f"GET {browser.top}api/sessions/{ID}/events HTTP/1.1\r\n{host}\r\n\r\n".encode())
        async with browser.reading() as steady:
            await steady.until(lambda: steady.numbers)
            piece = "x" * 200_000
            pieces = 4 * UNREAD // len(piece)
            for _ in range(pieces):
                talk.session.emit(MessageAdded(message=Message(role="user", text=piece)))
                await steady.until(lambda: steady.numbers[-1] == talk.session.number)
        data = b""
        async with asyncio.timeout(60):
            while not data.endswith(b"\r\n0\r\n\r\n"):
                data += await reader.read(1 << 20)
        assert len(data) < 3 * UNREAD
        writer.close()


async def test_there_are_only_so_many_streams(tmp_path: Path) -> None:
    async with Talk(tmp_path, []) as talk, Site(talk.paths) as site:
        browser = await site.visit()
        path = f"{browser.top}api/sessions/{ID}/events"
        waiting = [await browser.http.send(browser.http.build_request("GET", path), stream=True) for _ in range(80)]
        assert {answer.status_code for answer in waiting} == {200}
        others = await site.visit()
        more = [await others.http.send(others.http.build_request("GET", path), stream=True) for _ in range(30)]
        assert [answer.status_code for answer in more] == [200] * (MOST_STREAMS - 80) + [429] * (110 - MOST_STREAMS)
        for answer in (*waiting, *more):
            await answer.aclose()


async def test_streams_that_are_asked_for_at_once_are_counted_too(tmp_path: Path) -> None:
    async with Talk(tmp_path, []) as talk, Site(talk.paths) as site:
        browsers = [await site.visit() for _ in range(3)]
        asked = [
            browser.http.send(browser.http.build_request("GET", f"{browser.top}api/sessions/{ID}/events"), stream=True)
            for browser in browsers
            for _ in range(60)
        ]
        answers = await asyncio.gather(*asked)
        assert sorted(answer.status_code for answer in answers) == [200] * MOST_STREAMS + [429] * (180 - MOST_STREAMS)
        for answer in answers:
            await answer.aclose()
