"""`duckflow mcp add`, `login` and `test` against the conformance suite's OAuth server; what is printed is opened as a
browser would. The suite runs `python conformance_login.py ADDRESS`."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import keyring.backend

DUCKFLOW = [sys.executable, "-m", "duckflow", "mcp"]


class FileRing(keyring.backend.KeyringBackend):
    """A keyring in a file, for several processes."""

    priority: Any = 1

    def _path(self, name: str) -> Path:
        return Path(os.environ["RING"]) / name.encode().hex()

    def get_password(self, service: str, username: str) -> str | None:
        path = self._path(username)
        return path.read_text() if path.exists() else None

    def set_password(self, service: str, username: str, password: str) -> None:
        self._path(username).write_text(password)

    def delete_password(self, service: str, username: str) -> None:
        self._path(username).unlink()


def main(url: str) -> None:
    subprocess.run([*DUCKFLOW, "add", "suite", url], check=True)
    refused = subprocess.run([*DUCKFLOW, "test", "suite"], check=False, capture_output=True, text=True)
    assert refused.returncode == 1 and "duckflow mcp login suite" in refused.stdout, refused
    with subprocess.Popen([*DUCKFLOW, "login", "suite"], stdout=subprocess.PIPE, text=True) as login:
        assert login.stdout
        address = next(line.strip() for line in login.stdout if line.startswith("http"))
        assert "close this page" in httpx.get(address, follow_redirects=True).text
        assert "Logged in to suite" in login.stdout.read()
    assert login.returncode == 0
    tried = subprocess.run([*DUCKFLOW, "test", "suite"], check=False, capture_output=True, text=True)
    assert tried.returncode == 0 and "✓ suite" in tried.stdout, tried


if __name__ == "__main__":
    main(sys.argv[-1])
