"""Keys of endpoints: from the environment, else from the keyring of the operating system. Never from a file."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from duckflow.errors import UsageError
from duckflow.llm.endpoints import Endpoint
from duckflow.state.known_keys import remember_key
from duckflow.system_keyring import KEYRING_SERVICE, read_keyring


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
