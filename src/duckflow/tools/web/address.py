"""Web addresses: their parts, and the IP address behind a host name. A host name is looked up once, its IP address is
checked, and the connection then uses that IP address."""

import asyncio
import contextlib
import ipaddress
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlsplit

from duckflow.errors import ToolError
from duckflow.http import PORTS, proxy_for

if TYPE_CHECKING:
    import ssl

INNER_NAMES = (".local", ".localhost", ".internal", ".intranet", ".lan", ".home", ".corp", ".arpa")
"""Endings of names that are not on the public internet."""
LONGEST = 4000
URL_SIGNS = "%/:?#[]@!$&'()*+,;=~-._"

Ipv4, Ipv6 = ipaddress.IPv4Network, ipaddress.IPv6Network
# The networks are listed one by one, because Python's `is_global` differs between versions and is partly wrong.
NOT_PUBLIC_4 = tuple(
    Ipv4(network)
    for network in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16",
        "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
        "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    )
)  # fmt: skip
PUBLIC_6 = Ipv6("2000::/3")
"""The public IPv6 addresses. Loopback, link-local, private, mapped and translated (64:ff9b::/96) addresses, and
multicast are outside of this network."""
NOT_PUBLIC_6 = tuple(map(Ipv6, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
"""Networks within PUBLIC_6 that are not public: some carry an IPv4 address (Teredo, 6to4), some are for examples."""


class WebAddress(NamedTuple):
    """An address that may be fetched, in the form in which it is sent."""

    scheme: str
    host: str
    port: int
    path: str
    """The path and the query."""

    @property
    def site(self) -> str:
        """Returns the host, with its port where that is not the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.site}{self.path}"

    def same_site(self, other: "WebAddress") -> bool:
        """Says whether the user's yes to this address covers the other one. Both need the same host, with or without
        `www`, and https never changes to http."""
        names = (self.host.removeprefix("www."), other.host.removeprefix("www."))
        ports = self.port == other.port or (self.port, other.port) == (80, 443)
        return names[0] == names[1] and ports and (other.scheme == "https" or self.scheme == "http")


def read_address(url: str) -> WebAddress:
    """Reads an address that the model or a redirect gave. An address that could be read in two ways is refused."""
    url = url.strip()
    if len(url) > LONGEST or any(char.isspace() or not char.isprintable() or char == "\\" for char in url):
        raise _bad(url, "it is too long, or has spaces, backslashes or control characters in it")
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        port, name = parts.port, (parts.hostname or "").rstrip(".")
        host = name if ":" in name else name.encode("idna").decode("ascii").lower()
    except ValueError:
        raise _bad(url, "it cannot be read") from None
    if parts.scheme not in PORTS:
        raise _bad(url, "only http and https can be fetched")
    if not host or "%" in host or "@" in parts.netloc:
        raise _bad(url, "it needs a plain host, without a name or password before it")
    path = quote(parts.path or "/", safe=URL_SIGNS) + (f"?{quote(parts.query, safe=URL_SIGNS)}" if parts.query else "")
    return WebAddress(parts.scheme, host, PORTS[parts.scheme] if port is None else port, path)


def _bad(url: str, why: str) -> ToolError:
    return ToolError(f"{url[:200]!r} is no address to fetch: {why}.", "web.bad_address", url=url[:200])


def is_public(address: str) -> bool:
    """Says whether an address belongs to the internet at large, and neither to this machine nor to its network."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv4Address):
        return not any(ip in network for network in NOT_PUBLIC_4)
    return ip.scope_id is None and ip in PUBLIC_6 and not any(ip in network for network in NOT_PUBLIC_6)


Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


async def look_up(host: str, port: int) -> Sequence[str]:
    """Looks a name up in a thread that nobody waits for, so that a slow name server does not delay Duckflow's end."""
    loop = asyncio.get_running_loop()
    lookup_future: asyncio.Future[Sequence[str]] = loop.create_future()

    def tell(addresses: Sequence[str]) -> None:
        if not lookup_future.done():
            lookup_future.set_result(addresses)

    def seek() -> None:
        addresses: list[str] = []
        with contextlib.suppress(OSError, UnicodeError):
            addresses = [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, addresses)

    threading.Thread(target=seek, daemon=True).start()
    return await lookup_future


class Network(NamedTuple):
    """The way in which names are looked up and connections are made."""

    resolve: Resolve = look_up
    dial: Callable[[str, int], tuple[str, int]] = lambda address, port: (address, port)
    """A function that takes a checked address and returns the address that is really connected to."""
    trust: "ssl.SSLContext | None" = None
    """The certificates that are trusted. None means those of the usual authorities."""
    by_name: bool = False
    """True if a proxy gets the names and looks them up itself."""


async def pinned(address: WebAddress, network: Network) -> tuple[str, int] | None:
    """Returns the one IP address to connect to; None if a proxy looks the name up. A name that leads to any private
    address is refused, even if it also leads to public ones."""
    addresses = list(dict.fromkeys(await network.resolve(address.host, address.port)))
    is_proxied = network.by_name and proxy_for(urlsplit(address.url)) is not None
    if not addresses and is_proxied and "." in address.host and not address.host.endswith(INNER_NAMES):
        return None
    if not addresses:
        for_model = (
            f"{address.host} was not found. Check the name; there may be no network, or only a proxy knows names."
        )
        raise ToolError(for_model, "web.not_found", host=address.host)
    if private_address := next((ip for ip in addresses if not is_public(ip)), None):
        for_model = (
            f"{address.host} leads to {private_address}, which is not on the public internet: not fetched. "
            "Do not try to get around it; the user can open it themselves."
        )
        raise ToolError(for_model, "web.private", host=address.host, address=private_address)
    return None if is_proxied else network.dial(addresses[0], address.port)
