"""Where models are served: the known endpoints, and the user's own."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from duckflow.errors import UsageError
from duckflow.llm.settings import EndpointSettings, WireName
from duckflow.state.known_keys import remember_key
from duckflow.system_keyring import KEYRING_SERVICE, read_keyring

BEDROCK_REGION = "us-east-1"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Endpoint(NamedTuple):
    """An address that serves models, and the habits of whoever serves them."""

    name: str
    base_url: str = ""
    key_names: tuple[str, ...] = ()
    """Environment variables that may hold the key; the first that is set wins."""
    model: str = ""
    """The model to use when none is named; empty: the first one it lists."""
    wire: WireName = "chat"
    key_needed: bool = True
    in_keyring: bool = True
    """Whether a key stored under this name is meant for this address."""
    window: int = 0
    reply_limit: str = "max_tokens"
    """What the endpoint calls the largest number of tokens of a reply."""
    extra: Mapping[str, Any] = MappingProxyType({})
    """What is added to every request."""
    tools: bool = False
    """Its models are known to call tools; elsewhere it is tried with the first request."""
    cache_key: bool = False
    """Takes a key by which requests with the same beginning find each other."""
    cache_marks: str = ""
    """The beginning of the names of models that keep only what is marked in their cache."""
    short_ids: bool = False
    """Ids of calls have nine letters and digits."""
    found_by_key: bool = False
    """It is used where its key lies in the environment and nothing else is said."""
    listed_as: str = ""
    """What it is called in the table of models, if something else."""
    also: tuple[str, ...] = ()
    """What other programs (LiteLLM, models.dev) call it."""

    @property
    def where(self) -> str:
        """The address as shown to people, without anything that may be a secret."""
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
        lists: dict[str, Any] = {field: tuple(row.get(field, ())) for field in ("key_names", "also")}
        yield Endpoint(name, **row | lists)


KNOWN: tuple[Endpoint, ...] = tuple(_known())
"""The rows of `endpoints.json`."""
KEYED: tuple[str, ...] = tuple(endpoint.name for endpoint in KNOWN if endpoint.found_by_key)
"""Endpoints that are used when their key lies in the environment, in this order."""
SERVERS: tuple[str, ...] = tuple(endpoint.name for endpoint in KNOWN if endpoint.is_loopback)
"""Local servers that are looked for, in this order."""
OTHER_NAMES = {other: endpoint.name for endpoint in KNOWN for other in endpoint.also}


def catalogue(own: Mapping[str, EndpointSettings], environ: Mapping[str, str]) -> dict[str, Endpoint]:
    """All endpoints by name: the known ones, moved by the environment, then changed and added to by the settings."""
    found = {endpoint.name: _moved(endpoint, environ) for endpoint in KNOWN}
    for name, given in own.items():
        if name not in found and not given.base_url:
            raise UsageError("model.endpoint_without_address", name=name)
        found[name] = _changed(found.get(name) or Endpoint(name, key_needed=bool(given.key_env)), given)
    return found


def _changed(endpoint: Endpoint, given: EndpointSettings) -> Endpoint:
    if given.base_url:
        # A key is for the address it was made for: another address gets only the key that is named for it.
        url = checked_address(given.base_url, f"llm.endpoints.{endpoint.name}.base_url")
        known = bool(endpoint.base_url)
        endpoint = _at_other_address(endpoint, url)._replace(key_names=(), in_keyring=not known)
    if given.key_env:
        endpoint = endpoint._replace(key_names=(given.key_env,), key_needed=True)
    return endpoint._replace(
        model=given.model or endpoint.model,
        window=given.window or endpoint.window,
        wire=given.wire or endpoint.wire,
    )


def _at_other_address(endpoint: Endpoint, url: str) -> Endpoint:
    """Another server: whether it wants a key and what it serves is not known. OpenAI's newer wire few others speak."""
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
            moved = _at_other_address(endpoint, url)
            return moved._replace(model="", in_keyring=False, reply_limit="max_tokens")
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
    """The address without a slash at its end; a UsageError where it is none."""
    url = url.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise UsageError("model.bad_address", origin=origin)
    return url


def _ollama_url(host: str) -> str:
    """The address behind OLLAMA_HOST, which may lack scheme and port, and may be where the server listens."""
    parts = urlsplit(checked_address(host if "://" in host else f"http://{host}", "OLLAMA_HOST"))
    name = parts.hostname or "127.0.0.1"
    if name in ("0.0.0.0", "::"):
        name = "127.0.0.1"
    port = parts.port or (443 if parts.scheme == "https" else 80 if "://" in host else 11434)
    return f"{parts.scheme}://{f'[{name}]' if ':' in name else name}:{port}{parts.path.rstrip('/')}/v1"


@dataclass(frozen=True, slots=True)
class Key:
    """A secret and where it came from. It never shows itself, and nothing that is stored shows it."""

    secret: str = field(repr=False)
    source: str

    def __post_init__(self) -> None:
        remember_key(self.secret)


TYPED = "typed"
"""The source of a key that the user has just typed."""


def find_key(endpoint: Endpoint, environ: Mapping[str, str]) -> Key | None:
    """From the environment, else as it was stored with `keyring set duckflow ENDPOINT`."""
    key = key_in_environment(endpoint, environ)
    secret = read_keyring(endpoint.name) if key is None and may_be_stored(endpoint) else ""
    return usable_key(secret, f"keyring {KEYRING_SERVICE} {endpoint.name}") if secret else key


def may_be_stored(endpoint: Endpoint) -> bool:
    """Whether the keyring is asked for its key at all."""
    return endpoint.in_keyring and not endpoint.is_loopback


def key_in_environment(endpoint: Endpoint, environ: Mapping[str, str]) -> Key | None:
    for name in endpoint.key_names:
        if secret := environ.get(name, "").strip():
            return usable_key(secret, name)
    return None


def usable_key(secret: str, source: str) -> Key:
    """The key, or a UsageError where it could not be sent."""
    # A key goes into a header; the library's own complaint about a strange character would print the whole key.
    if not secret.isascii() or not secret.isprintable() or " " in secret:
        raise UsageError("model.key_malformed_typed" if source == TYPED else "model.key_malformed", source=source)
    return Key(secret, source)
