"""Keys of endpoints: from the environment, else from the keyring of the operating system. Never from a file."""

import contextlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from duckflow.errors import UsageError
from duckflow.llm.endpoints import Endpoint
from duckflow.state.known_keys import remember_key

KEYRING_SERVICE = "duckflow"
KEYRING_SECONDS = 2.0
ASKS_THE_USER = ("keyring.backends.kwallet", "keyrings.alt.file")


@dataclass(frozen=True, slots=True)
class Key:
    """A secret and where it came from. It never shows itself, and nothing that is stored shows it."""

    secret: str = field(repr=False)
    source: str

    def __post_init__(self) -> None:
        remember_key(self.secret)


def find_key(endpoint: Endpoint, environ: Mapping[str, str]) -> Key | None:
    key = key_in_environment(endpoint, environ)
    if key is None and may_be_stored(endpoint):
        key = key_in_keyring(endpoint)
    return key


def may_be_stored(endpoint: Endpoint) -> bool:
    """Whether the keyring is asked for its key at all."""
    return endpoint.in_keyring and not endpoint.is_loopback


def key_in_environment(endpoint: Endpoint, environ: Mapping[str, str]) -> Key | None:
    for name in endpoint.key_names:
        if secret := environ.get(name, "").strip():
            return usable_key(secret, name)
    return None


def key_in_keyring(endpoint: Endpoint) -> Key | None:
    """A key stored with `keyring set duckflow ENDPOINT`."""
    secret = read_keyring(endpoint.name)
    return usable_key(secret, f"keyring {KEYRING_SERVICE} {endpoint.name}") if secret else None


def write_keyring(name: str, secret: str) -> bool:
    """Stores a secret and says whether the keyring gives it back: without a desktop some take it and never do."""

    def store() -> str:
        import keyring

        keyring.set_password(KEYRING_SERVICE, name, secret)
        return _stored(name) or ""

    return _in_time(store) == secret


def read_keyring(name: str) -> str:
    """The secret of this name; nothing where that cannot be told at once."""
    return _in_time(lambda: _stored(name) or "").strip()


def _in_time(look: Callable[[], str]) -> str:
    """A keyring may be locked, broken or waiting for somebody to type: it gets a moment in a thread of its own. It can
    fail in as many ways as there are desktops; then there is simply no key."""
    secrets: list[str] = []

    def work() -> None:
        with contextlib.suppress(Exception):
            secrets.append(look())

    seeker = threading.Thread(target=work, daemon=True)
    seeker.start()
    seeker.join(KEYRING_SECONDS)
    return secrets[0] if secrets else ""


def usable_key(secret: str, source: str) -> Key:
    """The key, or a UsageError where it could not be sent."""
    # A key goes into a header; the library's own complaint about a strange character would print the whole key.
    if not secret.isascii() or not secret.isprintable() or " " in secret:
        raise UsageError("model.key_malformed", source=source)
    return Key(secret, source)


def _stored(name: str) -> str | None:
    try:
        import keyring
    except ImportError:
        return None
    backend: Any = keyring.get_keyring()
    for store in getattr(backend, "backends", [backend]):
        if not _would_ask(store) and (secret := store.get_password(KEYRING_SERVICE, name)):
            return str(secret)
    return None


def _would_ask(store: Any) -> bool:
    module = type(store).__module__
    return module in ASKS_THE_USER or (module == "keyring.backends.SecretService" and _locked())


def _locked() -> bool:
    import secretstorage

    with contextlib.closing(secretstorage.dbus_init()) as connection:
        return bool(secretstorage.Collection(connection).is_locked())
