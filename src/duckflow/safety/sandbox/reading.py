"""Starts a program that reads the files of one folder and no others.

A program that walks through folders finds its way by names, and a command in the background can swap a folder for a
link between two of its steps. So the kernel holds it (Landlock): a file that lies elsewhere is not opened for it,
whatever led there."""

import os
import re
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

from duckflow.programs.launch import Launch, on_lifeline

LOADER_CACHE = "/etc/ld.so.cache"
LIST_LIBRARIES = {"LD_TRACE_LOADED_OBJECTS": "1"}
LIBRARY = re.compile(r"(?m)^\s+(?:\S+ => )?(/.+) \(0x[0-9a-f]+\)$")
SECONDS = 5.0


@lru_cache(1)
def can_keep_in() -> bool:
    """Says whether the kernel of this machine can keep a program in a folder."""
    from duckflow.safety.sandbox.landlock import version

    return sys.platform == "linux" and version() > 0


def kept_in(launch: Launch, folder: Path) -> Launch:
    """Returns a launch of the same program that can read this folder, and of all other files only those that the
    program itself consists of."""
    from duckflow.safety.sandbox.landlock import READ_DIR, READ_FILE

    rights = READ_FILE | READ_DIR
    rules = ((rights, str(folder)), *((READ_FILE, path) for path in _files_of(launch.argv[0])))
    return on_lifeline(launch, handled=(rights, 0, 0), rules=rules)


@lru_cache(8)
def _files_of(program: str) -> tuple[str, ...]:
    """Returns the files that the system reads to start a program. The loader names its libraries; a program without any
    tells its version instead."""
    words, null_device = (program, "--version"), subprocess.DEVNULL
    try:
        told = subprocess.run(
            words,
            stdin=null_device,
            stdout=subprocess.PIPE,
            stderr=null_device,
            env=LIST_LIBRARIES,
            cwd="/",
            timeout=SECONDS,
            check=False,
        )
        libraries = LIBRARY.findall(os.fsdecode(told.stdout))
    except (OSError, subprocess.TimeoutExpired):
        libraries = []
    return tuple(map(os.path.realpath, (program, LOADER_CACHE, *libraries)))
