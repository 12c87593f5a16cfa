"""`duckflow web`: the conversations of this machine in a browser."""

import asyncio
import contextlib
import importlib.util
import ipaddress
import socket
import sys

from duckflow.cli.parser import Options
from duckflow.cli.signals import interrupting_signals
from duckflow.errors import UsageError
from duckflow.i18n.words import Words
from duckflow.store.paths import Paths
from duckflow.ui.streams import print_out

PORT, TRIES = 4747, 20
LOOPBACK = "127.0.0.1"
PARTS = ("starlette", "uvicorn")


def run_web(options: Options, words: Words, paths: Paths) -> int:
    require_parts()
    if options.qr and not options.host:
        raise UsageError("serve.qr_alone")
    try:
        host = str(ipaddress.ip_address(options.host or LOOPBACK))
    except ValueError:
        raise UsageError("serve.no_address", host=options.host) from None
    from duckflow.web.serving import listen

    try:
        listening = listen(host, options.port or PORT, 1 if options.port else TRIES)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise UsageError("serve.no_port", host=host, port=options.port or PORT, reason=reason) from None
    asyncio.run(_serve(listening, options, words, paths))
    return 0


async def _serve(listening: socket.socket, options: Options, words: Words, paths: Paths) -> None:
    """Until a signal ends it."""
    from duckflow.cli.shelf import SessionShelf
    from duckflow.web.serving import place_of, serve
    from duckflow.web.visitors import Visitors

    place = place_of(listening)
    visitors = Visitors(paths.data / "web" / f"{place.port}.json")
    serving = asyncio.create_task(serve(listening, SessionShelf(paths, options.only), visitors, words))
    for number in interrupting_signals():
        asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
    print_out(words("serve.address", address=f"http://{place.authority}/?token={visitors.token}"))
    if not place.is_loopback:
        print_out(words("serve.open_host", host=place.host))
    sys.stdout.flush()
    with contextlib.suppress(asyncio.CancelledError):
        await serving


def require_parts() -> None:
    """Say what is missing before anything is begun."""
    if not all(importlib.util.find_spec(part) for part in PARTS):
        raise UsageError("serve.missing")
