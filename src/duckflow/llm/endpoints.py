"""The endpoints that serve models, both the known ones and the user's own, and the keys for them."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from duckflow.errors import UsageError
from duckflow.llm.settings import EndpointSettings, WireName
from duckflow.system_keyring import KEYRING_SERVICE, read_keyring
from duckflow.whole_text import AROUND_KEY, remember_key

BEDROCK_REGION = "us-east-1"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Endpoint(NamedTuple):
    """An address that serves models, and the peculiarities of that service."""

    name: str
    base_url: str = ""
    key_names: tuple[str, ...] = ()
    """Environment variables that may hold the key; the first one that is set wins."""
    model: str = ""
    """The model to use when none is named; empty means the first one that the endpoint lists."""
    wire: WireName = "chat"
    key_needed: bool = True
    in_keyring: bool = True
    """True if a key stored in the keyring under the endpoint's name is meant for this address."""
    window: int = 0
    reply_limit: str = "max_tokens"
    """The endpoint's name for the field that limits the tokens of a reply."""
    extra: Mapping[str, Any] = MappingProxyType({})
    """Further fields that are added to every request."""
    tools: bool = False
    """True if the endpoint's models are known to call tools. At other endpoints the first request tries tool calls."""
    cache_key: bool = False
    """True if the endpoint takes a cache key, which routes requests with the same beginning to the same cache."""
    cache_marks: str = ""
    """The prefix of the names of models whose cache keeps only marked parts of a prompt."""
    short_ids: bool = False
    """True if the endpoint accepts only ids of calls that have nine letters and digits."""
    found_by_key: bool = False
    """True if the endpoint is used when the user names no model and its key is in the environment."""
    listed_as: str = ""
    """The endpoint's name in the table of models, if that is a different name."""
    key_starts: tuple[str, ...] = ()
    """The beginnings that only keys of this endpoint have."""
    also: tuple[str, ...] = ()
    """Names that other programs (LiteLLM, models.dev) use for the endpoint."""

    @property
    def where(self) -> str:
        """The address as shown to people, without parts that may be a secret."""
        parts = urlsplit(self.base_url)
        if not parts.hostname:
            return self.name
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "") + parts.path.rstrip("/")

    @property
    def is_loopback(self) -> bool:
        host = urlsplit(self.base_url).hostname or ""
        return host in LOOPBACK or host.startswith("127.")


def _known() -> Iterator[Endpoint]:
    table: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("endpoints.json").read_text("utf-8"))
    for name, row in table.items():
        lists: dict[str, Any] = {field: tuple(row.get(field, ())) for field in ("key_names", "key_starts", "also")}
        yield Endpoint(name, **row | lists)


KNOWN: tuple[Endpoint, ...] = tuple(_known())
"""The endpoints that Duckflow knows, from `endpoints.json`."""
KEYED: tuple[str, ...] = tuple(endpoint.name for endpoint in KNOWN if endpoint.found_by_key)
"""Endpoints that are used when their key is in the environment, in this order."""
SERVERS: tuple[str, ...] = tuple(endpoint.name for endpoint in KNOWN if endpoint.is_loopback)
"""Names of the local servers that Duckflow looks for, in this order."""
OTHER_NAMES = {other: endpoint.name for endpoint in KNOWN for other in endpoint.also}


def catalogue(own: Mapping[str, EndpointSettings], environ: Mapping[str, str]) -> dict[str, Endpoint]:
    """Returns all endpoints by name: the known endpoints with addresses from the environment, and the endpoints of the
    settings."""
    endpoints = {endpoint.name: _moved(endpoint, environ) for endpoint in KNOWN}
    for name, settings in own.items():
        if name not in endpoints and not settings.base_url:
            raise UsageError("model.endpoint_without_address", name=name)
        endpoints[name] = _changed(endpoints.get(name) or Endpoint(name, key_needed=bool(settings.key_env)), settings)
    return endpoints


def _changed(endpoint: Endpoint, settings: EndpointSettings) -> Endpoint:
    if settings.base_url:
        # A key is meant for one address. Another address gets only the key that the settings name for it.
        url = checked_address(settings.base_url, f"llm.endpoints.{endpoint.name}.base_url")
        had_address = bool(endpoint.base_url)
        endpoint = _at_other_address(endpoint, url)._replace(key_names=(), in_keyring=not had_address)
    if settings.key_env:
        endpoint = endpoint._replace(key_names=(settings.key_env,), key_needed=True)
    return endpoint._replace(
        model=settings.model or endpoint.model,
        window=settings.window or endpoint.window,
        wire=settings.wire or endpoint.wire,
    )


def _at_other_address(endpoint: Endpoint, url: str) -> Endpoint:
    """Returns the endpoint at another server. Whether that server needs a key, and what it can do, is unknown. The
    `chat` wire takes the place of `responses`, which few servers except OpenAI's own speak."""
    wire = "chat" if endpoint.wire == "responses" else endpoint.wire
    return endpoint._replace(base_url=url, key_needed=False, tools=False, wire=wire, cache_key=False)


def _moved(endpoint: Endpoint, environ: Mapping[str, str]) -> Endpoint:
    match endpoint.name:
        case "openai":
            name = "OPENAI_BASE_URL" if environ.get("OPENAI_BASE_URL", "").strip() else "OPENAI_API_BASE"
            if not environ.get(name, "").strip():
                return endpoint
            url = checked_address(environ[name], name)
            if url == endpoint.base_url:
                return endpoint
            moved_endpoint = _at_other_address(endpoint, url)
            return moved_endpoint._replace(model="", in_keyring=False, reply_limit="max_tokens")
        case "anthropic" if address := environ.get("ANTHROPIC_BASE_URL", "").strip():
            return endpoint._replace(base_url=checked_address(address, "ANTHROPIC_BASE_URL"), in_keyring=False)
        case "azure" if address := environ.get("AZURE_OPENAI_ENDPOINT", "").strip():
            return endpoint._replace(base_url=checked_address(address, "AZURE_OPENAI_ENDPOINT") + "/openai/v1")
        case "bedrock" if region := environ.get("AWS_REGION", "").strip():
            return endpoint._replace(base_url=endpoint.base_url.replace(BEDROCK_REGION, region))
        case "ollama" if environ.get("OLLAMA_HOST", "").strip():
            return endpoint._replace(base_url=_ollama_url(environ["OLLAMA_HOST"].strip()))
        case _:
            return endpoint


def checked_address(url: str, origin: str) -> str:
    """Returns the address without a slash at its end. Raises a UsageError if it is not an HTTP address."""
    url = url.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        is_web_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_web_address = False
    if not is_web_address:
        raise UsageError("model.bad_address", origin=origin)
    return url


def _ollama_url(host: str) -> str:
    """Returns the address for OLLAMA_HOST. That variable may lack scheme and port, or name all interfaces (0.0.0.0)."""
    parts = urlsplit(checked_address(host if "://" in host else f"http://{host}", "OLLAMA_HOST"))
    name = parts.hostname or "127.0.0.1"
    if name in ("0.0.0.0", "::"):
        name = "127.0.0.1"
    port = parts.port or (443 if parts.scheme == "https" else 80 if "://" in host else 11434)
    return f"{parts.scheme}://{f'[{name}]' if ':' in name else name}:{port}{parts.path.rstrip('/')}/v1"


@dataclass(frozen=True, slots=True)
class Key:
    """A secret and its source. The repr hides the secret, and `remember_key` keeps it out of everything that is
    stored."""

    secret: str = field(repr=False)
    source: str

    def __post_init__(self) -> None:
        remember_key(self.secret)


TYPED = "typed"
"""The source of a key that the user has just typed."""


_keys_in_memory: dict[str, Key] = {}
"""Keys that the user has typed and that could not be stored, by the address that they are meant for."""


def keep_in_memory(where: str, key: Key) -> None:
    """Keeps the key that was typed for an address (`Endpoint.where`) until the process ends, so that it is not asked
    for a second time."""
    _keys_in_memory[where] = key


def keys_in_memory() -> dict[str, Key]:
    return dict(_keys_in_memory)


def find_key(endpoint: Endpoint, environ: Mapping[str, str]) -> Key | None:
    """Returns the key that the user has typed into this process, else the key from the environment, else the key stored
    with `keyring set duckflow ENDPOINT`."""
    if typed_key := _keys_in_memory.get(endpoint.where):
        return typed_key
    key = key_in_environment(endpoint, environ)
    stored_key = read_keyring(endpoint.name) if key is None and may_be_stored(endpoint) else ""
    return usable_key(stored_key, f"keyring {KEYRING_SERVICE} {endpoint.name}") if stored_key else key


def may_be_stored(endpoint: Endpoint) -> bool:
    """Says whether the keyring may hold a key for this endpoint."""
    return endpoint.in_keyring and not endpoint.is_loopback


def key_in_environment(endpoint: Endpoint, environ: Mapping[str, str]) -> Key | None:
    for name in endpoint.key_names:
        if key := environ.get(name, "").strip():
            return usable_key(key, name)
    return None


def usable_key(secret: str, source: str) -> Key:
    """Returns the key, without what was copied along with it. Raises a UsageError if the key has characters that cannot
    be sent."""
    if copied := re.fullmatch(AROUND_KEY, secret.strip()):
        secret = copied[2]
    # A key goes into a header. The HTTP library's own error about a strange character would print the whole key.
    if not secret.isascii() or not secret.isprintable() or " " in secret:
        raise UsageError("model.key_malformed_typed" if source == TYPED else "model.key_malformed", source=source)
    return Key(secret, source)
