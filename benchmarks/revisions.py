"""The sources of another revision of this repository, without a checkout that git has to remember."""

import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]


def unpack(revision: str, folder: Path, part: str = "src/duckflow") -> None:
    """Puts this part of the revision into the folder; with an empty `part`, all of it."""
    packed = subprocess.run(["git", "archive", revision, *part.split()], cwd=TOP, check=True, capture_output=True)
    folder.mkdir(parents=True, exist_ok=True)
    # Python's own reader of archives is safe only from 3.11.4 on.
    subprocess.run(["tar", "-x", "-C", folder], input=packed.stdout, check=True)


def is_here(revision: str) -> bool:
    """Says whether this clone has the revision; a shallow one may not."""
    command = ["git", "cat-file", "-e", f"{revision}^{{commit}}"]
    return subprocess.run(command, cwd=TOP, check=False, capture_output=True).returncode == 0
