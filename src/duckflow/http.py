"""HTTP/1.1: asyncio connects, h11 speaks the protocol, the environment names proxies and certificates.

httpx uses h11, too, but loading httpx takes a sixth of a headless turn.
"""

import asyncio
import os
import socket
import ssl
import sys
import zlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

import h11

from duckflow import __version__

KEEP_ALIVE_SECONDS = 30.0
NEXT_ADDRESS_SECONDS = 2.0
"""Seconds after which the next address of a host that has several addresses is tried."""
LARGEST_HEAD = 100 * 1024
READ_BYTES = 64 * 1024
PORTS = {"http": 80, "https": 443}
KEPT_SIGNS = "/%:@!$&'()*+,;=~?[]"
"""Characters of an address that are sent as they are."""
PACKED = ("gzip", "deflate", "x-gzip")


class HttpError(Exception):
    """An exchange failed: the connection broke, or the answer is no HTTP."""


class NotConnected(HttpError):
    """No connection could be made. The exception's cause says why."""


class ConnectTimeout(NotConnected):
    """No server answered at the address in time."""


class ProxyFailed(NotConnected):
    """The proxy refuses to work, or the address of the proxy makes no sense."""


class ProxyUnknown(ProxyFailed):
    """The proxy is of an unsupported kind, such as SOCKS. The exception's text names the kind."""


class BadRequest(HttpError):
    """The address or a header, such as the key, cannot be sent."""


class HttpAnswer:
    """The answer: status, headers with names in lower case, and the body in pieces, which can be read once."""

    def __init__(self, connection: "_Connection", head: h11.Response) -> None:
        self._connection = connection
        self.status = head.status_code
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yields the body, decompressed, in pieces of limited size, because a little compressed data may expand to very
        much."""
        encoding = self.headers.get("content-encoding", "").strip().lower()
        if encoding not in (*PACKED, "identity", ""):
            raise HttpError(f"packed as {encoding[:20]}, which was not asked for")
        # Some servers pack the answer though the request forbids it; the flag 32 detects the format.
        unpacker = zlib.decompressobj(32 + zlib.MAX_WBITS) if encoding in PACKED else None
        try:
            while isinstance(event := await self._connection.next_event(), h11.Data):
                packed_bytes = bytes(event.data)
                while unpacker and packed_bytes:
                    yield unpacker.decompress(packed_bytes, READ_BYTES)
                    packed_bytes = unpacker.unconsumed_tail
                if packed_bytes:
                    yield packed_bytes
        except zlib.error as error:
            raise HttpError(str(error)) from error

    async def body(self) -> bytes:
        """Returns the whole body, and closes the answer."""
        try:
            async with aclosing(self.pieces()) as body_pieces:
                return b"".join([piece async for piece in body_pieces])
        finally:
            self.close()

    def close(self) -> None:
        """Ends the exchange, even in the middle. A connection is used again if its answer was read to the end."""
        self._connection.release()


class _Connection:
    """One connection to a server, and the request and answer on it."""

    def __init__(self, client: "HttpClient", reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._client = client
        self._reader = reader
        self._writer = writer
        self._protocol = h11.Connection(h11.CLIENT, LARGEST_HEAD)
        self._idle_since = 0.0

    @property
    def usable(self) -> bool:
        idle_seconds = asyncio.get_running_loop().time() - self._idle_since
        return idle_seconds < KEEP_ALIVE_SECONDS and not (self._reader.at_eof() or self._writer.is_closing())

    async def send(self, request: h11.Request, content: bytes) -> HttpAnswer:
        try:
            request_parts = [self._protocol.send(request), self._protocol.send(h11.Data(content)) if content else b""]
            self._writer.write(b"".join(filter(None, (*request_parts, self._protocol.send(h11.EndOfMessage())))))
        except h11.LocalProtocolError as error:
            raise BadRequest(str(error)) from error
        # A server may refuse a request before it has read all of it. In that case its answer is already there.
        with suppress(OSError):
            await self._writer.drain()
        while isinstance(event := await self.next_event(), h11.InformationalResponse):
            continue
        if not isinstance(event, h11.Response):
            raise HttpError("the connection ended without an answer")
        return HttpAnswer(self, event)

    async def next_event(self) -> Any:
        try:
            while (event := self._protocol.next_event()) is h11.NEED_DATA:
                self._protocol.receive_data(await self._reader.read(READ_BYTES))
        except (OSError, h11.RemoteProtocolError) as error:
            raise HttpError(str(error)) from error
        return event

    async def go_inside(self, host: str, certificates: ssl.SSLContext | None) -> None:
        """Continues inside the encrypted tunnel that a proxy has made."""
        if certificates:
            await self._writer.start_tls(certificates, server_hostname=host)
        self._protocol = h11.Connection(h11.CLIENT, LARGEST_HEAD)

    def release(self) -> None:
        if (self._protocol.our_state, self._protocol.their_state) == (h11.DONE, h11.DONE):
            self._protocol.start_next_cycle()
            self._idle_since = asyncio.get_running_loop().time()
            self._client.idle.append(self)
        else:
            self.close()

    def close(self) -> None:
        self._writer.transport.abort()


class HttpClient:
    """Sends requests to one address. A connection is used again while the server keeps it open."""

    def __init__(
        self,
        address: str,
        headers: Mapping[str, str],
        connect_seconds: float,
        by_proxy: bool,
        at: tuple[str, int] | None = None,
        certificates: ssl.SSLContext | None = None,
    ) -> None:
        """`at` is the IP address and port to connect to, if the name was looked up before. The server's certificate
        must still be valid for the name. `certificates` are the trusted ones, if not those of the usual authorities."""
        self._address = address
        self._at = at
        self._headers = {"user-agent": f"duckflow/{__version__}", "accept-encoding": "identity", **headers}
        self._connect_seconds = connect_seconds
        self._by_proxy = by_proxy
        self._certificates = certificates
        self.idle: list[_Connection] = []

    async def __aenter__(self) -> "HttpClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def send(
        self, method: str, path: str, content: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> HttpAnswer:
        """Returns the answer as soon as its head has come. The caller must close the answer."""
        url, proxy, request = self._request(method, path, content, headers or {})
        while self.idle:
            if (connection := self.idle.pop()).usable:
                break
            connection.close()
        else:
            connection = await self._connect(url, proxy)
        try:
            return await connection.send(request, content)
        except BaseException:
            connection.close()
            raise

    def _request(
        self, method: str, path: str, content: bytes, headers: Mapping[str, str]
    ) -> tuple[SplitResult, SplitResult | None, h11.Request]:
        """Returns the parsed address, the proxy, and the head of the request."""
        try:
            url = urlsplit(self._address + path)
            if url.scheme not in PORTS or not url.hostname:
                raise ValueError(f"{self._address} is no address of a server")
            proxy = proxy_for(url) if self._by_proxy else None
            fields = {"host": _host_and_port(url), **self._headers, **headers}
            if content or method != "GET":
                fields["content-length"] = str(len(content))
            request_target = quote(url._replace(scheme="", netloc="", fragment="").geturl() or "/", KEPT_SIGNS)
            if proxy and url.scheme == "http" and not self._at:
                request_target = f"http://{fields['host']}{request_target}"
                fields |= _proxy_key(proxy)
            return url, proxy, h11.Request(method=method, target=request_target, headers=list(fields.items()))
        except (ValueError, h11.LocalProtocolError) as error:
            raise BadRequest(str(error)) from error

    async def aclose(self) -> None:
        while self.idle:
            self.idle.pop().close()

    async def _connect(self, url: SplitResult, proxy: SplitResult | None) -> _Connection:
        certificates = await self._trusted() if url.scheme == "https" else None
        try:
            async with asyncio.timeout(self._connect_seconds):
                if proxy is None:
                    return await self._open(url, certificates, self._at)
                connection = await self._open(proxy, await self._trusted() if proxy.scheme == "https" else None)
                if certificates or self._at:
                    await _tunnel(connection, url, proxy, self._at)
                await connection.go_inside(url.hostname or "", certificates)
                return connection
        except TimeoutError as error:
            raise ConnectTimeout(str(error)) from error
        except (OSError, UnicodeError) as error:
            raise NotConnected(_reason(error)) from error

    async def _open(
        self, url: SplitResult, certificates: ssl.SSLContext | None, at: tuple[str, int] | None = None
    ) -> _Connection:
        """Tries the addresses of a host one after the other. The event loop's own way, which tries several at once,
        leaks sockets when cancelled."""
        host, port = at or (_ascii(url), url.port or PORTS[url.scheme])
        name = url.hostname if certificates else None
        loop = asyncio.get_running_loop()
        # The host is passed as bytes. The library would encode a text itself, and load the encoding rules for that.
        address_rows = await loop.getaddrinfo(host.encode(), port, type=socket.SOCK_STREAM)
        *other_addresses, last_address = (str(address_row[4][0]) for address_row in address_rows)
        for address in other_addresses:
            with suppress(OSError):
                async with asyncio.timeout(NEXT_ADDRESS_SECONDS):
                    streams = await asyncio.open_connection(address, port, ssl=certificates, server_hostname=name)
                    return _Connection(self, *streams)
        streams = await asyncio.open_connection(last_address, port, ssl=certificates, server_hostname=name)
        return _Connection(self, *streams)

    async def _trusted(self) -> ssl.SSLContext:
        """Returns the certificates of authorities. Loading them takes 30 ms, so it happens in a thread."""
        if self._certificates is None:
            self._certificates = await asyncio.to_thread(_trusted_certificates)
        return self._certificates


def _trusted_certificates() -> ssl.SSLContext:
    if os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"):
        return ssl.create_default_context()
    import certifi

    return ssl.create_default_context(cafile=certifi.where())


def proxy_for(url: SplitResult) -> SplitResult | None:
    """Returns the proxy that the user's environment names for this address."""
    if sys.platform != "darwin" and not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    address = proxies.get(url.scheme) or proxies.get("all") or ""
    if not address or proxy_bypass(_host_and_port(url)):
        return None
    proxy = urlsplit(address if "://" in address else f"http://{address}")
    if proxy.scheme not in PORTS or not proxy.hostname:
        raise ProxyUnknown(f"{proxy.scheme} proxies are not spoken, only http and https")
    return proxy


def _reason(error: OSError | UnicodeError) -> str:
    """Returns the system's words for the error, without its number and without the address."""
    if isinstance(error, ssl.SSLError | UnicodeError):
        return str(error)
    if isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    return os.strerror(error.errno) if error.errno else str(error)


async def _tunnel(connection: _Connection, url: SplitResult, proxy: SplitResult, at: tuple[str, int] | None) -> None:
    host, port = at or (_ascii(url), url.port or PORTS[url.scheme])
    address = f"{_bracketed(host)}:{port}"
    request = h11.Request(method="CONNECT", target=address, headers=[("host", address), *_proxy_key(proxy).items()])
    answer = await connection.send(request, b"")
    if not answer.is_success:
        connection.close()
        raise ProxyFailed(f"{proxy.hostname}: {answer.status}")


def _proxy_key(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    from base64 import b64encode

    credentials = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"proxy-authorization": f"Basic {b64encode(credentials.encode()).decode()}"}


def _ascii(url: SplitResult) -> str:
    host = url.hostname or ""
    return host if host.isascii() else host.encode("idna").decode()


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _host_and_port(url: SplitResult) -> str:
    return _bracketed(_ascii(url)) + (f":{url.port}" if url.port else "")
