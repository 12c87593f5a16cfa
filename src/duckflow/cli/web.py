"""`duckflow web`: shows the conversations of this machine in a browser."""

import asyncio
import contextlib
import importlib.util
import ipaddress
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.cli.parser import Options
from duckflow.cli.run import read_language
from duckflow.cli.signals import ended_by_signals
from duckflow.errors import UsageError
from duckflow.i18n.words import Words
from duckflow.programs.find import environment_outside
from duckflow.store.paths import Paths
from duckflow.ui.streams import print_out

if TYPE_CHECKING:
    from duckflow.cli.shelf import SessionShelf
    from duckflow.web.access import ServedAt

PORT, TRIES = 4747, 20
LOOPBACK = "127.0.0.1"
PARTS = ("starlette", "uvicorn", "segno", "mdit_py_plugins")
HALVES = {(0, 0): "█", (0, 1): "▀", (1, 0): "▄", (1, 1): " "}


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
        listening_socket = listen(host, options.port or PORT, 1 if options.port else TRIES)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise UsageError("serve.no_port", host=host, port=options.port or PORT, reason=reason) from None
    asyncio.run(_serve(listening_socket, options, words, paths))
    return 0


async def _serve(listening: socket.socket, options: Options, words: Words, paths: Paths) -> None:
    """Serves the page until a signal ends it."""
    from duckflow.cli.fleet_page import page_fleet
    from duckflow.cli.page_models import PageModels
    from duckflow.cli.shelf import SessionShelf
    from duckflow.web.serving import place_of, reached_at, serve
    from duckflow.web.visitors import Visitors

    web_address, shelf = place_of(listening), SessionShelf(paths, () if options.beside else None)
    visitors = Visitors(paths.data / "web" / f"{web_address.port}.json")
    fleet = None if options.beside else page_fleet(words, paths)
    as_browser = not (options.lang or os.environ.get("DUCKFLOW_LANG") or read_language(paths.user_config))
    models = None if options.beside else PageModels(paths)
    serve_task = asyncio.create_task(serve(listening, shelf, visitors, words, fleet, as_browser, models))
    address = f"http://{reached_at(web_address).authority}/?token="
    if options.beside:
        print_out(address + visitors.token)
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), partial(_take_orders, shelf, serve_task.cancel))
    else:
        print_out(words("serve.address", address=address + visitors.token))
        _tell_more(web_address, address + visitors.token, options, words)
        if web_address.is_loopback and not options.no_open:
            open_browser(address + visitors.make_once())
    sys.stdout.flush()
    # The browser that was opened stays open.
    with ended_by_signals(serve_task.cancel, takes_along=False), contextlib.suppress(asyncio.CancelledError):
        await serve_task


def _take_orders(shelf: "SessionShelf", stop: Callable[[], object]) -> None:
    """Obeys the terminal that started this process: shows the sessions that it names, and stops when its input ends."""
    orders = os.read(sys.stdin.fileno(), 4096)
    if orders:
        shelf.show(orders.decode().split())
    else:
        stop()


def _tell_more(place: "ServedAt", address: str, options: Options, words: Words) -> None:
    """Warns if the page is served to other machines, and draws the address as a QR code if wanted."""
    if not place.is_loopback:
        print_out(words("serve.open_host", host=place.host))
    if options.qr:
        for line in qr_lines(address):
            print_out(line)


def qr_lines(text: str) -> list[str]:
    """Draws a QR code. Each line of text holds two rows of squares. The light squares are drawn, so that the code looks
    right on a dark background."""
    import segno

    rows = list(map(bytes, segno.make_qr(text, error="l", boost_error=False).matrix_iter(border=4)))
    row_pairs = zip_longest(rows[::2], rows[1::2], fillvalue=bytes(len(rows[0])))
    return [
        "".join(HALVES[module] for module in zip(upper_row, lower_row, strict=True))
        for upper_row, lower_row in row_pairs
    ]


def open_browser(address: str) -> None:
    """Opens the address in a browser if there is a screen. Python's module looks for browsers by PATH, and so do the
    programs that it starts, so it runs where PATH names no place in the work folder."""
    if sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        command = (sys.executable, "-I", "-S", "-m", "webbrowser", address)
        environment, null_stream = environment_outside(Path.cwd()), subprocess.DEVNULL
        subprocess.Popen(
            command,
            env=environment,
            cwd="/",
            stdin=null_stream,
            stdout=null_stream,
            stderr=null_stream,
            start_new_session=True,
        )


def require_parts() -> None:
    """Raises an error if packages for the page are missing, before any work has begun."""
    if not all(importlib.util.find_spec(part) for part in PARTS):
        raise UsageError("serve.missing")
