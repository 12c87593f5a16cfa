"""HTTP over real connections: proxies, certificates, connections used again, servers that misbehave."""

import asyncio
import datetime
import gzip
import ipaddress
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from duckflow.http import BadRequest, ConnectTimeout, HttpClient, HttpError, NotConnected, ProxyFailed

PLAIN = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(autouse=True)
def no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@asynccontextmanager
async def serving(talk: Talk, certificate: ssl.SSLContext | None = None) -> AsyncGenerator[int]:
    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            await talk(reader, writer)
        writer.close()

    server = await asyncio.start_server(guarded, "127.0.0.1", 0, ssl=certificate)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def answering(*answers: bytes, heads: list[str] | None = None) -> Talk:
    """Starts a server that gives these answers, one a request, on each connection; then it hangs up."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            if heads is not None:
                heads.append(head)
            await reader.readexactly(_length(head))
            writer.write(answer)
            await writer.drain()

    return talk


def _length(head: str) -> int:
    return next((int(line.split(":")[1]) for line in head.lower().split("\r\n") if line.startswith("content-l")), 0)


def proxying(heads: list[str], refuse: str = "") -> Talk:
    """Starts a proxy that makes tunnels, and passes plain http requests on to the server."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        heads.append(head.decode())
        method, target = head.decode().split(" ", 2)[:2]
        if refuse:
            writer.write(f"HTTP/1.1 {refuse}\r\ncontent-length: 0\r\n\r\n".encode())
            await writer.drain()
            return
        place = target.removeprefix("http://").split("/")[0]
        inward, outward = await asyncio.open_connection(*place.split(":"))
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            outward.write(head)
        await asyncio.wait(
            [asyncio.create_task(_pass_on(reader, outward)), asyncio.create_task(_pass_on(inward, writer))],
            return_when=asyncio.FIRST_COMPLETED,
        )
        outward.close()

    return talk


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


@pytest.fixture(scope="module")
def own_certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes a certificate of this machine that nobody else trusts, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("certificate") / "own.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(secret + certificate.public_bytes(serialization.Encoding.PEM))
    return path


def encrypted(own_certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own_certificate)
    return context


async def ask(address: str, by_proxy: bool = True, seconds: float = 10.0) -> bytes:
    async with HttpClient(address, {}, seconds, by_proxy) as client:
        return await (await client.send("POST", "/v1/x", b"{}")).body()


async def test_a_proxy_of_the_environment_gets_plain_http_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    heads: list[str] = []
    async with serving(answering(PLAIN, heads=heads)) as port, serving(proxying(seen)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://du%40ck:s:cret@127.0.0.1:{proxy}")
        assert await ask(f"http://127.0.0.1:{port}") == b"hello"
        assert f"POST http://127.0.0.1:{port}/v1/x HTTP/1.1" in seen[0]
        assert "proxy-authorization: Basic ZHVAY2s6czpjcmV0" in seen[0]
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        assert await ask(f"http://127.0.0.1:{port}") == b"hello"
        monkeypatch.delenv("NO_PROXY")
        assert await ask(f"http://127.0.0.1:{port}", by_proxy=False) == b"hello"
    assert len(seen) == 1 and len(heads) == 3


async def test_https_goes_through_a_tunnel_and_is_encrypted_in_it(
    monkeypatch: pytest.MonkeyPatch, own_certificate: Path
) -> None:
    seen: list[str] = []
    monkeypatch.setenv("SSL_CERT_FILE", str(own_certificate))
    async with serving(answering(PLAIN), encrypted(own_certificate)) as port, serving(proxying(seen)) as proxy:
        monkeypatch.setenv("ALL_PROXY", f"127.0.0.1:{proxy}")
        assert await ask(f"https://localhost:{port}") == b"hello"
    assert seen[0].startswith(f"CONNECT localhost:{port} HTTP/1.1")


@pytest.mark.parametrize("address", ["socks5://127.0.0.1:9", "http://"])
async def test_a_proxy_of_another_kind_is_refused(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("HTTPS_PROXY", address)
    with pytest.raises(ProxyFailed):
        await ask("https://localhost:1")


async def test_a_proxy_that_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(proxying([], refuse="407 Proxy Authentication Required")) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy}")
        with pytest.raises(ProxyFailed, match="407"):
            await ask("https://localhost:1")


async def test_only_certificates_of_known_authorities_are_taken(
    monkeypatch: pytest.MonkeyPatch, own_certificate: Path
) -> None:
    async with serving(answering(PLAIN), encrypted(own_certificate)) as port:
        with pytest.raises(NotConnected) as caught:
            await ask(f"https://localhost:{port}")
        assert isinstance(caught.value.__cause__, ssl.SSLCertVerificationError)
        monkeypatch.setenv("SSL_CERT_FILE", str(own_certificate))
        assert await ask(f"https://localhost:{port}") == b"hello"
        assert await ask(f"https://127.0.0.1:{port}") == b"hello"


async def test_a_host_that_was_looked_up_before_keeps_its_name(
    monkeypatch: pytest.MonkeyPatch, own_certificate: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(own_certificate))
    heads: list[str] = []
    seen: list[str] = []
    talk = answering(PLAIN, heads=heads)
    async with serving(talk, encrypted(own_certificate)) as port, serving(proxying(seen)) as proxy:
        for _ in range(2):
            address = f"https://localhost:{port}"
            async with HttpClient(address, {}, 10, by_proxy=True, at=("127.0.0.1", port)) as client:
                assert await (await client.send("GET", "/")).body() == b"hello"
            monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy}")
    assert all(f"host: localhost:{port}" in head for head in heads)
    assert seen[0].startswith(f"CONNECT 127.0.0.1:{port} HTTP/1.1")


async def test_a_connection_that_the_server_has_closed_is_not_used_again() -> None:
    async with (
        serving(answering(PLAIN, PLAIN)) as port,
        HttpClient(f"http://127.0.0.1:{port}", {}, 10, by_proxy=False) as client,
    ):
        for _ in range(5):
            assert await (await client.send("GET", "/")).body() == b"hello"
            await asyncio.sleep(0.01)


async def test_an_answer_that_was_not_read_to_its_end_costs_the_connection_only() -> None:
    heads: list[str] = []
    async with (
        serving(answering(PLAIN, PLAIN, heads=heads)) as port,
        HttpClient(f"http://127.0.0.1:{port}", {}, 10, by_proxy=False) as client,
    ):
        (await client.send("GET", "/")).close()
        assert await (await client.send("GET", "/")).body() == b"hello"
    assert len(heads) == 2


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + PLAIN, b"hello"),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nx: y\r\n\r\n",
            b"hello",
        ),
        (b"HTTP/1.0 200 OK\r\n\r\nhello", b"hello"),
        (b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n" + gzip.compress(b"hello"), b"hello"),
    ],
    ids=["hints", "chunks", "until the end", "packed"],
)
async def test_every_way_to_answer_is_read(answer: bytes, body: bytes) -> None:
    async with serving(answering(answer)) as port:
        assert await ask(f"http://127.0.0.1:{port}") == body


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 40_000,
    ],
    ids=["nothing", "no http", "cut off", "cut off in a chunk", "not packed", "endless head"],
)
async def test_a_broken_answer_is_an_error(answer: bytes) -> None:
    async with serving(answering(answer)) as port:
        with pytest.raises(HttpError):
            await ask(f"http://127.0.0.1:{port}")


@pytest.mark.parametrize(
    ("address", "headers"),
    [
        ("http://127.0.0.1:99999", {}),
        ("http://[::1", {}),
        ("", {}),
        ("127.0.0.1:80", {}),
        ("ftp://127.0.0.1", {}),
        ("http://127.0.0.1:1", {"authorization": "Bearer a\r\nb: c"}),
        ("http://127.0.0.1:1", {"authorization": "Bearer 鍵"}),
    ],
)
async def test_an_invalid_request_is_an_error(address: str, headers: dict[str, str]) -> None:
    async with HttpClient(address, headers, 10, by_proxy=True) as client:
        with pytest.raises(BadRequest):
            await client.send("GET", "/")


@pytest.mark.parametrize("host", ["a..b", "a" * 64, "nobody.invalid"])
async def test_an_unknown_host_is_an_error(host: str) -> None:
    with pytest.raises(NotConnected) as caught:
        await ask(f"http://{host}")
    assert "Errno" not in str(caught.value)


async def test_characters_that_an_address_cannot_hold_are_escaped() -> None:
    heads: list[str] = []
    async with (
        serving(answering(PLAIN, heads=heads)) as port,
        HttpClient(f"http://127.0.0.1:{port}/モデル", {}, 10, by_proxy=False) as client,
    ):
        await (await client.send("GET", "/a b?x=%20")).body()
    assert heads[0].startswith("GET /%E3%83%A2%E3%83%87%E3%83%AB/a%20b?x=%20 HTTP/1.1\r\n")


async def test_a_refusal_that_comes_before_all_was_sent_is_read() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\nconnection: close\r\n\r\nbig")
        await writer.drain()
        await reader.read(10_000_000)

    async with serving(talk) as port, HttpClient(f"http://127.0.0.1:{port}", {}, 10, by_proxy=False) as client:
        answer = await client.send("POST", "/", b"x" * 100_000)
        assert answer.status == 413 and await answer.body() == b"big"


async def test_a_silent_server_times_out(own_certificate: Path) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10_000)
        await asyncio.sleep(1)

    async with serving(silent) as port:
        with pytest.raises(ConnectTimeout):
            await ask(f"https://127.0.0.1:{port}", seconds=0.2)
