"""A picture from the clipboard, by the program that the desktop has for it."""

import base64
import binascii
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator

from duckflow.programs.find import find_program

SECONDS = 5.0
MAC_DATA = re.compile(rb"data PNGf([0-9A-F]+)")
POWERSHELL = (
    "Add-Type -AssemblyName System.Windows.Forms, System.Drawing;"
    "$picture = [System.Windows.Forms.Clipboard]::GetImage();"
    "if ($picture) { $bytes = New-Object System.IO.MemoryStream;"
    "$picture.Save($bytes, [System.Drawing.Imaging.ImageFormat]::Png);"
    "[Convert]::ToBase64String($bytes.ToArray()) }"
)

Reader = tuple[list[str], Callable[[bytes], bytes]]
"""A command, and how its output is read."""


def read_picture() -> bytes | None:
    """The picture in the clipboard, empty when there is none in it; None where no program is there to ask."""
    asked = False
    for command, decode in _readers():
        program = find_program(command[0])
        if program is None:
            continue
        asked = True
        try:
            done = subprocess.run(
                [program, *command[1:]], stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False
            )
            data = decode(done.stdout) if done.returncode == 0 else b""
        except (OSError, subprocess.TimeoutExpired, binascii.Error, ValueError):
            continue
        if data:
            return data
    return b"" if asked else None


def _readers() -> Iterator[Reader]:
    """Those that fit where we run, the likeliest first."""
    if sys.platform == "darwin":
        yield ["osascript", "-e", "get the clipboard as «class PNGf»"], _from_mac
        return
    for kind in ("image/png", "image/jpeg"):
        if os.environ.get("WAYLAND_DISPLAY"):
            yield ["wl-paste", "--no-newline", "--type", kind], bytes
        if os.environ.get("DISPLAY"):
            yield ["xclip", "-selection", "clipboard", "-target", kind, "-out"], bytes
    yield ["powershell.exe", "-NoProfile", "-STA", "-Command", POWERSHELL], base64.b64decode


def _from_mac(output: bytes) -> bytes:
    found = MAC_DATA.search(output)
    return bytes.fromhex(found[1].decode()) if found else b""
