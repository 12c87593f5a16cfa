"""Keys come from the environment, else from a keyring, and are never shown."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from duckflow.errors import UsageError
from duckflow.llm.endpoints import Endpoint, Key, find_key, key_in_environment
from duckflow.whole_text import without_keys

ENDPOINT = Endpoint("duckland", "https://ducks.example/v1", ("DUCK_KEY", "OLD_DUCK_KEY"))
RING = """
import threading
from keyring.backend import KeyringBackend

class Ring(KeyringBackend):
    priority = 1

    def get_password(self, service, username):
        {body}

    def set_password(self, service, username, password):
        raise NotImplementedError
"""
LOOK = """
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.endpoints import find_key
key = find_key(Endpoint("duckland", {url!r}, ("DUCK_KEY",)), {environ!r})
print(key.secret + " from " + key.source if key else "none")
"""


def look(folder: Path, body: str, environ: dict[str, str] | None = None, url: str = "https://ducks.example") -> str:
    """Returns the key that a fresh process finds with this keyring."""
    (folder / "duckring.py").write_text(RING.format(body=body))
    done = subprocess.run(
        [sys.executable, "-c", LOOK.format(url=url, environ=environ or {})],
        env={**os.environ, "PYTHON_KEYRING_BACKEND": "duckring.Ring", "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.strip()


def test_the_first_variable_that_is_set_wins() -> None:
    assert key_in_environment(ENDPOINT, {"OLD_DUCK_KEY": "old"}) == Key("old", "OLD_DUCK_KEY")
    assert find_key(ENDPOINT, {"OLD_DUCK_KEY": "old", "DUCK_KEY": "new\n"}) == Key("new", "DUCK_KEY")
    assert key_in_environment(ENDPOINT, {"DUCK_KEY": "  "}) is None


def test_a_key_is_never_shown() -> None:
    key = Key("sk-1234", "DUCK_KEY")
    assert "sk-1234" not in f"{key!r} {key} {[key]}"
    assert without_keys("you sent sk-1234!") == "you sent ***!"
    assert Key("x", "DUCK_KEY") and Key("lm-studio", "DUCK_KEY")
    assert without_keys("x of lm-studio is exceeded") == "x of lm-studio is exceeded", "a word for any"


@pytest.mark.parametrize("secret", ["鍵", "two words", "line\nbreak", "esc\x1b[0m"])
def test_a_malformed_key_is_refused_without_being_shown(secret: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_key(ENDPOINT, {"DUCK_KEY": secret})
    assert caught.value.values == {"source": "DUCK_KEY"}
    assert secret not in str(caught.value)


def test_the_keyring_comes_after_the_environment(tmp_path: Path) -> None:
    body = 'return "sk-ring" if (service, username) == ("duckflow", "duckland") else None'
    assert look(tmp_path, body) == "sk-ring from keyring duckflow duckland"
    assert look(tmp_path, body, {"DUCK_KEY": "sk-env"}) == "sk-env from DUCK_KEY"


def test_a_server_on_this_machine_gets_no_key_from_the_keyring(tmp_path: Path) -> None:
    assert look(tmp_path, 'return "sk-ring"', url="http://127.0.0.1:1/v1") == "none"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("body", ["raise RuntimeError('no desktop')", "return None", "threading.Event().wait()"])
def test_a_keyring_that_fails_or_hangs_is_ignored(tmp_path: Path, body: str) -> None:
    assert look(tmp_path, body) == "none"
