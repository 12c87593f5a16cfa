"""The sources of another revision of this repository, without a checkout that git has to remember."""

import io
import subprocess
import tarfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]


def unpack(revision: str, folder: Path) -> None:
    """Puts the `src/duckflow` of that revision into the folder."""
    packed = subprocess.run(["git", "archive", revision, "src/duckflow"], cwd=TOP, check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")


def is_here(revision: str) -> bool:
    """Says whether this clone has the revision; a shallow one may not."""
    command = ["git", "cat-file", "-e", f"{revision}^{{commit}}"]
    return subprocess.run(command, cwd=TOP, check=False, capture_output=True).returncode == 0
