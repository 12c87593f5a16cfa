"""Without the link nobody sees or does anything, wherever they try from."""

import asyncio
import os
import stat
from pathlib import Path
from typing import Any

import httpx
import pytest

from duckflow.web.access import MOST_REQUESTS, ServedAt
from duckflow.web.serving import DOING, MOST_CONNECTIONS, SILENT_SECONDS
from duckflow.web.visitors import TRIES, Visitors
from tests.journeys.story import decide, respond
from tests.web.site import ID, Browser, Site, Talk

HELLO = decide(respond("Hello."), step="PLANNING")


async def test_without_a_cookie_there_is_nothing_to_see(tmp_path: Path) -> None:
    async with Talk(tmp_path, [HELLO]) as talk, Site(talk.paths) as site:
        stranger, known = Browser(site.origin), await site.visit()
        paths = [known.top, f"{known.top}api/me", f"{known.top}page/index.html", "/api/sessions", "/", "/?token=wrong"]
        for path in [*paths, f"{known.top}api/sessions/{ID}/events", "/favicon.ico", "//", "/.."]:
            answer = await stranger.http.get(path)
            assert answer.status_code == 401, path
            assert list(answer.json()) == ["error"] and ID not in answer.text
            shown = await stranger.http.get(path, headers={"accept": "text/html,*/*"})
            assert shown.status_code == 401 and "<h1>Duckflow</h1>" in shown.text and ID not in shown.text
        answer = await stranger.http.post(
            f"{known.top}api/sessions/{ID}/say", json={"text": "!touch x"}, headers={"origin": site.origin}
        )
        assert answer.status_code == 401
        stranger.http.cookies.set(f"duckflow-{site.place.port}", "guessed", path="/")
        assert (await stranger.http.get(f"{known.top}api/me")).status_code == 401
        assert not talk.session.state.messages


async def test_the_link_becomes_a_cookie_that_only_the_page_has(tmp_path: Path) -> None:
    async with Talk(tmp_path, [HELLO]) as talk, Site(talk.paths) as site:
        answer = await Browser(site.origin).http.get(f"/?token={site.visitors.token}")
        cookie = answer.headers["set-cookie"]
        assert answer.status_code == 303 and cookie.startswith(f"duckflow-{site.place.port}=")
        place = answer.headers["location"]
        assert len(place) > 12 and f"Path={place};" in cookie
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Domain" not in cookie
        assert site.visitors.token not in cookie


async def test_a_link_for_a_command_line_leads_in_once(tmp_path: Path) -> None:
    async with Talk(tmp_path, [HELLO]) as talk, Site(talk.paths) as site:
        token = site.visitors.make_once()
        codes = [(await Browser(site.origin).http.get(f"/?token={token}")).status_code for _ in range(2)]
        assert codes == [303, 401]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
async def test_a_link_on_a_command_line_leads_nobody_else_in(tmp_path: Path) -> None:
    """Other users see command lines, and may be faster than a browser that starts."""
    async with Talk(tmp_path, [HELLO]) as talk, Site(talk.paths) as site:
        token, port = site.visitors.make_once(), site.place.port
        asks = f"GET /?token={token} HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\n\\r\\n"
        script = f"exec 3<>/dev/tcp/127.0.0.1/{port}; printf '{asks}' >&3; head -n 1 <&3"
        other = await asyncio.create_subprocess_exec(
            "bash", "-c", script, stdout=asyncio.subprocess.PIPE, user=65534, cwd="/"
        )
        assert b" 401 " in (await other.communicate())[0]
        assert (await Browser(site.origin).http.get(f"/?token={token}")).status_code == 303


HOSTS = (
    "evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:{port}", "localhost",
    "[::1]:{port}", "0.0.0.0:{port}", "2130706433:{port}", "127.1:{port}", "user@127.0.0.1:{port}",
    "127.0.0.1:{port}@evil.example", "LOCALHOST.evil:{port}", "",
)  # fmt: skip


async def test_a_name_that_was_bound_to_this_machine_is_refused(tmp_path: Path) -> None:
    """DNS rebinding: the browser has come to us, but believes that it talks to another site."""
    async with Talk(tmp_path, [HELLO]) as talk, Site(talk.paths) as site:
        known = await site.visit()
        for host in HOSTS:
            headers = {"host": host.format(port=site.place.port), "origin": site.origin}
            for path in ("/", f"{known.top}api/sessions", f"/?token={site.visitors.token}"):
                assert (await known.http.get(path, headers=headers)).status_code in (400, 421), (host, path)
            said = await known.http.post(f"{known.top}api/sessions/{ID}/say", json={"text": "hi"}, headers=headers)
            assert said.status_code in (400, 421), host
        assert not talk.session.state.messages


ORIGINS = (
    None, "null", "", "http://evil.example", "https://127.0.0.1:{port}", "http://127.0.0.1:1", "http://127.0.0.1",
    "http://localhost:{port}", "http://127.0.0.1:{port}.evil.example", "http://127.0.0.1:{port}/", "file://",
)  # fmt: skip
PATHS = [path.removeprefix("/api/").format(session=ID) for path in DOING]


async def test_another_origin_does_nothing(tmp_path: Path) -> None:
    async with Talk(tmp_path, [HELLO]) as talk, Site(talk.paths) as site:
        known = await site.visit()
        for origin in ORIGINS:
            headers = {} if origin is None else {"origin": origin.format(port=site.place.port)}
            for path in PATHS if origin is None else PATHS[:1]:
                body = {"text": "hi", "mode": "full-auto"}
                answer = await known.http.post(f"{known.top}api/{path}", json=body, headers=headers)
                assert answer.status_code == 403, (origin, path)
        assert not talk.session.state.messages


async def test_a_request_from_another_site_is_refused_even_with_the_cookie(tmp_path: Path) -> None:
    async with Talk(tmp_path, [HELLO]) as talk, Site(talk.paths) as site:
        known = await site.visit()
        for said in ("cross-site", "same-site", "strange"):
            headers = {"sec-fetch-site": said, "origin": site.origin}
            for path in (known.top, f"{known.top}api/me", f"/?token={site.visitors.token}"):
                assert (await known.http.get(path, headers=headers)).status_code == 403
            answer = await known.http.post(f"{known.top}api/sessions/{ID}/say", json={"text": "hi"}, headers=headers)
            assert answer.status_code == 403
        assert (await known.http.get(known.top, headers={"sec-fetch-site": "none"})).status_code == 200


async def test_a_request_with_two_hosts_is_refused(tmp_path: Path) -> None:
    async with Talk(tmp_path, [HELLO]) as talk, Site(talk.paths) as site:
        reader, writer = await asyncio.open_connection("127.0.0.1", site.place.port)
        ours = f"127.0.0.1:{site.place.port}"
        writer.write(f"GET / HTTP/1.1\r\nHost: {ours}\r\nHost: evil.example\r\n\r\n".encode())
        status = (await reader.readline()).split()[1]
        assert status in (b"400", b"421")
        writer.close()


async def test_every_answer_says_what_a_browser_may_do_with_it(tmp_path: Path) -> None:
    async with Talk(tmp_path, [HELLO]) as talk, Site(talk.paths) as site:
        known = await site.visit()
        answers = [
            await known.http.get(known.top),
            await known.http.get(f"{known.top}api/sessions"),
            await known.http.get("/"),
            await known.http.get(f"{known.top}nothing"),
            await known.http.put(f"{known.top}api/me", headers={"origin": site.origin}),
            await known.http.get("/", headers={"host": "evil.example"}),
        ]
        assert [answer.status_code for answer in answers] == [200, 200, 401, 404, 405, 421]
        for answer in answers:
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy and "script-src 'self';" in policy
            assert "frame-ancestors 'none'" in policy and "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "no-referrer"
            assert answer.headers["cache-control"] == "no-store"
            assert "access-control-allow-origin" not in answer.headers and "server" not in answer.headers


async def test_too_many_wrong_tokens_are_refused(tmp_path: Path) -> None:
    async with Talk(tmp_path, [HELLO]) as talk, Site(talk.paths) as site:
        stranger = Browser(site.origin)
        codes = [(await stranger.http.get(f"/?token=guess{n}")).status_code for n in range(TRIES + 2)]
        assert codes == [401] * TRIES + [429] * 2
        assert await site.visit(), "whoever has the link is not locked out by others who guess"


@pytest.mark.slow
async def test_connections_that_ask_nothing_are_ended(tmp_path: Path) -> None:
    """Anybody on the machine can open them, and there are only so many."""
    async with Talk(tmp_path, [HELLO]) as talk, Site(talk.paths) as site:
        refused = f"GET / HTTP/1.1\r\nHost: {site.place.authority}\r\n\r\n".encode()
        for begun in (b"", b"GET / HT", refused + b"G"):
            reader, writer = await asyncio.open_connection("127.0.0.1", site.place.port)
            writer.write(begun)
            await asyncio.wait_for(reader.read(), 4 * SILENT_SECONDS)
            writer.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "begun",
    [
        "",
        "G",
        "GET / HTTP/1.1\r\n",
        "GET / HTTP/1.1\r\nHost: {host}\r\nX-A: b\r\n",
        "GET / HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: {host}\r\n\r\nGET / HT",
        "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9\r\n\r\nab",
        "POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
    ],
)
async def test_connections_that_are_left_open_lock_nobody_out(tmp_path: Path, begun: str) -> None:
    async with Talk(tmp_path, [HELLO]) as talk, Site(talk.paths) as site:
        known = await site.visit()
        writers = list[asyncio.StreamWriter]()
        for _ in range(MOST_CONNECTIONS + 20):
            _, writer = await asyncio.open_connection("127.0.0.1", site.place.port)
            writer.write(begun.format(host=site.place.authority).encode())
            writers.append(writer)
        assert (await known.get("me")) and await site.visit()
        for writer in writers:
            writer.close()


async def test_too_many_requests_have_to_wait(tmp_path: Path) -> None:
    async with Talk(tmp_path, [HELLO]) as talk, Site(talk.paths) as site:
        known = await site.visit()

        async def post() -> int:
            headers = {"origin": site.origin}
            answer = await known.http.post(f"{known.top}api/sessions/{ID}/answer", json={}, headers=headers)
            return answer.status_code

        codes = await asyncio.gather(*(post() for _ in range(MOST_REQUESTS + 20)))
        assert codes.count(200) >= MOST_REQUESTS and codes.count(429) > 0


async def test_a_body_that_is_no_json_or_too_long_is_refused(tmp_path: Path) -> None:
    async with Talk(tmp_path, [HELLO]) as talk, Site(talk.paths) as site:
        known = await site.visit()
        path = f"{known.top}api/sessions/{ID}/say"
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            headers = {"origin": site.origin, "content-type": kind}
            assert (await known.http.post(path, content=b'{"text": "hi"}', headers=headers)).status_code == 415
        headers = {"origin": site.origin, "content-type": "application/json"}
        for broken in (b"{", b"[" * 100_000, b"\xff", b'{"text": NaN'):
            assert (await known.http.post(path, content=broken, headers=headers)).status_code == 415
        assert (await known.http.post(path, content=b"x" * (25 << 20), headers=headers)).status_code == 413
        strange: list[Any] = [b"[]", b'"text"', b'{"text": 7}', b'{"text": ["a"]}', b"null"]
        for body in strange:
            assert (await known.http.post(path, content=body, headers=headers)).json()["taken"] == "nothing"
        assert not talk.session.state.messages


async def test_only_a_whole_name_finds_a_session_and_only_the_page_is_served(tmp_path: Path) -> None:
    async with Talk(tmp_path, [HELLO]) as talk, Site(talk.paths) as site:
        known = await site.visit()

        async def status(path: str) -> int:
            """Requests the path unchanged, as no browser would send it."""
            return (await known.http.get(httpx.URL(site.origin).copy_with(raw_path=path.encode()))).status_code

        for name in ("..", "%2e%2e", "..%2f..%2fx", "*", "%3F", ID[:8], "x" * 300, "a%00b", "%ff"):
            assert await status(f"{known.top}api/sessions/{name}/record") == 404, name
        for path in ("page/../access.py", "page/%2e%2e/access.py", "page/..%2faccess.py", "page//etc/passwd", "x.py"):
            assert await status(f"{known.top}{path}") == 404, path


async def test_a_browser_finds_its_server_again_and_the_disk_tells_nobody_how(tmp_path: Path) -> None:
    async with Talk(tmp_path, [HELLO]) as talk:
        async with Site(talk.paths) as site:
            known = await site.visit()
            port, token = site.place.port, site.visitors.token
        async with Site(talk.paths, port) as site:
            assert (await known.http.get(f"{known.top}api/me")).status_code == 200
            assert (await Browser(site.origin).http.get(f"/?token={token}")).status_code == 401
        (kept,) = (talk.paths.data / "web").iterdir()
        cookie = known.http.cookies[f"duckflow-{port}"]
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert cookie not in kept.read_text() and token not in kept.read_text()
        everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        assert token.encode() not in everything and cookie.encode() not in everything


def test_a_list_of_visitors_that_cannot_be_read_lets_nobody_in(tmp_path: Path) -> None:
    for text in ("", "[]", "{", '{"visitors": 3}', '{"visitors": {"x": "y"}, "place": 1}', '{"place": "p"}'):
        path = tmp_path / "1.json"
        path.write_text(text)
        visitors = Visitors(path)
        assert not visitors.knows("x") and not visitors.knows("") and visitors.place


@pytest.mark.parametrize(
    ("served", "named", "ours"),
    [
        ("192.168.1.5", "192.168.1.5:80", True),
        ("192.168.1.5", "localhost:80", False),
        ("192.168.1.5", "192.168.1.6:80", False),
        ("0.0.0.0", "192.168.1.6:80", True),
        ("0.0.0.0", "0.0.0.0:80", False),
        ("0.0.0.0", "192.168.1.6:81", False),
        ("0.0.0.0", "evil.example:80", False),
        ("0.0.0.0", "evil.192.168.1.6:80", False),
        ("::1", "[::1]:80", True),
        ("::", "[fe80::1]:80", True),
        ("::", "evil:80", False),
        ("127.0.0.1", "localhost:80", True),
    ],
)
def test_only_addresses_of_this_machine_can_be_meant(served: str, named: str, ours: bool) -> None:
    assert ServedAt(served, 80).is_ours(named) is ours
