"""The program that runs the local model, installed beside Duckflow when the user wants it."""

import asyncio
import importlib
import sys
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec

from duckflow.errors import ProviderUnreachable
from duckflow.llm.discover import EMBEDDED_PACKAGE

INSTALL_SECONDS = 600.0
EXTRA = "local"


def runtime_missing() -> bool:
    return find_spec(EMBEDDED_PACKAGE) is None


async def install_runtime() -> None:
    """With the pip of this very environment; where there is none, the user is told what to type."""
    if find_spec("pip") is None:
        raise ProviderUnreachable("local.no_pip", reason="pip?")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *_requirements()),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(INSTALL_SECONDS):
            _, complaint = await process.communicate()
    except TimeoutError:
        raise ProviderUnreachable("local.no_pip", reason=f"{INSTALL_SECONDS:.0f} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    importlib.invalidate_caches()
    if process.returncode or runtime_missing():
        lines = complaint.decode("utf-8", "replace").strip().splitlines()
        raise ProviderUnreachable("local.no_pip", reason=lines[-1] if lines else str(process.returncode))


def _requirements() -> list[str]:
    """What the extra asks for, as it is written in the package itself."""
    try:
        wanted = [line.partition(";") for line in requires("duckflow") or []]
    except PackageNotFoundError:
        wanted = []
    return [name.strip() for name, _, marker in wanted if f'"{EXTRA}"' in marker or f"'{EXTRA}'" in marker] or [
        EMBEDDED_PACKAGE
    ]
