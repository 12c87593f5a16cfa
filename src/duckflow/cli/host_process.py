"""Starts a process that holds a conversation (keeps it open) without a terminal."""

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from duckflow.cli.setup import Setup
from duckflow.remote.protocol import SUFFIX

TRIES, TRY_SECONDS = 300, 0.1
What = Literal["jobs", "again", "new", "led"]
"""The task of the process: `jobs` continues a session's jobs; `again` opens an old session; `new` opens a new session
with this name; `led` keeps a session open only until stdin is closed."""


def host_flags(setup: Setup, mode: str) -> list[str]:
    """Returns flags that give the new process the model, mode and limits of this one."""
    limits = setup.settings.agent
    flags = {
        "--model": setup.model_flag,
        "--mode": mode,
        "--max-budget-usd": limits.max_budget_usd or "",
        "--max-tokens": limits.max_tokens or "",
    }
    arguments = flag_words(flags)
    arguments += ["--trust"] * setup.trust + ["--yes-really"] * setup.really
    return arguments + [word for added_folder in setup.added for word in ("--add-dir", str(added_folder))]


def flag_words(flags: Mapping[str, object]) -> list[str]:
    """Returns each flag and its value as one word, so that a value that looks like a flag stays a value."""
    return [f"{flag}={value}" for flag, value in flags.items() if value]


def start_host(journal: Path, what: What, flags: list[str], folder: Path | None = None) -> bool:
    """Starts a process that holds a session which no other process holds. Returns True if the session can then be
    joined, or if the process has already done its work."""
    command = [sys.executable, "-P", "-m", "duckflow", "attach", "--host", what, *flags, journal.stem]
    null_stream = subprocess.DEVNULL
    process = subprocess.Popen(
        command, stdin=null_stream, stdout=null_stream, stderr=null_stream, start_new_session=True, cwd=folder
    )
    for _ in range(TRIES):
        if journal.with_suffix(SUFFIX).exists() or process.poll() is not None:
            break
        time.sleep(TRY_SECONDS)
    return not process.poll()
