"""The keyring of the operating system. It must answer quickly: a keyring that is locked, broken or waits for somebody
to type counts as missing."""

import contextlib
import threading
from collections.abc import Callable
from typing import Any

KEYRING_SERVICE = "duckflow"
KEYRING_SECONDS = 2.0
ASKS_THE_USER = ("keyring.backends.kwallet", "keyrings.alt.file")


def write_keyring(name: str, secret: str) -> bool:
    """Stores a secret and says whether the keyring returns it. Without a desktop some keyrings lose secrets."""

    def store() -> str:
        import keyring

        keyring.set_password(KEYRING_SERVICE, name, secret)
        return _stored(name) or ""

    return _in_time(store) == secret


def read_keyring(name: str) -> str:
    """Returns the secret of this name; an empty text if the keyring does not answer at once."""
    return _in_time(lambda: _stored(name) or "").strip()


def _in_time(look: Callable[[], str]) -> str:
    """Asks the keyring in a thread and waits a moment: it may be locked, broken or waiting for somebody to type. Each
    desktop's keyring fails in another way; every failure counts as having no key."""
    secrets: list[str] = []

    def work() -> None:
        with contextlib.suppress(Exception):
            secrets.append(look())

    seeking_thread = threading.Thread(target=work, daemon=True)
    seeking_thread.start()
    seeking_thread.join(KEYRING_SECONDS)
    return secrets[0] if secrets else ""


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
