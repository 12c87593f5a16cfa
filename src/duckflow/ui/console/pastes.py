"""What is pasted: long texts and pictures stand as a mark in the line, and whole in the message."""

import asyncio
import base64
import binascii
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

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


LINES, CHARACTERS = 8, 1200
HINT_SECONDS = 4.0
LONGEST_PATHS = 2000
MARK = re.compile(r"\[[^\[\]\n]{1,80}\]")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
PATHS = re.compile(r"\s*['\"]?(?:/|~/|file://)[^\n]*\.(?:png|jpe?g|gif|webp)['\"]?\s*", re.IGNORECASE)


class Pastes:
    """What was pasted in this session, by its mark."""

    def __init__(self, words: Callable[..., str]) -> None:
        self._texts: dict[str, str] = {}
        self._words = words

    def take(self, pasted: str) -> str:
        """What to put into the line: the text itself when it is short, else a mark. A picture that was dropped onto
        the terminal arrives as its path, and becomes a mention."""
        if len(pasted) <= LONGEST_PATHS and PATHS.fullmatch(pasted) and (found := _pictures(pasted)):
            return found
        text = CONTROL.sub("", pasted.replace("\r\n", "\n").replace("\r", "\n"))
        lines = text.count("\n") + 1
        if lines <= LINES and len(text) <= CHARACTERS:
            return text
        if lines > 1:
            return self._marked("paste.lines", text, lines=lines)
        return self._marked("paste.characters", text, characters=len(text))

    async def paste_picture(self, insert: Callable[[str], None], hint: Callable[[str, float], None]) -> None:
        """From the clipboard, as soon as it is there."""
        found = await asyncio.to_thread(read_picture)
        if mark := self._take_picture(found or b""):
            insert(f"{mark} ")
        else:
            hint("picture.no_program" if found is None else "picture.none_pasted", HINT_SECONDS)

    def _take_picture(self, data: bytes) -> str:
        """The mark of a picture from the clipboard, which lies in a file of its own until the end; nothing for what is
        no picture."""
        from duckflow.state.picture import Picture, read_header

        if (header := read_header(data)) is None:
            return ""
        media, width, height = header
        picture = Picture(digest="", name="", media=media, size=len(data), width=width, height=height)
        path = self._folder / f"clipboard-{len(self._texts) + 1}.{media.removeprefix('image/')}"
        path.write_bytes(data)
        return self._marked("paste.picture", f'@"{path}"', picture=picture.describe())

    def expand(self, line: str) -> str:
        """The line with every mark replaced by what it stands for; what only looks like a mark stays."""
        return MARK.sub(lambda mark: self._texts.get(mark[0], mark[0]), line)

    def _marked(self, key: str, text: str, **values: str | int) -> str:
        mark = self._words(key, number=len(self._texts) + 1, **values)
        self._texts[mark] = text
        return mark

    @cached_property
    def _folder(self) -> Path:
        import atexit
        import shutil
        import tempfile

        folder = tempfile.mkdtemp(prefix="duckflow-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)


def _pictures(pasted: str) -> str:
    """Mentions of the pictures whose paths were pasted, with quotes, backslashes or as addresses; nothing when there is
    anything else among them."""
    import shlex
    from urllib.parse import unquote

    try:
        words = shlex.split(pasted)
    except ValueError:
        return ""
    if not all(Path(word).is_absolute() for word in words) and Path(pasted.strip()).is_absolute():
        # Some terminals leave spaces as they are.
        words = [pasted.strip()]
    paths = [unquote(word.removeprefix("file://")) if word.startswith("file://") else word for word in words]
    if not all(PATHS.fullmatch(path) and Path(path).expanduser().is_file() for path in paths):
        return ""
    return "".join(f'@"{path}" ' if re.search(r"[^\w./~-]", path) else f"@{path} " for path in paths)
