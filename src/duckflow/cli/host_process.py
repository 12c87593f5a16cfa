"""Starts a process that holds a conversation (keeps it open) without a terminal."""

import asyncio
import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from duckflow.cli.setup import Setup
from duckflow.llm.endpoints import TYPED, Key, keep_in_memory, keys_in_memory
from duckflow.remote.protocol import SUFFIX
from duckflow.state.data import as_table
from duckflow.whole_text import read_json

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
    joined, or if the process has already done its work. The process gets the keys that were typed into this one."""
    command = [sys.executable, "-P", "-m", "duckflow", "attach", "--host", what, *flags, journal.stem]
    null_stream, (source, target) = subprocess.DEVNULL, os.pipe()
    process = subprocess.Popen(
        command, stdin=source, stdout=null_stream, stderr=null_stream, start_new_session=True, cwd=folder
    )
    os.close(source)
    os.set_blocking(target, False)
    _key_pipes.add(target)
    pass_on_keys()
    for _ in range(TRIES):
        if journal.with_suffix(SUFFIX).exists() or process.poll() is not None:
            break
        time.sleep(TRY_SECONDS)
    return not process.poll()


STDIN = 0
LONGEST_KEYS = 65536
_key_pipes: set[int] = set()
"""The pipes to the processes that this process has started. A pipe is on no disk, and keys in it stand in no command
line and no environment, which other programs could read."""


def pass_on_keys() -> None:
    """Hands the keys that were typed into this process to the processes that it has started."""
    line = json.dumps({where: key.secret for where, key in keys_in_memory().items()}).encode() + b"\n"
    for pipe in list(_key_pipes):
        try:
            os.write(pipe, line)
        except OSError:
            _key_pipes.discard(pipe)
            os.close(pipe)


def take_keys() -> None:
    """Takes the keys from the process that has started this one, now and whenever it gets another one. Nothing that
    this process starts may read them, so stdin becomes empty."""
    if not stat.S_ISFIFO(os.fstat(STDIN).st_mode):
        return
    source, buffer = os.dup(STDIN), bytearray()
    with Path(os.devnull).open("rb") as empty_file:
        os.dup2(empty_file.fileno(), STDIN)
    loop = asyncio.get_running_loop()

    def read() -> bool:
        """Reads what has come, and says whether more may come."""
        part = os.read(source, LONGEST_KEYS)
        buffer.extend(part)
        line, separator, rest = bytes(buffer).rpartition(b"\n")
        if separator:
            buffer[:] = rest
            _keep_keys(line.rpartition(b"\n")[2])
        if not part:
            loop.remove_reader(source)
            os.close(source)
        return bool(part)

    while read():
        if not buffer:
            loop.add_reader(source, read)
            break


def _keep_keys(line: bytes) -> None:
    for where, secret in as_table(read_json(line.decode("utf-8", "replace"))).items():
        keep_in_memory(where, Key(str(secret), TYPED))
