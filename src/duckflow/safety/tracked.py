"""Which files git knows."""

import asyncio
import contextlib
from collections.abc import Sequence

# A repository's own settings must not start programs while we only look.
QUIET = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat")
SECONDS = 2.0


async def tracked_files(folder: str, paths: Sequence[str]) -> frozenset[str]:
    """Those of the paths that are tracked; none where there is no repository or no git."""
    if not paths:
        return frozenset()
    command = ("git", *QUIET, "ls-files", "-z", "--", *(f":(literal){path}" for path in paths))
    with contextlib.suppress(OSError, TimeoutError):
        git = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            listed, _ = await asyncio.wait_for(git.communicate(), SECONDS)
        finally:
            if git.returncode is None:
                git.kill()
        return frozenset(listed.decode("utf-8", "surrogateescape").split("\0")) - {""}
    return frozenset()
